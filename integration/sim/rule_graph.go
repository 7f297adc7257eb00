package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/dag/dagtest"
	"punctual/shared/item"
	"punctual/shared/job"
	graphs "punctual/shared/run"
)

// revision is a run as it was after one write.
type revision struct {
	graphs.Run
	at time.Time // real time
}

// forbids returns why that run does not let a job start, "" if it does.
func (s revision) forbids(d dag.Definition, r job.Row, now time.Time) string {
	stopped := s.Stop != graphs.NoStop && !dagtest.Run{Definition: d, Item: s.Run}.RunsStopped(r.Node)
	switch {
	case s.Status.Final() || stopped:
		return fmt.Sprintf("its run is %s, stop %q", s.Status, s.Stop)
	case s.Paused:
		return "its run is paused"
	case s.Operation != nil:
		return "its run is being changed"
	case r.Generation != s.Generation(r.Node):
		return fmt.Sprintf("it is of generation %d, and generation %d counts", r.Generation, s.Generation(r.Node))
	case s.Stop == graphs.NoStop && !s.ExpiryAt.IsZero() && now.After(s.ExpiryAt.Add(slack)):
		return fmt.Sprintf("its run has expired %s ago", now.Sub(s.ExpiryAt))
	}
	return ""
}

func graphNames(d dag.Definition) []string { return slices.Sorted(maps.Keys(d.Nodes)) }

// seeGraph verifies one write of a run that took effect. The lock is held.
func (l *ledger) seeGraph(w item.Write, is item.Item) {
	next, err := graphs.Parse(is)
	if err != nil {
		l.w.violation("%s: the run cannot be read: %v", w.Name, err)
		return
	}
	bad := func(format string, args ...any) {
		l.w.violation("%s of run %s: %s", w.Name, short(next.ID), fmt.Sprintf(format, args...))
	}
	l.w.note(nil, fmt.Sprintf("%s %s: %s epoch %d stop %q paused %v act %v wake %s nodes %v", w.Name, short(next.ID),
		next.Status, next.Epoch, next.Stop, next.Paused, next.Operation != nil, clockTime(next.WakeAt), next.Nodes))
	revisions := l.revisions[next.Key]
	if len(revisions) > 0 {
		old := revisions[len(revisions)-1]
		switch {
		case next.Epoch < old.Epoch:
			bad("the epoch shrank from %d to %d", old.Epoch, next.Epoch)
		case next.Epoch == old.Epoch && old.Status.Final() && next.Status != old.Status:
			bad("a final status was left without an act: %s", old.Status)
		}
		for name, n := range old.Nodes {
			if next.Nodes[name].Generation < n.Generation {
				bad("the generation of %q shrank from %d to %d", name, n.Generation, next.Nodes[name].Generation)
			}
		}
	}
	if (next.Status.Final() && next.Operation == nil && !next.Unfinished()) != next.WakeAt.IsZero() {
		bad("it is %s and wakes at %s", next.Status, clockTime(next.WakeAt))
	}
	if s := next.Slice(); s != "" {
		l.slices[s] = true
	}
	l.revisions[next.Key] = append(revisions, revision{next, time.Now()})
}

// since returns the states of a run that were in force at any time since at.
func (l *ledger) since(k graphs.Key, at time.Time) []revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.revisions[k]
	n := len(all) - 1
	for n > 0 && all[n].at.After(at) {
		n--
	}
	return slices.Clone(all[max(n, 0):])
}

// stoppedFor reports whether a run has ever been stopped for that reason, in a way that may have ended the node. A
// retry of one node of a stopped run leaves the others as the stop has ended them.
func (l *ledger) stoppedFor(g graph, node, reason string) bool {
	return slices.ContainsFunc(l.since(g.Key, time.Time{}), func(s revision) bool {
		return s.Stop != graphs.NoStop && s.Stop.Reason() == reason &&
			dagtest.Run{Definition: g.Definition, Item: s.Run}.MayBeStopped(node)
	})
}

// mayRun verifies that a run allows the job of a node to start now. The lock of the history is held.
func (w *World) mayRun(r *run, row job.Row, bad func(string, ...any)) {
	k := graphs.Of(row)
	stood := w.ledger.since(k, r.from.Add(-contract.EffectiveAfter-decidedWithin))
	if len(stood) == 0 {
		bad("there is no run %s", row.RunID)
		return
	}
	is := stood[len(stood)-1].Run
	g, ok := w.graphOfRun(is)
	if !ok {
		bad("nobody has asked for its run")
		return
	}
	why := ""
	for _, s := range stood { // the worker may have read facts that old
		if why = s.forbids(g.Definition, row, r.from); why == "" {
			break
		}
	}
	if why != "" {
		bad("%s", why)
	}
	right := dagtest.Run{Definition: g.Definition, Item: is, Rows: w.ledger.nodesOf(is, g)}
	n := g.Nodes[row.Node]
	if v, _, ends := right.Verdict(row.Node); v != dag.Run && !right.ParentRetried(row.Node) {
		bad("node %q starts after %v, and its rule %q says %s", row.Node, ends, n.RunIf, v)
	}
	if n.When == "false" || n.When == failingWhen || n.ForEach == "${[]}" {
		bad("node %q starts in spite of its when %q, for_each %q", row.Node, n.When, n.ForEach)
	}
	if before, ok := w.ledger.row(k.Job(row.Node, row.Generation-1, 0)); ok && before.Status == job.Succeeded &&
		!slices.Contains(w.wholly, k) {
		bad("node %q starts once more in generation %d after it has succeeded", row.Node, row.Generation)
	}
	w.withinLimits(g, row, bad)
}

// carried reports whether a row is an item that was carried over because it succeeded in an older generation.
func (w *World) carried(r job.Row) bool {
	if !r.IsItem() || r.Generation < 2 {
		return false
	}
	before, _ := w.ledger.row(graphs.Of(r).Job(r.Node, r.Generation-1, r.ItemNo))
	return before.Status == job.Succeeded
}

// withinLimits verifies that no more jobs of a run, and of a mapped node, are open than may be.
func (w *World) withinLimits(g graph, row job.Row, bad func(string, ...any)) {
	open, items := 0, 0
	for _, r := range w.ledger.all() {
		if r.Tenant != g.Tenant || r.RunID != string(g.ID) || r.Status.Final() || r.IsMapped() {
			continue
		}
		open++
		if r.Node == row.Node && r.Generation == row.Generation {
			items++
		}
	}
	if most := g.MaxConcurrency; most > 0 && open > most {
		bad("%d jobs of the run are open, of at most %d", open, most)
	}
	if most := g.Nodes[row.Node].MaxParallel; most > 0 && items > most {
		bad("%d items of node %q are open, of at most %d", items, row.Node, most)
	}
}

// graphOfRun is the graph that a caller has asked for, or that of a schedule's run.
func (w *World) graphOfRun(is graphs.Run) (graph, bool) {
	if is.Schedule != "" {
		body, err := w.behindTheScenes().Definition(context.Background(), is.Tenant, is.Definition)
		if err != nil {
			return graph{}, false
		}
		d, err := dag.ParseDefinition(body)
		return graph{is.Key, d}, err == nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.graphs {
		if g.Key == is.Key {
			return g, true
		}
	}
	return graph{}, false
}

// nodesOf returns the rows of the nodes of a run in their current generations.
func (l *ledger) nodesOf(is graphs.Run, g graph) map[string]job.Row {
	rows := map[string]job.Row{}
	for name := range g.Nodes {
		if r, ok := l.row(is.Job(name)); ok {
			rows[name] = r
		}
	}
	return rows
}

// CameRight verifies that a run has ended as its graph, the ends of its nodes and its operators say.
func (w *Client) CameRight(g graph) {
	is, rows := w.nodes(g)
	right := dagtest.Run{Definition: g.Definition, Item: is, Rows: rows}
	for _, name := range graphNames(g.Definition) {
		w.nodeCameRight(right, g, name)
	}
	if want := right.Status(); is.Status != want || !want.Final() {
		w.violation("run %s is %s (stop %q), want %s", short(g.ID), is.Status, is.Stop, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done["a run "+string(is.Status)]++
	w.done["nodes"] += len(g.Nodes)
}

// nodeCameRight verifies the end of one node.
func (w *Client) nodeCameRight(right dagtest.Run, g graph, name string) {
	r, n := right.Rows[name], g.Nodes[name]
	v, _, ends := right.Verdict(name)
	status, reason := right.WithoutStart(name)
	if v == dag.Run && n.When == failingWhen {
		status, reason = job.Dead, dag.ReasonExpressionFailed
	}
	switch started := len(w.runs(r.Key)) > 0 || r.IsMapped(); {
	case r.Forced != job.NotForced || right.ParentRetried(name):
	case started:
		w.jobCameRight(right.Item, g, r, name)
	case r.Status == job.Cancelled && w.ledger.stoppedFor(g, name, r.Reason.Code):
	case r.Status == job.Dead && r.Reason.Code == job.CodePoison && w.lostWorkers() > 0:
	case status == "" || r.Status != status || r.Reason.Code != reason:
		w.violation("node %q of run %s is %s (%s) and never started after %v: %s under %s says %s, want %s (%s)",
			name, short(g.ID), r.Status, r.Reason.Code, ends, n.RunIf, g.OnFailure, v, status, reason)
	}
}

// jobCameRight verifies the end of a node that has run, where nothing went wrong and no operator has acted.
func (w *Client) jobCameRight(is graphs.Run, g graph, r job.Row, name string) {
	w.mu.Lock()
	operated := slices.Contains(w.operated, g.Key)
	w.mu.Unlock()
	if operated || w.faults() > 0 || is.Stop != graphs.NoStop {
		return
	}
	want := job.Succeeded
	if n := g.Nodes[name]; failsForGood(n) {
		want = job.Dead
	}
	if r.Status != want {
		w.violation("node %q of run %s has run and is %s (%s), want %s", name, short(g.ID), r.Status, r.Reason.Code,
			want)
	}
}

// failsForGood says whether a node of a random graph is made to fail in its first generation.
func failsForGood(n dag.Node) bool {
	var does struct{ Permanent any }
	if err := json.Unmarshal(n.Payload, &does); err != nil {
		return false
	}
	items := 1 + strings.Count(n.ForEach, ",")
	tolerated := n.ForEach != "" && n.MaxFailed.Percent*items >= 100
	return does.Permanent == true || does.Permanent == failingItem && strings.Contains(n.ForEach, "2") && !tolerated
}
