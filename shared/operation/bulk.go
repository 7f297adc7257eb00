package operation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"punctual/shared/job"
	"punctual/shared/search"
)

// Actions on rows.
const (
	CancelJobs       Action = "cancel"
	PauseJobs        Action = "pause"
	ResumeJobs       Action = "resume"
	RunJobs          Action = "run_now"
	RescheduleJobs   Action = "reschedule"
	ReprioritizeJobs Action = "reprioritize"
	DeleteJobs       Action = "delete"
	RedriveJobs      Action = "redrive"
	PurgeJobs        Action = "purge"
	RetryRuns        Action = "retry_runs"
	CancelRuns       Action = "cancel_runs"
)

// Actions lists the actions on rows.
var Actions = []Action{CancelJobs, PauseJobs, ResumeJobs, RunJobs, RescheduleJobs, ReprioritizeJobs, DeleteJobs,
	RedriveJobs, PurgeJobs, RetryRuns, CancelRuns}

// OnRuns says that the rows are runs; those of other actions are jobs.
func (a Action) OnRuns() bool { return a == RetryRuns || a == CancelRuns }

// Starts says that the action starts its rows, so that a canary can wait for their ends.
func (a Action) Starts() bool { return a == RunJobs || a == RedriveJobs || a == RetryRuns }

// Times says that the action gives its rows a time, which a spread can deal out.
func (a Action) Times() bool { return a == RunJobs || a == RedriveJobs || a == RescheduleJobs }

// Destroys says that the action removes its rows, or makes new ones: it wants the scope admin.
func (a Action) Destroys() bool { return a == RedriveJobs || a == PurgeJobs || a == DeleteJobs }

// Statuses of an operation on rows, besides those of every operation.
const (
	Counting Status = "COUNTING" // it notes what matches, and changes nothing
	InCanary Status = "CANARY"   // it works on the oldest rows, and waits for their ends
)

// CodeCanaryFailed is the code of the status_reason of an operation whose canary failed.
const CodeCanaryFailed = "canary_failed"

// CodeExpired is the code of the status_reason of an operation that took longer than PagesKept.
const CodeExpired = "expired"

// Bounds of an operation on rows.
const (
	// MaxRows is how many rows an operation works on.
	MaxRows = 1_000_000
	// PageRows is how many ids a page has, but the last one.
	PageRows = 500
	// MaxChunk is how many rows are worked on between two writes of the operation.
	MaxChunk = 100
	// chunkTime is how long the rate lets a chunk take, unless one row takes longer.
	chunkTime = 200 * time.Millisecond
	// MaxCanary is how many rows a canary has: their ids are in the item of the operation.
	MaxCanary = 100
	// Lease is how long an operation belongs to the process that works on it, after its last write. It is longer than
	// a function may run.
	Lease = time.Minute
	// PagesKept is how long an operation may take.
	PagesKept = 90 * 24 * time.Hour
)

// Span is a length of time, stored in milliseconds.
type Span time.Duration

// MarshalJSON writes the milliseconds.
func (s Span) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(s).Milliseconds(), 10), nil
}

// UnmarshalJSON reads milliseconds.
func (s *Span) UnmarshalJSON(text []byte) error {
	ms, err := strconv.ParseInt(string(text), 10, 64)
	*s = Span(time.Duration(ms) * time.Millisecond)
	return err
}

// Rate is how many rows an operation works on in a time. The zero Rate is no bound.
type Rate struct {
	Count int  `json:"count"`
	Per   Span `json:"per"`
}

// Of is how long n rows take.
func (r Rate) Of(n int) time.Duration {
	if r.Count == 0 {
		return 0
	}
	return time.Duration(float64(n) * float64(r.Per) / float64(r.Count))
}

// Set is what an operation gives to its rows.
type Set struct {
	Priority job.Priority    `json:"priority,omitempty"`
	RunAt    time.Time       `json:"run_at,omitzero"`
	Delay    *Span           `json:"delay,omitempty"`
	Patch    json.RawMessage `json:"payload_patch,omitempty"`
}

// Timed says that it gives a time.
func (s Set) Timed() bool { return !s.RunAt.IsZero() || s.Delay != nil }

// Canary is the oldest rows of an operation, on whose ends the others wait. The zero Canary is none.
type Canary struct {
	Count        int       `json:"count"`
	MinSucceeded float64   `json:"min_succeeded"`
	Within       Span      `json:"within"`
	Open         []job.ID  `json:"open,omitempty"` // jobs, or runs, that it started and that have not ended
	Succeeded    int       `json:"succeeded,omitempty"`
	Failed       int       `json:"failed,omitempty"`
	Until        time.Time `json:"until,omitzero"` // what is open then has failed; zero: not all have started
	Overruled    bool      `json:"overruled,omitempty"`
}

// Begun is how many rows of it the operation has worked on.
func (c Canary) Begun() int { return len(c.Open) + c.Succeeded + c.Failed }

// Bulk is what an operation on rows has besides what every operation has.
type Bulk struct {
	Filter search.Filter `json:"filter,omitzero"` // that the rows match; empty for all, and if they were named
	Named  bool          `json:"named,omitempty"` // the rows were named by their ids
	Set    Set           `json:"set,omitzero"`
	Rate   Rate          `json:"rate,omitzero"`
	Spread Span          `json:"spread,omitzero"`
	Canary Canary        `json:"canary,omitzero"`

	Phase    Status    `json:"phase"`              // the status that it has unless it is paused or has ended
	Position string    `json:"position,omitempty"` // in the list of what matches, while it is counted
	Worked   int       `json:"worked,omitempty"`   // rows, from the oldest, that it has worked on
	Chunk    []int64   `json:"chunk,omitempty"`    // versions of the rows it works on now; 0 for one that is left out
	BegunAt  time.Time `json:"begun_at,omitzero"`  // when it began to work on rows
	MovedAt  time.Time `json:"moved_at,omitzero"`  // when it last came forward
	RowsAt   time.Time `json:"rows_at,omitzero"`   // when its rate lets it work on more rows
	Tries    int       `json:"tries,omitempty"`    // steps in a row that failed

	Owner      string    `json:"owner,omitempty"` // the process that works on it
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	NextAt     time.Time `json:"next_at,omitzero"` // when it goes on after a wait; zero for none
}

// OnRows says that the operation works on rows that it has noted.
func (o Operation) OnRows() bool { return o.Action != Backfill }

// goesOn is the status of an operation that is not paused and has not ended.
func (o Operation) goesOn() Status {
	if o.OnRows() {
		return o.Bulk.Phase
	}
	return Running
}

// going are the statuses of an operation that has not ended.
func (o Operation) going() []Status {
	if o.OnRows() {
		return []Status{Counting, InCanary, Running, Paused}
	}
	return []Status{Running, Paused}
}

// Counted has all that matches noted.
func (o *Operation) Counted(now time.Time) {
	o.Bulk.Position = ""
	switch {
	case o.Matched == 0:
		o.Finish(now)
		return
	case o.Bulk.Canary.Count > 0 && !o.Bulk.Canary.Overruled:
		o.enter(InCanary)
	default:
		o.enter(Running)
	}
}

func (o *Operation) enter(phase Status) {
	o.Bulk.Phase = phase
	if o.Status != Paused {
		o.Status = phase
	}
}

// Slot is where the id of a row is, counted from the oldest: its page, and the index in it. Pages are filled from the
// newest row on.
func (o Operation) Slot(row int) (page, index int) {
	at := o.Matched - 1 - row
	return at / PageRows, at % PageRows
}

// ChunkSize is how many rows it works on next, all of one page; 0 for none before its canary has ended.
func (o Operation) ChunkSize() int {
	if o.Bulk.Worked >= o.Matched {
		return 0
	}
	_, index := o.Slot(o.Bulk.Worked)
	n := min(MaxChunk, index+1)
	if r := o.Bulk.Rate; r.Count > 0 {
		n = min(n, max(1, int(float64(r.Count)*float64(chunkTime)/float64(r.Per))))
	}
	if o.Bulk.Phase == InCanary {
		n = min(n, o.Bulk.Canary.Count-o.Bulk.Canary.Begun())
	}
	return n
}

// Begin begins a chunk of rows, of these versions; 0 leaves a row out.
func (o *Operation) Begin(versions []int64, now time.Time) {
	o.Bulk.Chunk = versions
	if o.Bulk.BegunAt.IsZero() {
		o.Bulk.BegunAt = now
	}
	if o.Bulk.Rate.Count > 0 {
		from := o.Bulk.RowsAt
		if from.Before(now) {
			from = now
		}
		o.Bulk.RowsAt = from.Add(o.Bulk.Rate.Of(len(versions))).Truncate(time.Millisecond)
	}
	o.Bulk.MovedAt = now
}

// Outcome is what became of a row of a chunk.
type Outcome struct {
	Done    bool
	Started job.ID // job or run whose end a canary waits for
	Failed  *Error // nil, and not Done: it was left out
}

// Settle counts what became of the rows of the chunk.
func (o *Operation) Settle(outcomes []Outcome, now time.Time) {
	c := &o.Bulk.Canary
	open := slices.Clone(c.Open)
	for _, out := range outcomes {
		switch {
		case out.Failed != nil:
			o.fail(*out.Failed)
			if o.Bulk.Phase == InCanary {
				c.Failed++
			}
		case out.Done:
			o.Done++
			if o.Bulk.Phase == InCanary {
				open = append(open, out.Started)
			}
		default:
			o.Skipped++
		}
	}
	c.Open = open
	o.Bulk.Worked += len(o.Bulk.Chunk)
	o.Bulk.Chunk, o.Bulk.MovedAt, o.Bulk.Tries = nil, now, 0
	if o.Bulk.Phase == InCanary && c.Until.IsZero() && o.ChunkSize() == 0 {
		c.Until = now.Add(time.Duration(c.Within))
	}
	if o.Bulk.Phase == Running && o.Bulk.Worked == o.Matched && !o.Status.Over() {
		o.Finish(now)
	}
}

// Watch counts which of the canary have ended: true for what succeeded. If none is open any more, or the time is up, it
// decides whether the others follow.
func (o *Operation) Watch(ended map[job.ID]bool, now time.Time) {
	c := &o.Bulk.Canary
	var open []job.ID
	for _, id := range c.Open {
		succeeded, is := ended[id]
		switch {
		case !is && now.Before(c.Until):
			open = append(open, id)
		case succeeded:
			c.Succeeded++
		default:
			c.Failed++
		}
	}
	c.Open, o.Bulk.MovedAt = open, now
	if len(open) > 0 {
		return
	}
	const rounding = 1e-9
	if total := c.Succeeded + c.Failed; float64(c.Succeeded) < c.MinSucceeded*float64(total)-rounding {
		o.Abort(job.Reason{Code: CodeCanaryFailed, Message: fmt.Sprintf(
			"of the first %d, %d succeeded; at least %g %% have to", total, c.Succeeded, 100*c.MinSucceeded)}, now)
		return
	}
	o.follow(now)
}

// follow goes on with the rows that waited for the canary.
func (o *Operation) follow(now time.Time) {
	o.enter(Running)
	if o.Bulk.Worked == o.Matched && len(o.Bulk.Chunk) == 0 {
		o.Finish(now)
	}
}

// Proceed overrules the canary of an operation: what waits for it goes on.
func (o Operation) Proceed(now time.Time) (Operation, error) {
	wrong := &WrongState{o.Status, []Status{Counting, InCanary, Paused, Failed}}
	if !o.OnRows() || o.Bulk.Canary.Count == 0 {
		return o, &WrongState{Status: o.Status}
	}
	failed := o.Status == Failed && o.Why.Code == CodeCanaryFailed
	switch {
	case o.Status.Over() && !failed:
		return o, wrong
	case o.Bulk.Canary.Overruled && !failed: // a second time
		return o, nil
	case o.Bulk.Phase == Running:
		return o, wrong
	}
	o.Bulk.Canary.Overruled = true
	if failed {
		o.Status, o.Why, o.EndedAt = o.Bulk.Phase, job.Reason{}, time.Time{}
	}
	if o.Bulk.Phase == InCanary {
		o.follow(now)
	}
	return o, nil
}

// Waits says that nothing is to be done now: another process works on the operation, or it waits.
func (o Operation) Waits(now time.Time) bool {
	return now.Before(o.Bulk.LeaseUntil) || now.Before(o.Bulk.NextAt)
}

// Released takes the lease from a process that has ended. held is false if that has none, or has written the operation
// since that time.
func (o Operation) Released(ended time.Time) (next Operation, held bool) {
	if o.Status.Over() || o.Bulk.Owner == "" || !o.Bulk.LeaseUntil.Add(-Lease).Before(ended) {
		return o, false
	}
	o.Bulk.Owner, o.Bulk.LeaseUntil = "", time.Time{}
	return o, true
}

// Stalled is how long an operation that goes on has not come forward, beyond what it waits for.
func (o Operation) Stalled(now time.Time) time.Duration {
	if !o.OnRows() || o.Status.Over() || o.Status == Paused {
		return 0
	}
	since := o.Bulk.MovedAt
	if since.IsZero() {
		since = o.CreatedAt
	}
	for _, at := range []time.Time{o.Bulk.NextAt, o.Bulk.RowsAt} {
		if o.Bulk.Tries == 0 && at.After(since) {
			since = at
		}
	}
	return max(0, now.Sub(since))
}
