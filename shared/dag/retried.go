package dag

import (
	"punctual/shared/job"
	"punctual/shared/run"
)

// StateOf is what a node's row says of it.
func StateOf(r job.Row) NodeState {
	return NodeState{
		Status: r.Status, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, ChildrenRun: r.Forced == job.ForcedSkip,
	}
}

// NodesToRetry lists the nodes that begin a new generation by that operation, in alphabetical order; none says that
// there is nothing to do. rows are those of the generations that count; a node without one is BLOCKED,
// or was ended by an operator just now.
func (g *Graph) NodesToRetry(r run.Run, a run.Operation, rows map[string]job.Row) []string {
	retried := map[string]bool{}
	// isDownstream says that a node is cancelled by a parent that begins a new generation, or waits to be evaluated
	// after it.
	isDownstream := func(name string) bool {
		below := false
		for _, p := range g.Nodes[name].DependsOn {
			below = below || retried[p]
		}
		row, there := rows[name]
		blocked := !there && r.Nodes[name].Override == job.NotForced
		skipped := row.Status == job.Skipped && row.Forced == job.NotForced
		return below && (blocked || row.Status == job.Cancelled || skipped)
	}
	failed := func(name string) bool { return EndOf(rows[name].Status) == Failed }
	// stopped says that a node was cancelled because another one failed, under CancelRun.
	stopped := func(name string) bool {
		row := rows[name]
		return r.Stop == run.StopFail && row.Status == job.Cancelled && row.Reason.Code == run.ReasonFailed
	}
	switch a.Kind {
	case run.OperationRetryFrom:
		return g.Below(a.Node)
	case run.OperationRetry:
		for _, level := range g.levels {
			for _, name := range level {
				retried[name] = failed(name) || isDownstream(name)
			}
		}
	default:
		if !failed(a.Node) {
			return nil
		}
		fell := !stopped(a.Node) // with it, everything that was stopped for a failure
		for _, level := range g.levels {
			for _, name := range level {
				retried[name] = name == a.Node || isDownstream(name) || fell && stopped(name)
			}
		}
	}
	for name, is := range retried {
		if !is {
			delete(retried, name)
		}
	}
	return sortedKeys(retried)
}

// CountFrom is how many parents a node must have before their ends are counted.
const CountFrom = 5

// JoinNeeds is how many ends must have been counted at a node before it is worth an evaluation: those of the
// parents whose generation began no earlier than its own. The others had ended before, or count as well.
// 0 says that it is always evaluated.
func (g *Graph) JoinNeeds(r run.Run, node string) int {
	parents := g.Nodes[node].DependsOn
	if len(parents) < CountFrom {
		return 0
	}
	n := 0
	for _, p := range parents {
		if r.Since(p) >= r.Since(node) {
			n++
		}
	}
	return n
}

// EndNeeds is the same for the end of the run, with the epoch under which its last nodes are counted:
// that of the newest retry.
func (g *Graph) EndNeeds(r run.Run) (era int64, n int) {
	era = 1
	for _, node := range r.Nodes {
		era = max(era, node.Since)
	}
	last := 0
	for _, name := range g.names {
		if len(g.children[name]) > 0 {
			continue
		}
		last++
		if r.Since(name) == era {
			n++
		}
	}
	if last < CountFrom {
		return era, 0
	}
	return era, n
}
