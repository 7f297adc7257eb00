package memory

import (
	"context"
	"regexp"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
)

// maxTimerBody is EventBridge Scheduler's limit of an input, in bytes.
const maxTimerBody = 256 << 10

var timerName = regexp.MustCompile(`^[0-9a-zA-Z\-_.]{1,64}$`)

// Timers is a group of one-shot schedules that send to the dispatch queue.
type Timers struct {
	world *World
	delay func(message.Timer) time.Duration

	mu     sync.Mutex
	armed  map[string]*armed
	closed bool
}

type armed struct {
	message.Timer
	alarm *time.Timer
	due   time.Time // when it rings
	tries int
}

func newTimers(w *World, delay func(message.Timer) time.Duration) *Timers {
	return &Timers{world: w, delay: delay, armed: map[string]*armed{}}
}

func (ts *Timers) stop() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	for _, a := range ts.armed {
		a.alarm.Stop()
	}
}

// Arm makes a timer, or replaces the one of that name. A time that is not in the future is a
// fault.Invalid. The timer fires once, within the minute of At, and is removed.
func (ts *Timers) Arm(ctx context.Context, t message.Timer) error {
	c := Call{Op: TimerArm, Name: t.Name, Size: len(t.Body)}
	f, err := ts.world.enter(ctx, c)
	if err != nil {
		return err
	}
	now := ts.world.now()
	switch {
	case !timerName.MatchString(t.Name):
		return fault.New(fault.Invalid, nil, "arming timer %q: the name does not fit %s", t.Name, timerName)
	case t.Body == "" || len(t.Body) > maxTimerBody:
		return fault.New(fault.Invalid, nil, "arming timer %q: the body has %d bytes, 1 to %d are allowed", t.Name,
			len(t.Body), maxTimerBody)
	case t.MaxAge < time.Minute || t.MaxAge > 24*time.Hour:
		return fault.New(fault.Invalid, nil, "arming timer %q: a maximum age of %s, 1m to 24h are allowed", t.Name,
			t.MaxAge)
	case !t.At.Truncate(time.Second).After(now):
		return fault.New(fault.Invalid, nil, "arming timer %q: %s is not in the future", t.Name, t.At)
	}
	ts.world.counts.timerCalls.Add(1)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return fault.New(fault.Unavailable, context.Canceled, "arming timer %q", t.Name)
	}
	old := ts.armed[t.Name]
	if old != nil && old.At.Equal(t.At) && old.Body == t.Body && old.MaxAge == t.MaxAge {
		return f.after(c)
	}
	if err := ts.world.keep(func() []kept { return []kept{timerFact(t)} }); err != nil {
		return fault.New(fault.Unavailable, err, "arming timer %q", t.Name)
	}
	defer ts.world.done()
	if old != nil {
		old.alarm.Stop()
	}
	a := &armed{Timer: t}
	ts.start(a)
	ts.armed[t.Name] = a
	return f.after(c)
}

// start lets a timer run; one whose time has passed fires at once. The lock is held.
func (ts *Timers) start(a *armed) {
	ts.ring(a, a.At.Truncate(time.Minute).Add(ts.delay(a.Timer)))
}

func (ts *Timers) ring(a *armed, at time.Time) {
	a.due = at
	a.alarm = time.AfterFunc(max(0, at.Sub(ts.world.now())), func() { ts.fire(a) })
}

// Armed returns the armed timers, in no order.
func (ts *Timers) Armed() []message.Timer {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var list []message.Timer
	for _, a := range ts.armed {
		list = append(list, a.Timer)
	}
	return list
}

// fire sends the body. It repeats a failed send, with growing waits, until the timer's maximum age;
// then the body goes to the queue of undeliverable ones.
func (ts *Timers) fire(a *armed) {
	ts.mu.Lock()
	if ts.closed || ts.armed[a.Name] != a {
		ts.mu.Unlock()
		return
	}
	ts.mu.Unlock()

	ctx := context.Background()
	f, err := ts.world.enter(ctx, Call{Op: TimerFire, Name: a.Name})
	ts.world.counts.timersFired.Add(1)
	if err == nil {
		for range copies(f.Twice) {
			err = ts.world.queues.Send(ctx, contract.DispatchQueue, message.Outgoing{Body: a.Body})
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed || ts.armed[a.Name] != a {
		return // replaced while it fired
	}
	if err == nil && !f.Lost && ts.remove(a) == nil {
		return
	}
	a.tries++
	wait := min(time.Second<<min(a.tries, 6), time.Minute)
	now := ts.world.now()
	if now.Add(wait).Sub(a.At) > a.MaxAge {
		q := ts.world.queues.queues[contract.FiringDead]
		dead := arrival{stored: &stored{body: a.Body, sentAt: now.UTC()}}
		if (q == nil || ts.world.queues.arrive(q, now, []arrival{dead}) == nil) && ts.remove(a) == nil {
			return
		}
	}
	ts.ring(a, now.Add(wait))
}

// remove forgets a timer that has fired. The lock is held.
func (ts *Timers) remove(a *armed) error {
	if err := ts.world.keep(func() []kept { return []kept{firedFact(a.Name)} }); err != nil {
		return err
	}
	defer ts.world.done()
	delete(ts.armed, a.Name)
	return nil
}
