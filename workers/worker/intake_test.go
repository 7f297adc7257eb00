package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

func priority(p job.Priority) func(*job.Row) { return func(r *job.Row) { r.Priority = p } }

//proof:of 93 96
func TestIntake_PicksUpACriticalJobThoughThousandsOfLowOnesWait(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(20 * time.Second)
		for range 10_000 {
			r := b.put(0, priority(job.Low))
			b.fire(r, 0)
		}
		b.start("a")
		b.sleep(time.Minute)
		if n := b.taken(); n < 20 {
			t.Fatalf("only %d slots are at work", n)
		}
		for range 20 {
			r := b.put(0, priority(job.Critical))
			b.fire(r, 0)
			b.sleep(time.Second)
			at, ok := b.startOf(r)
			if !ok || at.Sub(r.DueAt) > 100*time.Millisecond {
				t.Errorf("a critical job started after %s, %v", at.Sub(r.DueAt), ok)
			}
			b.sleep(20 * time.Second)
		}
	})
}

func (b *bench) taken() int { return b.workers[0].intake.taken() }

func (b *bench) startOf(r job.Row) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.runs {
		if w.Key == r.Key {
			return b.at[i], true
		}
	}
	return time.Time{}, false
}

//proof:of F14
func TestWorker_GivesEachPoolSlotsOfItsOwn(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(6 * time.Second)
		for range 200 {
			b.fire(b.put(0, priority(job.Critical), func(r *job.Row) { r.Pool = "long" }), 0)
		}
		b.start("a", options(func(o *Options) { o.Pools, o.Slots = []string{"short", "long"}, 4 }))
		b.sleep(3 * time.Second)
		if n := b.started(); n != 4 {
			t.Fatalf("%d jobs of pool long are at work, want all 4 slots", n)
		}
		for range 3 {
			r := b.put(0, priority(job.Low))
			b.fire(r, 0)
			b.sleep(time.Second)
			if at, ok := b.startOf(r); !ok || at.Sub(r.DueAt) > 100*time.Millisecond {
				t.Errorf("a job of pool short waited for those of pool long: started %v, after %s", ok, at.Sub(r.DueAt))
			}
		}
	})
}

//proof:of 90
func TestIntake_OrdersPrioritiesStrictly(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(100 * time.Millisecond)
		for _, p := range []job.Priority{job.Low, job.Normal, job.High, job.Critical} {
			for range 100 {
				b.fire(b.put(0, priority(p), func(r *job.Row) { r.Task = string(p) }), 0)
			}
		}
		b.start("a", options(func(o *Options) { o.Slots = 10 }))
		b.sleep(time.Minute)
		if b.started() != 400 {
			t.Fatalf("%d of 400 ran", b.started())
		}
		// What starts at one instant does so in any order: it took up different slots.
		first, last := map[string]time.Time{}, map[string]time.Time{}
		for i, w := range b.runs {
			if first[w.Task].IsZero() {
				first[w.Task] = b.at[i]
			}
			last[w.Task] = b.at[i]
		}
		for i, lower := range []string{"high", "normal", "low"} {
			higher := []string{"critical", "high", "normal"}[i]
			if first[lower].Before(last[higher]) {
				t.Errorf("the first %s job started %s before the last %s one", lower, last[higher].Sub(first[lower]),
					higher)
			}
		}
	})
}

func TestIntake_ReservesNoSlotsForAnEmptyQueue(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(100 * time.Millisecond)
		for range 5 {
			b.fire(b.put(0, priority(job.Critical)), 0)
		}
		for range 50 {
			b.fire(b.put(0, priority(job.Low)), 0)
		}
		b.start("a", options(func(o *Options) { o.Slots, o.Reserve = 10, -1 }))
		b.sleep(time.Second)
		if n := b.started(); n != 55 {
			t.Errorf("%d of 55 ran in a second", n)
		}
	})
}

func TestIntake_ReservesNoSlotsForAQueueWithoutRoom(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(100 * time.Millisecond)
		b.start("a", options(func(o *Options) { o.Slots, o.Reserve, o.Hold = 10, -1, 20 }))
		var low []job.Row
		for range 10 {
			r := b.put(2*time.Second, priority(job.Low))
			low = append(low, r)
			b.fire(r, 0)
		}
		b.sleep(time.Second)
		for range 20 {
			b.fire(b.put(8*time.Second, priority(job.High)), 0) // of these ten have room
		}
		b.sleep(2 * time.Second)
		for _, r := range low {
			if at, ok := b.startOf(r); !ok || !at.Equal(r.DueAt) {
				t.Fatalf("a low job due at %s started at %s (%v), though slots are free", r.DueAt, at, ok)
			}
		}
	})
}

//proof:of 93
func TestIntake_LeavesMessagesToOthersWhileBusy(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(10 * time.Minute)
		for range 1000 {
			b.fire(b.put(0, func(r *job.Row) { r.Timeout = time.Hour }), 0)
		}
		b.start("a")
		b.sleep(30 * time.Second)
		if d := b.depth(); d.InFlight > 25 || d.InFlight < 20 {
			t.Errorf("25 slots keep %d messages", d.InFlight)
		}
		b.start("b")
		b.sleep(100 * time.Millisecond)
		if n := b.started(); n < 40 {
			t.Errorf("two workers of 25 slots run %d jobs", n)
		}
	})
}

func TestIntake_GivesBackWhatIsDueAndGetsNoSlot(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(10 * time.Minute)
		for range 100 {
			b.fire(b.put(3*time.Second, func(r *job.Row) { r.Timeout = time.Hour }), 0)
		}
		b.start("a", options(func(o *Options) { o.Hold = 100 }))
		b.sleep(2 * time.Second)
		if d := b.depth(); d.InFlight != 100 {
			t.Fatalf("not as the case has it: %+v", d)
		}
		b.sleep(3 * time.Second)
		if d := b.depth(); d.Visible < 70 {
			t.Errorf("messages without a slot are kept from others: %+v", d)
		}
		b.start("b", options(func(o *Options) { o.Slots = 80; o.Reserve = -1 }))
		b.sleep(time.Second)
		if b.started() != 100 {
			t.Errorf("%d of 100 run", b.started())
		}
	})
}

//proof:of 147
func TestIntake_BoundsHeldMessages(t *testing.T) {
	within(t, func(b *bench) {
		for range 1000 {
			b.fire(b.put(9*time.Second), 0)
		}
		b.start("a", options(func(o *Options) { o.Hold = 50 }))
		b.sleep(8 * time.Second)
		if d := b.depth(); d.InFlight != 50 {
			t.Errorf("a worker that may hold 50 holds %d", d.InFlight)
		}
		r := b.put(0, priority(job.Critical))
		b.fire(r, 0)
		b.sleep(100 * time.Millisecond)
		if _, ok := b.startOf(r); !ok {
			t.Error("what is held stands in the way of a critical job")
		}
	})
}

func TestIntake_ServesEveryPriorityWithOneSlot(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a", options(func(o *Options) { o.Slots = 1 }))
		for _, p := range contract.Priorities {
			for range 5 {
				b.fire(b.put(0, priority(job.Priority(p))), 0)
			}
		}
		b.sleep(30 * time.Second)
		if b.started() != 20 {
			t.Errorf("%d of 20 ran", b.started())
		}
	})
}

//proof:of 92 98
func TestIntake_ServesEveryPool(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a", options(func(o *Options) { o.Pools = contract.Pools }))
		for _, pool := range contract.Pools {
			b.fire(b.put(0, func(r *job.Row) { r.Pool = pool }), 0)
		}
		b.sleep(time.Second)
		if b.started() != 2 {
			t.Errorf("%d of 2 ran", b.started())
		}
	})
}

func TestIntake_FillsSlotsWithShortJobsAtFullSpeed(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(50 * time.Millisecond)
		b.start("a")
		var rows []job.Row
		// 300 a second for ten seconds, fired two to three seconds early, as dispatch does.
		for n := range 3000 {
			due := 5*time.Second + time.Duration(n)*time.Second/300
			r := b.put(due)
			rows = append(rows, r)
			b.fire(r, (due - contract.DelayLead).Truncate(time.Second))
		}
		b.sleep(20 * time.Second)
		starts := map[job.Key]time.Time{}
		for i, w := range b.runs {
			starts[w.Key] = b.at[i]
		}
		late := 0
		for _, r := range rows {
			if at, ok := starts[r.Key]; !ok || at.Sub(r.DueAt) > 100*time.Millisecond {
				late++
			}
		}
		if late > 30 { // p99
			t.Errorf("%d of 3000 jobs started more than 100 ms late", late)
		}
	})
}

func TestIntake_HoldsAHundredThousandMessagesCheaply(t *testing.T) {
	t.Parallel()
	const n = 100_000
	receipt := strings.Repeat("AQEB", 100) // SQS's receipts are some 400 characters
	in := newIntake("short", Options{Slots: 25, Hold: n}, clock.Fixed(time.Unix(0, 0)))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		id := job.DeterministicID(time.Unix(int64(i), 0), "memory")
		in.add(&firing{
			source: in.sources[i%4], receipt: receipt + fmt.Sprint(i), received: time.Now(), version: 1, attempt: 1,
			key: job.Key{Tenant: "tenant", ID: id}, due: time.Unix(int64(n-i), 0),
		}, time.Unix(int64(n-i), 0))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if mb := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; mb > 150 {
		t.Errorf("%d held messages take %d MB", n, mb)
	} else {
		t.Logf("%d held messages take %d MB", n, mb)
	}
	if got := len(in.close()); got != n {
		t.Errorf("%d of %d were given back", got, n)
	}
}

//proof:of 91
func TestConcurrency_LimitsRunningAttemptsOfATask(t *testing.T) {
	within(t, func(b *bench) {
		r := NewRegistry()
		now, most := 0, 0
		Register(r, "charge", func(context.Context, Job[any]) (any, error) {
			b.mu.Lock()
			now++
			most = max(most, now)
			b.mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			b.mu.Lock()
			now--
			b.mu.Unlock()
			return nil, nil
		}, Concurrency(2))
		b.start("a", func(d *Deps, _ *Options) { d.Registry = r })
		for range 20 {
			b.fire(b.put(0, func(r *job.Row) { r.Executor, r.Task = job.ExecutorGo, "charge" }), 0)
		}
		b.fire(b.put(0), 0)
		b.sleep(time.Second)
		if b.started() != 1 {
			t.Error("a task at its limit stands in the way of another")
		}
		b.sleep(2 * time.Minute)
		if most != 2 || len(b.outcomes()) != 21 {
			t.Errorf("%d ran at once, and %d ended", most, len(b.outcomes()))
		}
	})
}

//proof:of 93
func TestConcurrency_GivesBackAMessageWhoseTaskStaysAtItsLimit(t *testing.T) {
	within(t, func(b *bench) {
		r := NewRegistry()
		Register(r, "charge", func(context.Context, Job[any]) (any, error) {
			time.Sleep(10 * time.Minute)
			return nil, nil
		}, Concurrency(1))
		reads := b.Count(stagetest.Every(memory.TableGet))
		b.start("a", func(d *Deps, _ *Options) { d.Registry = r })
		for range 2 {
			b.fire(b.put(0, func(r *job.Row) { r.Executor, r.Task, r.Timeout = job.ExecutorGo, "charge", time.Hour }),
				0)
		}
		b.sleep(9 * time.Minute)
		b.mu.Lock()
		if reads() > 100 {
			t.Errorf("waiting for a place took %d reads in nine minutes", reads())
		}
		b.mu.Unlock()
		b.sleep(20 * time.Minute)
		if n := len(b.outcomes()); n != 2 {
			t.Errorf("%d of 2 ended", n)
		}
	})
}

func TestWorker_MeasuresBusySlots(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(10 * time.Second)
		b.start("a")
		for range 3 {
			b.fire(b.put(0), 0)
		}
		b.sleep(5 * time.Second)
		if n := b.Meter.Total(telemetry.SlotsBusy); n != 3 {
			t.Errorf("%v slots are busy", n)
		}
		b.sleep(10 * time.Second)
		if n := b.Meter.Total(telemetry.SlotsBusy); n != 0 {
			t.Errorf("%v slots are busy when all has ended", n)
		}
	})
}

// What AWS does at its worst, and nothing is lost or doubled.
func TestWorker_EndsEveryJobOnceDespiteFaults(t *testing.T) {
	within(t, func(b *bench) {
		effects := map[job.ID]int{}
		var rows []job.Row
		for range 200 {
			r := b.put(0)
			rows = append(rows, r)
			b.fire(r, 0)
		}
		b.does = func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			b.mu.Lock()
			effects[w.HandlerKey]++
			b.mu.Unlock()
			return nil, nil
		}
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			switch c.N % 11 {
			case 1:
				return memory.Fault{Fail: fault.Unavailable}
			case 4:
				return memory.Fault{Lost: c.Op != memory.QueueReceive, Twice: c.Op == memory.QueueReceive}
			case 7:
				return memory.Fault{Wait: time.Duration(c.N%900) * time.Millisecond}
			}
			return memory.Fault{}
		})
		for _, name := range []string{"a", "b", "c"} {
			b.start(name)
		}
		b.sleep(30 * time.Minute)
		b.World.SetFaults(nil)
		b.sleep(20 * time.Minute)
		for _, r := range rows {
			if n := effects[r.ID]; n != 1 {
				t.Errorf("job %s had %d effects", r.ID, n)
			}
			if c := b.Claim(r.Key); c.Outcome == nil || c.Outcome.Kind != job.OutcomeSucceeded {
				t.Errorf("job %s ended as %+v with claim %+v", r.ID, c.Outcome, c)
			}
		}
	})
}
