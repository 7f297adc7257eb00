package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/scan"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// Runs creates and operates on runs. What the operations of its Controller leave to be done, it does, and it returns
// the run as it then is.
type Runs struct {
	*runs.Controller
	Performer Performer
}

// Performer does what a call has left to be done.
type Performer interface {
	Perform(ctx context.Context, todo effect.List) error
}

// Create creates a run and reconciles it; see runs.Controller. Once the run's item is written the run goes on by
// itself, even if the call fails.
func (r *Runs) Create(ctx context.Context, n runs.Request) (is run.Run, created bool, err error) {
	is, created, todo, err := r.Controller.Create(ctx, n)
	return is, created, errors.Join(err, r.Performer.Perform(ctx, todo))
}

// Cancel ends a run; see runs.Controller, also for the methods that follow.
func (r *Runs) Cancel(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := r.Controller.Cancel(ctx, k, by)
	return r.operated(ctx, k, todo, err)
}

// Pause keeps the nodes of a run from starting.
func (r *Runs) Pause(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := r.Controller.Pause(ctx, k, by)
	return r.operated(ctx, k, todo, err)
}

// Resume lets a paused run go on.
func (r *Runs) Resume(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
	todo, err := r.Controller.Resume(ctx, k, by)
	return r.operated(ctx, k, todo, err)
}

// Retry gives a new generation to the nodes that failed, or to a node and all below it.
func (r *Runs) Retry(ctx context.Context, k run.Key, from string, by runs.By) (run.Run, error) {
	todo, err := r.Controller.Retry(ctx, k, from, by)
	return r.operated(ctx, k, todo, err)
}

// RetryNode is Retry for one failed node.
func (r *Runs) RetryNode(ctx context.Context, k run.Key, node string, by runs.By) (run.Run, error) {
	todo, err := r.Controller.RetryNode(ctx, k, node, by)
	return r.operated(ctx, k, todo, err)
}

// Skip ends a node as SKIPPED.
func (r *Runs) Skip(ctx context.Context, k run.Key, node string, below bool, by runs.By) (run.Run, error) {
	todo, err := r.Controller.Skip(ctx, k, node, below, by)
	return r.operated(ctx, k, todo, err)
}

// Complete ends a node as SUCCEEDED with that result; nil for none.
func (r *Runs) Complete(
	ctx context.Context, k run.Key, node string, result json.RawMessage, by runs.By,
) (run.Run, error) {
	todo, err := r.Controller.Complete(ctx, k, node, result, by)
	return r.operated(ctx, k, todo, err)
}

// Reconcile evaluates every node of a run from its rows.
func (r *Runs) Reconcile(ctx context.Context, k run.Key) error {
	todo, err := r.Controller.Reconcile(ctx, k)
	return errors.Join(err, r.Performer.Perform(ctx, todo))
}

// Due reconciles a run whose wake-up has come.
func (r *Runs) Due(ctx context.Context, k run.Key) error {
	todo, err := r.Controller.Due(ctx, k)
	return errors.Join(err, r.Performer.Perform(ctx, todo))
}

// Slice reconciles every run whose wake-up lies in a slice.
func (r *Runs) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	return r.Controller.Slice(ctx, slice, before, came, r.Due)
}

// EvaluateAfter releases or ends a single job that comes after others, if enough of them have ended.
func (r *Runs) EvaluateAfter(ctx context.Context, k job.Key) error {
	todo, err := r.Controller.EvaluateAfter(ctx, k)
	return errors.Join(err, r.Performer.Perform(ctx, todo))
}

// operated does what an operation has left to be done and returns the run. If that fails it is only logged: the
// wake-ups of the run and of its jobs do the rest.
func (r *Runs) operated(ctx context.Context, k run.Key, todo effect.List, err error) (run.Run, error) {
	if err != nil {
		return run.Run{}, err
	}
	if err := r.Performer.Perform(ctx, todo); err != nil {
		r.Log.WarnContext(ctx, "a run waits for its wake-up after an operation",
			telemetry.Tenant, k.Tenant, telemetry.RunID, k.ID, telemetry.Err, err.Error())
	}
	return r.Store.Run(ctx, k)
}
