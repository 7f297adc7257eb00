package worker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/workers/executor"
)

// drainBench is S29: a 60 s job has run for 20 s and three messages are held when SIGTERM comes.
func drainBench(b *bench, budget time.Duration) (w *runningWorker, long job.Row) {
	b.does = func(ctx context.Context, w executor.Work) (json.RawMessage, error) {
		select {
		case <-time.After(60 * time.Second):
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	w = b.start("a", options(func(o *Options) { o.Drain = budget }))
	long = b.put(0, func(r *job.Row) { r.Timeout = 5 * time.Minute })
	b.fire(long, 0)
	b.sleep(15 * time.Second)
	for range 3 {
		b.fire(b.put(13*time.Second), 4*time.Second)
	}
	b.sleep(5 * time.Second)
	if d := b.depth(); d.InFlight != 4 {
		b.Fatalf("not as the case has it: %+v", d)
	}
	return w, long
}

// unbroken watches that no receive is broken off: SQS may have given it messages already, which
// no process would see until their visibility ends.
type unbroken struct {
	Queues
	t *testing.T
}

func (u unbroken) Receive(
	ctx context.Context, queue string, n int, wait, visibility time.Duration,
) ([]message.Delivery, error) {
	got, err := u.Queues.Receive(ctx, queue, n, wait, visibility)
	if ctx.Err() != nil {
		u.t.Error("a receive was broken off")
	}
	return got, err
}

//proof:of 119
func TestWorker_Drains(t *testing.T) {
	//proof:of S29
	t.Run("no receive after SIGTERM, and what is held is back within five seconds", func(t *testing.T) {
		within(t, func(b *bench) {
			w, _ := drainBench(b, 80*time.Second)
			stopped := time.Now()
			b.Each(stagetest.Every(memory.QueueReceive), func(memory.Call) {
				t.Errorf("a receive %s after SIGTERM", time.Since(stopped))
			})
			w.stop()
			b.sleep(5 * time.Second)
			if d := b.depth(); d.Visible != 3 || d.InFlight != 1 {
				t.Errorf("after five seconds the queue is %+v", d)
			}
			w.wait()
			b.World.SetFaults(nil)
		})
	})
	t.Run("a message that arrives in the last receive is given back", func(t *testing.T) {
		within(t, func(b *bench) {
			w := b.start("a", func(d *Deps, _ *Options) { d.Queues = unbroken{d.Queues, t} })
			b.sleep(4100 * time.Millisecond) // its receives have just begun anew
			w.stop()
			synctest.Wait()
			r := b.put(0)
			b.fire(r, 0)
			b.sleep(4 * time.Second)
			if d := b.depth(); d.Visible != 1 || b.started() != 0 || b.Claim(r.Key).Token != 0 {
				t.Errorf("the queue is %+v, ran %d", d, b.started())
			}
		})
	})
	//proof:of S29
	t.Run("with 90 s of grace the running attempt finishes", func(t *testing.T) {
		within(t, func(b *bench) {
			w, long := drainBench(b, 85*time.Second)
			w.stop()
			begun := time.Now()
			w.wait()
			if took := time.Since(begun); took > 41*time.Second {
				t.Errorf("the drain took %s although nothing ran after 40", took)
			}
			o := b.outcomes()
			if len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
				t.Errorf("ended as %+v", o)
			}
			if c := b.Claim(long.Key); c.Outcome == nil || c.Takeovers != 1 {
				t.Errorf("its claim is %+v", c)
			}
			if d := b.depth(); d.Visible != 3 || d.InFlight != 0 {
				t.Errorf("the queue is %+v", d)
			}
		})
	})
	//proof:of S29
	t.Run("with 30 s of grace the job is handed back without costing an attempt", func(t *testing.T) {
		within(t, func(b *bench) {
			w, long := drainBench(b, 25*time.Second)
			w.stop()
			begun := time.Now()
			w.wait()
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("the drain took %s", took)
			}
			if got := b.outcomes(); len(got) != 0 {
				t.Errorf("reported %+v", got)
			}
			c := b.Claim(long.Key)
			if c.Takeovers != 0 || c.Outcome != nil || c.Live(1, time.Now()) {
				t.Errorf("its claim is %+v", c)
			}
			if d := b.depth(); d.Visible != 4 || d.InFlight != 0 {
				t.Errorf("the queue is %+v", d)
			}
			b.then(nil)
			b.start("b")
			b.sleep(5 * time.Second)
			if got := b.outcomes(); len(got) != 4 {
				t.Errorf("the next worker ended %d of 4 jobs", len(got))
			}
			if last := b.Claim(long.Key); last.Attempt != 1 || last.Token != 2 || last.Takeovers != 1 {
				t.Errorf("its claim is %+v", last)
			}
		})
	})
	t.Run("an idle worker stops at once", func(t *testing.T) {
		within(t, func(b *bench) {
			w := b.start("a")
			b.sleep(time.Minute)
			begun := time.Now()
			w.stop()
			w.wait()
			if took := time.Since(begun); took > w.opts.Poll {
				t.Errorf("it took %s", took)
			}
		})
	})
	t.Run("a handler that ignores the drain is abandoned and its attempt let go", func(t *testing.T) {
		within(t, func(b *bench) {
			b.does = func(context.Context, executor.Work) (json.RawMessage, error) {
				time.Sleep(time.Hour)
				return nil, nil
			}
			w := b.start("a", options(func(o *Options) { o.Drain = 10 * time.Second }))
			r := b.put(0, func(r *job.Row) { r.Timeout = 2 * time.Hour })
			b.fire(r, 0)
			b.sleep(time.Second)
			begun := time.Now()
			w.stop()
			w.wait()
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("the drain took %s", took)
			}
			if c := b.Claim(r.Key); c.Takeovers != 0 || c.Live(1, time.Now()) {
				t.Errorf("its claim is %+v", c)
			}
			if d := b.depth(); d.Visible != 1 {
				t.Errorf("the queue is %+v", d)
			}
			b.sleep(time.Hour)
		})
	})
	t.Run("a success at the last moment counts", func(t *testing.T) {
		within(t, func(b *bench) {
			var cause error
			b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return json.RawMessage(`"done"`), nil
			}
			w := b.start("a", options(func(o *Options) { o.Drain = 10 * time.Second }))
			b.fire(b.put(0), 0)
			b.sleep(time.Second)
			w.stop()
			w.wait()
			if o := b.outcomes(); !errors.Is(cause, ErrDraining) || len(o) != 1 ||
				o[0].Kind != job.OutcomeSucceeded {
				t.Errorf("the cause was %v and it ended as %+v", cause, o)
			}
			if d := b.depth(); d != (message.Depth{}) {
				t.Errorf("the queue is %+v", d)
			}
		})
	})
	t.Run("an attempt claimed and not yet due is let go", func(t *testing.T) {
		within(t, func(b *bench) {
			w := b.start("a")
			r := b.put(3 * time.Second)
			b.fire(r, 0)
			b.sleep(2700 * time.Millisecond)
			if c := b.Claim(r.Key); c.Attempt != 1 {
				t.Fatal("not as the case has it")
			}
			w.stop()
			w.wait()
			if c := b.Claim(r.Key); c.Takeovers != 0 || b.started() != 0 {
				t.Errorf("its claim is %+v", c)
			}
			if d := b.depth(); d.Visible != 1 {
				t.Errorf("the queue is %+v", d)
			}
		})
	})
	//proof:of 124
	t.Run("reports are flushed, even through a queue that fails at first", func(t *testing.T) {
		within(t, func(b *bench) {
			b.sleeps(time.Second)
			w := b.start("a")
			for range 20 {
				b.fire(b.put(0), 0)
			}
			b.sleep(500 * time.Millisecond)
			b.FaultFirst(3, stagetest.Every(memory.QueueSend), memory.Fault{Fail: fault.Unavailable})
			w.stop()
			w.wait()
			if n := len(b.outcomes()); n != b.started() || n == 0 {
				t.Errorf("%d of %d were reported", n, b.started())
			}
			if d := b.depth(); d.InFlight != 0 {
				t.Errorf("the queue is %+v", d)
			}
		})
	})
	t.Run("a drain ends even when nothing answers", func(t *testing.T) {
		within(t, func(b *bench) {
			b.sleeps(time.Minute)
			w := b.start("a", options(func(o *Options) { o.Drain = 5 * time.Second }))
			b.fire(b.put(0), 0)
			b.sleep(time.Second)
			b.World.SetFaults(func(memory.Call) memory.Fault { return memory.Fault{Hang: true} })
			begun := time.Now()
			w.stop()
			w.wait()
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("the drain took %s", took)
			}
			b.World.SetFaults(nil)
		})
	})
}

func TestWorker_NeverCountsDrainsAndGiveBacksAsDeaths(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(time.Minute)
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		for range 3 * contract.MaxTakeovers {
			w := b.start("a", options(func(o *Options) { o.Drain = time.Second }))
			b.sleep(2 * time.Second)
			w.stop()
			w.wait()
		}
		b.start("last")
		b.sleep(2 * time.Minute)
		if o := b.outcomes(); len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
			t.Errorf("after %d drains it ended as %+v", 3*contract.MaxTakeovers, o)
		}
	})
}

func TestWorker_RefusesAnUnknownPool(t *testing.T) {
	t.Parallel()
	if err := New(Deps{}, Options{Pools: []string{"shrot"}}).Run(t.Context()); err == nil {
		t.Error("a worker of a pool that does not exist waits for ever")
	}
}
