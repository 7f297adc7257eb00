package dagtest

import (
	"slices"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// Run is a run as its item and the rows of its nodes show it.
type Run struct {
	dag.Definition
	Item run.Run
	Rows map[string]job.Row // of the current generation of each node; a BLOCKED node has none
}

// EndOf returns how a node has ended, as its children see it.
func EndOf(row job.Row) dag.End {
	switch row.Status {
	case job.Succeeded:
		return dag.Succeeded
	case job.Dead, job.Expired, job.Cancelled:
		return dag.Failed
	case job.Skipped:
		if row.Forced == job.ForcedSkip {
			return dag.Succeeded
		}
		return dag.Skipped
	}
	return dag.NotEnded
}

// Verdict returns what the rule of a node says after these ends of its parents, and the reason where it does not run.
func (r Run) Verdict(node string) (v dag.Verdict, reason string, parents []dag.End) {
	for _, p := range r.Nodes[node].DependsOn {
		parents = append(parents, EndOf(r.Rows[p]))
	}
	v, reason = Evaluate(r.Nodes[node].RunIf, r.OnFailure, parents)
	return v, reason, parents
}

// ParentRetried reports whether a parent has begun a newer generation since the node was evaluated: then the verdict
// by its current end says nothing about the node.
func (r Run) ParentRetried(node string) bool {
	return slices.ContainsFunc(r.Nodes[node].DependsOn, func(p string) bool {
		return r.Item.Since(p) > r.Item.Since(node)
	})
}

// WithoutStart returns how a node has to end that never starts: its status and the code of its reason. No status means
// that it has to start, or to wait. An expression is known only if it is the literal false or an empty list.
func (r Run) WithoutStart(node string) (status job.Status, reason string) {
	v, reason, _ := r.Verdict(node)
	switch n := r.Nodes[node]; {
	case v == dag.Cancel:
		return job.Cancelled, reason
	case v == dag.Skip:
		return job.Skipped, reason
	case v == dag.Run && n.When == "false":
		return job.Skipped, dag.ReasonWhenFalse
	case v == dag.Run && n.ForEach == "${[]}":
		return job.Skipped, dag.ReasonEmpty
	}
	return "", ""
}

// RunsStopped reports whether the node may start although the run is stopped: it runs always, the run was not cancelled
// once more, and what has ended in it is known.
func (r Run) RunsStopped(node string) bool {
	return r.Nodes[node].RunIf == dag.Always && !r.Item.StopAll && !r.Item.Lost
}

// MayBeStopped reports whether a stop of the run may end the node before it starts: one that does not run always, and
// one without parents, which waits for the due time of the run.
func (r Run) MayBeStopped(node string) bool {
	return !r.RunsStopped(node) || len(r.Nodes[node].DependsOn) == 0 && r.Item.StoppedAt.Before(r.Item.DueAt)
}

// Status returns the status of the run once nothing of it goes on.
func (r Run) Status() run.Status {
	ends := map[string]dag.End{}
	for name := range r.Nodes {
		ends[name] = EndOf(r.Rows[name])
	}
	return Status(r.Definition, ends, r.Item.Stop)
}

// Status returns the status of a run of which nothing goes on, by the ends of its nodes and by its stop. Without a stop
// a node that has not ended is held.
func Status(d dag.Definition, ends map[string]dag.End, stop run.Stop) run.Status {
	open, failed := false, false
	for name := range d.Nodes {
		open = open || ends[name] == dag.NotEnded
		failed = failed || ends[name] == dag.Failed && (d.OnFailure != dag.Continue || !hasChildren(d, name))
	}
	switch {
	case open && stop == run.NoStop:
		return run.Held
	case open:
		return run.Running
	case stop == run.StopCancel:
		return run.Cancelled
	case stop != run.NoStop || failed:
		return run.Failed
	}
	return run.Succeeded
}

func hasChildren(d dag.Definition, name string) bool {
	for _, n := range d.Nodes {
		if slices.Contains(n.DependsOn, name) {
			return true
		}
	}
	return false
}

// Outcome returns how each node and the run end if no operator acts and every node that starts ends as fails says. It
// knows neither expressions nor cancel_run, under which it matters which node fails first.
func Outcome(d dag.Definition, fails func(node string) bool) (map[string]dag.End, run.Status) {
	ends := map[string]dag.End{}
	var end func(name string) dag.End
	end = func(name string) dag.End {
		if known, ok := ends[name]; ok {
			return known
		}
		var parents []dag.End
		for _, p := range d.Nodes[name].DependsOn {
			parents = append(parents, end(p))
		}
		v, _ := Evaluate(d.Nodes[name].RunIf, d.OnFailure, parents)
		ends[name] = map[dag.Verdict]dag.End{dag.Run: dag.Succeeded, dag.Cancel: dag.Failed, dag.Skip: dag.Skipped}[v]
		if v == dag.Run && fails(name) {
			ends[name] = dag.Failed
		}
		return ends[name]
	}
	for name := range d.Nodes {
		end(name)
	}
	return ends, Status(d, ends, run.NoStop)
}
