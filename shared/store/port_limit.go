package store

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/tenant"
)

// LimitReader reads limits of work, and what is held and waited for of their keys.
type LimitReader interface {
	// Limit reads a tenant's limit, a deleted one too; an absent one is a fault.NotFound.
	Limit(ctx context.Context, t tenant.ID, name string) (limit.Limit, error)
	// Buckets reads what all buckets of a key say that may have holders, in their order.
	Buckets(ctx context.Context, l limit.Limit, k limit.Key) ([]limit.Permits, error)
	// Window reads the starts of a key.
	Window(ctx context.Context, k limit.Key) (limit.Window, error)
	// Waiting reads the first bucket of a key, which says whether jobs wait.
	Waiting(ctx context.Context, k limit.Key) (limit.Permits, error)
}

// PermitTaker takes what an attempt needs of its limits before it starts.
type PermitTaker interface {
	LimitReader
	// TakePermit takes a permit of a key for an attempt of a job, or finds the one that it holds. taken is false if
	// the buckets that were read have none left.
	TakePermit(
		ctx context.Context, l limit.Limit, k limit.Key, id job.ID, attempt int64, now time.Time,
	) (bucket int, taken bool, err error)
	// DrawStart counts a start of a key. next is the zero time if it was counted, and else when it may be tried again.
	DrawStart(ctx context.Context, r limit.Rate, k limit.Key, now time.Time) (next time.Time, err error)
}

// PermitGiver gives permits back.
type PermitGiver interface {
	LimitReader
	// FreePermit gives back what a job holds of a key for that attempt or an earlier one, in that bucket if it is known
	// (-1: it is not). waits says that jobs may wait for it.
	FreePermit(
		ctx context.Context, l limit.Limit, k limit.Key, id job.ID, attempt int64, bucket int,
	) (waits bool, err error)
	// FreePermits gives back what a job holds of its limits for that attempt or an earlier one. buckets says where a
	// worker has taken them, in the order of the job's limits; nil: it is not known. waits says, in that order, for
	// which of them jobs may wait.
	FreePermits(ctx context.Context, k job.Key, of job.Limits, attempt int64, buckets []int) (waits []bool, err error)
}

// WaitingKeys are the keys of limits that jobs wait for, for the sweeper.
type WaitingKeys interface {
	// NoteWaitingKey notes that a job is about to wait for a permit of a key. It comes before that.
	NoteWaitingKey(ctx context.Context, k limit.Key, now time.Time) error
	// WaitingKeys lists the keys that NoteWaitingKey named.
	WaitingKeys(ctx context.Context) ([]limit.Key, error)
	// ForgetWaitingKey removes a NoteWaitingKey older than NoteKept. It follows a visit that found none waiting.
	ForgetWaitingKey(ctx context.Context, k limit.Key, now time.Time) error
}

// Limits are tenants' limits of work, and the use of their keys.
type Limits interface {
	LimitReader
	// Limits reads one page of a tenant's limits by name, beginning after that name; most is at least 1. more says that
	// the page is not the last. One that is deleted or cannot be read is left out.
	Limits(ctx context.Context, t tenant.ID, after string, most int) (list []limit.Limit, more bool, err error)
	// UpdateLimit is JobWriter.Update for a limit. decide gets nil also for a deleted one, and returns the bounds that
	// the limit is to have. The same bounds write nothing. Of a limit that cannot be read, its permits may be held in
	// as many buckets as any limit has.
	UpdateLimit(
		ctx context.Context, t tenant.ID, name string, now time.Time,
		decide func(*limit.Limit) (limit.Limit, error),
	) (limit.Limit, error)
	// DeleteLimit deletes a limit and keeps a note of it, by which a limit of the same name that is made later knows
	// the permits that are held. An absent or deleted limit is a fault.NotFound. may is asked for the limit as it was
	// read; its error ends the deletion.
	DeleteLimit(ctx context.Context, t tenant.ID, name string, now time.Time, may func(limit.Limit) error) error
	// LimitKeys lists keys of a limit that jobs have used in the last two days, as many as most at most. more says
	// that there are others.
	LimitKeys(ctx context.Context, t tenant.ID, name string, most int) (keys []limit.Key, more bool, err error)
	// LimitUses reads how much of each key is used, in the order of the keys.
	LimitUses(ctx context.Context, l limit.Limit, keys []limit.Key) ([]LimitUse, error)
}

// LimitKeyNotes are the notes by which the keys of a limit are listed.
type LimitKeyNotes interface {
	// NoteLimitKey notes that jobs use a key of a limit, for the list of its keys. It writes nothing if this process
	// did so in the hour before.
	NoteLimitKey(ctx context.Context, k limit.Key, now time.Time) error
}

// LimitWaiters are the jobs that wait for permits.
type LimitWaiters interface {
	// LimitWaiters reads the jobs that wait for a permit of a key, as many as most at most, in the order in which they
	// are served: by priority, and then by due time. Jobs with a deadline are in that order only among the first
	// hundred of their priority. The index that it reads may be a moment behind.
	LimitWaiters(ctx context.Context, k limit.Key, most int) (waiters []Entry, err error)
}
