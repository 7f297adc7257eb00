package memory_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// leaping is a clock that a test sets forward.
type leaping struct{ ahead atomic.Int64 }

func (c *leaping) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func TestWorld_FollowsAClockThatLeaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := new(leaping)
		w := memory.New(memory.Options{Clock: c, TimerDelay: func(message.Timer) time.Duration { return 0 }})
		defer w.Close()
		start := c.Now()
		must(t, w.Queues().Send(t.Context(), contract.ReportQueue, message.Outgoing{Body: "delayed",
			Delay: 10 * time.Minute}))
		must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "t", At: start.Add(20 * time.Minute), Body: "ring",
			MaxAge: time.Hour}))
		next, resting := w.Resting()
		if !resting || !next.Equal(start.Add(10*time.Minute)) {
			t.Fatalf("resting %v until %s", resting, next)
		}
		began := time.Now()
		got := make(chan []message.Delivery)
		for _, queue := range []string{contract.ReportQueue, contract.DispatchQueue} {
			go func() {
				all, err := w.Queues().Receive(t.Context(), queue, 10, 20*time.Second, 0)
				if err != nil {
					t.Error(err)
				}
				got <- all
			}()
			synctest.Wait()
			c.ahead.Add(int64(next.Sub(c.Now())))
			w.Leapt()
			if all := <-got; len(all) != 1 || time.Since(began) > 0 {
				t.Errorf("received %v from %s after %s", all, queue, time.Since(began))
			}
			if _, resting := w.Resting(); resting {
				t.Error("a message is in flight, and the world rests")
			}
			next = start.Truncate(time.Minute).Add(20 * time.Minute)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := memory.New(memory.Options{})
		defer w.Close()
		write(t, w, textRow(1, "a"))
		if _, resting := w.Resting(); resting {
			t.Error("the stream is not read, and the world rests")
		}
		_, last := streamed(t, w, "")
		_, _ = streamed(t, w, last)
		if next, resting := w.Resting(); !resting || !next.IsZero() {
			t.Errorf("all is handled: resting %v until %s", resting, next)
		}
	})
}
