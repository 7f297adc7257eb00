package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/scan"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// driver is a Controller whose effects the bench carries out, as the engine does.
type driver struct {
	*runs.Controller
	b *bench
}

// follow does what a call has left to be done: it unparks jobs, counts dead letters, and notifies no schedule.
func (d driver) follow(ctx context.Context, todo effect.List, err error) error {
	errs := []error{err}
	for !todo.Empty() {
		var more effect.List
		switch {
		case len(todo.Ended) > 0:
			row := todo.Ended[0].Row
			todo.Ended = todo.Ended[1:]
			if row.PendingEffects.DeadLetter() {
				d.b.mu.Lock()
				d.b.deadLetters[row.Node]++
				d.b.mu.Unlock()
			}
			more, err = d.Controller.Ended(ctx, row)
		case len(todo.Over) > 0:
			err = d.Controller.Notified(ctx, todo.Over[0].Run)
			todo.Over = todo.Over[1:]
		case len(todo.Wake) > 0:
			err = d.b.unpark(ctx, todo.Wake[0].Jobs[0])
			todo.Wake = todo.Wake[1:]
		default:
			more, err = d.Controller.BringOn(ctx, todo.Reconcile[0])
			todo.Reconcile = todo.Reconcile[1:]
		}
		todo.Add(more)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// operated returns the run after an operation. What follows it may fail: the run's wake-up repeats that.
func (d driver) operated(ctx context.Context, k run.Key, todo effect.List, err error) (run.Run, error) {
	if err != nil {
		return run.Run{}, err
	}
	_ = d.follow(ctx, todo, nil)
	return d.b.store.Run(ctx, k)
}

func (d driver) Ended(ctx context.Context, row job.Row) error {
	todo, err := d.Controller.Ended(ctx, row)
	return d.follow(ctx, todo, err)
}

func (d driver) Reconcile(ctx context.Context, k run.Key) error {
	todo, err := d.Controller.Reconcile(ctx, k)
	return d.follow(ctx, todo, err)
}

func (d driver) Due(ctx context.Context, k run.Key) error {
	todo, err := d.Controller.Due(ctx, k)
	return d.follow(ctx, todo, err)
}

func (d driver) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	return d.Controller.Slice(ctx, slice, before, came, d.Due)
}

func (d driver) Create(ctx context.Context, n runs.Request) (is run.Run, created bool, err error) {
	is, created, todo, err := d.Controller.Create(ctx, n)
	return is, created, d.follow(ctx, todo, err)
}

func (d driver) Launch(ctx context.Context, row job.Row, with ...item.Write) (job.Reason, error) {
	why, todo, err := d.Controller.Launch(ctx, row, with...)
	return why, d.follow(ctx, todo, err)
}

func (d driver) CancelLaunched(ctx context.Context, row job.Row, why string) error {
	todo, err := d.Controller.CancelLaunched(ctx, row, why)
	return d.follow(ctx, todo, err)
}

func (d driver) Redrive(ctx context.Context, k job.Key) (job.ID, bool, error) {
	by, already, todo, err := d.Controller.Redrive(ctx, k)
	return by, already, d.follow(ctx, todo, err)
}

func (d driver) Cancel(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := d.Controller.Cancel(ctx, k, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) Pause(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := d.Controller.Pause(ctx, k, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) Resume(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := d.Controller.Resume(ctx, k, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) Retry(ctx context.Context, k run.Key, from string, by runs.By) (run.Run, error) {
	todo, err := d.Controller.Retry(ctx, k, from, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) RetryNode(ctx context.Context, k run.Key, node string, by runs.By) (run.Run, error) {
	todo, err := d.Controller.RetryNode(ctx, k, node, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) Skip(ctx context.Context, k run.Key, node string, below bool, by runs.By) (run.Run, error) {
	todo, err := d.Controller.Skip(ctx, k, node, below, by)
	return d.operated(ctx, k, todo, err)
}

func (d driver) Complete(
	ctx context.Context, k run.Key, node string, result json.RawMessage, by runs.By,
) (run.Run, error) {
	todo, err := d.Controller.Complete(ctx, k, node, result, by)
	return d.operated(ctx, k, todo, err)
}
