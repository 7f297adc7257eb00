package dags

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
)

// runFacts is a run with everything that its view needs.
type runFacts struct {
	run    run.Run
	graph  *dag.Graph
	rows   map[string]job.Row   // of nodes; a BLOCKED one has none
	items  map[string][]job.Row // of mapped nodes, in order
	claims map[job.ID]job.Claim
	pauses job.Pauses
	now    time.Time
}

// readRun reads a run and its nodes. An absent run is a problem.
func (s *Handler) readRun(ctx context.Context, k run.Key) (*runFacts, error) {
	is, g, rows, err := s.Runs.Nodes(ctx, k)
	if err != nil {
		return nil, asRunProblem(err)
	}
	f := &runFacts{
		run: is, graph: g, rows: rows, items: map[string][]job.Row{}, now: s.Now(),
	}
	var soon []job.Key
	note := func(r job.Row) {
		if !r.IsMapped() && spec.StartsSoon(r, f.now) {
			soon = append(soon, r.Key)
		}
	}
	for name, row := range rows {
		note(row)
		if !row.IsMapped() {
			continue
		}
		keys := make([]job.Key, row.Items)
		for i := range keys {
			keys[i] = is.Key.Job(name, row.Generation, int64(i)+1)
		}
		if f.items[name], err = s.Store.Nodes(ctx, keys); err != nil {
			return nil, err
		}
		for i, item := range f.items[name] {
			if item.Status == "" && row.Status.Final() { // the node was cancelled before the item began
				f.items[name][i].Status = job.Cancelled
			}
			note(item)
		}
	}
	f.claims, f.pauses, err = s.Claims(ctx, k.Tenant, soon)
	return f, err
}

// status returns the status to show for a job, or for a mapped node by its items.
func (f *runFacts) status(row job.Row) job.Status {
	switch {
	case row.Status == "":
		return job.Blocked
	case !row.IsMapped() || row.Status.Final():
		return job.ReadStatus(row, f.claims[row.ID], f.now)
	}
	waits := job.Status("")
	for _, item := range f.items[row.Node] {
		switch s := f.status(item); {
		case s == job.Running || s.Final():
			return job.Running
		case waits == "" && s != job.Blocked:
			waits = s
		}
	}
	if waits == "" {
		return job.Queued
	}
	return waits
}

// times returns when a node started and ended. For a mapped node it is the start of its first item.
func (f *runFacts) times(row job.Row) (started, finished time.Time) {
	started, finished = job.StartedAt(row, f.claims[row.ID], f.now), row.FinishedAt
	if !row.IsMapped() {
		return started, finished
	}
	for _, item := range f.items[row.Node] {
		at := job.StartedAt(item, f.claims[item.ID], f.now)
		if !at.IsZero() && (started.IsZero() || at.Before(started)) {
			started = at
		}
	}
	return started, finished
}

// shown returns the run's status. It is HELD as soon as nothing can continue without an operator, even if its item
// does not say so yet.
func (f *runFacts) shown(states map[string]dag.NodeState) run.Status {
	is := f.run.Shown()
	if is == run.Running && f.run.Operation == nil && f.graph.Outcome(states, f.run.Stop) == run.Held {
		return run.Held
	}
	return is
}

// states returns the states of the nodes for dag's rules.
func (f *runFacts) states() map[string]dag.NodeState {
	is := make(map[string]dag.NodeState, len(f.rows))
	for name, row := range f.rows {
		state := dag.StateOf(row)
		state.StartedAt, state.FinishedAt = f.times(row)
		is[name] = state
	}
	return is
}

func (f *runFacts) itemCounts(name string) *spec.RunCounts {
	if !f.rows[name].IsMapped() {
		return nil
	}
	c := &spec.RunCounts{}
	for _, item := range f.items[name] {
		c.Add(f.status(item))
	}
	return c
}

// node returns the view of a node.
func (f *runFacts) node(name string, states map[string]dag.NodeState) spec.NodeState {
	row, there := f.rows[name]
	parents := f.graph.Parents(name)
	n := spec.NodeState{
		JobState: spec.JobState{Status: f.status(row)}, Generation: f.run.Generation(name),
		DependsOn: append([]string{}, parents...), Parents: len(parents), Forced: row.Forced != job.NotForced,
	}
	for _, p := range parents {
		if states[p].End() != dag.NotEnded {
			n.ParentsDone++
		}
	}
	n.WaitingFor, n.Why = f.waits(name, row, n.Status, states)
	if there {
		f.describe(row, &n.JobState)
	}
	return n
}

// describe adds what the row of a job has.
func (f *runFacts) describe(row job.Row, n *spec.JobState) {
	if !row.IsMapped() {
		n.JobID, n.Attempt = row.ID, row.Attempt
	}
	if row.Reason.Code != "" {
		n.StatusReason = new(row.Reason)
	}
	started, finished := f.times(row)
	n.StartedAt, n.FinishedAt = rest.At(started), rest.At(finished)
	until := finished
	if n.Status == job.Running {
		until = f.now
	}
	if !started.IsZero() && !until.IsZero() {
		n.DurationMS = new(max(until.Sub(started), 0).Milliseconds())
	}
}

// waits returns what a node waits for, as a word and as a sentence.
func (f *runFacts) waits(name string, row job.Row, s job.Status, states map[string]dag.NodeState) (word, why string) {
	switch s {
	case job.Blocked:
		return f.blocked(name, states)
	case job.Scheduled, job.Queued:
	default:
		return "", ""
	}
	if f.run.Shown() == run.Paused {
		return "pause", "the run is paused"
	}
	none := "it is due and waits for a free worker"
	if row.IsMapped() { // it waits for what the first of its items waits for
		none = fmt.Sprintf("none of its %d items has started", row.Items)
		if started, _ := f.times(row); !started.IsZero() {
			none = "its items wait for a free worker"
		}
		first := slices.IndexFunc(f.items[name], func(item job.Row) bool { return f.status(item) == s })
		if first < 0 { // they are being released
			return "worker", none
		}
		row = f.items[name][first]
	}
	_, paused := f.pauses.Hold(row.Task, f.now)
	switch word = job.WaitingFor(row, f.claims[row.ID], paused, f.now); word {
	case "pause":
		return word, "a pause of its task, or of everything, holds it"
	case "due":
		return word, "due at " + row.DueAt.UTC().Format(rest.InstantLayout)
	case job.WaitsForHandler:
		return "worker", fmt.Sprintf(spec.NoHandler, row.Task)
	case "retry", "snooze":
		return "retry", fmt.Sprintf("attempt %d is due at %s", row.Attempt, row.DueAt.UTC().Format(rest.InstantLayout))
	}
	return "worker", none
}

// blocked returns why a node has not been released.
func (f *runFacts) blocked(name string, states map[string]dag.NodeState) (word, why string) {
	switch v, _ := f.graph.EvaluateNode(name, states); {
	case v == dag.Held:
		return "operator", "an upstream node failed: retry, skip or complete that node or this one, or cancel the run"
	case v == dag.Wait:
		return "parents", "waits for " + f.unended(name, states)
	case v == dag.Run && f.graph.AwaitsRead(name, states) != "":
		return "parents", "waits for " + f.graph.AwaitsRead(name, states) + ", whose facts its expressions use"
	case f.run.Shown() == run.Paused:
		return "pause", "the run is paused"
	case v == dag.Run && f.graph.MaxConcurrency > 0:
		if f.graph.MaxConcurrency == 1 {
			return "limit", "another job of the run is active, and the max_concurrency of the run is 1"
		}
		return "limit", fmt.Sprintf("%d jobs of the run are active, which is the max_concurrency of the run",
			f.graph.MaxConcurrency)
	case v == dag.Run && f.run.Generation(name) > 1: // it starts once what it ran before has stopped
		return "parents", "its parents have just ended, or its earlier job has not stopped yet"
	}
	return "parents", "its parents have just ended"
}

// unended lists the parents that have not ended, in words.
func (f *runFacts) unended(name string, states map[string]dag.NodeState) string {
	var open []string
	for _, p := range f.graph.Parents(name) {
		if states[p].End() != dag.NotEnded {
			continue
		}
		if c := f.itemCounts(p); c != nil {
			p += " (" + c.Ended() + ")"
		}
		open = append(open, p)
	}
	return spec.SomeNames(open)
}

// viewRun shows what the run's own item has.
func viewRun(is run.Run) spec.RunView {
	v := spec.RunView{
		RunID: is.ID, Status: is.Shown(), CreatedAt: rest.At(is.CreatedAt),
		DueAt: rest.At(is.DueAt), FinishedAt: rest.At(is.FinishedAt),
		NominalAt: rest.At(is.NominalAt), Schedule: is.Schedule, Priority: is.Priority,
	}
	if is.Dag != "" {
		v.Dag, v.DagVersion = &is.Dag, &is.Version
	}
	if is.Reason.Code != "" {
		v.StatusReason = &is.Reason
	}
	return v
}

// view shows a run with its nodes.
func (f *runFacts) view() spec.RunView {
	v := viewRun(f.run)
	v.Counts, v.Nodes = &spec.RunCounts{}, make(map[string]spec.RunNodeView, len(f.graph.Names()))
	states := f.states()
	v.Status = f.shown(states)
	var failed, cancelled []string
	for _, name := range f.graph.Names() {
		n := spec.RunNodeView{NodeState: f.node(name, states), Items: f.itemCounts(name)}
		v.Nodes[name] = n
		v.Counts.Add(n.Status)
		switch {
		case n.Status == job.Dead || n.Status == job.Expired:
			failed = append(failed, name)
		case n.Status == job.Cancelled && (n.StatusReason == nil || n.StatusReason.Code != dag.ReasonParentFailed):
			cancelled = append(cancelled, name)
		}
		if !n.StartedAt.IsZero() && (v.StartedAt.IsZero() || n.StartedAt.Before(v.StartedAt.Time)) {
			v.StartedAt = n.StartedAt
		}
	}
	v.CriticalPath = f.graph.CriticalPath(states, f.now)
	if v.StatusReason == nil && (v.Status == run.Failed || v.Status == run.Held) {
		v.StatusReason = nodesFailed(failed, cancelled)
	}
	return v
}

// nodesFailed is why a run failed: by the nodes that did or, without any, by those that were cancelled and not for a
// parent.
func nodesFailed(failed, cancelled []string) *job.Reason {
	why := job.Reason{Code: "node_failed"}
	switch {
	case len(failed) == 1:
		why.Message = "node " + failed[0] + " failed"
	case len(failed) > 1:
		why.Message = "nodes " + spec.SomeNames(failed) + " failed"
	case len(cancelled) == 1:
		why.Message = "node " + cancelled[0] + " was cancelled"
	case len(cancelled) > 1:
		why.Message = "nodes " + spec.SomeNames(cancelled) + " were cancelled"
	default:
		return nil
	}
	return &why
}

// ShowRun reads a run and returns its whole view.
func (s *Handler) ShowRun(ctx context.Context, k run.Key) (spec.RunView, error) {
	f, err := s.readRun(ctx, k)
	if err != nil {
		return spec.RunView{}, err
	}
	v := f.view()
	return v, s.addRunContents(ctx, f.run, &v)
}

// addRunContents adds the run's contents to its view.
func (s *Handler) addRunContents(ctx context.Context, is run.Run, v *spec.RunView) error {
	params, err := s.Store.Params(ctx, is)
	if err != nil {
		return err
	}
	if params == "" {
		params = "{}"
	}
	v.Params = json.RawMessage(params)
	if !is.Tagged {
		return nil
	}
	tags, err := s.Store.RunContent(ctx, is.Key, run.TagsContent)
	if fault.KindOf(err) == fault.NotFound { // it is being forgotten at this moment
		return nil
	}
	if err == nil {
		_ = json.Unmarshal([]byte(tags), &v.Tags) // we wrote it
	}
	return err
}
