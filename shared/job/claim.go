package job

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/text"
)

// OutcomeKind says how an attempt ended.
type OutcomeKind string

// The ways an attempt can end. A cancelled or timed-out attempt is a failed one; what it
// becomes is decided when it is settled.
const (
	OutcomeSucceeded OutcomeKind = "succeeded"
	OutcomeFailed    OutcomeKind = "failed"
	OutcomeSnoozed   OutcomeKind = "snoozed"
)

// Outcome is what a worker recorded of an ended attempt. Once on the claim it is never overturned.
type Outcome struct {
	Kind         OutcomeKind     `json:"kind"`
	Permanent    bool            `json:"permanent,omitempty"`      // a failure that another try cannot mend
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"` // asked for by the target, or the snooze's length
	Error        *Reason         `json:"error,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"` // at most contract.MaxClaimResult bytes
	// ResultRef names the object that holds the result instead, "" for none; see [ResultRef].
	ResultRef string `json:"result_ref,omitempty"`
	// Partial says that the result is only shown: the value itself was not kept.
	Partial    Partial   `json:"partial,omitempty"`
	Worker     string    `json:"worker,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	LatenessMS int64     `json:"start_lateness_ms,omitempty"`
	Lost       []Attempt `json:"lost,omitempty"` // earlier starts of the attempt, whose workers ended
	// Permits are the buckets in which it holds permits, in the order of its limits; none where all are the first.
	Permits []int `json:"permits,omitempty"`
}

// Partial says why a result is not the value that the work returned, but a preview of it or a part. Whatever uses
// the value of such a result fails by that name.
type Partial string

// The reasons; Whole is the absent attribute.
const (
	Whole       Partial = ""
	PartialSize Partial = "size" // it was larger than is kept
	PartialLost Partial = "lost" // the object that was to hold it could not be written
)

// Reason is the code and the sentence with which the use of such a result fails.
func (p Partial) Reason() Reason {
	if p == PartialLost {
		return Reason{Code: CodeResultLost, Message: "the result could not be stored, and only a preview of it is kept"}
	}
	return Reason{
		Code:    CodeResultTooLarge,
		Message: "the result is larger than is kept, and only a part of it is there",
	}
}

// ResultRef names the object of an attempt's result. Each owner of an attempt has a name of its own, so that what a
// fenced worker has written is never read as the result of another.
func ResultRef(attempt, token int64) string {
	return strconv.FormatInt(attempt, 10) + "." + strconv.FormatInt(token, 10)
}

// ResultObject names the blob of a result with that reference.
func ResultObject(ref string) string { return ResultContent + "#" + ref }

// Progress is what a handler said of its work; it rides the heartbeat.
type Progress struct {
	Done  int64     `json:"done"`
	Total int64     `json:"total,omitempty"`
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
}

// Claim is the lease that makes one worker the owner of one attempt. The zero Claim is the
// absent one: attempt 0, no lease.
type Claim struct {
	Attempt    int64
	Token      int64 // fences: compared after the attempt
	Takeovers  int64 // owners of this attempt so far
	LeaseUntil time.Time
	ClaimedAt  time.Time // by its owner
	Worker     string
	Nonce      string // of the receive that made the claim
	Cancel     bool   // the owner is asked to stop
	Outcome    *Outcome
	Progress   *Progress
	Waits      Waits     // what a worker gave the firing back for
	Lost       []Attempt // starts of this attempt whose workers ended, oldest first
	Begun      int64     // newest attempt whose start was marked before it happened; 0 for none
}

// Waits is a worker's note that it has met the firing of an attempt and given it back, unclaimed:
// the firing is not lost, it comes again at Until. The zero Waits is no note.
type Waits struct {
	Attempt int64
	For     string // WaitsForPermit or WaitsForHandler
	Until   time.Time
}

// What a firing is given back for.
const (
	WaitsForPermit  = "place"   // the handler already runs as often as it may
	WaitsForHandler = "handler" // the worker does not know the task
)

// WaitsFor is what a worker gave the attempt's firing back for, "" for nothing known.
func (c Claim) WaitsFor(attempt int64) string {
	if c.Waits.Attempt != attempt {
		return ""
	}
	return c.Waits.For
}

// Live says whether the claim is of that attempt and its worker may be alive: an unsettled outcome counts as live.
func (c Claim) Live(attempt int64, now time.Time) bool {
	return c.Attempt == attempt && (!c.LeaseUntil.Before(now) || c.Outcome != nil)
}

// MayRun says whether a worker may still be at the job of a row that no process can read. No attempt
// of it can start; one whose outcome is recorded has ended, though no process can settle it.
func (c Claim) MayRun(now time.Time) bool { return c.Outcome == nil && !c.LeaseUntil.Before(now) }

// lostKept bounds how many lost starts a claim remembers: the newest. Only drains bring more.
const lostKept = 10

// LostStart is the start that the claim's owner made, whose lease has ended without an outcome;
// false: there is none, the owner let go. No process knows when exactly it started, so it is when it
// can have at the earliest; and it ended, at the latest, with its lease.
func (c Claim) LostStart(due time.Time) (Attempt, bool) {
	if c.LeaseUntil.UnixMilli() <= 0 || c.Outcome != nil || c.ClaimedAt.IsZero() {
		return Attempt{}, false
	}
	started := c.ClaimedAt
	if started.Before(due) {
		started = due
	}
	return Attempt{
		Attempt: c.Attempt, Worker: c.Worker, StartedAt: started, FinishedAt: c.LeaseUntil,
		LatenessMS: max(started.Sub(due), 0).Milliseconds(), Outcome: OutcomeLost,
		Error: &Reason{Code: CodeWorkerLost, Message: "the worker gave no sign of life until its lease ended"},
	}, true
}

// Starts lists the starts of an attempt that ended without an outcome, oldest first, once no worker owns it any
// more: those that the claim remembers, and its last owner's. due is the attempt's.
func (c Claim) Starts(attempt int64, due time.Time) []Attempt {
	if c.Attempt != attempt {
		return nil
	}
	if start, ok := c.LostStart(due); ok {
		return withLost(c.Lost, start)
	}
	return c.Lost
}

// withLost adds a start to those that a claim remembers.
func withLost(lost []Attempt, a Attempt) []Attempt {
	a.Start = 1
	if n := len(lost); n > 0 {
		a.Start = lost[n-1].Start + 1
	}
	lost = append(lost[:len(lost):len(lost)], a)
	return lost[max(len(lost)-lostKept, 0):]
}

func encodeLost(lost []Attempt) string {
	return string(text.MustJSON(lost))
}

// ParseClaim decodes a claim item; nil is the absent claim.
func ParseClaim(i item.Item) (Claim, error) {
	c := Claim{
		Attempt: i.Int("attempt"), Token: i.Int("token"), Takeovers: i.Int("takeovers"),
		LeaseUntil: i.Time("lease_until"), ClaimedAt: i.Time("claimed_at"), Worker: i.Str("worker"),
		Nonce: i.Str("nonce"), Cancel: i.Str("cancel") != "", Begun: i.Int("begun"),
	}
	if s := i.Str("outcome"); s != "" {
		o, err := DecodeOutcome([]byte(s))
		if err != nil {
			return Claim{}, fault.New(fault.Undecodable, err, "reading claim %q", i.Str(contract.AttrPK))
		}
		c.Outcome = &o
	}
	if s := i.Str("progress"); s != "" {
		c.Progress = new(Progress)
		if err := text.Read([]byte(s), c.Progress); err != nil {
			c.Progress = nil // only shown to people: not worth failing for
		}
	}
	if s := i.Str("waits"); s != "" {
		c.Waits = Waits{Attempt: i.Int("waits_attempt"), For: s, Until: i.Time("waits_until")}
	}
	if s := i.Str("lost"); s != "" {
		if err := text.Read([]byte(s), &c.Lost); err != nil {
			return Claim{}, fault.New(fault.Undecodable, err, "reading the lost starts of claim %q",
				i.Str(contract.AttrPK))
		}
		// a fence may have left older ones
		c.Lost = slices.DeleteFunc(c.Lost, func(a Attempt) bool { return a.Attempt != c.Attempt })
	}
	return c, nil
}

// claimTTL keeps a claim well beyond the last moment at which it can matter.
func claimTTL(due, lease time.Time) int64 {
	if lease.After(due) {
		due = lease
	}
	return due.Add(contract.ClaimKept).Unix()
}

// KeepClaim lets a claim live until then; refused where there is none, or where it lives longer.
func KeepClaim(k Key, until time.Time) item.Write {
	return keep(k.ClaimRef(), WriteClaimKeep, until)
}

// keep lets an item live until then, if it is there and would go earlier.
func keep(ref item.Ref, name string, until time.Time) item.Write {
	return item.Write{
		Ref: ref, Name: name, Set: map[string]any{contract.AttrExpiresAt: until.Unix()},
		When: []item.All{{goesBefore(until)}},
	}
}

func goesBefore(at time.Time) item.Cond {
	return item.Cond{Attr: contract.AttrExpiresAt, Op: item.Lt, Value: at.Unix()}
}

// KeepContent lets a sibling item of a job live until then; refused where it lives longer.
func KeepContent(ref item.Ref, until time.Time) item.Write { return keep(ref, WriteContentKeep, until) }

// KeepRow lets the row of a job that has ended, or its tombstone, live until then; refused where it lives longer.
func KeepRow(k Key, until time.Time) item.Write {
	w := keep(k.Ref(), WriteKeep, until)
	w.When = from(WriteKeep, goesBefore(until))
	return w
}

// Owner is a worker's hold on an attempt.
type Owner struct {
	Worker, Nonce string
	LeaseUntil    time.Time
	DueAt         time.Time // of the attempt
}

func owned(o Owner) map[string]any {
	return map[string]any{
		"lease_until": o.LeaseUntil.UnixMilli(), "claimed_at": o.LeaseUntil.Add(-contract.Lease).UnixMilli(),
		"worker": o.Worker, "nonce": o.Nonce,
		"cancel": nil, "waits": nil, "waits_attempt": nil, "waits_until": nil,
		contract.AttrExpiresAt: claimTTL(o.DueAt, o.LeaseUntil),
	}
}

// ClaimNew takes an attempt that no worker has claimed yet.
func ClaimNew(k Key, attempt int64, o Owner) item.Write {
	set := owned(o)
	set["attempt"], set["takeovers"], set["outcome"], set["progress"], set["lost"] = attempt, int64(1), nil, nil, nil
	return item.Write{
		Ref: k.ClaimRef(), Name: WriteClaimNew, Set: set, Add: map[string]int64{"token": 1},
		When: []item.All{
			{{Attr: contract.AttrPK, Op: item.Missing}},
			{{Attr: "attempt", Op: item.Lt, Value: attempt}},
		},
	}
}

// NoteWaits notes on the claim of an attempt that no worker holds what its firing waits for. The
// attempt stays unclaimed. Refused means that a worker holds it: then there is nothing to note.
func NoteWaits(k Key, w Waits, due, now time.Time) item.Write {
	return item.Write{
		Ref: k.ClaimRef(), Name: WriteClaimNoteWaits,
		Set: map[string]any{
			"waits": w.For, "waits_attempt": w.Attempt, "waits_until": w.Until.UnixMilli(),
			contract.AttrExpiresAt: claimTTL(due, w.Until),
		},
		Add: map[string]int64{"attempt": 0}, // a new item needs one: claims compare it
		When: []item.All{
			{{Attr: contract.AttrPK, Op: item.Missing}},
			{{Attr: "attempt", Op: item.Lt, Value: w.Attempt}},
			unheld(w.Attempt, now),
		},
	}
}

// TakeOver takes an attempt whose owner's lease has ended without an outcome: that of the claim as
// it was read, so that no start is forgotten or noted twice.
func TakeOver(k Key, old Claim, o Owner, now time.Time) item.Write {
	set := owned(o)
	if start, ok := old.LostStart(o.DueAt); ok {
		set["lost"] = encodeLost(withLost(old.Lost, start))
	}
	when := append(unheld(old.Attempt, now), asRead(old)...)
	return item.Write{
		Ref: k.ClaimRef(), Name: WriteClaimTakeOver, Set: set, Add: map[string]int64{"token": 1, "takeovers": 1},
		When: []item.All{when},
	}
}

// unheld: this attempt, no outcome, the lease has ended.
func unheld(attempt int64, now time.Time) item.All {
	return item.All{
		{Attr: "attempt", Op: item.Eq, Value: attempt},
		{Attr: "outcome", Op: item.Missing},
		{Attr: "lease_until", Op: item.Lt, Value: now.UnixMilli()},
	}
}

// holder: this very owner, and no outcome yet.
func holder(attempt, token int64) []item.All {
	return []item.All{{
		{Attr: "attempt", Op: item.Eq, Value: attempt},
		{Attr: "token", Op: item.Eq, Value: token},
		{Attr: "outcome", Op: item.Missing},
	}}
}

// Heartbeat extends the owner's lease; the item that comes back shows the cancel flag.
// A nil progress leaves what was there.
func Heartbeat(k Key, attempt, token int64, leaseUntil, due time.Time, p *Progress) item.Write {
	set := map[string]any{"lease_until": leaseUntil.UnixMilli(), contract.AttrExpiresAt: claimTTL(due, leaseUntil)}
	if p != nil {
		set["progress"] = string(text.MustJSON(p))
	}
	return item.Write{Ref: k.ClaimRef(), Name: WriteClaimHeartbeat, When: holder(attempt, token), Set: set}
}

// BeginAttempt marks the start of an attempt just before it happens: from then on the job has started, whatever becomes
// of its worker. It extends the lease as a heartbeat does.
func BeginAttempt(k Key, attempt, token int64, leaseUntil, due time.Time) item.Write {
	w := Heartbeat(k, attempt, token, leaseUntil, due, nil)
	w.Name, w.Set["begun"] = WriteClaimBegin, attempt
	return w
}

// RecordOutcome ends the attempt. Refused means that another process fenced us: then nothing may be reported.
func RecordOutcome(k Key, attempt, token int64, o Outcome) item.Write {
	return item.Write{Ref: k.ClaimRef(), Name: WriteClaimOutcome, When: holder(attempt, token),
		Set: map[string]any{"outcome": EncodeOutcome(o)}}
}

// LostOutcome is the outcome of an attempt that may not start twice and whose workers ended: that of its last start.
// The earlier starts are listed in it. There is at least one start.
func LostOutcome(starts []Attempt) Outcome {
	last := starts[len(starts)-1]
	return Outcome{
		Kind: OutcomeFailed, Worker: last.Worker, StartedAt: last.StartedAt, FinishedAt: last.FinishedAt,
		LatenessMS: last.LatenessMS, Error: last.Error, Lost: starts[:len(starts)-1],
	}
}

// RecordLost records on the claim, as it was read, that the attempt of the row failed with its worker: see [LostFails].
// It fences that worker as a takeover does. Refused means that the claim has changed: decide again. after is the claim
// as it then is.
func RecordLost(r Row, c Claim, now time.Time) (after Claim, w item.Write) {
	o := LostOutcome(c.Starts(r.Attempt, r.DueAt))
	after = c
	after.Outcome, after.Token = &o, c.Token+1
	return after, item.Write{
		Ref: r.ClaimRef(), Name: WriteClaimOutcomeLost, Add: map[string]int64{"token": 1},
		Set:  map[string]any{"outcome": EncodeOutcome(o), "lost": nil, "cancel": nil},
		When: []item.All{append(unheld(r.Attempt, now), asRead(c)...)},
	}
}

// EncodeOutcome is the outcome as claims and reports carry it.
func EncodeOutcome(o Outcome) string {
	b, err := text.JSON(o)
	if err != nil { // only an invalid Result can do this; the worker checks it first
		o.Result = nil
		b = text.MustJSON(o)
	}
	return string(b)
}

// DecodeOutcome reads what EncodeOutcome wrote.
func DecodeOutcome(b []byte) (Outcome, error) {
	var o Outcome
	if err := text.Read(b, &o); err != nil {
		return o, fault.New(fault.Undecodable, nil, "reading an outcome")
	}
	switch o.Kind {
	case OutcomeSucceeded, OutcomeFailed, OutcomeSnoozed:
		return o, nil
	}
	return o, fault.New(fault.Undecodable, nil, "reading an outcome: kind is unknown")
}

// LetGoStarted is LetGo for a start that was broken off; lost is what the claim remembers so far.
func LetGoStarted(k Key, attempt, token int64, lost []Attempt, broken Attempt) item.Write {
	w := LetGo(k, attempt, token)
	w.Set["lost"] = encodeLost(withLost(lost, broken))
	return w
}

// LetGo gives the attempt back without it having counted as an owner. Asked for again because an
// answer was lost, it is refused: it must not count less than nothing.
func LetGo(k Key, attempt, token int64) item.Write {
	held := item.Cond{Attr: "lease_until", Op: item.Ne, Value: int64(0)}
	return item.Write{
		Ref: k.ClaimRef(), Name: WriteClaimLetGo, When: []item.All{append(holder(attempt, token)[0], held)},
		Set: map[string]any{"lease_until": int64(0)}, Add: map[string]int64{"takeovers": -1},
	}
}

// Fence makes sure that no worker owns the attempt of a row, or can believe so. If the claim, as it was
// read, has an owner whose lease has ended without an outcome, the start is remembered, as by a takeover. due is the
// attempt's from now on. Refused means that the claim is live, or has changed: decide again.
func Fence(r Row, old Claim, due, now time.Time) item.Write {
	w := item.Write{
		Ref: r.ClaimRef(), Name: WriteClaimFence,
		Set: map[string]any{
			"attempt": r.Attempt, "lease_until": int64(0), "takeovers": int64(0), "outcome": nil, "cancel": nil,
			"progress":             nil,
			contract.AttrExpiresAt: claimTTL(due, now),
		},
		Add: map[string]int64{"token": 1},
		When: []item.All{
			{{Attr: contract.AttrPK, Op: item.Missing}},
			{{Attr: "attempt", Op: item.Lt, Value: r.Attempt}},
			unheld(r.Attempt, now),
		},
	}
	if start, ok := old.LostStart(r.DueAt); ok && old.Attempt == r.Attempt {
		w.Set["lost"] = encodeLost(withLost(old.Lost, start))
		w.When = []item.All{append(unheld(r.Attempt, now), asRead(old)...)}
	}
	return w
}

// asRead: the claim has the owner and the lease that it was read with.
func asRead(old Claim) item.All {
	return item.All{
		{Attr: "token", Op: item.Eq, Value: old.Token},
		{Attr: "lease_until", Op: item.Eq, Value: old.LeaseUntil.UnixMilli()},
	}
}

// FlagCancel asks the live owner to stop; it sees the flag at its next heartbeat, or before it starts.
func FlagCancel(k Key, attempt, token int64) item.Write {
	return item.Write{Ref: k.ClaimRef(), Name: WriteClaimCancel, When: holder(attempt, token),
		Set: map[string]any{"cancel": "1"}}
}
