package job

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
)

// Reason says why a job has its status.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

// Attempt is one ended try at a job: one start, or one that was given up without.
type Attempt struct {
	Attempt    int64     `json:"attempt"`
	Start      int64     `json:"start,omitempty"` // counts the lost starts of an attempt, from 1; 0: its end
	Worker     string    `json:"worker,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"` // zero: it never started (poison, unknown task)
	FinishedAt time.Time `json:"finished_at,omitzero"`
	LatenessMS int64     `json:"start_lateness_ms"` // from max(due, accepted) to the handler's start
	// succeeded, failed, snoozed; lost: started again within the attempt
	Outcome string  `json:"outcome"`
	Error   *Reason `json:"error,omitempty"`
}

// Where a payload or result is kept, when not in the row.
const (
	InRow  = ""     // Row.Payload or Row.Result holds it (or there is none)
	InItem = "item" // a sibling item
	InBlob = "blob" // an object of the blob store
)

// Keeping says how large a result may be. The zero Keeping is contract.MaxResult.
type Keeping struct {
	MaxResult int64 `json:"max_result,omitempty"` // bytes; 0: contract.MaxResult
	FailLarge bool  `json:"fail_large,omitempty"` // a larger one fails the attempt
}

// Settings are what runs and how. A schedule's template has them too, and a redrive copies them: an attribute that
// decides how a job runs belongs here.
type Settings struct {
	Task        string        `json:"task"`
	Executor    string        `json:"executor"` // one of executor.Names: what runs the task
	Pool        string        `json:"pool"`
	Priority    Priority      `json:"priority"`
	Timeout     time.Duration `json:"timeout"`
	StartWithin time.Duration `json:"start_within,omitempty"` // 0: no limit
	ExpireAfter time.Duration `json:"expire_after,omitempty"` // 0: no limit; counts from the first due time
	Retry       RetryPolicy   `json:"retry"`
	Limits      Limits        `json:"limits,omitempty"` // of work; "" for none
	Unique      Unique        `json:"unique,omitzero"`  // zero for none
	Keeping
}

// ScheduleRef is the schedule that a job or a run comes from; zero for none.
type ScheduleRef struct {
	ScheduleID string // set together with Epoch
	Epoch      int64
	Rule       string // of the schedule when the job was made: written by package schedule; "" for none
	ManualOf   string // instead of ScheduleID: the schedule of which a caller asked for a run
	Backfill   ID     // operation that made the job of a nominal time of ManualOf; "" for none
}

// DagRef is the dag of which there is to be a run; zero for a job.
type DagRef struct {
	Dag        string `json:"dag,omitempty"`
	DagVersion int64  `json:"dag_version,omitempty"` // 0: the newest when the run begins
}

// NodeRef is the node that a row belongs to, of which run, and what the row is of it; zero outside of runs.
type NodeRef struct {
	RunID      string
	Node       string
	Generation int64  // of the node, from 1
	ItemNo     int64  // of a mapped node's items, from 1; 0 for any other job
	Items      int64  // how many items a mapped node's own row has; 0 for any other job
	Slot       int64  // in a run made before places lay in buckets: its slot of max_concurrency, from 1; 0 for none
	Permit     int64  // bucket of its place in its run's max_concurrency, from 1; 0 for none
	NodePermit int64  // bucket of its place in its node's max_parallel, from 1; 0 for none
	Forced     Forced // how an operator ended the node
	Always     bool   // it may start although its run was stopped
	// DefinedSecrets are the fields of the payload that name a secret, separated by spaces; see [Row.MayResolve].
	DefinedSecrets string
}

// WakeUp is when a row is read next, and by which process.
type WakeUp struct {
	Shard        int       // of the due index; fixed when accepted
	WakeAt       time.Time // zero: no wake-up left
	Parked       bool      // held by a pause: the wake-up is in a parking place
	QueuedBehind bool      // parked in its schedule's line instead, behind a run that has not ended
	WaitsLimit   int64     // parked for a permit instead: which of its limits has none, from 1; 0 for none
	Near         bool      // the stream consumer must see this write
	ReadyAt      time.Time // when a pause or another run last let it go on; zero: nothing has held it
	Postponed    int64     // times in a row that the sweeper found it without being able to do more
}

// Row is the small mutable item of a job. Instants are UTC with milliseconds; zero means absent. Its parts are values,
// not pointers: a copy of a row, as every transition makes, shares nothing with it.
type Row struct {
	Key
	Status    Status
	Stop      Stop
	Version   int64 // from 1; grows with every edit
	Attempt   int64 // from 1; only ever grows
	Failures  int64 // attempts that count against the retry budget
	DueAt     time.Time
	NominalAt time.Time // of a schedule's job; zero for a one-off
	CreatedAt time.Time // accepted then
	ExpiryAt  time.Time // the instant that ExpireAfter means; zero: none
	Settings
	ScheduleRef
	DagRef
	NodeRef
	WakeUp
	PendingEffects PendingEffects

	Webhook  string // the webhook to which the job delivers an event; "" for any other job
	Parents  string // the jobs that it comes after, and its rule: JSON, written by package dag; "" for none
	Followed bool   // other jobs come after it

	RootID     ID // of the first job of a chain of redrives; "" when it is this one
	RedriveOf  ID
	RedrivenBy ID

	Payload     string // JSON, when PayloadIn is InRow; "" is no payload
	PayloadIn   string
	PayloadVer  int64 // number under which a sibling or blob payload was put: ContentNumber, or an older version's
	PayloadSize int64 // bytes
	Result      string
	ResultIn    string
	ResultRef   string  // the object's, when ResultIn is InBlob
	Partial     Partial // why the result is not the value that the work returned
	Labelled

	Attempts   []Attempt // the newest contract.RowAttempts, oldest first
	Waiting    string    // "retry" or "snooze" while it waits for one
	Paused     OwnPause  // what holds this job alone; zero: nothing does
	Reason     Reason
	StartedAt  time.Time // of the newest attempt that started
	FinishedAt time.Time
	LatenessMS int64

	CancelRequestedAt time.Time
	DeadAt            time.Time
	BuriedAt          time.Time
	ExpiresAt         time.Time // when the table may forget the row
}

// allSecrets is DefinedSecrets of a payload that a user wrote in place of the rendered one.
const allSecrets = "*"

// MayResolve reports whether a field of the payload names a secret. The caller that wrote the payload of a plain job
// wrote its secrets too. The payload of a node may hold what another service answered, so of that only those fields
// count which name a secret in the definition.
func (r *Row) MayResolve(field string) bool {
	return !r.InRun() || r.DefinedSecrets == allSecrets ||
		slices.Contains(strings.Fields(r.DefinedSecrets), field)
}

// HandlerKey is the key that effects are made idempotent by: the same through attempts and redrives.
func (r Row) HandlerKey() ID {
	if r.RootID != "" {
		return r.RootID
	}
	return r.ID
}

// Schedule is the schedule among whose occurrences the job is listed, "" for none.
func (r Row) Schedule() string {
	if r.ManualOf != "" {
		return r.ManualOf
	}
	return r.ScheduleID
}

// Delivery reports whether the job delivers an event to a webhook. Its own end is no event, it obeys no pause but that
// of its task, and lists show it only where its task is asked for.
func (r Row) Delivery() bool { return r.Webhook != "" }

// ShownIn reports whether a list of the jobs of a task, "" for all tasks, shows the job as far as deliveries go.
func (r Row) ShownIn(task string) bool { return !r.Delivery() || task == r.Task }

// Manual says that a caller asked for it, and that it belongs to no nominal time.
func (r Row) Manual() bool { return r.ManualOf != "" && r.Backfill == "" }

// OccurredAt is where it is listed there: at its nominal time, or when a caller asked for it.
func (r Row) OccurredAt() time.Time {
	if r.Manual() {
		return r.CreatedAt
	}
	return r.NominalAt
}

// Slice is the row's key in the due index, "" without a wake-up.
func (r Row) Slice() string {
	switch {
	case r.WakeAt.IsZero():
		return ""
	case r.Parked && r.WaitsLimit > 0:
		return r.waiterQueue()
	case r.Parked && r.QueuedBehind:
		return horizon.Line(string(r.Tenant), r.Schedule())
	case r.Parked:
		return horizon.Parking(string(r.Tenant), r.Shard)
	}
	return horizon.SliceOf(r.WakeAt, r.Shard).String()
}

// HasChildren says that other jobs wait for this one.
func (r Row) HasChildren() bool { return r.InRun() || r.Followed }

// AttemptsSince returns the attempts that are on the row and are not on it as it was before.
func (r Row) AttemptsSince(before Row) []Attempt {
	var last int64
	if n := len(before.Attempts); n > 0 {
		last = before.Attempts[n-1].Position()
	}
	n := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.Position() > last })
	if n < 0 {
		return nil
	}
	return r.Attempts[n:]
}

// Content names of sibling items.
const (
	ResultContent   = "result"
	TagsContent     = "tags" // holds all labels
	LiteralsContent = "allow_literals"
)

// PayloadContent names the sibling item or blob of a payload with that number.
func PayloadContent(number int64) string { return "payload#" + strconv.FormatInt(number, 10) }

// OutcomeLost is the outcome of a start whose worker ended before it: the attempt was started again.
const OutcomeLost = "lost"

// lastStart is beyond every number of a lost start.
const lastStart = 1<<8 - 1

// Position orders the entries of a job: by attempt, and within it the lost starts before the end.
func (a Attempt) Position() int64 {
	if a.Start == 0 {
		return PositionAfter(a.Attempt)
	}
	return a.Attempt<<8 | min(a.Start, lastStart-1)
}

// PositionAfter is the place after which the entries of the next attempt begin.
func PositionAfter(attempt int64) int64 { return attempt<<8 | lastStart }

// AttemptContent names the sibling item of an older attempt.
func AttemptContent(attempt int64) string {
	s := strconv.FormatInt(attempt, 10)
	return "attempt#" + strings.Repeat("0", max(0, 6-len(s))) + s
}

// DeadShard is the row's partition of the dead index.
func DeadShard(k Key) string {
	return string(k.Tenant) + "#" + strconv.Itoa(horizon.ShardOf(string(k.ID), contract.DeadShards))
}

// Cut shortens s to at most n bytes, on a rune's edge, and marks the cut.
func Cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	if n < len(mark) {
		return ""
	}
	s = s[:n-len(mark)]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 { // inside a rune: drop its tail …
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 { // … and its head, which may be complete; a byte lost is fine
		s = s[:len(s)-1]
	}
	return s + mark
}
