package store

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Tasks are tenants' tasks.
type Tasks interface {
	TaskReader
	// Tasks reads a page of a tenant's own tasks in the order of names, beginning after a name; limit is at least 1.
	// more says that the page is not the last. One that cannot be read is left out.
	Tasks(ctx context.Context, t tenant.ID, after string, limit int) (tasks []job.Task, more bool, err error)
	// UpdateTask is JobWriter.Update for a tenant's own task. decide gets the task that is there, nil for none, and
	// returns its replacement. Of a task that cannot be read it gets name and version only, and what it returns
	// repairs it. The same task once more writes nothing. Otherwise the version, which is set here, grows by one. A
	// built-in task can only stay as it is: anything else is a fault.Refused.
	UpdateTask(
		ctx context.Context, t tenant.ID, name string, decide func(*job.Task) (job.Task, error),
	) (job.Task, error)
	// DeleteTask deletes a task; an absent one is a fault.NotFound. Jobs that wait have copied what they need.
	DeleteTask(ctx context.Context, t tenant.ID, name string) error
}

// TaskReader reads single tasks.
type TaskReader interface {
	// Task reads a tenant's task, also a built-in one. An absent one is a fault.NotFound.
	Task(ctx context.Context, t tenant.ID, name string) (job.Task, error)
}

// Pauses are the pauses of tenants, and those that an operator sets for everyone.
type Pauses interface {
	PauseReader
	// Pause reads a tenant's pause of that scope; an absent one is a fault.NotFound. One that cannot be read is a
	// fault.Undecodable, and Unreadable.
	Pause(ctx context.Context, t tenant.ID, scope string) (job.Pause, error)
	// PutPause writes a tenant's pause, and replaces that of the same scope.
	PutPause(ctx context.Context, t tenant.ID, p job.Pause) error
	// DeletePause ends a tenant's pause; an absent one is a fault.NotFound. Lifted still returns it, for decisions
	// about the times that passed under it.
	DeletePause(ctx context.Context, t tenant.ID, scope string, now time.Time) error
}

// PauseReader reads the pauses that decide whether a job may start.
type PauseReader interface {
	// Pauses reads all pauses that apply to a tenant, also those for everyone.
	Pauses(ctx context.Context, t tenant.ID) (job.Pauses, error)
	// PausesOf reads the pauses of one owner: a tenant, or job.Everyone. One that cannot be read is among them,
	// Unreadable.
	PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	// Lifted reads the pauses that held a task of a tenant and have ended, the last of each scope. Those that hold
	// now are not among them.
	Lifted(ctx context.Context, t tenant.ID, task string, now time.Time) (job.Pauses, error)
}

// RateLimits are what tenants may request, and what they have used of it.
type RateLimits interface {
	RequestWeights
	// TakeRequests takes n requests from what a tenant may make now, all or none. wait is how long it is until there
	// are so many; 0 says that they were taken.
	TakeRequests(ctx context.Context, t tenant.ID, a RateLimit, n int, now time.Time) (wait time.Duration, err error)
	// UsedByRequests reads how many requests of its burst a tenant has used and not yet regained.
	UsedByRequests(ctx context.Context, t tenant.ID, a RateLimit, now time.Time) (int64, error)
}

// RequestWeights are draws on rate limits for work that is not a request, or for requests that weigh more than one.
type RequestWeights interface {
	// DrawWeight draws the weight of n requests from a tenant's rate limit. It draws all of it, also what is not
	// there, so that the tenant has a deficit and its next requests wait; but nothing while the tenant has a deficit
	// of more than most requests, and then drawn is false. wait is how long it is until the deficit is small enough:
	// for a next draw if drawn is false, for a next request otherwise.
	DrawWeight(
		ctx context.Context, t tenant.ID, a RateLimit, n, most int, now time.Time,
	) (drawn bool, wait time.Duration, err error)
}

// WaitingSlots bound how many requests of a tenant wait at once.
type WaitingSlots interface {
	// TakeWaiting takes one of the tenant's slots for waiting requests until a time; false if all of them are taken.
	// A request that ends without giving its slot back does not keep it longer.
	TakeWaiting(ctx context.Context, t tenant.ID, slots int, until, now time.Time) (WaitingSlot, bool, error)
	// GiveWaiting gives a slot back before its time. If that fails, the slot is free at its time.
	GiveWaiting(ctx context.Context, w WaitingSlot) error
}
