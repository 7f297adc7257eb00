package schedule

import (
	"slices"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Key names one schedule of one tenant.
type Key struct {
	Tenant tenant.ID
	Name   string
}

// Ref returns the key of the schedule's item.
func (k Key) Ref() item.Ref {
	return item.Ref{Table: contract.Schedules, PK: string(k.Tenant), SK: k.Name}
}

// ID returns the schedule's name in indexes and for derived values: "tenant#name".
func (k Key) ID() string { return job.GroupKey(k.Tenant, k.Name) }

// Overlap is the policy for a run that is due while an earlier one has not ended. One that waits for
// a retry has not ended. Under buffer_all runs start in the order of their times: the process that takes the slot
// checks first whether the job of an earlier time is open.
type Overlap string

// The overlap policies.
const (
	OverlapAllow         Overlap = "allow"          // both run; the default
	OverlapSkip          Overlap = "skip"           // the later one is skipped
	OverlapBufferOne     Overlap = "buffer_one"     // one waits, further ones are skipped
	OverlapBufferAll     Overlap = "buffer_all"     // all wait
	OverlapCancelRunning Overlap = "cancel_running" // the earlier one is cancelled, and the newest waits for its end
)

// Overlaps lists all overlap policies.
var Overlaps = []Overlap{OverlapAllow, OverlapSkip, OverlapBufferOne, OverlapBufferAll, OverlapCancelRunning}

// Policy says which missed times still run.
type Policy string

// The catch-up policies.
const (
	CatchUpNone Policy = "none"
	CatchUpLast Policy = "last"
	CatchUpAll  Policy = "all"
)

// Policies lists all catch-up policies.
var Policies = []Policy{CatchUpNone, CatchUpLast, CatchUpAll}

// CatchUp is the policy for times of which no first attempt has started in time, because of an outage or because no
// worker was free. It is asked where a job is made of a time, and where the job starts.
type CatchUp struct {
	Policy Policy        `json:"policy"`
	Window time.Duration `json:"window"` // older ones never run
	Cap    int           `json:"cap"`    // the newest are kept
	// After is how long past its due time a first attempt may start: later it is late, and Policy decides.
	// 0: DefaultAfter.
	After time.Duration `json:"after,omitempty"`
}

// DefaultAfter is the default of CatchUp.After.
const DefaultAfter = contract.PastAllowed

// DefaultCatchUp runs the last missed time if it is at most an hour old.
var DefaultCatchUp = CatchUp{Policy: CatchUpLast, Window: time.Hour, Cap: 100}

// Limits of CatchUp and of PauseAfter.
const (
	MaxCatchUpWindow = 30 * 24 * time.Hour
	MaxCatchUpCap    = 1000
	MinCatchUpAfter  = DefaultAfter
	MaxCatchUpAfter  = 24 * time.Hour
	MaxPauseAfter    = 1000
)

// The policies of a pause for the times under it; "" means the catch-up policy.
const (
	MissedDrop = "drop"
	MissedLast = "last"
	MissedAll  = "all"
)

// Pause is why a schedule does not run.
type Pause struct {
	Reason      string    `json:"reason,omitempty"`
	By          string    `json:"by,omitempty"`
	Since       time.Time `json:"since"`
	EffectiveAt time.Time `json:"effective_at"`     // nothing starts later
	Until       time.Time `json:"until,omitzero"`   // zero: until it is resumed
	Missed      string    `json:"missed,omitempty"` // drop, last or all; replaces the catch-up policy
}

// ByPunctual pauses a schedule after failures in a row.
const ByPunctual = "punctual"

// Stretch is the range of due times that a pause decides about.
type Stretch struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to,omitzero"` // zero: the pause is in force
	Missed string    `json:"missed,omitempty"`
	// Before is the range of an earlier pause with times that wait for a decision; nil: none. Two
	// pauses may hold the same times: one of the schedule, and one of its task or of everything.
	Before *Stretch `json:"before,omitempty"`
}

// maxStretches bounds how many pauses in a row can wait for one decision.
const maxStretches = 8

// holds reports whether the pause, or an earlier one, holds a due time.
func (s *Stretch) holds(at time.Time) bool {
	_, ok := s.policyAt(at, "")
	return ok
}

// policyAt returns the policy of the pauses that hold a due time, the strictest of several; false
// if none does. "" is as strict as own, the schedule's.
func (s *Stretch) policyAt(at time.Time, own Policy) (missed string, ok bool) {
	strictness := map[string]int{MissedAll: 1, MissedLast: 2, MissedDrop: 3}
	strictness[""] = strictness[own.missed()]
	for ; s != nil; s = s.Before {
		if at.Before(s.From) || !s.To.IsZero() && at.After(s.To) {
			continue
		}
		if !ok || strictness[s.Missed] > strictness[missed] {
			missed = s.Missed
		}
		ok = true
	}
	return missed, ok
}

// follow puts a new stretch before earlier ones whose times wait for a decision: those due from
// next on. An earlier one that is in force ends now.
func (s *Stretch) follow(earlier *Stretch, next, now time.Time) *Stretch {
	var kept []Stretch
	for e := earlier; e != nil && len(kept) < maxStretches-1; e = e.Before {
		if e.To.IsZero() {
			ended := *e
			ended.To = now
			kept = append(kept, ended)
		} else if !next.IsZero() && !next.After(e.To) {
			kept = append(kept, *e)
		}
	}
	s.Before = nil
	for _, e := range slices.Backward(kept) {
		e.Before = s.Before
		s.Before = &e
	}
	return s
}

// Template is the job of each nominal time, or the run. Of a job it holds the task's values from when the
// schedule was written; the payload of a run is its params.
type Template struct {
	job.DagRef
	job.Settings
	job.Labels

	Payload     string `json:"payload,omitempty"`      // when PayloadIn is job.InRow
	PayloadIn   string `json:"payload_in,omitempty"`   // job.InItem or job.InBlob: outside of the schedule's item
	PayloadHash string `json:"payload_hash,omitempty"` // names the item or blob
	PayloadSize int64  `json:"payload_size,omitempty"`

	Literals *job.Literals `json:"literals,omitempty"` // nil: none
}

// Schedule is a tenant's rule. Instants are UTC with milliseconds; zero means absent.
type Schedule struct {
	Key
	Epoch     int64 // from 1; grows with every edit, pause, resume and delete
	CreatedAt time.Time
	UpdatedAt time.Time // of the last write that raised the epoch
	// Raised lists when the newest epochs began, the newest first. A job that was due before the epoch after its own
	// began is not decided about by that epoch, nor by later ones.
	Raised []time.Time
	// Before lists the nominal times whose jobs waited under buffer_all when the newest edit came, the earliest first:
	// they go before those of the calendar of now.
	Before []time.Time

	Spec       calendar.Spec       // the zero Spec if there is a list
	Specs      []calendar.Spec     // list of calendars, in place of Spec; nil: Spec is the only one, and no list
	Exclusions calendar.Exclusions // those that the calendars name, as they were when they were written
	Template   Template
	Overlap    Overlap
	CatchUp    CatchUp
	PauseAfter int // failures in a row that pause it; 0: never

	Next         time.Time // the first nominal time that is not promoted; zero: none is left
	Seen         time.Time // times that the calendar skips up to here are in the ledger
	AdoptThrough time.Time // times up to here are adopted where a job exists, never made nor recorded
	EditedAt     time.Time // the last edit: times up to here belong to the calendar before it; zero: none
	Rules        string    // the zone rules that Next was derived with

	Shard  int       // of the due index; fixed when created
	WakeAt time.Time // zero: no check is due
	Parked bool      // a pause of its task or of everything holds it: the wake-up is in a parking place

	Paused    *Pause   // nil: it is not paused
	Held      *Stretch // the last stretch under a pause, since the last edit
	EndedBy   string   // ReasonMaxRuns when max_runs is reached
	Spent     []bool   // of Specs, those that have reached their max_runs, while others have not; nil: none
	DeletedAt time.Time
	Failures  int64  // jobs in a row that died
	LastDead  job.ID // the last that was counted

	Events   []Announcement // those that are still to be announced, the oldest first
	Sequence int64          // that of the newest event; 0: there was none
	// Announced are the kinds of events that a change notes. It is not stored: each change sets it.
	Announced Kinds
}

// Deleted reports whether the name is only kept for its epoch.
func (s Schedule) Deleted() bool { return !s.DeletedAt.IsZero() }

// Calendars returns the calendars as they were written: those of the list, or the only one.
func (s Schedule) Calendars() []calendar.Spec {
	if s.Specs != nil {
		return s.Specs
	}
	return []calendar.Spec{s.Spec}
}

// Calendar returns all times of the schedule, bound to its identity. The error is a *calendar.Error.
func (s Schedule) Calendar() (calendar.Union, error) {
	u, err := ParseCalendars(s.Spec, s.Specs, s.Exclusions)
	if err != nil {
		return calendar.Union{}, err
	}
	return u.For(s.ID(), s.CreatedAt), nil
}

// ParseCalendars reads the list, or the only calendar if the list is nil. The error is a *calendar.Error.
func ParseCalendars(
	only calendar.Spec, list []calendar.Spec, exclusions calendar.Exclusions,
) (calendar.Union, error) {
	if list != nil {
		return calendar.ParseAll(list, exclusions)
	}
	c, err := calendar.Parse(only, exclusions)
	if err != nil {
		return calendar.Union{}, err
	}
	return calendar.Unite(c), nil
}

// Coming returns the times of the schedule that are still to come: those of the calendars that have not reached their
// max_runs. The error is a *calendar.Error.
func (s Schedule) Coming() (calendar.Union, error) {
	u, err := s.Calendar()
	return u.Without(s.Spent), err
}

// Slice returns the schedule's key in the due index, "" without a wake-up.
func (s Schedule) Slice() string {
	switch {
	case s.WakeAt.IsZero():
		return ""
	case s.Parked:
		return horizon.Parking(string(s.Tenant), s.Shard)
	}
	return horizon.SliceOf(s.WakeAt, s.Shard).String()
}

// Bound returns where promotion ends: all nominal times before it become jobs now. It is the end of
// the last minute inside the horizon, because slices are whole minutes.
func Bound(now time.Time) time.Time {
	return now.Add(contract.Horizon).Truncate(time.Minute).Add(time.Minute)
}

// ReviewEvery is the longest time between two wake-ups of an active schedule: the zone's rules may
// change, and skips must be recorded.
const ReviewEvery = 24 * time.Hour

// ReviewBefore is how long before its next time a schedule in a time zone wakes up once more: newer rules may move that
// time to an earlier hour. Only a country that crosses the date line moves its clock by more.
const ReviewBefore = 3 * time.Hour

// zoned reports whether the rules of a time zone may move the schedule's times.
func (s *Schedule) zoned() bool {
	return slices.ContainsFunc(s.Calendars(), func(c calendar.Spec) bool {
		return c.Timezone != nil && *c.Timezone != "UTC" && (c.Cron != nil || c.RRule != nil)
	})
}

// setWakeUp sets the schedule's wake-up. The process that writes it promotes the times inside the horizon;
// if they fail to, the sweeper finds the wake-up in the past.
func (s *Schedule) setWakeUp(now time.Time) {
	s.Parked = false
	switch {
	case len(s.Events) > 0: // they are announced at the wake-up
		s.WakeAt = now
	case s.Deleted():
		s.WakeAt = time.Time{}
	case s.Paused != nil:
		s.WakeAt = s.Paused.Until // zero without one
		if !s.WakeAt.IsZero() && s.WakeAt.Before(now) {
			s.WakeAt = now
		}
	case s.Next.IsZero():
		s.WakeAt = time.Time{}
	case s.Next.Before(Bound(now)):
		s.WakeAt = now
	default:
		s.WakeAt = s.Next
		if early := s.Next.Add(-ReviewBefore); s.zoned() && early.After(Bound(now)) {
			s.WakeAt = early
		}
		if far := now.Add(ReviewEvery); s.WakeAt.After(far) {
			s.WakeAt = far
		}
	}
}

// JobID returns the id of the job of a nominal time: the same for every epoch.
func (k Key) JobID(nominal time.Time) job.ID {
	return job.DeterministicID(nominal, "schedule", string(k.Tenant), k.Name, nominal.UTC().Format(time.RFC3339Nano))
}

// Job returns the row of an occurrence, as first put at now. Its payload and tags items must be put
// before it. send reports whether the writer sends the firing itself.
func (s Schedule) Job(o calendar.Occurrence, shards int, now time.Time) (r job.Row, send bool) {
	t := s.Template
	r = job.Row{
		Key: job.Key{Tenant: s.Tenant, ID: s.JobID(o.NominalAt)}, Status: job.Scheduled, Version: 1, Attempt: 1,
		DueAt: o.DueAt, NominalAt: o.NominalAt, CreatedAt: now, Settings: t.Settings, DagRef: t.DagRef,
		ScheduleRef: job.ScheduleRef{ScheduleID: s.Name, Epoch: s.Epoch, Rule: s.rule()},
		Labelled:    t.Labels.Labelled(),
		Payload:     t.Payload, PayloadIn: t.PayloadIn, PayloadSize: t.PayloadSize,
	}
	r.Shard = horizon.ShardOf(string(r.ID), shards)
	if r.ExpireAfter > 0 {
		r.ExpiryAt = r.DueAt.Add(r.ExpireAfter)
	}
	if r.PayloadIn != job.InRow {
		r.PayloadVer = job.ContentNumber(r.Version, t.PayloadHash)
	}
	if !o.DueAt.After(now) && s.Held.holds(o.DueAt) {
		r.ReadyAt = now
	}
	send = job.Route(&r, now)
	return r, send
}
