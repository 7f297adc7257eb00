package dags

import (
	"context"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// viewNode returns the view of a node.
func viewNode(f *dag.Snapshot, name string, states map[string]dag.NodeState) spec.NodeState {
	row, there := f.Rows[name]
	parents := f.Graph.Parents(name)
	n := spec.NodeState{
		JobState: spec.JobState{Status: f.Status(row)}, Generation: f.Run.Generation(name),
		DependsOn: append([]string{}, parents...), Parents: len(parents), Forced: row.Forced != job.NotForced,
	}
	for _, p := range parents {
		if states[p].End() != dag.NotEnded {
			n.ParentsDone++
		}
	}
	n.WaitingFor, n.Why = f.Waits(name, row, n.Status, states)
	if there {
		describe(f, row, &n.JobState)
	}
	return n
}

// describe adds what the row of a job has.
func describe(f *dag.Snapshot, row job.Row, n *spec.JobState) {
	if !row.IsMapped() {
		n.JobID, n.Attempt = row.ID, row.Attempt
	}
	if row.Reason.Code != "" {
		n.StatusReason = new(row.Reason)
	}
	started, finished := f.Times(row)
	n.StartedAt, n.FinishedAt = rest.At(started), rest.At(finished)
	until := finished
	if n.Status == job.Running {
		until = f.Now
	}
	if !started.IsZero() && !until.IsZero() {
		n.DurationMS = new(max(until.Sub(started), 0).Milliseconds())
	}
}

// viewRun shows what the run's own item has.
func viewRun(is run.Run) spec.RunView {
	v := spec.RunView{
		RunID: is.ID, Status: is.Shown(), CreatedAt: rest.At(is.CreatedAt),
		DueAt: rest.At(is.DueAt), FinishedAt: rest.At(is.FinishedAt), StoppedAt: rest.At(is.StoppedAt),
		NominalAt: rest.At(is.NominalAt), Schedule: is.Schedule, Backfill: is.Backfill, Priority: is.Priority,
	}
	if is.Dag != "" {
		v.Dag, v.DagVersion = &is.Dag, &is.DagVersion
	}
	if is.Reason.Code != "" {
		v.StatusReason = &is.Reason
	}
	return v
}

// viewWhole shows a run with its nodes.
func viewWhole(r show.Run) spec.RunView {
	f, v := r.Snapshot, viewRun(r.Snapshot.Run)
	v.Params, v.Tags = r.Params, r.Tags
	v.Counts, v.Nodes = &dag.RunCounts{}, make(map[string]spec.RunNodeView, len(f.Graph.Names()))
	states := f.States()
	v.Status = f.Shown(states)
	var failed, cancelled []string
	for _, name := range f.Graph.Names() {
		n := spec.RunNodeView{NodeState: viewNode(f, name, states), Items: f.Counts(name)}
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
	v.CriticalPath = f.Graph.CriticalPath(states, f.Now)
	if v.StatusReason == nil && (v.Status == run.Failed || v.Status == run.Held) {
		v.StatusReason = dag.FailedBy(failed, cancelled)
	}
	return v
}

// ShowRun reads a run and returns its whole view.
func (s *Handler) ShowRun(ctx context.Context, k run.Key) (spec.RunView, error) {
	r, err := s.Read.Run(ctx, k)
	if err != nil {
		return spec.RunView{}, asRunProblem(err)
	}
	return viewWhole(r), nil
}
