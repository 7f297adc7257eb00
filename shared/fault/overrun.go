package fault

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Overrun is the cause of an error of work that did not end in the time that it had.
type Overrun struct{ After time.Duration }

func (o *Overrun) Error() string { return fmt.Sprintf("the work had not ended after %s", o.After) }

// heeds is how long work may take to return after its context has ended.
const heeds = time.Second

// maxAbandoned bounds the work of this process that was abandoned and still runs.
const maxAbandoned = 32

var abandoned, allowed atomic.Int64

func init() { allowed.Store(maxAbandoned) }

// AllowAbandoned replaces the bound of the work that was abandoned and still runs. A simulation of many processes needs
// it: they share this one's count, and what a process that has crashed left behind never ends.
func AllowAbandoned(most int64) { allowed.Store(most) }

// Within runs do for at most that long and turns a panic into a *Panicked. Work that has not ended by then is an
// Unavailable error with an *Overrun as its cause, whether it heeds its context or not. Work that does not heed it is
// abandoned: it goes on by itself, and its result is dropped. A process in which very much was abandoned and has not
// ended begins no further work; that is Unavailable as well.
func Within(ctx context.Context, most time.Duration, what string, do func(context.Context) error) error {
	if !MayBegin() {
		return New(Unavailable, nil, "%s: too much work of this process has not ended", what)
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Guard(func() error { return do(limited) }) }()
	overrun := func() error {
		if err := ctx.Err(); err != nil { // not the time of this work has ended
			return New(Unavailable, err, "%s", what)
		}
		return New(Unavailable, &Overrun{time.Since(began).Round(time.Millisecond)}, "%s", what)
	}
	select {
	case err := <-ended:
		if err != nil && limited.Err() != nil {
			return overrun()
		}
		return err
	case <-limited.Done():
	}
	timer := time.NewTimer(heeds)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
	case <-timer.C:
		Abandon(ended)
	}
	return overrun()
}

// Abandon counts work as abandoned until ended can be received from.
func Abandon[T any](ended <-chan T) {
	abandoned.Add(1)
	go func() {
		<-ended
		abandoned.Add(-1)
	}()
}

// MayBegin says whether the process may begin work that may not end.
func MayBegin() bool { return abandoned.Load() < allowed.Load() }
