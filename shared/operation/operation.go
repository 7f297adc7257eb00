package operation

import (
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Action is what an operation does.
type Action string

// Backfill makes past times of a schedule.
const Backfill Action = "backfill"

// Status is the status of an operation.
type Status string

// The statuses.
const (
	Running   Status = "RUNNING"
	Paused    Status = "PAUSED"    // it makes nothing until it is resumed
	Succeeded Status = "SUCCEEDED" // it has ended, and not all of it failed
	Failed    Status = "FAILED"    // it has ended, and all of it failed; or it could not go on
	Stopped   Status = "STOPPED"   // it ended on request
)

// Over says that an operation of this status has ended.
func (s Status) Over() bool { return s == Succeeded || s == Failed || s == Stopped }

// Order is the order in which a backfill makes times.
type Order string

// The orders.
const (
	Oldest Order = "oldest"
	Newest Order = "newest"
)

// Orders lists the orders, the default first.
var Orders = []Order{Oldest, Newest}

// Bounds of an operation.
const (
	// MaxErrors is how many errors an operation shows.
	MaxErrors = 20
	// maxDetail is how long the detail of an error is, in bytes: all of them are written with each step.
	maxDetail = 200
	// MaxTimes is how many times a backfill makes.
	MaxTimes = 10_000
	// MaxOpen is how many jobs of an operation are open at a time, at most.
	MaxOpen = 100
	// Kept is how long an operation that has ended is kept: as long as finished jobs.
	Kept = contract.FinishedKept
)

// Codes of the status_reason of an operation that could not go on.
const (
	CodeDeleted = "deleted"  // its schedule was deleted
	CodeTooMany = "too_many" // an edit of its schedule gave it more times than an operation has
)

// Key names one operation of a tenant.
type Key struct {
	Tenant tenant.ID
	ID     job.ID
}

// Error is why one of its jobs did not succeed.
type Error struct {
	JobID  job.ID `json:"job_id"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Operation is one operation. Instants are UTC with milliseconds; zero means absent.
type Operation struct {
	Key
	Action    Action
	Status    Status
	Why       job.Reason // of a status that needs one
	By        string     // the caller that asked for it
	Reason    string     // that the caller gave
	CreatedAt time.Time
	EndedAt   time.Time
	Version   int64 // from 1; grows with every write

	// Of a backfill.
	Schedule string
	Since    time.Time // when that schedule was created: another one of its name is not the same
	Epoch    int64     // of the schedule by which Matched was counted
	From, To time.Time // its times are in [From, To)
	Order    Order
	Most     int // jobs that are open at a time
	Repeat   bool
	Cursor   time.Time // last nominal time that was decided about; zero for none
	Open     []job.ID  // jobs that it made and that are not known to have ended

	Matched int // times, or rows, that it is about
	Done    int // of those, jobs that succeeded
	Skipped int // left out
	Failed  int
	Errors  []Error // the first MaxErrors

	Bulk Bulk // of an operation on rows

	Ends []Ending // ends that are still to be announced, the oldest first
}

// Ending is an end of an operation, with what an event says of that moment.
type Ending struct {
	Status  Status     `json:"status"`
	Why     job.Reason `json:"why,omitzero"`
	At      int64      `json:"at"` // in milliseconds
	Matched int        `json:"matched"`
	Done    int        `json:"done,omitempty"`
	Skipped int        `json:"skipped,omitempty"`
	Failed  int        `json:"failed,omitempty"`
}

// EndsAfter says that the operation has ended, and had not as it was before.
func (o Operation) EndsAfter(before Operation) bool { return o.Status.Over() && !before.Status.Over() }

// NoteEnd notes an end that is still to be announced.
func (o *Operation) NoteEnd() {
	o.Ends = append(slices.Clone(o.Ends), Ending{o.Status, o.Why, o.EndedAt.UnixMilli(), o.Matched, o.Done, o.Skipped,
		o.Failed})
}

// Announced removes ends that were announced.
func (o *Operation) Announced(ends []Ending) {
	o.Ends = slices.DeleteFunc(slices.Clone(o.Ends), func(e Ending) bool { return slices.Contains(ends, e) })
	if len(o.Ends) == 0 {
		o.Ends = nil
	}
}

// ScheduleKey names the schedule of a backfill.
func (o Operation) ScheduleKey() schedule.Key {
	return schedule.Key{Tenant: o.Tenant, Name: o.Schedule}
}

// End notes that an open job has ended; nil is a job that was deleted since, and so had ended. A job that is not open
// changes nothing.
func (o *Operation) End(id job.ID, row *job.Row) {
	at := slices.Index(o.Open, id)
	if at < 0 {
		return
	}
	o.Open = slices.Delete(slices.Clone(o.Open), at, at+1)
	switch {
	case row == nil:
		o.fail(Error{id, string(job.Gone), "the job was deleted before its end was counted"})
	case row.Status == job.Succeeded:
		o.Done++
	default:
		o.fail(Error{id, row.Reason.Code, row.Reason.Message})
	}
}

func (o *Operation) fail(e Error) {
	o.Failed++
	e.Detail = job.Cut(e.Detail, maxDetail)
	if len(o.Errors) < MaxErrors {
		o.Errors = append(slices.Clone(o.Errors), e)
	}
}

// Refuse notes that a time can get no job.
func (o *Operation) Refuse(e Error) { o.fail(e) }

// Finish ends an operation of which nothing is left.
func (o *Operation) Finish(now time.Time) {
	o.Matched = o.Done + o.Skipped + o.Failed
	o.Status, o.EndedAt = Succeeded, now
	if o.Matched > 0 && o.Failed == o.Matched {
		o.Status = Failed
	}
}

// Abort ends an operation that cannot go on. What is open runs on, and is not counted any more.
func (o *Operation) Abort(why job.Reason, now time.Time) {
	o.Status, o.Why, o.EndedAt = Failed, why, now
}

// ListKey is the partition of a tenant's operations, in the order of their ids.
func ListKey(t tenant.ID) string { return "operation#" + string(t) }

// Ref is where an operation is.
func (k Key) Ref() item.Ref {
	return item.Ref{Table: contract.Tasks, PK: ListKey(k.Tenant), SK: string(k.ID)}
}

// body is what is stored of an operation.
type body struct {
	Action   Action     `json:"action"`
	Status   Status     `json:"status"`
	Why      job.Reason `json:"why,omitzero"`
	By       string     `json:"by,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Created  int64      `json:"created_at"`
	Ended    int64      `json:"ended_at,omitempty"`
	Schedule string     `json:"schedule,omitempty"`
	Since    int64      `json:"since,omitempty"`
	Epoch    int64      `json:"epoch,omitempty"`
	From     int64      `json:"from,omitempty"`
	To       int64      `json:"to,omitempty"`
	Order    Order      `json:"order,omitempty"`
	Most     int        `json:"max_running,omitempty"`
	Repeat   bool       `json:"again,omitempty"`
	Cursor   int64      `json:"cursor,omitempty"`
	Open     []job.ID   `json:"open,omitempty"`
	Matched  int        `json:"matched"`
	Done     int        `json:"done,omitempty"`
	Skipped  int        `json:"skipped,omitempty"`
	Failed   int        `json:"failed,omitempty"`
	Errors   []Error    `json:"errors,omitempty"`
	Bulk     Bulk       `json:"bulk,omitzero"`
	Ends     []Ending   `json:"ends,omitempty"`
}

// Item encodes the operation.
func (o Operation) Item() item.Item {
	ref := o.Ref()
	i := item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "version": o.Version,
		"body": string(text.MustJSON(body{
			o.Action, o.Status, o.Why, o.By, o.Reason, millis(o.CreatedAt), millis(o.EndedAt), o.Schedule,
			millis(o.Since), o.Epoch, millis(o.From), millis(o.To), o.Order, o.Most, o.Repeat, millis(o.Cursor), o.Open,
			o.Matched, o.Done, o.Skipped, o.Failed, o.Errors, o.Bulk,
			o.Ends,
		}))}
	if !o.EndedAt.IsZero() {
		i[contract.AttrExpiresAt] = o.EndedAt.Add(Kept).Unix()
	}
	return i
}

// Parse decodes what Item encoded, of a tenant.
func Parse(i item.Item, t tenant.ID) (Operation, error) {
	o := Operation{Key: Key{Tenant: t, ID: job.ID(i.Str(contract.AttrSK))}, Version: i.Int("version")}
	var b body
	if err := text.Read([]byte(i.Str("body")), &b); err != nil {
		return o, fault.New(fault.Undecodable, err, "reading operation %s", o.ID)
	}
	o.Action, o.Status, o.Why, o.By, o.Reason = b.Action, b.Status, b.Why, b.By, b.Reason
	o.CreatedAt, o.EndedAt, o.Schedule, o.Since = instant(b.Created), instant(b.Ended), b.Schedule, instant(b.Since)
	o.Epoch, o.From, o.To, o.Order, o.Most = b.Epoch, instant(b.From), instant(b.To), b.Order, b.Most
	o.Repeat, o.Cursor, o.Open = b.Repeat, instant(b.Cursor), b.Open
	o.Matched, o.Done, o.Skipped, o.Failed, o.Errors = b.Matched, b.Done, b.Skipped, b.Failed, b.Errors
	o.Bulk, o.Ends = b.Bulk, b.Ends
	return o, nil
}

// Create writes a new operation.
func (o Operation) Create() item.Write {
	return item.Write{Ref: o.Ref(), Name: WriteCreate, Put: o.Item(),
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Missing}}}}
}

// Become writes an operation as it is after a step, if no other step came first.
func (o Operation) Become(after Operation) item.Write {
	after.Version = o.Version + 1
	return item.Write{Ref: o.Ref(), Name: WriteChange, Put: after.Item(),
		When: []item.All{{{Attr: "version", Op: item.Eq, Value: o.Version}}}}
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// WrongState is the error of a change that the status of an operation does not allow.
type WrongState struct {
	Status  Status
	Allowed []Status // with which it works
}

func (w *WrongState) Error() string { return "the operation is " + string(w.Status) }

// Pause keeps an operation from making anything until it is resumed.
func (o Operation) Pause() (Operation, error) {
	if o.Status.Over() {
		return o, &WrongState{o.Status, o.going()}
	}
	o.Status = Paused
	return o, nil
}

// Resume lets a paused operation go on.
func (o Operation) Resume() (Operation, error) {
	if o.Status.Over() {
		return o, &WrongState{o.Status, o.going()}
	}
	if o.Status == Paused {
		o.Status = o.goesOn()
	}
	return o, nil
}

// Stop ends an operation. What is open runs on, and is not counted any more; of an operation on rows, the rows that are
// being worked on at the moment still are.
func (o Operation) Stop(now time.Time) (Operation, error) {
	switch {
	case o.Status == Stopped:
		return o, nil
	case o.Status.Over():
		return o, &WrongState{o.Status, append(o.going(), Stopped)}
	}
	o.Status, o.EndedAt = Stopped, now
	return o, nil
}
