package message

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/shared/fault"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// V is the version that this code writes.
const V = 1

// Firing asks a worker to run a job that is due. The queue it travels on names pool and priority.
type Firing struct {
	V       int       `json:"v"`
	Tenant  string    `json:"tenant"`
	JobID   string    `json:"job_id"`
	Version int64     `json:"version"`
	Attempt int64     `json:"attempt"`
	DueAt   time.Time `json:"due_at"`
}

// Dispatch asks functions/dispatch for its Verb, or to send the firing of one job (Firing, Pool, Priority).
type Dispatch struct {
	V int `json:"v"`
	Verb
	Firing   *Firing `json:"firing,omitempty"`
	Pool     string  `json:"pool,omitempty"`
	Priority string  `json:"priority,omitempty"`
	// Slice is the verb as one text, for functions of release 0.1; see [Ask]. For verbs that read the due index it is
	// the key of what they read.
	Slice string `json:"slice,omitempty"`
	// not before; until then a slice has a timer, and others are sent again with a delay
	At     time.Time `json:"at,omitzero"`
	Round  int       `json:"round,omitempty"` // passes already made over a parking place
	Cursor string    `json:"cursor,omitempty"`
}

// ReportKind says what a report is about.
type ReportKind string

// The kinds of report.
const (
	Running    ReportKind = "running" // the first heartbeat of a long job
	Ended      ReportKind = "ended"   // the attempt's outcome is on the claim
	Reevaluate ReportKind = "look"    // a worker may not start it (paused, window passed): decide now
)

// Report is what a worker says about an attempt. Of an end it need not say what it was: that is
// on the claim, and only what is there counts.
type Report struct {
	V       int             `json:"v"`
	Kind    ReportKind      `json:"kind"`
	Tenant  string          `json:"tenant"`
	JobID   string          `json:"job_id"`
	Version int64           `json:"version"`
	Attempt int64           `json:"attempt"`
	Token   int64           `json:"token,omitempty"`
	Worker  string          `json:"worker,omitempty"`
	Outcome json.RawMessage `json:"outcome,omitempty"` // of Running: the job.Outcome, as far as it is known
	// Freed, of Ended, says that the worker has given back the permits of the attempt, and for which of the job's
	// limits others wait, in their order. It came later: without it the reader gives them back.
	Freed []bool `json:"freed,omitempty"`
}

// DeadLetter is the dead letter of one job: enough for a person who finds it in the DLQ to see
// what failed and why. The payload stays with the job's row.
type DeadLetter struct {
	V         int       `json:"v"`
	Tenant    string    `json:"tenant"`
	JobID     string    `json:"job_id"`
	Task      string    `json:"task"`
	DeadAt    time.Time `json:"dead_at"`
	SentAt    time.Time `json:"sent_at"` // of this very send: distinguishes a redriven letter from a fresh one
	Code      string    `json:"code"`
	Message   string    `json:"message,omitempty"`
	Attempts  int64     `json:"attempts"`
	RedriveOf string    `json:"redrive_of,omitempty"`
	// Metadata is the job's, a JSON object. It came later: a reader that does not know it passes it over,
	// so the version is the same.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// RunID and Node name the run and its node that the job belongs to; "" for a job of no run. They came
	// later still.
	RunID string `json:"run_id,omitempty"`
	Node  string `json:"node,omitempty"`
}

// Collect asks the redrive stage to take letters out of the DLQ whose jobs were brought back or
// deleted. It travels on the queue of the letters, which have no such field.
type Collect struct {
	V       int  `json:"v"`
	Collect bool `json:"collect"`         // true
	Round   int  `json:"round,omitempty"` // rounds made before this one
}

// IsCollect says that the body is a Collect, to be decoded as one.
func IsCollect(body string) bool {
	var c Collect
	return text.Read([]byte(body), &c) == nil && c.Collect
}

// Outgoing is one message to send.
type Outgoing struct {
	Body  string
	Delay time.Duration // whole seconds, at most contract.MaxDelay
	Group string        // the tenant, for fair queues; "" for none
}

// Delivery is one message received. It stays invisible to others until its visibility ends.
type Delivery struct {
	ID, Receipt string
	Body        string
	Group       string
	Receives    int       // how often it was received, this time included
	SentAt      time.Time // when it was enqueued, by the queue's clock
	Source      string    // the queue that a redrive policy moved it from; "" if none did
}

// Depth is what a queue holds; every number is approximate.
type Depth struct {
	Visible, InFlight, Delayed int
	// OldestAt is when the oldest visible message became visible; zero if there is none, or where the queue does not
	// say it.
	OldestAt time.Time
}

// Unsent is returned by a send of several when some entries were not taken, after retries.
type Unsent struct {
	Failed map[int]error // index in the call → why
}

// Error says how many, and why: each cause once, the first few of them. Causes name queues and
// what the service said, never a body.
func (u *Unsent) Error() string {
	const most = 3
	var why []string
	for _, n := range slices.Sorted(maps.Keys(u.Failed)) {
		if s := fmt.Sprint(u.Failed[n]); !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	if len(why) > most {
		why = append(why[:most], fmt.Sprintf("and %d other causes", len(why)-most))
	}
	return fmt.Sprintf("%d messages were not sent: %s", len(u.Failed), strings.Join(why, "; "))
}

// Unwrap lets fault.Retryable see why. One cause represents all: the first that another try may
// mend, for it is worth that try whatever became of the others; else the first.
func (u *Unsent) Unwrap() error {
	var first error
	for _, n := range slices.Sorted(maps.Keys(u.Failed)) {
		err := u.Failed[n]
		if fault.Retryable(err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// Timer is one EventBridge Scheduler entry: it sends Body to the dispatch queue at about At.
type Timer struct {
	Name   string // 1–64 of [0-9a-zA-Z-_.]; the same content always has the same name
	At     time.Time
	Body   string
	MaxAge time.Duration // what lateness is worth; at least a minute
}

// Encode returns the body of a Firing, Dispatch, Report, DeadLetter or Collect. A queue takes it, whatever
// characters its texts hold.
func Encode(body any) string {
	return string(text.MustJSON(body))
}

// Decode reads a body of type T. The error is of kind fault.Undecodable and holds none of the body.
func Decode[T Firing | Dispatch | Report | DeadLetter | Collect](body string) (T, error) {
	var v T
	if err := text.Read([]byte(body), &v); err != nil || versionOf(any(v)) != V {
		return *new(T), undecodable(v, body)
	}
	if reason := check(any(v)); reason != "" {
		return v, fault.New(fault.Undecodable, nil, "reading a %T: %s", v, reason)
	}
	return v, nil
}

func versionOf(body any) int {
	switch b := body.(type) {
	case Firing:
		return b.V
	case Dispatch:
		return b.V
	case Report:
		return b.V
	case DeadLetter:
		return b.V
	case Collect:
		return b.V
	}
	return 0
}

// undecodable says why a body could not be read, without quoting it.
func undecodable(v any, body string) error {
	var version struct {
		V *int `json:"v"`
	}
	switch err := text.Read([]byte(body), &version); {
	case err != nil:
		return fault.New(fault.Undecodable, nil, "reading a %T of %d bytes: not a JSON object with a version", v,
			len(body))
	case version.V == nil:
		return fault.New(fault.Undecodable, nil, "reading a %T: the version is missing", v)
	case *version.V != V:
		return fault.New(fault.Undecodable, nil, "reading a %T: version %d is unknown, this code reads %d", v,
			*version.V, V)
	}
	return fault.New(fault.Undecodable, nil, "reading a %T: fields have wrong types", v)
}

// check names the first field that is missing although nothing can be done without it, or that
// names no tenant: a key is made of it.
func check(body any) string {
	owned := func(t string) string {
		if _, err := tenant.Parse(t); err != nil {
			return err.Error()
		}
		return ""
	}
	firing := func(f Firing) string {
		switch {
		case f.Tenant == "" || f.JobID == "":
			return "tenant or job_id is missing"
		case f.Attempt < 1 || f.Version < 1:
			return "attempt and version count from 1"
		case f.DueAt.IsZero():
			return "due_at is missing"
		}
		return owned(f.Tenant)
	}
	switch b := body.(type) {
	case Firing:
		return firing(b)
	case Dispatch:
		switch {
		case (b.Firing == nil) == (b.Slice == "" && b.Verb == Verb{}):
			return "exactly one of firing and a verb is needed"
		case b.Firing != nil && (b.Pool == "" || b.Priority == ""):
			return "pool or priority is missing"
		case b.Firing != nil:
			return firing(*b.Firing)
		}
	case Report:
		switch {
		case b.Tenant == "" || b.JobID == "" || b.Attempt < 1:
			return "tenant, job_id or attempt is missing"
		case b.Kind != Running && b.Kind != Ended && b.Kind != Reevaluate:
			return "kind is unknown"
		}
		return owned(b.Tenant)
	case Collect:
		if !b.Collect || b.Round < 0 {
			return "collect is not true, or round is negative"
		}
	case DeadLetter:
		if b.Tenant == "" || b.JobID == "" || b.DeadAt.IsZero() {
			return "tenant, job_id or dead_at is missing"
		}
		return owned(b.Tenant)
	}
	return ""
}
