package dag

import (
	"slices"
	"time"

	"punctual/shared/job"
	"punctual/shared/run"
)

// RunStatus is the status of a run.
type RunStatus = run.Status

// The statuses of a run; the last three are final.
const (
	Building     = run.Building
	Running      = run.Running
	Paused       = run.Paused
	HeldRun      = run.Held
	SucceededRun = run.Succeeded
	FailedRun    = run.Failed
	CancelledRun = run.Cancelled
)

// RunStatuses lists all statuses of a run.
var RunStatuses = []string{
	string(Building), string(Running), string(Paused), string(HeldRun), string(SucceededRun), string(FailedRun),
	string(CancelledRun),
}

// NodeState is the state of one node of a run.
type NodeState struct {
	Status     job.Status
	StartedAt  time.Time // zero: it never started
	FinishedAt time.Time // zero: it has not ended
	// ChildrenRun reports that an operator skipped the node and that its children run as if it had
	// succeeded.
	ChildrenRun bool
}

// End returns how the node ended, as its children see it.
func (n NodeState) End() End {
	if n.Status == job.Skipped && n.ChildrenRun {
		return Succeeded
	}
	return EndOf(n.Status)
}

// Stop is why a run ends before its nodes have decided its status.
type Stop = run.Stop

// The reasons; NoStop means that the nodes decide.
const (
	NoStop     = run.NoStop
	StopCancel = run.StopCancel
	StopExpire = run.StopExpire
	StopFail   = run.StopFail
)

// Outcome returns the status of a run: a final one once every node has ended, HELD when nothing can
// go on without an operator, otherwise RUNNING. Nodes that are not in states are BLOCKED.
func (g *Graph) Outcome(states map[string]NodeState, stop Stop) RunStatus {
	open, moving := 0, 0
	for _, name := range g.names {
		s := states[name].Status
		if s.Final() {
			continue
		}
		open++
		if s != "" && s != job.Blocked {
			moving++
			continue
		}
		v, _ := g.EvaluateNode(name, states)
		if v == Run && g.AwaitsRead(name, states) != "" {
			v = Wait
		}
		if v != Held && v != Wait {
			moving++
		}
	}
	switch {
	case open > 0 && moving == 0 && stop == NoStop: // all of them wait for a held node
		return HeldRun
	case open > 0:
		return Running
	case stop == StopCancel:
		return CancelledRun
	case stop != NoStop:
		return FailedRun
	}
	for _, name := range g.names {
		if g.OnFailure == Continue && len(g.children[name]) > 0 {
			continue // under continue only the last nodes decide
		}
		if s := states[name].Status; s != job.Succeeded && s != job.Skipped {
			return FailedRun
		}
	}
	return SucceededRun
}

// EvaluateNode applies Evaluate to a node of a run.
func (g *Graph) EvaluateNode(name string, states map[string]NodeState) (Verdict, string) {
	n := g.Nodes[name]
	ends := make([]End, len(n.DependsOn))
	for i, p := range n.DependsOn {
		ends[i] = states[p].End()
	}
	return Evaluate(n.RunIf, g.OnFailure, ends)
}

// CriticalPath returns the chain of started nodes, each after the one before, with the longest
// total running time so far; of equal chains the alphabetically first. Running nodes count until
// now.
func (g *Graph) CriticalPath(states map[string]NodeState, now time.Time) []string {
	type best struct {
		took time.Duration
		from string
	}
	paths := map[string]best{}
	last := ""
	for _, level := range g.levels {
		for _, name := range level {
			s := states[name]
			if s.StartedAt.IsZero() {
				continue
			}
			end := s.FinishedAt
			if end.IsZero() {
				end = now
			}
			b := best{}
			for _, p := range slices.Sorted(slices.Values(g.Nodes[name].DependsOn)) {
				if before, ok := paths[p]; ok && (b.from == "" || before.took > b.took) {
					b = best{before.took, p}
				}
			}
			b.took += max(end.Sub(s.StartedAt), 0)
			paths[name] = b
			if last == "" || b.took > paths[last].took || b.took == paths[last].took && b.from == last {
				last = name
			}
		}
	}
	path := []string{}
	for name := last; name != ""; name = paths[name].from {
		path = append(path, name)
	}
	slices.Reverse(path)
	return path
}

// Fallen returns the nodes that a retry of the whole run runs once more: those that failed, and
// those that were cancelled or skipped because of a failure. Nodes that an operator skipped or
// completed, or that their own when or an empty list skipped, are included only if a node above
// them runs once more.
func (g *Graph) Fallen(states map[string]NodeState, reasons map[string]string) []string {
	fallen := map[string]bool{}
	for _, level := range g.levels {
		for _, name := range level {
			s := states[name]
			switch {
			case !s.Status.Final() || s.Status == job.Succeeded:
			case s.End() == Failed:
				fallen[name] = true
			case s.Status == job.Skipped && g.becauseOf(name, fallen, reasons[name]):
				fallen[name] = true
			}
		}
	}
	return sortedKeys(fallen)
}

// becauseOf reports whether a skipped node was skipped because of a parent that runs once more.
func (g *Graph) becauseOf(name string, fallen map[string]bool, reason string) bool {
	if reason == ReasonSkippedByOperator {
		return false
	}
	return slices.ContainsFunc(g.Nodes[name].DependsOn, func(p string) bool { return fallen[p] })
}
