package timer

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"golang.org/x/time/rate"

	"punctual/shared/aws/session"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
)

const (
	maxBody = 256 << 10 // bytes
	minAge  = time.Minute
	maxAge  = 24 * time.Hour

	answerIn = 5 * time.Second  // one request
	callIn   = 30 * time.Second // one arming with all its tries and the wait for the rate

	// defaultRate allows for five processes at once under the smallest default quota of a region, 250
	// creations per second and account. A deployment makes one timer a minute for each shard.
	defaultRate = 50
)

var nameIs = regexp.MustCompile(`^[0-9a-zA-Z\-_.]{1,64}$`)

// Settings say where timers live and what they reach.
type Settings struct {
	Group      string // the schedule group
	Role       string // ARN of the role with which AWS sends to the target
	Target     string // ARN of the dispatch queue
	DeadLetter string // ARN of the queue for what could not be sent; "" for none
	Rate       int    // calls per second of this process at most; 0 is 50
}

// Timers is one group of timers. It is safe for concurrent use.
type Timers struct {
	scheduler *scheduler.Client
	Settings
	limiter *rate.Limiter
	calls   atomic.Int64
}

// New returns the timers of a deployment.
func New(cfg aws.Config, s Settings) *Timers {
	if s.Rate <= 0 {
		s.Rate = defaultRate
	}
	throttled := func(err error) bool { return session.Kind(err) == fault.Throttled } // a quota, too
	return &Timers{
		scheduler: scheduler.NewFromConfig(session.Within(cfg, answerIn, throttled)), Settings: s,
		limiter: rate.NewLimiter(rate.Limit(s.Rate), s.Rate),
	}
}

// Arm makes a timer, or replaces the one of that name if it says something else. A time that
// is not in the future is a fault.Invalid: its job is to be sent without a timer.
func (t *Timers) Arm(ctx context.Context, m message.Timer) error {
	if err := check(m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	var last error
	for try := 1; try <= session.Tries; try++ {
		if try > 1 {
			if err := session.Wait(ctx, try-1); err != nil {
				return session.Fault(errors.Join(err, last), "arming timer %q", m.Name)
			}
		}
		done, err := t.arm(ctx, m)
		if done || err != nil {
			return err
		}
		last = fault.New(fault.Conflict, nil, "arming timer %q: it is being changed", m.Name)
	}
	return last
}

// check refuses what AWS refuses, and what AWS might take for something else.
func check(m message.Timer) error {
	switch {
	case !nameIs.MatchString(m.Name):
		return fault.New(fault.Invalid, nil, "arming timer %q: the name does not fit %s", m.Name, nameIs)
	case m.Body == "" || len(m.Body) > maxBody:
		return fault.New(fault.Invalid, nil, "arming timer %q: the body has %d bytes, 1 to %d are allowed", m.Name,
			len(m.Body), maxBody)
	case m.MaxAge < minAge || m.MaxAge > maxAge:
		return fault.New(fault.Invalid, nil, "arming timer %q: a maximum age of %s, %s to %s are allowed", m.Name,
			m.MaxAge, minAge, maxAge)
	}
	return inFuture(m)
}

func inFuture(m message.Timer) error {
	if !m.At.Truncate(time.Second).After(time.Now()) {
		return fault.New(fault.Invalid, nil, "arming timer %q: %s is not in the future", m.Name, m.At)
	}
	return nil
}

// arm tries once: true when the timer is as wanted, false while it is being changed.
func (t *Timers) arm(ctx context.Context, m message.Timer) (bool, error) {
	if err := t.next(ctx, m.Name); err != nil {
		return false, err
	}
	if err := inFuture(m); err != nil { // the wait may have been long
		return false, err
	}
	_, err := t.scheduler.CreateSchedule(ctx, t.creation(m))
	if err == nil {
		return true, nil
	}
	if !isConflict(err) {
		return false, session.Fault(err, "arming timer %q", m.Name)
	}
	if err := t.next(ctx, m.Name); err != nil {
		return false, err
	}
	have, err := t.scheduler.GetSchedule(ctx, &scheduler.GetScheduleInput{
		GroupName: aws.String(t.Group), Name: aws.String(m.Name),
	})
	switch {
	case isAbsent(err): // it fired in between
		return false, nil
	case err != nil:
		return false, session.Fault(err, "reading timer %q", m.Name)
	case t.same(have, m):
		return true, nil
	}
	if err := t.next(ctx, m.Name); err != nil {
		return false, err
	}
	_, err = t.scheduler.UpdateSchedule(ctx, t.replacement(m))
	if isConflict(err) || isAbsent(err) {
		return false, nil
	}
	return err == nil, session.Fault(err, "replacing timer %q", m.Name)
}

// next waits until the rate allows this call, and counts it.
func (t *Timers) next(ctx context.Context, name string) error {
	if err := t.limiter.Wait(ctx); err != nil {
		return fault.New(fault.Throttled, err, "waiting for the rate to reach timer %q", name)
	}
	t.calls.Add(1)
	return nil
}

func isConflict(err error) bool {
	var conflict *types.ConflictException
	return errors.As(err, &conflict)
}

func isAbsent(err error) bool {
	var absent *types.ResourceNotFoundException
	return errors.As(err, &absent)
}

// CreateGroup creates the schedule group; one that is there stays. It is for emulators: in AWS
// the flow stack does it.
func (t *Timers) CreateGroup(ctx context.Context) error {
	_, err := t.scheduler.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: aws.String(t.Group)})
	if isConflict(err) {
		return nil
	}
	return session.Fault(err, "creating timer group %q", t.Group)
}

// Counts returns what these Timers' calls have cost so far; the SDK's own tries count as one.
func (t *Timers) Counts() item.Counts { return item.Counts{TimerCalls: t.calls.Load()} }
