package job

import (
	"cmp"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/message"
)

// Firing is one attempt that becomes due: what its sender needs to know, and all of it. Rows,
// stream records and entries of the due index carry the same, so each process that sees one of them
// sends in the same way.
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

// OfRun says that the firing is of a row that represents a run: no worker takes it, dispatch begins the run.
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

// dispatch asks dispatch to send the firing, or to begin its run. The row of a run may have no priority, because
// its dag has: what that says counts for the run's jobs, and not on the way to dispatch.
func (f Firing) dispatch() message.Dispatch {
	m := f.Message()
	return message.Dispatch{V: message.V, Firing: &m, Pool: f.Pool, Priority: string(cmp.Or(f.Priority, Normal))}
}

// AtDue is the firing of a run that must not begin before it is due: it arrives then, or up to a second later.
func (f Firing) AtDue(now time.Time) message.Outgoing {
	out := f.Outgoing(now)
	out.Delay = min(max((f.DueAt.Sub(now)+time.Second-1).Truncate(time.Second), 0), contract.MaxDelay)
	return out
}

// timerMaxAge is what a timer's lateness is worth: later than this after its time the sweeper
// has brought the jobs back anyway.
const timerMaxAge = contract.TimerLead + contract.Grace

// FiredBySlice says that the process that reads the slice of a wake-up sends its firing. It does not where
// the wake-up lies after the due time: either the stream consumer sends the firing ([Place]), or
// the sweeper has put the job off, to decide then about one that it has fired, that runs, or that
// waits in a deep queue.
func FiredBySlice(dueAt, wakeAt time.Time) bool { return !wakeAt.After(dueAt) }

// WaitsForSlice says that the stream consumer leaves the row's firing to its slice: the row says
// so, and there is time enough to have the slice read. What it does not leave to a slice it sends itself.
// Of rows written before the direct lane was marked, only the time shows it.
func WaitsForSlice(r Row, now time.Time) bool {
	return FiredBySlice(r.DueAt, r.WakeAt) && r.DueAt.Sub(now) > contract.DirectLane
}

// SliceAt is when a slice is to be read: as long before its minute as its timer may be late, and more.
func SliceAt(s horizon.Slice) time.Time { return s.Minute.Add(-contract.TimerLead) }

// AskSlice is the message that has dispatch read a slice at its time, whenever it is sent.
func AskSlice(s horizon.Slice) message.Outgoing {
	ask := message.Ask(message.Verb{Fire: &message.Minute{At: s.Minute.UTC(), Shard: s.Shard}})
	ask.At = SliceAt(s)
	return message.Outgoing{Body: message.Encode(ask)}
}

// SliceTimer sends AskSlice at the slice's time. Its name is the slice's, so that arming twice is
// arming once, whichever process comes first.
func SliceTimer(s horizon.Slice) message.Timer {
	return message.Timer{
		Name: "s-" + s.Minute.UTC().Format("2006-01-02T1504") + "-" + strconv.Itoa(s.Shard),
		At:   SliceAt(s), Body: AskSlice(s).Body, MaxAge: timerMaxAge,
	}
}

// Rearm says that a change of a row calls for a firing on its way. What a change made stale is
// never taken back: a slice is read as it is by then, and a firing that was sent is refused at
// its claim. old is nil when there was no row, or none that could be read.
func Rearm(old *Row, r Row) bool {
	switch {
	case !r.Near || !r.Status.Open() || r.Stop != NoStop:
		return false
	case old == nil || !old.Near:
		return true
	}
	return old.Version != r.Version || old.Attempt != r.Attempt || !old.DueAt.Equal(r.DueAt)
}
