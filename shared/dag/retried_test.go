package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestNodesToRetry_AreThoseThatFailedAndThoseCancelledByThem(t *testing.T) {
	t.Parallel()
	// a cancels b, b cancels c; d is after a, too; z is apart.
	lines := []string{"a", "b: a", "c: b", "d: a", "z"}
	override := map[string]run.Node{"b": {Generation: 2, Since: 2, Override: job.ForcedComplete}}
	for name, c := range map[string]struct {
		operation run.Operation
		nodes     map[string]run.Node
		rows      string // status of the nodes that have a row; ! ended by an operator
		want      string
	}{
		"a retry of a run in which nothing failed": {run.Operation{Kind: run.OperationRetry}, nil,
			"a=SUCCEEDED b=SUCCEEDED c=SKIPPED d=RUNNING z=SCHEDULED", ""},
		"a retry takes each end that is a failure": {run.Operation{Kind: run.OperationRetry}, nil,
			"a=SUCCEEDED b=DEAD c=CANCELLED d=EXPIRED z=SUCCEEDED", "b c d"},
		"a retry takes what is blocked below": {run.Operation{Kind: run.OperationRetry}, nil, "a=DEAD", "a b c d"},
		"a retry takes what was skipped below, and not what was skipped elsewhere": {
			run.Operation{Kind: run.OperationRetry}, nil,
			"a=DEAD b=SKIPPED c=SKIPPED d=SUCCEEDED z=SKIPPED", "a b c"},
		"a retry leaves what an operator skipped": {run.Operation{Kind: run.OperationRetry}, nil,
			"a=DEAD b=SKIPPED! c=SKIPPED d=SUCCEEDED", "a"},
		"a retry leaves what has succeeded or is on its way": {run.Operation{Kind: run.OperationRetry}, nil,
			"a=DEAD b=SUCCEEDED c=RUNNING d=SCHEDULED", "a"},
		"a retry leaves what an operator has ended and has no row yet": {
			run.Operation{Kind: run.OperationRetry}, override,
			"a=DEAD", "a d"},
		"a retry of one node leaves another that failed": {run.Operation{Kind: run.OperationRetryNode, Node: "b"}, nil,
			"a=SUCCEEDED b=DEAD c=CANCELLED d=DEAD z=DEAD", "b c"},
		"a retry of one node takes what is blocked below": {run.Operation{Kind: run.OperationRetryNode, Node: "a"}, nil,
			"a=DEAD b=CANCELLED d=SUCCEEDED", "a b c"},
		"a retry of a node that has not failed": {run.Operation{Kind: run.OperationRetryNode, Node: "b"}, nil,
			"a=DEAD b=SKIPPED", ""},
		"a retry of a blocked node": {run.Operation{Kind: run.OperationRetryNode, Node: "b"}, nil, "a=DEAD", ""},
		"a skip of a failed node brings back what it cancelled": {
			run.Operation{Kind: run.OperationForce, Node: "a"}, nil,
			"a=EXPIRED b=CANCELLED c=CANCELLED d=SKIPPED z=DEAD", "a b c d"},
		"a retry from a node takes all below, whatever they are": {
			run.Operation{Kind: run.OperationRetryFrom, Node: "b"}, nil,
			"a=DEAD b=SUCCEEDED c=RUNNING d=DEAD", "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := map[string]job.Row{}
			for is := range strings.FieldsSeq(c.rows) {
				node, status, _ := strings.Cut(is, "=")
				row := job.Row{Status: job.Status(strings.TrimSuffix(status, "!"))}
				if strings.HasSuffix(status, "!") {
					row.Forced = job.ForcedSkip
				}
				rows[node] = row
			}
			got := mustCompile(t, graph(lines...)).NodesToRetry(run.Run{Nodes: c.nodes}, c.operation, rows)
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestJoinNeeds_AreTheEndsOfParentsThatBeganWithTheNodeOrLater(t *testing.T) {
	t.Parallel()
	since := func(epochs map[string]int64) run.Run {
		r := run.Run{Nodes: map[string]run.Node{}}
		for name, e := range epochs {
			r.Nodes[name] = run.Node{Generation: 2, Since: e}
		}
		return r
	}
	g := mustCompile(t, graph("a", "b", "c", "d", "e", "four: a b c d", "five: a b c d e"))
	for name, c := range map[string]struct {
		r    run.Run
		node string
		want int
	}{
		"no parents are counted":                 {since(nil), "a", 0},
		"four are not":                           {since(nil), "four", 0},
		"five are":                               {since(nil), "five", 5},
		"only those that ran again with it":      {since(map[string]int64{"a": 3, "b": 3, "five": 3}), "five", 2},
		"and those that ran again after it":      {since(map[string]int64{"a": 3, "b": 5, "five": 3}), "five", 2},
		"not those that ran again before it":     {since(map[string]int64{"a": 2, "b": 3, "five": 3}), "five", 1},
		"all, where it did not run again itself": {since(map[string]int64{"a": 3}), "five", 5},
	} {
		if got := g.JoinNeeds(c.r, c.node); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestEndNeeds_AreTheEndsOfTheLastNodesThatBeganWithTheNewestRetry(t *testing.T) {
	t.Parallel()
	lines := []string{"root"}
	for n := range 5 {
		lines = append(lines, fmt.Sprintf("last%d: root", n))
	}
	retried := func(r *run.Run, name string, since int64) { r.Nodes[name] = run.Node{Generation: 2, Since: since} }
	for name, c := range map[string]struct {
		last   int
		change func(*run.Run)
		era    int64
		want   int
	}{
		"one last node is not counted": {1, func(*run.Run) {}, 1, 0},
		"four are not":                 {4, func(*run.Run) {}, 1, 0},
		"four are not after a retry":   {4, func(r *run.Run) { retried(r, "last0", 3) }, 3, 0},
		"five are":                     {5, func(*run.Run) {}, 1, 5},
		"those that ran again are":     {5, func(r *run.Run) { retried(r, "last0", 3); retried(r, "last1", 3) }, 3, 2},
		"by the newest retry of any":   {5, func(r *run.Run) { retried(r, "last0", 3); retried(r, "last1", 4) }, 4, 1},
		"also by that of another node": {5, func(r *run.Run) { retried(r, "last0", 3); retried(r, "root", 4) }, 4, 0},
	} {
		r := run.Run{Nodes: map[string]run.Node{}}
		c.change(&r)
		era, n := mustCompile(t, graph(lines[:c.last+1]...)).EndNeeds(r)
		if era != c.era || n != c.want {
			t.Errorf("%s: %d in era %d, want %d in %d", name, n, era, c.want, c.era)
		}
	}
}

func TestStateOf_LetsChildrenRunOnlyAfterASkipThatSaysSo(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	row := job.Row{Status: job.Skipped, StartedAt: at, FinishedAt: at.Add(time.Second)}
	for forced, want := range map[job.Forced]dag.End{
		job.NotForced: dag.Skipped, job.ForcedSkip: dag.Succeeded, job.ForcedSkipBelow: dag.Skipped,
	} {
		row.Forced = forced
		s := dag.StateOf(row)
		if s.End() != want || s.StartedAt != at || s.FinishedAt != at.Add(time.Second) {
			t.Errorf("%q: %+v ends as %s, want %s", forced, s, s.End(), want)
		}
	}
	ends := []dag.End{}
	for _, s := range []job.Status{job.Succeeded, job.Dead, job.Expired, job.Cancelled, job.Skipped, job.Scheduled,
		job.Running, job.Blocked, ""} {
		ends = append(ends, dag.EndOf(s))
	}
	want := []dag.End{dag.Succeeded, dag.Failed, dag.Failed, dag.Failed, dag.Skipped, "", "", "", ""}
	if !slices.Equal(ends, want) {
		t.Errorf("ends %q", ends)
	}
}
