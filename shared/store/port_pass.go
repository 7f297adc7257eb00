package store

import (
	"context"
	"iter"
	"time"

	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// DueIndex is the index of jobs, schedules and runs by the slice in which they wake up.
type DueIndex interface {
	DueReader
	DueWriter
}

// DueReader reads slices, earliest wake-up first. next is "" at the end; an empty page with a next is not the end.
type DueReader interface {
	// Due iterates over the wake-ups of jobs in a slice, or parking place. An entry that cannot be read comes as an
	// error of kind fault.Undecodable, and the iteration goes on; any other error ends it.
	Due(ctx context.Context, slice string) iter.Seq2[Entry, error]
	// DuePage reads a page of a slice of the jobs' index.
	DuePage(ctx context.Context, q DueQuery) (found []Found, next string, err error)
	// DueFront reads the earliest entries of a slice or queue, at most q.Limit; none says that it is empty.
	DueFront(ctx context.Context, q DueQuery) ([]Found, error)
	// DueSchedules reads a page of a slice or parking place of the schedules' index.
	DueSchedules(ctx context.Context, q DueQuery) (due []DueSchedule, next string, err error)
	// DueRuns reads a page of a slice of the runs' index.
	DueRuns(ctx context.Context, q DueQuery) (due []DueRun, next string, err error)
}

// DueWriter gives entries of the due index another wake-up. It needs only the key of the item, so an item that cannot
// be read stays in the index, and is handled once it can be read. An item that has moved since it was found at wakeAt
// stays as it is.
type DueWriter interface {
	// Defer moves the wake-up of an entry to at before the entry is handled, so that work which does not end, or ends
	// the process, does not keep later passes from the other entries. The writer that has handled the entry removes
	// the count of tries. ok is false if the entry has moved.
	Defer(ctx context.Context, ref item.Ref, indexKey string, wakeAt, at time.Time) (d Deferred, ok bool, err error)
	// Move gives a deferred entry another wake-up.
	Move(ctx context.Context, d Deferred, at time.Time) error
	// DeferFailed gives an entry that could not be handled its next wake-up, a quarter of an hour later.
	DeferFailed(ctx context.Context, ref item.Ref, indexKey string, wakeAt, now time.Time) error
	// Quarantine is DeferFailed for an item that cannot be read. It also lists the item, with the reason, for an
	// operator. An entry of the list expires unless a reader meets the item once more.
	Quarantine(ctx context.Context, ref item.Ref, indexKey string, wakeAt time.Time, reason string, now time.Time) error
}

// Shards is the number of shards that slices of the due index have.
type Shards interface {
	// Shards agrees on the number of shards: the recorded number grows to n if it was smaller, and what is recorded
	// is returned, so that readers cover every slice that may hold something. A record that cannot be read is written
	// anew.
	Shards(ctx context.Context, n int) (int, error)
}

// Marks are the watermarks of passes, by shard.
type Marks interface {
	MarkReader
	// Pass moves a shard's watermark to at, unless at is zero, and notes minutes as done or failed, as Mark.Passed
	// says.
	Pass(ctx context.Context, w Watermark, shard int, at time.Time, done, failed []time.Time) error
}

// MarkReader reads how far passes have come.
type MarkReader interface {
	// Watermark reads how far a shard's pass has come; the zero Mark if it never ran.
	Watermark(ctx context.Context, w Watermark, shard int) (Mark, error)
	// Slowest returns how far the pass of the slowest shard has come without a gap, and how many shards have ever
	// been passed; the zero time if none has.
	Slowest(ctx context.Context, w Watermark) (at time.Time, shards int, err error)
}

// Notes list what has parked or queued jobs, so that the sweeper visits it.
type Notes interface {
	NoteWriter
	// ParkedTenants lists the tenants that NoteParked named.
	ParkedTenants(ctx context.Context) ([]Parked, error)
	// ForgetParked removes a NoteParked older than NoteKept. It follows a visit to all the tenant's parking places
	// that found nothing.
	ForgetParked(ctx context.Context, t tenant.ID, now time.Time) error
	// Queues lists the schedules that NoteQueue named.
	Queues(ctx context.Context) ([]schedule.Key, error)
	// ForgetQueue removes a NoteQueue older than NoteKept. It follows a visit to the queue that found it empty.
	ForgetQueue(ctx context.Context, k schedule.Key, now time.Time) error
}

// NoteWriter adds to what the sweeper visits.
type NoteWriter interface {
	// NoteParked notes that a job or schedule of a tenant is about to be parked. It comes before the parking.
	NoteParked(ctx context.Context, t tenant.ID, now time.Time) error
	// NoteQueue notes that a job of a schedule is about to join its queue. It comes before that.
	NoteQueue(ctx context.Context, k schedule.Key, now time.Time) error
}

// RestoredTables says which guarded tables were restored from a backup and hold everything. It writes nothing.
type RestoredTables interface {
	// Restored lists the guarded tables that were restored and not released since, in the order of contract.Guarded:
	// while there is one, no process may start anything.
	Restored(ctx context.Context) ([]string, error)
	// Held lists the restored tables that the last pass found. It reads only the note of that pass, so it can be
	// called often.
	Held(ctx context.Context) ([]string, error)
}

// Recognizer recognises restored tables for a pass.
type Recognizer interface {
	// Recognize is RestoredTables.Restored for a pass. It notes a table that was not seen before, and was not
	// restored, as the one to recognise later; and it notes what is held for RestoredTables.Held.
	Recognize(ctx context.Context) ([]string, error)
}

// Forecasts is the text that one forecast leaves for the next.
type Forecasts interface {
	// Forecast reads what SetForecast wrote last; "" if there was none.
	Forecast(ctx context.Context) (string, error)
	// SetForecast leaves a text for the next forecast.
	SetForecast(ctx context.Context, text string) error
}
