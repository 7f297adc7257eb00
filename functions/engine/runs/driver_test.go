package runs_test

import (
	"context"
	"errors"

	"punctual/functions/engine"
	"punctual/functions/engine/effect"
	"punctual/shared/item"
	"punctual/shared/job"
)

// driver is what the engine does with runs, over a bench that carries out what the calls have left.
type driver struct{ engine.Runs }

// Perform does what a call has left to be done: it unparks jobs, counts dead letters, and notifies no schedule.
func (b *bench) Perform(ctx context.Context, todo effect.List) error {
	var errs []error
	for !todo.Empty() {
		var more effect.List
		var err error
		switch {
		case len(todo.Ended) > 0:
			row := todo.Ended[0].Row
			todo.Ended = todo.Ended[1:]
			if row.PendingEffects.DeadLetter() {
				b.mu.Lock()
				b.deadLetters[row.Node]++
				b.mu.Unlock()
			}
			more, err = b.rel.Controller.Ended(ctx, row)
		case len(todo.Over) > 0:
			err = b.rel.Controller.Notified(ctx, todo.Over[0].Run)
			todo.Over = todo.Over[1:]
		case len(todo.Wake) > 0:
			err = b.unpark(ctx, todo.Wake[0].Jobs[0])
			todo.Wake = todo.Wake[1:]
		default:
			more, err = b.rel.Controller.BringOn(ctx, todo.Reconcile[0])
			todo.Reconcile = todo.Reconcile[1:]
		}
		todo.Add(more)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d driver) Ended(ctx context.Context, row job.Row) error {
	todo, err := d.Controller.Ended(ctx, row)
	return errors.Join(err, d.Performer.Perform(ctx, todo))
}

func (d driver) Launch(ctx context.Context, row job.Row, with ...item.Write) (job.Reason, error) {
	why, todo, err := d.Controller.Launch(ctx, row, with...)
	return why, errors.Join(err, d.Performer.Perform(ctx, todo))
}

func (d driver) CancelLaunched(ctx context.Context, row job.Row, why string) error {
	todo, err := d.Controller.CancelLaunched(ctx, row, why)
	return errors.Join(err, d.Performer.Perform(ctx, todo))
}

func (d driver) Redrive(ctx context.Context, k job.Key) (job.ID, bool, error) {
	by, already, todo, err := d.Controller.Redrive(ctx, k)
	return by, already, errors.Join(err, d.Performer.Perform(ctx, todo))
}
