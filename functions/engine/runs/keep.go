package runs

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
)

const (
	// keptAtOnce is how many jobs of a run are kept for longer at the same time.
	keptAtOnce = 16
	// keepTime is the time that is left when keeping stops, for the rest of the run's wake-up.
	keepTime = 10 * time.Second
)

// keep lets everything of a run that goes on live for longer, once its time comes near: the rows of nodes that have
// ended, their contents and their claims, and the attachments of the run. If it fails, the next wake-up continues;
// there are weeks of them.
func (r *Controller) keep(ctx context.Context, k run.Key) error {
	is, err := r.Store.Run(ctx, k)
	now := r.Clock.Now()
	if fault.KindOf(err) == fault.NotFound || err == nil && is.Keeps(now, true).IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := r.read(ctx, k, &effect.List{})
	if err != nil {
		return err
	}
	rows, err := r.allRows(ctx, f)
	if err != nil {
		return err
	}
	idle := true
	for _, row := range rows {
		idle = idle && !row.Unfinished()
	}
	until := f.run.Keeps(now, idle)
	if until.IsZero() {
		return nil
	}
	if err := r.keepRows(ctx, rows, until); err != nil {
		return err
	}
	if err := r.keepItems(ctx, f.run, until); err != nil {
		return err
	}
	_, write := f.run.Keep(until)
	return ignoreRefused(r.Store.Put(ctx, write)) // refused: the next wake-up does it once more
}

// allRows reads all rows of a run: of every generation, and of items.
func (r *Controller) allRows(ctx context.Context, f *facts) (rows []job.Row, err error) {
	var keys []job.Key
	for _, name := range f.graph.Names() {
		for g := range f.run.Generation(name) {
			keys = append(keys, f.run.Key.Job(name, g+1, 0))
		}
	}
	nodes, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	for n, row := range nodes {
		if row.Status == "" {
			continue
		}
		row.Key = keys[n]
		rows = append(rows, row)
		if !row.IsMapped() {
			continue
		}
		items, err := r.items(ctx, f, row)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if it.Status != "" {
				rows = append(rows, it)
			}
		}
	}
	return rows, nil
}

// keepRows lets rows, with their contents and claims, live until then. It skips those that do already: the row of a
// job is written after all else of it.
func (r *Controller) keepRows(ctx context.Context, rows []job.Row, until time.Time) error {
	var keys []job.Key
	for _, row := range rows {
		if row.Status.Final() && !row.ExpiresAt.Before(until.Truncate(time.Second)) ||
			row.Unfinished() && until.Before(row.CreatedAt.Add(contract.MaxAhead)) {
			continue
		}
		keys = append(keys, row.Key)
	}
	return r.keepEach(ctx, len(keys), func(i int) error { return r.Store.KeepJob(ctx, keys[i], until) })
}

// keepItems lets the attachments of the run live until then.
func (r *Controller) keepItems(ctx context.Context, is run.Run, until time.Time) error {
	refs, err := r.Store.RunItems(ctx, is, until)
	if err != nil {
		return err
	}
	return r.keepEach(ctx, len(refs), func(i int) error {
		return ignoreRefused(r.Store.Put(ctx, is.KeepItem(refs[i], until)))
	})
}

// keepEach calls keep for the numbers below n, several at a time, as long as there is time.
func (r *Controller) keepEach(ctx context.Context, n int, keep func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(cmp.Or(r.AtOnce, keptAtOnce))
	for i := range n {
		if !scan.TimeLeft(ctx, keepTime) {
			_ = g.Wait()
			return fault.New(fault.Unavailable, nil, "keeping what belongs to a run: there is more than time")
		}
		g.Go(func() error { return keep(i) })
	}
	return g.Wait()
}

// ignoreRefused returns nil for a refusal: the item has changed meanwhile, and the run's next wake-up keeps it.
func ignoreRefused(err error) error {
	if refused(err) {
		return nil
	}
	return err
}

// Due reconciles a run whose wake-up has come, after it has kept what belongs to the run.
func (r *Controller) Due(ctx context.Context, k run.Key) (effect.List, error) {
	if err := r.keep(ctx, k); err != nil {
		r.warn(ctx, k, "what belongs to a run is kept at its next wake-up", err)
	}
	return r.Reconcile(ctx, k)
}
