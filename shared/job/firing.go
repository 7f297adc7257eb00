package job

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/message"
)

// Firing is one attempt that becomes due: what arming needs to know, and all of it. Rows,
// stream records and entries of the due index carry the same, so whoever sees one of them
// arms in the same way.
type Firing struct {
	Key
	Version, Attempt int64
	Pool             string
	Priority         Priority
	DueAt            time.Time
}

// Firing is the row's current attempt.
func (r Row) Firing() Firing {
	return Firing{Key: r.Key, Version: r.Version, Attempt: r.Attempt, Pool: r.Pool, Priority: r.Priority,
		DueAt: r.DueAt}
}

// OfRun says that the firing is of a row that stands for a run: no worker takes it, dispatch begins the run.
func (f Firing) OfRun() bool { return f.Pool == contract.RunPool }

// Queue is the logical name of the queue that the firing travels on.
func (f Firing) Queue() string {
	if f.OfRun() {
		return contract.DispatchQueue
	}
	return contract.FiringQueue(f.Pool, string(f.Priority))
}

// Message is the body of the firing.
func (f Firing) Message() message.Firing {
	return message.Firing{V: message.V, Tenant: string(f.Tenant), JobID: string(f.ID), Version: f.Version,
		Attempt: f.Attempt, DueAt: f.DueAt}
}

// Outgoing is the firing as a sender hands it to its queue now: delayed until just before it
// is due, or not at all.
func (f Firing) Outgoing(now time.Time) message.Outgoing {
	out := message.Outgoing{
		Body: message.Encode(f.Message()), Delay: horizon.Delay(now, f.DueAt), Group: string(f.Tenant),
	}
	if f.OfRun() { // a run begins up to contract.NowLane before its time, and its jobs are due at its time
		out.Body = message.Encode(f.dispatch())
		out.Delay = min(max(f.DueAt.Sub(now).Truncate(time.Second)-time.Second, 0), contract.MaxDelay)
	}
	return out
}

// dispatch asks dispatch to send the firing, or to begin its run.
func (f Firing) dispatch() message.Dispatch {
	m := f.Message()
	return message.Dispatch{V: message.V, Firing: &m, Pool: f.Pool, Priority: string(f.Priority)}
}

// AtDue is the firing of a run that must not begin before it is due: it arrives then, or up to a second later.
func (f Firing) AtDue(now time.Time) message.Outgoing {
	out := f.Outgoing(now)
	out.Delay = min(max((f.DueAt.Sub(now)+time.Second-1).Truncate(time.Second), 0), contract.MaxDelay)
	return out
}

// TimerName is the name of the firing's timer: the same for the same attempt of the same
// version, so that arming twice is arming once.
func (f Firing) TimerName() string {
	return timerName("j-", string(f.Tenant), string(f.ID), strconv.FormatInt(f.Version, 10),
		strconv.FormatInt(f.Attempt, 10))
}

func timerName(prefix string, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p)) // never fails
	}
	return prefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// timerMaxAge is what a timer's lateness is worth: later than this after its time the sweeper
// has brought the job back anyway.
const timerMaxAge = contract.TimerLead + contract.Grace

// Plan is how a firing gets on its way: exactly one of Send and Arm is set.
type Plan struct {
	Queue string            // where Send goes
	Send  *message.Outgoing // to send at once, with the delay that is in it
	Arm   *message.Timer    // to arm
}

// PutOff says that a wake-up which lies after the due time is not for the firing: the sweeper
// put it there, to decide then about a job that it has fired, that runs, or that waits in a deep
// queue. Whoever goes by the due index before leaves it to the sweeper.
func PutOff(dueAt, wakeAt time.Time) bool { return wakeAt.After(dueAt) }

// Arm plans the way of a firing that somebody saw. It never answers "not mine": the writer of
// a row and those who arm it judge at different moments, and a firing that is sent twice is
// refused at its claim, while one that is left to somebody else may be left by everybody.
func Arm(f Firing, now time.Time) Plan {
	switch horizon.LaneOf(now, f.DueAt) {
	case horizon.Now, horizon.Direct:
		out := f.Outgoing(now)
		return Plan{Queue: f.Queue(), Send: &out}
	}
	return Plan{Arm: timer(f.TimerName(), f.DueAt, f.dispatch())}
}

// ArmSlice plans the way of a whole crowded slice: one message or timer for all that it holds.
func ArmSlice(s horizon.Slice, now time.Time) Plan {
	d := message.Dispatch{V: message.V, Slice: s.String()}
	if horizon.LaneOf(now, s.Minute) == horizon.Timer || horizon.LaneOf(now, s.Minute) == horizon.Store {
		return Plan{Arm: timer(timerName("s-", s.String()), s.Minute, d)}
	}
	return Plan{Queue: contract.DispatchQueue, Send: &message.Outgoing{Body: message.Encode(d)}}
}

// timer fires a lead before due, because it may be late by most of a minute. It is only made
// for what is due beyond the direct lane, so its instant is never near enough to be past
// when it arrives. Scheduler knows whole seconds.
func timer(name string, due time.Time, d message.Dispatch) *message.Timer {
	return &message.Timer{Name: name, At: due.Add(-contract.TimerLead).Truncate(time.Second), Body: message.Encode(d),
		MaxAge: timerMaxAge}
}

// Rearm says what a change of a row means for its way to a worker: arm the current attempt
// (arm), or take back the timer of one that cannot happen any more (stale, nil for none).
// old is nil when there was no row, or none that could be read.
func Rearm(old *Row, r Row, now time.Time) (arm bool, stale *Firing) {
	if !r.Near || !r.Status.Open() {
		return false, nil
	}
	if r.Stop != NoStop {
		return false, timerOf(&r, now)
	}
	if old == nil || !old.Near {
		return true, nil
	}
	if old.Version == r.Version && old.Attempt == r.Attempt && old.DueAt.Equal(r.DueAt) {
		return false, nil
	}
	return true, timerOf(old, now)
}

// timerOf is the row's firing if its timer may still stand: it has not fired for certain.
func timerOf(r *Row, now time.Time) *Firing {
	if now.After(r.DueAt.Add(-contract.TimerLead + time.Minute)) {
		return nil
	}
	f := r.Firing()
	return &f
}
