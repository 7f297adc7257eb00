package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/effect"
	"punctual/functions/engine/limits"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/operation"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Began marks a job RUNNING; see decide.Decider.
func (e *Engine) Began(ctx context.Context, k job.Key, version, attempt, token int64, began job.Outcome) error {
	return e.decide.Began(ctx, k, version, attempt, token, began)
}

// Settle settles an attempt by the outcome on its claim; see decide.Decider.
func (e *Engine) Settle(ctx context.Context, k job.Key, attempt, token int64, by decide.Arrival) error {
	todo, err := e.decide.Settle(ctx, k, attempt, token, by)
	return errors.Join(err, e.Perform(ctx, todo))
}

// Entry decides about the job of an index entry whose wake-up has come.
func (e *Engine) Entry(ctx context.Context, of store.Entry) (job.Step, error) {
	step, todo, err := e.decide.Entry(ctx, of)
	return step, errors.Join(err, e.Perform(ctx, todo))
}

// Deadline decides about the job of an entry whose deadline has passed; see decide.Decider.
func (e *Engine) Deadline(
	ctx context.Context, of store.Entry,
) (step job.Step, left bool, deadline time.Time, err error) {
	step, left, deadline, todo, err := e.decide.Deadline(ctx, of)
	return step, left, deadline, errors.Join(err, e.Perform(ctx, todo))
}

// Parked decides about a job in a parking place, if it is still there.
func (e *Engine) Parked(ctx context.Context, k job.Key) (job.Step, error) {
	step, todo, err := e.decide.Parked(ctx, k)
	return step, errors.Join(err, e.Perform(ctx, todo))
}

// Waiting decides about the jobs that wait for a permit of a key of a limit of work, as many as may start now.
func (e *Engine) Waiting(ctx context.Context, k limit.Key) error {
	return e.Perform(ctx, effect.List{Freed: []limit.Key{k}})
}

// Operation brings an operation on as far as it goes now, while going says so. An operation on rows is asked to go on,
// unless it waits or a process works on it; still is how long it has not come forward. over says that it had ended
// before, or that there is none.
func (e *Engine) Operation(
	ctx context.Context, k operation.Key, going func() bool,
) (over bool, still time.Duration, err error) {
	o, err := e.deps.Store.Operation(ctx, k)
	if fault.KindOf(err) == fault.NotFound {
		return true, 0, nil
	}
	if err == nil && o.Status.Over() {
		err = e.Notify.AnnounceEnds(ctx, e.deps.Store, o)
	}
	if err != nil || o.Status.Over() {
		return err == nil, 0, err
	}
	if now := e.deps.Clock.Now(); o.OnRows() {
		if o.Status != operation.Paused && !o.Waits(now) {
			err = e.ask.Operate(ctx, k, 0)
		}
		return false, o.Stalled(now), err
	}
	for more := true; more; more = more && going() {
		if more, err = e.Backfills.Advance(ctx, k); err != nil {
			return false, 0, err
		}
	}
	return false, 0, nil
}

// Release lets an operation on rows go on at once, if the process that worked on it had ended by that time.
func (e *Engine) Release(ctx context.Context, k operation.Key, ended time.Time) error {
	released := false
	o, err := e.deps.Store.UpdateOperation(ctx, k, func(is operation.Operation) ([]item.Write, error) {
		next, held := is.Released(ended)
		if released = held; !held {
			return nil, nil
		}
		return []item.Write{is.Become(next)}, nil
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err == nil && released && o.Status != operation.Paused && !o.Waits(e.deps.Clock.Now()) {
		err = e.ask.Operate(ctx, k, 0)
	}
	return err
}

// Reevaluate decides at once about a job that a worker refused to start.
func (e *Engine) Reevaluate(ctx context.Context, k job.Key, version, attempt int64) (job.Step, error) {
	step, todo, err := e.decide.Reevaluate(ctx, k, version, attempt)
	return step, errors.Join(err, e.Perform(ctx, todo))
}

// Reread makes the next decisions about a tenant's jobs and schedules read its pauses from the table; the caller knows
// that one has just changed.
func (e *Engine) Reread(t tenant.ID) {
	e.decide.Reread(t)
	e.Recur.Reread(t)
}

// Cancel asks a job to end as cancelled, and returns its row; see decide.Decider. If what follows its end fails that is
// only logged: the sweeper finds the jobs that are queued behind this one.
func (e *Engine) Cancel(ctx context.Context, k job.Key, may func(job.Row, time.Time) error) (job.Row, error) {
	row, todo, err := e.decide.Cancel(ctx, k, may)
	if failed := e.Perform(ctx, todo); failed != nil {
		e.deps.Log.WarnContext(ctx, "what follows the end of a job was not done",
			telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID, telemetry.Err, failed)
	}
	return row, err
}

// Paused does what follows the pause of one job: others that wait for its limits of work are decided about, because it
// may have been woken for a permit that it takes no more, and so are those that waited for its turn. If that fails it
// is only logged: the sweeper finds them.
func (e *Engine) Paused(ctx context.Context, row job.Row) {
	var todo effect.List
	if row.Status != job.Blocked {
		todo.Freed = limits.KeysOf(row)
	}
	var err error
	todo.Wake, err = e.Recur.Passed(ctx, row)
	if err = errors.Join(err, e.Perform(ctx, todo)); err != nil {
		e.deps.Log.WarnContext(ctx, "what follows the pause of a job was not done",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err)
	}
}

// Redrive brings a dead job back as a new one, corrected by correct unless that is nil; see accept.Acceptor. For the
// job of a node it retries the node.
func (e *Engine) Redrive(
	ctx context.Context, k job.Key, correct accept.Correct,
) (by job.ID, already bool, err error) {
	by, already, ofNode, err := e.Accept.Redrive(ctx, k, correct)
	if !ofNode || err != nil {
		return by, already, err
	}
	by, already, todo, err := e.runs.Redrive(ctx, k)
	if err = errors.Join(err, e.Perform(ctx, todo)); err != nil {
		return "", false, fmt.Errorf("redriving job %s: %w", k.ID, err)
	}
	return by, already, e.Accept.Redriven(ctx, job.Key{Tenant: k.Tenant, ID: by}, already)
}
