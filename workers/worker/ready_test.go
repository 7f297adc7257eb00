package worker

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// mute fails every receive while it is set to.
type mute struct {
	Queues
	fails atomic.Bool
}

func (m *mute) Receive(ctx context.Context, queue string, n int, wait, hide time.Duration) ([]message.Delivery, error) {
	if m.fails.Load() {
		return nil, fault.New(fault.Unavailable, nil, "receiving from %s", queue)
	}
	return m.Queues.Receive(ctx, queue, n, wait, hide)
}

func TestWorker_IsReadyWhileItPollsAndReachesTheTable(t *testing.T) {
	within(t, func(b *bench) {
		queues := &mute{}
		queues.fails.Store(true)
		w := b.start("a", func(d *Deps, o *Options) { queues.Queues, d.Queues = d.Queues, queues })
		ready := func() bool { return w.Ready(b.Context()) == nil }
		if ready() {
			t.Error("it was ready before it polled")
		}
		b.sleep(time.Second)
		if ready() {
			t.Error("it was ready although no queue answers")
		}
		queues.fails.Store(false)
		b.sleep(2 * time.Minute)
		if err := w.Ready(b.Context()); err != nil {
			t.Errorf("it polls, and is not ready: %v", err)
		}
		var away atomic.Bool
		away.Store(true)
		probes := func(c memory.Call) bool { return away.Load() && c.Ref == readyKey.Ref() }
		b.Fault(probes, memory.Fault{Fail: fault.Unavailable})
		if ready() {
			t.Error("it was ready without the table")
		}
		away.Store(false)
		if !ready() {
			t.Error("it was not ready with the table back")
		}
	})
}

func TestWorker_StaysReadyWithAllItsSlotsTaken(t *testing.T) {
	within(t, func(b *bench) {
		w := b.start("a", options(func(o *Options) { o.Slots, o.Hold = 1, 1 }))
		b.sleeps(10 * time.Minute)
		for range 30 {
			b.fire(b.put(0, func(r *job.Row) { r.Timeout = time.Hour }), 0)
		}
		b.sleep(5 * time.Minute)
		if err := w.Ready(b.Context()); err != nil {
			t.Errorf("it is busy, and not ready: %v", err)
		}
		w.stop()
		b.sleep(time.Second)
		if w.Ready(b.Context()) == nil {
			t.Error("it was ready while it drained")
		}
	})
}

// signs are the metric lines of taken slots that a worker writes now.
func (b *bench) signs(w *runningWorker) string {
	b.Helper()
	var lines bytes.Buffer
	w.Gauge()
	if err := b.Meter.Flush(&lines, time.Now()); err != nil {
		b.Fatal(err)
	}
	return lines.String()
}

func TestWorker_GivesASignOfLifeForEachPoolWhileIdle(t *testing.T) {
	within(t, func(b *bench) {
		w := b.start("a", options(func(o *Options) { o.Pools = contract.Pools }))
		b.sleep(time.Minute)
		for minute := range 2 {
			said := b.signs(w)
			for _, pool := range contract.Pools {
				if want := `"pool":"` + pool + `","slots_busy":0`; !strings.Contains(said, want) {
					t.Errorf("minute %d: %s is not in %s", minute, want, said)
				}
			}
		}
	})
}

func TestWorker_GivesNoSignOfLifeWhileItCannotReceive(t *testing.T) {
	within(t, func(b *bench) {
		queues := &mute{}
		w := b.start("a", func(d *Deps, o *Options) { queues.Queues, d.Queues = d.Queues, queues })
		b.sleep(time.Minute)
		if said := b.signs(w); !strings.Contains(said, "slots_busy") {
			t.Errorf("a worker that receives gives no sign of life: %s", said)
		}
		queues.fails.Store(true)
		b.sleep(2 * time.Minute)
		if said := b.signs(w); strings.Contains(said, "slots_busy") {
			t.Errorf("a worker whose queues fail gives a sign of life: %s", said)
		}
		queues.fails.Store(false)
		b.sleep(2 * time.Minute)
		if said := b.signs(w); !strings.Contains(said, "slots_busy") {
			t.Errorf("a worker whose queues are back gives no sign of life: %s", said)
		}
	})
}

func TestWorker_GivesASignOfLifeWithAllItsSlotsTaken(t *testing.T) {
	within(t, func(b *bench) {
		w := b.start("a", options(func(o *Options) { o.Slots, o.Hold = 1, 1 }))
		b.sleeps(10 * time.Minute)
		for range 30 {
			b.fire(b.put(0, func(r *job.Row) { r.Timeout = time.Hour }), 0)
		}
		b.sleep(5 * time.Minute)
		if said := b.signs(w); !strings.Contains(said, `"slots_busy":1`) {
			t.Errorf("a busy worker says %s", said)
		}
	})
}
