package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what the verbs need of the table.
type Store interface {
	accept.Jobs
	decide.Jobs
	recur.Store
	runs.Store
}

// Deps is what the verbs need. A nil Meter drops metrics.
type Deps struct {
	Store  Store
	Queue  decide.Queue
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  *telemetry.Meter
	Shards int // of the due index; 0: contract.DefaultShards
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
	// Schemas validates payloads and params. Nil: a schema.Cache of its own.
	Schemas runs.Schemas
}

// Engine holds the verbs.
type Engine struct {
	Arm    arm.Armer
	Accept *accept.Acceptor
	Decide *decide.Decider
	Recur  *recur.Recurrer
	Runs   *runs.Controller
}

// New wires the verbs together: before a job starts, its schedule or its run is asked, and both are notified
// when it has ended.
func New(d Deps) Engine {
	jobs := &jobs{queue: d.Queue} // runs and the verbs on jobs need each other
	var r *recur.Recurrer
	runs := runs.New(runs.Deps{
		Store: d.Store, Jobs: jobs, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards, Schemas: d.Schemas,
		RateLimit: d.RateLimit,
		Over:      func(ctx context.Context, is run.Run) error { return r.RunOver(ctx, jobs.decider, is) },
	})
	r = recur.New(recur.Deps{
		Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards, Runs: runs,
	})
	jobs.Acceptor = accept.New(accept.Deps{
		Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, OfNode: runs.Redrive,
	})
	jobs.decider = decide.New(decide.Deps{
		Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter,
		Gate: func(
			ctx context.Context, by *decide.Decider, row job.Row, claim job.Claim, step job.Step, now time.Time,
		) (job.Step, bool, error) {
			if row.RunID != "" || row.Status == job.Blocked {
				return runs.Admit(ctx, by, row, step, now)
			}
			return r.Admit(ctx, by, row, claim, step, now)
		},
		OnFinal: []decide.OnFinal{
			r.Ended,
			func(ctx context.Context, _ *decide.Decider, row job.Row) error { return runs.Ended(ctx, row) },
		},
	})
	return Engine{
		Arm:    arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		Accept: jobs.Acceptor,
		Decide: jobs.decider,
		Recur:  r,
		Runs:   runs,
	}
}

// jobs is how runs accept, stop and unpark the jobs of their nodes.
type jobs struct {
	*accept.Acceptor
	decider *decide.Decider
	queue   arm.Sender
}

// Stop asks an open job to end as cancelled.
func (j *jobs) Stop(ctx context.Context, row job.Row, why job.Reason, now time.Time) error {
	return j.decider.Stop(ctx, row, why, now)
}

// Unpark decides about a job that a pause of its run has parked.
func (j *jobs) Unpark(ctx context.Context, row job.Row) error {
	_, err := j.decider.Parked(ctx, row.Key)
	return err
}

// SendDeadLetter sends the dead letter of a DEAD job.
func (j *jobs) SendDeadLetter(ctx context.Context, row job.Row) error {
	return j.decider.SendDeadLetter(ctx, row)
}

// laterBy is how long work waits that is handed to another invocation, mostly because it failed: without a delay, what
// fails for minutes would hand itself on as fast as messages travel.
const laterBy = time.Second

// EndedLater has the children of an ended job evaluated in an invocation of its own.
func (j *jobs) EndedLater(ctx context.Context, row job.Row) error {
	return j.decider.AnnounceLater(ctx, row, laterBy)
}

// ReconcileLater has a run reconciled in an invocation of its own.
func (j *jobs) ReconcileLater(ctx context.Context, k run.Key) error {
	return j.ReconcileAfter(ctx, k, 0)
}

// ReconcileAfter has a run reconciled in an invocation of its own after a wait, or earlier if it is a long one.
func (j *jobs) ReconcileAfter(ctx context.Context, k run.Key, wait time.Duration) error {
	wait = min(max(wait.Truncate(time.Second)+time.Second, laterBy), contract.MaxDelay)
	body := message.Encode(message.Dispatch{V: message.V, Slice: horizon.Reconciling(string(k.Tenant), string(k.ID))})
	err := j.queue.Send(ctx, contract.DispatchQueue, message.Outgoing{Group: string(k.Tenant), Body: body,
		Delay: wait})
	if err != nil {
		return fmt.Errorf("asking for run %s to be reconciled: %w", k.ID, err)
	}
	return nil
}
