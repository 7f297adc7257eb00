package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/stop"
	"punctual/shared/clock"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
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

// Engine carries out what happens to jobs, schedules and runs. It is safe for concurrent use.
type Engine struct {
	Arm    arm.Armer
	Accept *accept.Acceptor
	Recur  *recur.Recurrer
	Runs   *Runs

	deps   Deps
	ask    arm.Asker
	decide *decide.Decider
	runs   *runs.Controller
}

// New returns an Engine.
func New(d Deps) *Engine {
	acceptor := accept.New(accept.Deps{Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter})
	ask := arm.Asker{Queue: d.Queue}
	controller := runs.New(runs.Deps{
		Store: d.Store, Jobs: nodeJobs{acceptor, stop.Stopper{Jobs: d.Store, Log: d.Log}, ask},
		Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards, Schemas: d.Schemas, RateLimit: d.RateLimit,
	})
	schedules := recur.New(recur.Deps{
		Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards,
	})
	e := &Engine{
		Arm: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter}, Accept: acceptor, Recur: schedules,
		deps: d, ask: ask, runs: controller,
		decide: decide.New(decide.Deps{
			Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter,
			Schedules: schedules, Runs: controller,
		}),
	}
	e.Runs = &Runs{Controller: controller, Performer: e}
	return e
}

// nodeJobs is what runs do with the jobs of their nodes.
type nodeJobs struct {
	*accept.Acceptor
	stop.Stopper
	arm.Asker
}

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

// Deadline decides about the job of an entry whose deadline has passed.
func (e *Engine) Deadline(ctx context.Context, of store.Entry) (job.Step, error) {
	step, todo, err := e.decide.Deadline(ctx, of)
	return step, errors.Join(err, e.Perform(ctx, todo))
}

// Parked decides about a job in a parking place, if it is still there.
func (e *Engine) Parked(ctx context.Context, k job.Key) (job.Step, error) {
	step, todo, err := e.decide.Parked(ctx, k)
	return step, errors.Join(err, e.Perform(ctx, todo))
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

// Redrive brings a dead job back as a new one; see accept.Acceptor. For the job of a node it retries the node.
func (e *Engine) Redrive(ctx context.Context, k job.Key) (by job.ID, already bool, err error) {
	by, already, ofNode, err := e.Accept.Redrive(ctx, k)
	if !ofNode || err != nil {
		return by, already, err
	}
	by, already, todo, err := e.runs.Redrive(ctx, k)
	if err = errors.Join(err, e.Perform(ctx, todo)); err != nil {
		return "", false, fmt.Errorf("redriving job %s: %w", k.ID, err)
	}
	return by, already, e.Accept.Redriven(ctx, job.Key{Tenant: k.Tenant, ID: by}, already)
}
