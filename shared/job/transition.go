package job

import (
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
)

// Transition is one named change of a row: from where it may start and where it ends. The
// functions below build the writes; this table is what they, the tests and the README share.
type Transition struct {
	Name string
	From []Status // the row must have one of these; nil: it must not exist
	To   []Status // where it may end; the same status for changes that keep it
	// Sets lists the attributes that the change decides. It writes them even where they are as
	// they were read: another process may have changed them since, and the condition lets that pass.
	Sets []string
}

var open = []Status{Scheduled, Running}

// What several transitions decide together.
var (
	status = []string{"status", "waiting"}
	why    = []string{"reason", "reason_text"}
	// A wake-up is written all or none: if something of an earlier one stayed, the row would say
	// that it is parked and lie where the end of the pause does not search.
	wakeUp = []string{contract.AttrWakeSlice, contract.AttrWakeAt, contract.AttrNear, "parked", "behind",
		"waits_limit", "postponed"}
	effects = []string{"owes"}
	ending  = slices.Concat(status, why, wakeUp, effects)
)

// Transitions lists every change that a row can undergo.
var Transitions = []Transition{
	// one that comes after others may wait for them, or may be over at once
	{WriteAccept, nil, []Status{Scheduled, Blocked, Cancelled, Skipped}, nil},
	{WriteAcceptEnded, nil, []Status{Succeeded, Dead, Cancelled, Skipped}, nil},
	{WriteAcceptMapped, nil, []Status{Blocked}, nil},
	{WriteBeginRun, []Status{Scheduled}, []Status{Blocked}, slices.Concat(status, wakeUp)},
	{WriteCloseRun, []Status{Blocked}, []Status{Succeeded, Dead, Cancelled}, ending},
	{WriteCloseMapped, []Status{Blocked}, []Status{Succeeded, Dead, Cancelled}, ending},
	{WriteForce, []Status{Scheduled}, []Status{Succeeded, Skipped}, ending},
	{WriteNotify, []Status{Succeeded, Dead, Cancelled, Skipped, Expired},
		[]Status{Succeeded, Dead, Cancelled, Skipped, Expired}, slices.Concat(effects, wakeUp)},
	{WriteRunning, []Status{Scheduled}, []Status{Running}, status},
	{WriteSucceed, open, []Status{Succeeded}, ending},
	{WriteRetry, open, []Status{Scheduled}, slices.Concat(status, why, wakeUp)},
	{WriteSnooze, open, []Status{Scheduled}, slices.Concat(status, wakeUp)},
	{WriteDie, open, []Status{Dead}, ending},
	{WriteStop, open, []Status{Scheduled, Running}, slices.Concat([]string{"stop"}, why)},
	// the stop gave the reason
	{WriteFinishStop, open, []Status{Cancelled, Expired}, slices.Concat(status, wakeUp, effects)},
	{WriteCancelBlocked, []Status{Blocked}, []Status{Cancelled}, ending},
	{WriteFollow, []Status{Blocked, Scheduled, Running}, []Status{Blocked, Scheduled, Running}, nil},
	{WriteRelease, []Status{Blocked}, []Status{Scheduled}, slices.Concat(status, why, wakeUp)},
	{WriteEndBlocked, []Status{Blocked}, []Status{Cancelled, Skipped}, ending},
	{WriteEditBlocked, []Status{Blocked}, []Status{Blocked}, nil},
	{WriteKeepBlocked, []Status{Blocked}, []Status{Blocked}, wakeUp},
	{WriteReschedule, []Status{Scheduled}, []Status{Scheduled}, wakeUp},
	{WriteRewake, open, []Status{Scheduled, Running}, wakeUp},
	{WriteRewakeEnded, []Status{Succeeded, Dead, Cancelled, Skipped, Expired},
		[]Status{Succeeded, Dead, Cancelled, Skipped, Expired}, wakeUp},
	{WriteAdopt, []Status{Scheduled}, []Status{Scheduled}, wakeUp},
	{WriteSkip, open, []Status{Skipped}, ending},
	{WritePark, open, []Status{Scheduled, Running}, wakeUp},
	{WriteUnpark, open, []Status{Scheduled, Running}, slices.Concat(wakeUp, []string{"ready_at"})},
	{WriteReady, open, []Status{Scheduled, Running}, slices.Concat(wakeUp, []string{"ready_at"})},
	{WritePause, []Status{Scheduled}, []Status{Scheduled}, wakeUp},
	{WritePauseBlocked, []Status{Blocked}, []Status{Blocked}, nil},
	{WriteResume, []Status{Scheduled}, []Status{Scheduled}, wakeUp},
	{WriteResumeBlocked, []Status{Blocked}, []Status{Blocked}, nil},
	{WriteKeepPaused, []Status{Scheduled}, []Status{Scheduled}, wakeUp},
	{WriteBury, []Status{Dead}, []Status{Dead}, slices.Concat(effects, wakeUp)},
	{WriteRedrive, []Status{Dead}, []Status{Dead}, slices.Concat(effects, wakeUp)},
	{WriteKeep, []Status{Succeeded, Dead, Cancelled, Skipped, Expired, Gone},
		[]Status{Succeeded, Dead, Cancelled, Skipped, Expired, Gone}, nil},
	{WriteForget, []Status{Succeeded, Dead, Cancelled, Skipped, Expired}, []Status{Gone}, nil},
}

// Gone is the tombstone of a forgotten job: for a day it keeps a late put of the same id out.
const Gone Status = "GONE"

// sources holds, for each transition, that the row exists and has an allowed status.
var sources = func() map[string]item.All {
	m := make(map[string]item.All, len(Transitions))
	for _, t := range Transitions {
		statuses := make([]string, len(t.From))
		for i, s := range t.From {
			statuses[i] = string(s)
		}
		m[t.Name] = item.All{{Attr: contract.AttrJobID, Op: item.Exists},
			{Attr: "status", Op: item.In, Value: statuses}}
	}
	return m
}()

// from is the condition of a transition: its sources, and what else it asks for.
func from(name string, more ...item.Cond) []item.All {
	allowed, ok := sources[name]
	if !ok {
		panic("no transition is named " + name)
	}
	return []item.All{append(allowed[:len(allowed):len(allowed)], more...)}
}

func atAttempt(a int64) item.Cond { return item.Cond{Attr: "attempt", Op: item.Eq, Value: a} }
func atVersion(v int64) item.Cond { return item.Cond{Attr: "version", Op: item.Eq, Value: v} }
func stopIs(s Stop) item.Cond {
	if s == NoStop {
		return item.Cond{Attr: "stop", Op: item.Missing}
	}
	return item.Cond{Attr: "stop", Op: item.Eq, Value: string(s)}
}
func pendingIs(o PendingEffects) item.Cond {
	if o == NoPendingEffects {
		return item.Cond{Attr: "owes", Op: item.Missing}
	}
	return item.Cond{Attr: "owes", Op: item.Eq, Value: string(o)}
}

// decided holds, for each transition, the attributes that it decides.
var decided = func() map[string][]string {
	m := make(map[string][]string, len(Transitions))
	for _, t := range Transitions {
		m[t.Name] = t.Sets
	}
	return m
}()

// change writes what differs between two states of a row and what the transition decides, and
// nothing else: what another process changed meanwhile stays as they left it.
func change(name string, before, after Row, when []item.All) item.Write {
	var was, is space
	return changed(name, before.Ref(), before.encode(&was), after.encode(&is), when)
}

// changed is change of two rows that are encoded already.
func changed(name string, ref item.Ref, before, after []item.Attribute, when []item.All) item.Write {
	set := item.Changes(before, after)
	names := decided[name]
	for _, name := range names {
		if _, differs := set[name]; !differs {
			set[name] = nil
		}
	}
	for _, a := range after {
		if !a.Absent() && slices.Contains(names, a.Name) {
			set[a.Name] = a.Value()
		}
	}
	return item.Write{Ref: ref, Name: name, When: when, Set: set}
}

// Accept puts a new row. It must not exist.
func Accept(r Row) item.Write {
	return item.Write{Ref: r.Ref(), Name: WriteAccept, Put: r.Item(),
		When: []item.All{{{Attr: contract.AttrJobID, Op: item.Missing}}}}
}

// Route gives a SCHEDULED row its wake-up for DueAt and says by which lane its firing goes: true means that the writer
// sends it itself, once the row is written. The wake-up of what goes by the direct lane lies just after due: only the
// stream consumer sends it, and the process that reads the slice passes it by. So the row itself says who fires it, and
// no two clocks have to agree. A deadline soon after due is the wake-up of what goes by these two lanes; of what its
// slice fires the wake-up then lies just before due. A paused job has no lane: nothing fires it, and its wake-up is its
// deadline.
func Route(r *Row, now time.Time) (send bool) {
	r.Parked, r.QueuedBehind, r.WaitsLimit, r.Postponed = false, false, 0, 0
	if r.IsPaused() {
		r.Near, r.WakeAt = false, r.firstPausedWake(now)
		return false
	}
	r.WakeAt = r.DueAt
	lane, soon := horizon.LaneOf(now, r.DueAt), r.hasSoonDeadline()
	switch {
	case soon && (lane == horizon.Now || lane == horizon.Direct):
		r.WakeAt = r.untilDeadline(r.DueAt.Add(contract.Grace), r.DueAt)
	case soon: // the process that reads the slice still sends it, and the sweeper sees that it has a deadline
		r.WakeAt = r.DueAt.Add(-contract.AfterDue)
	case lane == horizon.Direct:
		r.WakeAt = r.DueAt.Add(contract.AfterDue)
	}
	if r.WakeAt.Before(now) { // any wake-up written is ≥ now
		r.WakeAt = now
	}
	send = lane == horizon.Now
	r.Near = !send && horizon.Near(now, r.DueAt)
	return send
}

// MarkRunning makes RUNNING a fact, at a long job's first heartbeat. It needs no row read before.
func MarkRunning(k Key, version, attempt int64, startedAt time.Time, latenessMS int64) item.Write {
	set := map[string]any{"status": string(Running), "waiting": nil, "started_at": startedAt.UnixMilli(),
		"lateness": latenessMS}
	return item.Write{Ref: k.Ref(), Name: WriteRunning,
		When: from(WriteRunning, atVersion(version), atAttempt(attempt)), Set: set}
}

// RequestStop writes the intent to end an open job; what follows is Fence and FinishStop, or,
// while the claim is live, FlagCancel. An expiry speaks of the attempt it saw; a cancel of any. A paused job becomes
// due for a wake-up, because its own may be far away, and the process that asks may end before the job does.
func RequestStop(r Row, s Stop, reason Reason, now time.Time) (Row, item.Write) {
	after := r
	after.Stop, after.Reason = s, reason
	when := from(WriteStop, pausedAsRead(r))
	if s == StopCancel {
		after.CancelRequestedAt = now
	} else {
		when = from(WriteStop, atAttempt(r.Attempt), stopIs(NoStop), pausedAsRead(r))
	}
	if r.IsPaused() {
		after.WakeAt = now
	}
	return after, change(WriteStop, r, after, when)
}

// FinishStop turns the stop into its final status, after the claim was fenced.
func FinishStop(r Row, now time.Time) (Row, item.Write) { return FinishStopAfter(r, nil, now) }

// FinishStopAfter is FinishStop for an attempt with starts that ended with their workers.
func FinishStopAfter(r Row, starts []Attempt, now time.Time) (Row, item.Write) {
	after := r
	if n := len(starts); n > 0 && r.StartedAt.IsZero() {
		after.StartedAt, after.LatenessMS = starts[n-1].StartedAt, starts[n-1].LatenessMS
	}
	finish(&after, r.Stop.Final(), now)
	when := from(WriteFinishStop, stopIs(r.Stop), atAttempt(r.Attempt), followedAsRead(r))
	return after, change(WriteFinishStop, r, after, when)
}

// finish gives a row its final status: no wake-up, unless it has pending effects.
func finish(r *Row, s Status, now time.Time) {
	r.Status, r.FinishedAt, r.Waiting = s, now, ""
	r.Near, r.Parked, r.QueuedBehind, r.WaitsLimit, r.Postponed = false, false, false, 0, 0
	if s == Cancelled && r.Reason.Code == "" {
		r.Reason = Reason{Code: CodeCancelled}
	}
	if r.HasChildren() {
		r.PendingEffects = PendingChildren
	}
	kept := contract.FinishedKept
	switch {
	case r.InRun(): // its absence would be taken for a node that has not been released
		kept = contract.NodeKept
	case r.Followed: // its absence is taken for a failure by the jobs that come after it
		kept = contract.DeadKept
	}
	if s == Dead && r.Kind().IsJob() { // of a mapped node the items have letters, of a run its nodes
		kept, r.DeadAt = max(kept, contract.DeadKept), now
		if r.PendingEffects == PendingChildren {
			r.PendingEffects = PendingBoth
		} else {
			r.PendingEffects = PendingDeadLetter
		}
	}
	r.ExpiresAt = now.Add(kept)
	settleWake(r, now)
}

// settleWake: a final row keeps a wake-up exactly as long as it has pending effects.
func settleWake(r *Row, now time.Time) {
	r.Postponed = 0
	if r.PendingEffects == NoPendingEffects {
		r.WakeAt = time.Time{}
	} else {
		r.WakeAt = now
	}
}

// CancelBlocked ends a job that still waits for its parents.
func CancelBlocked(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.CancelRequestedAt = now
	finish(&after, Cancelled, now)
	return after, change(WriteCancelBlocked, r, after, from(WriteCancelBlocked, followedAsRead(r)))
}

// Edit is what a PATCH, a run-now or a replacement changes; a nil field stays.
type Edit struct {
	DueAt    *time.Time
	Settings *Settings // all but the task and the unique key, which stay
	Priority *Priority
	Payload  *Payload
	Labels   *Labels
	Limits   *Limits
}

// Payload is where a payload goes: decided by PayloadStorage.
type Payload struct {
	Inline string
	In     string // InRow, InItem or InBlob
	Size   int64
	Number int64 // of the payload outside of the row: ContentNumber; 0 in the row
}

// Reschedule edits a job that no attempt is running. The write goes in one transaction with a
// Fence of the attempt and the items of the new payload and labels; the version grows, so older firings are stale.
// send says whether the writer must send the firing itself.
func Reschedule(r Row, e Edit, now time.Time) (after Row, w item.Write, send bool) {
	after = r
	after.Version++
	e.applySettings(&after)
	if e.DueAt != nil {
		after.DueAt, after.Waiting = *e.DueAt, ""
		if after.ExpireAfter > 0 && after.Attempt == 1 {
			after.ExpiryAt = after.DueAt.Add(after.ExpireAfter)
		}
	}
	e.apply(&after)
	send = Route(&after, now)
	return after, change(WriteReschedule, r, after,
		from(WriteReschedule, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop))), send
}

// applySettings replaces the settings; a deadline among them counts from the due time that the edit gives.
func (e Edit) applySettings(r *Row) {
	if e.Settings == nil {
		return
	}
	task, unique := r.Task, r.Unique
	r.Settings, r.ExpiryAt = *e.Settings, time.Time{}
	r.Task, r.Unique = task, unique
}

// apply changes what is not the time, in a row whose version has grown.
func (e Edit) apply(r *Row) {
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.Limits != nil {
		r.Limits = *e.Limits
	}
	if e.Payload != nil {
		r.SetPayload(*e.Payload)
		if r.InRun() {
			r.DefinedSecrets = allSecrets
		}
	}
	if e.Labels != nil {
		r.Labelled = e.Labels.Labelled()
	}
}

// Rewake gives a row that stays unfinished its next wake-up, on the row as it was read.
func Rewake(r Row, at, now time.Time, postponed int64) (Row, item.Write) {
	after := r
	after.WakeAt, after.Near, after.Postponed = at, false, postponed
	after.Parked, after.QueuedBehind, after.WaitsLimit = false, false, 0
	if at.Before(now) {
		after.WakeAt = now
	}
	after.WakeAt = r.untilDeadline(after.WakeAt, now)
	// Parking keeps wake_at: only the slice shows that another process parked it.
	slice := item.Cond{Attr: contract.AttrWakeSlice, Op: item.Eq, Value: r.Slice()}
	return after, change(WriteRewake, r, after, from(WriteRewake, atAttempt(r.Attempt), wakeAsRead(r), slice))
}

// RewakePending is Rewake for a final row that still has pending effects.
func RewakePending(r Row, at time.Time) (Row, item.Write) {
	after := r
	after.WakeAt, after.Postponed = at, r.Postponed+1
	return after, change(WriteRewakeEnded, r, after,
		from(WriteRewakeEnded, pendingIs(r.PendingEffects), wakeAsRead(r)))
}

func wakeAsRead(r Row) item.Cond {
	return item.Cond{Attr: contract.AttrWakeAt, Op: item.Eq, Value: r.WakeAt.UnixMilli()}
}

// Park moves the wake-up of a job that a pause holds to its tenant's parking place; its time is the job's deadline. A
// row that its worker left RUNNING when it died waits again; one that became RUNNING since it was read stays so, and
// the process that unparks finds its claim live.
func Park(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.Status = Scheduled
	after.Parked, after.QueuedBehind, after.WaitsLimit, after.Near, after.Postponed = true, false, 0, false, 0
	after.WakeAt = after.parkedWake(now)
	return after, change(WritePark, r, after,
		from(WritePark, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop)))
}

// ParkQueuedBehind moves the wake-up of a schedule's job to the line behind a run that has not ended.
func ParkQueuedBehind(r Row, now time.Time) (Row, item.Write) {
	after, _ := Park(r, now)
	after.QueuedBehind = true
	return after, change(WritePark, r, after,
		from(WritePark, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop)))
}

// ParkForLimit moves the wake-up of a job to the line of those that wait for a permit of one of its limits; no is its
// number in the list, from 1.
func ParkForLimit(r Row, no int, now time.Time) (Row, item.Write) {
	after, _ := Park(r, now)
	after.WaitsLimit = int64(no)
	after.WakeAt = after.parkedWake(now)
	return after, change(WritePark, r, after,
		from(WritePark, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop)))
}

// AwaitDeadline gives a row that waits, and whose wake-up has come only so that its deadline is seen, its deadline as
// its wake-up. false: it has none that is ahead, or needs no other wake-up.
func AwaitDeadline(r Row, now time.Time) (item.Write, bool) {
	if !r.Status.Open() || r.WakeAt.IsZero() || r.WakeAt.After(now) {
		return item.Write{}, false
	}
	if r.Parked { // by an older version, which kept the wake-up
		after := r
		after.WakeAt = r.parkedWake(now)
		return change(WritePark, r, after, from(WritePark, atVersion(r.Version), atAttempt(r.Attempt),
			stopIs(NoStop))), after.WakeAt.After(now)
	}
	if !r.WakeAt.Before(r.DueAt) || r.DueAt.After(now) {
		return item.Write{}, false
	}
	_, w := Rewake(r, r.DueAt.Add(contract.Grace), now, r.Postponed)
	return w, true
}

// Unpark brings a parked job back, due at once; the writer sends the firing.
func Unpark(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.Parked, after.QueuedBehind, after.WaitsLimit, after.Near = false, false, 0, false
	after.WakeAt, after.ReadyAt = now, now
	parked := item.Cond{Attr: "parked", Op: item.Exists}
	return after, change(WriteUnpark, r, after, from(WriteUnpark, atVersion(r.Version), atAttempt(r.Attempt), parked))
}

// Ready notes that a job, which is not parked, need not wait for those that waited for a permit before it: none does
// any more. The writer sends the firing.
func Ready(r Row, now time.Time) (Row, item.Write) {
	after, _ := Rewake(r, now.Add(contract.Grace), now, r.Postponed+1)
	after.ReadyAt = now
	free := item.Cond{Attr: "parked", Op: item.Missing}
	return after, change(WriteReady, r, after,
		from(WriteReady, atVersion(r.Version), atAttempt(r.Attempt), wakeAsRead(r), free))
}

// Bury notes that the dead letter has reached the queue from which SQS moves it to the DLQ.
func Bury(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.BuriedAt, after.PendingEffects = now, r.PendingEffects.WithoutDeadLetter()
	settleWake(&after, now)
	return after, change(WriteBury, r, after, from(WriteBury, pendingIs(r.PendingEffects)))
}

// Redriven links a dead job to the new one made of it; it goes in one transaction with Accept of that.
func Redriven(r Row, by ID, now time.Time) (Row, item.Write) {
	after := r
	after.RedrivenBy, after.PendingEffects = by, r.PendingEffects.WithoutDeadLetter()
	settleWake(&after, now)
	free := item.Cond{Attr: "redriven_by", Op: item.Missing}
	return after, change(WriteRedrive, r, after, from(WriteRedrive, free, pendingIs(r.PendingEffects)))
}

// RedriveID is the id of the job that a redrive of r makes: the same however often it is asked for.
func RedriveID(r Row) ID {
	return DeterministicID(r.DeadAt, "redrive", string(r.Tenant), string(r.ID), r.DeadAt.UTC().Format(time.RFC3339Nano))
}

// RedriveOf is the new job that brings r back: the same work from its first attempt, due now.
// The payload must be put under the new key by the caller when it is not inline.
func RedriveOf(r Row, now time.Time) Row {
	n := Row{
		Key: Key{Tenant: r.Tenant, ID: RedriveID(r)}, Status: Scheduled, Version: 1, Attempt: 1,
		DueAt: now, NominalAt: r.NominalAt, CreatedAt: now, Settings: r.Settings,
		RootID: r.HandlerKey(), RedriveOf: r.ID, Webhook: r.Webhook, WakeUp: WakeUp{Shard: r.Shard},
		Payload: r.Payload, PayloadIn: r.PayloadIn, PayloadSize: r.PayloadSize, Labelled: r.Labelled,
	}
	if r.PayloadIn != InRow {
		n.PayloadVer = 1
	}
	if n.ExpireAfter > 0 {
		n.ExpiryAt = now.Add(n.ExpireAfter)
	}
	return n
}

// Forget replaces a finished row by its tombstone. A dead one may still have its letter pending: the
// letter is deleted when it finds the row gone.
func Forget(r Row, now time.Time) item.Write {
	ref := r.Ref()
	more := pendingIs(NoPendingEffects)
	if r.Status == Dead && !r.PendingEffects.Children() {
		more = pendingIs(r.PendingEffects)
	}
	w := item.Write{
		Ref: ref, Name: WriteForget, When: from(WriteForget, more),
		Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK, contract.AttrSchema: int64(1), "status": string(Gone),
			contract.AttrExpiresAt: now.Add(contract.TombstoneKept).Unix(),
			"ended":                string(r.Status), // jobs that come after it are evaluated by that
		},
	}
	if r.Forced != NotForced {
		w.Put["forced"] = string(r.Forced)
	}
	switch {
	case r.InRun():
		w.Put[contract.AttrExpiresAt] = now.Add(contract.NodeKept).Unix()
	case r.Followed:
		w.Put[contract.AttrExpiresAt] = now.Add(contract.DeadKept).Unix()
	}
	return w
}

// IsGone says whether the item is a tombstone.
func IsGone(i item.Item) bool { return i.Str("status") == string(Gone) }
