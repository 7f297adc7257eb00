package runs

import (
	"context"
	"slices"

	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// finish does the second write of the operation that is on the run. retried says that nodes begin a new generation; if
// not, there was nothing to do, and the operation was withdrawn.
func (r *Controller) finish(ctx context.Context, f *facts) (retried bool, err error) {
	rows, err := r.rows(ctx, f, f.graph.Names()...)
	if err != nil {
		return false, err
	}
	nodes := f.graph.NodesToRetry(f.run, *f.run.Operation, rows)
	if len(nodes) == 0 {
		after, write := f.run.Withdraw()
		return false, r.Store.WriteRun(ctx, after, write)
	}
	generations, err := r.before(ctx, f, nodes, rows)
	if err != nil {
		return false, err
	}
	after, write := f.run.Finish(generations, r.Clock.Now())
	if err := r.Store.WriteRun(ctx, after, write); err != nil {
		return true, err
	}
	r.drawAfter(ctx, f.run.Tenant, store.Weight(len(nodes), 0))
	return true, nil
}

// before is what the run is to hold of the generations of nodes that begin a new one. rows are those of the current
// generations.
func (r *Controller) before(
	ctx context.Context, f *facts, nodes []string, rows map[string]job.Row,
) (map[string]run.Before, error) {
	older, err := r.openOlder(ctx, f, nodes)
	if err != nil {
		return nil, err
	}
	retried := make(map[string]run.Before, len(nodes))
	for _, name := range nodes {
		is := run.Before{Floor: f.run.Floor(name), Items: f.run.Nodes[name].Items}
		all := append(slices.Clone(older[name]), rows[name])
		for _, row := range all {
			if !row.Status.Final() {
				break // also one that has no row: it may still get one
			}
			is.Floor++
		}
		for _, row := range all {
			if row.IsMapped() {
				is.Items = row.Items
			}
		}
		retried[name] = is
	}
	return retried, nil
}
