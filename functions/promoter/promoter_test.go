package promoter_test

import (
	"context"
	"testing"
	"time"

	"punctual/functions/promoter"
	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

type bundle struct {
	*stagetest.Setup
	stage *promoter.Stage
}

func bubble(t *testing.T, name string, o memory.Options, do func(b *bundle)) {
	stagetest.Bubble(t, name, o, func(s *stagetest.Setup) {
		b := &bundle{Setup: s}
		b.stage = b.another()
		do(b)
	})
}

func (b *bundle) another() *promoter.Stage {
	return promoter.New(promoter.Deps{
		Store: b.Store, Queue: b.World.Queues(), Timer: b.World.Timers(), Clock: clock.System{}, Log: telemetry.Silent(),
		Shards: stagetest.Shards,
	})
}

// far stores job n as it was accepted long before, so that no stream consumer armed it.
func (b *bundle) far(n int, in time.Duration, change ...func(*job.Row)) job.Row {
	b.Helper()
	r := jobtest.Row(n, time.Now().Add(in), time.Now().Add(-24*time.Hour), change...)
	b.PutItem(r.Item())
	return r
}

func (b *bundle) promote() promoter.Summary {
	b.Helper()
	sum, err := b.stage.Handle(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

func (b *bundle) requireArmed(rows ...job.Row) {
	b.Helper()
	armed := map[string]bool{}
	for _, t := range b.World.Timers().Armed() {
		armed[t.Name] = true
	}
	for _, r := range rows {
		if !armed[r.Firing().TimerName()] {
			b.Fatalf("the job due in %s has no timer", time.Until(r.DueAt))
		}
	}
	if len(armed) != len(rows) {
		b.Fatalf("%d timers, want %d", len(armed), len(rows))
	}
}

func TestPromoter_ArmsWhatEntersTheHorizon(t *testing.T) {
	t.Parallel()
	bubble(t, "arms each job when its slice enters the horizon, and only then", memory.Options{}, func(b *bundle) {
		r := b.far(1, 45*time.Minute+30*time.Second)
		b.promote()
		b.requireArmed()
		for range 14 {
			time.Sleep(time.Minute)
			b.promote()
		}
		b.requireArmed()
		time.Sleep(time.Minute)
		b.promote()
		b.requireArmed(r)
	})
	bubble(t, "arms each job once, however often the minute is replayed and by however many", memory.Options{}, func(b *bundle) {
		var rows []job.Row
		for n := range 8 {
			rows = append(rows, b.far(n, 25*time.Minute+time.Duration(n)*time.Second))
		}
		b.promote()
		calls := b.World.Counts().TimerCalls
		for range 5 {
			b.promote()
			time.Sleep(10 * time.Second)
		}
		if again := b.World.Counts().TimerCalls; again != calls {
			b.Errorf("%d more calls to the scheduler for what is armed", again-calls)
		}
		b.stage = b.another()
		b.promote()
		b.requireArmed(rows...)
	})
	bubble(t, "goes on after a pass of 75 s from where it ended, not from the clock", memory.Options{}, func(b *bundle) {
		const each = 60
		b.promote()
		for m := range 3 {
			for n := range each {
				at := time.Now().Truncate(time.Minute).Add(contract.Horizon + time.Duration(m+1)*time.Minute)
				b.far(m*each+n, time.Until(at))
			}
		}
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TableQuery && c.N == 1 {
				return memory.Fault{Wait: 75 * time.Second}
			}
			return memory.Fault{}
		})
		for range 4 {
			time.Sleep(time.Minute)
			b.promote()
		}
		if n := len(b.World.Timers().Armed()); n != 3*each {
			b.Errorf("%d of %d are armed", n, 3*each)
		}
	})
	bubble(t, "catches up after an outage: what is near is sent, what is ahead gets timers, what is long overdue is the sweeper's", memory.Options{}, func(b *bundle) {
		b.promote()
		old := b.far(1, 35*time.Minute)
		overdue, near, ahead := b.far(2, 49*time.Minute), b.far(3, 55*time.Minute), b.far(4, 70*time.Minute)
		time.Sleep(50 * time.Minute)
		b.promote()
		b.requireArmed(ahead)
		got := b.Fired()
		if got[string(old.ID)] != 0 || got[string(overdue.ID)] != 1 || got[string(near.ID)] != 0 {
			b.Errorf("sent at once: %v", got)
		}
		time.Sleep(5 * time.Minute)
		if got := b.Fired(); len(got) != 1 || got[string(near.ID)] != 1 {
			b.Errorf("sent with a delay: %v", got)
		}
	})
	bubble(t, "sends nothing twice that it has passed, though it reads passed slices again", memory.Options{}, func(b *bundle) {
		r := b.far(1, 5*time.Minute)
		for range 8 {
			b.promote()
			time.Sleep(time.Minute)
		}
		if got := b.Fired(); got[string(r.ID)] != 1 {
			b.Errorf("sent %v", got)
		}
	})
	bubble(t, "sends nothing after an outage that has its timer", memory.Options{}, func(b *bundle) {
		r := b.far(1, 25*time.Minute)
		b.promote()
		b.requireArmed(r)
		time.Sleep(14 * time.Minute)
		b.promote()
		if d, err := b.World.Queues().Depth(b.Context(), stagetest.FiringQueue); err != nil || d.Delayed+d.Visible != 0 {
			b.Errorf("the queue holds %+v, %v", d, err)
		}
	})
	bubble(t, "finds what shows in the index after its slice was passed", memory.Options{
		IndexLag: func(string, item.Ref, int64) time.Duration { return 7 * time.Minute },
	}, func(b *bundle) {
		b.promote()
		time.Sleep(time.Minute)
		r := b.far(1, 29*time.Minute)
		for range 8 {
			b.promote()
			time.Sleep(time.Minute)
		}
		b.requireArmed(r)
	})
	bubble(t, "does not take an empty page for the end", memory.Options{EmptyPages: true}, func(b *bundle) {
		var rows []job.Row
		for n := range contract.CrowdedSlice {
			rows = append(rows, b.far(n, 20*time.Minute, func(r *job.Row) { r.Shard = 0 }))
		}
		b.promote()
		b.requireArmed(rows...)
	})
	bubble(t, "covers the shards that were recorded, though the deployment says fewer", memory.Options{}, func(b *bundle) {
		if _, err := b.Store.Shards(b.Context(), 9); err != nil {
			b.Fatal(err)
		}
		r := b.far(1, 20*time.Minute, func(r *job.Row) { r.Shard = 8 })
		b.promote()
		b.requireArmed(r)
	})
}

func TestPromoter_LeavesToTheSweeperWhatItHasPutOff(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that the sweeper put off is not fired on the way", memory.Options{}, func(b *bundle) {
		b.promote()
		r := b.far(1, -time.Minute)
		_, w := job.Rewake(r, time.Now().Add(contract.MaxPostpone), time.Now(), 4)
		if err := b.Store.Put(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		var came int
		for range 48 {
			time.Sleep(time.Minute)
			came += b.promote().Came["put_off"]
		}
		if got := b.Fired(); len(got) != 0 || len(b.World.Timers().Armed()) != 0 || came == 0 {
			b.Errorf("it was met %d times and fired %v", came, got)
		}
	})
	bubble(t, "jobs that were put off do not crowd a slice", memory.Options{}, func(b *bundle) {
		at := time.Now().Truncate(time.Minute).Add(20 * time.Minute)
		waits := b.far(0, time.Until(at), func(r *job.Row) { r.Shard = 0 })
		for n := range contract.CrowdedSlice {
			b.far(n+1, -time.Minute, func(r *job.Row) { r.Shard, r.WakeAt = 0, at })
		}
		b.promote()
		b.requireArmed(waits)
	})
}

func TestPromoter_GivesACrowdedSliceOneTimer(t *testing.T) {
	t.Parallel()
	crowd := func(b *bundle, in time.Duration, n int) horizon.Slice {
		minute := time.Now().Truncate(time.Minute).Add(in)
		for i := range n {
			b.far(i, time.Until(minute), func(r *job.Row) { r.Shard = 0 })
		}
		return horizon.SliceOf(minute, 0)
	}
	bubble(t, "instead of one for each job, however often it is passed", memory.Options{}, func(b *bundle) {
		slice := crowd(b, 25*time.Minute, contract.CrowdedSlice+1)
		b.promote()
		b.another().Handle(b.Context(), nil)
		armed := b.World.Timers().Armed()
		if len(armed) != 1 || !armed[0].At.Equal(slice.Minute.Add(-contract.TimerLead)) {
			b.Fatalf("%d timers, the first at %s", len(armed), armed[0].At)
		}
		if d, err := message.Decode[message.Dispatch](armed[0].Body); err != nil || d.Slice != slice.String() {
			b.Errorf("it carries %+v, %v", d, err)
		}
	})
	bubble(t, "or one message when it is near", memory.Options{}, func(b *bundle) {
		slice := crowd(b, 5*time.Minute, contract.CrowdedSlice+1)
		b.promote()
		got, err := b.World.Queues().Receive(b.Context(), contract.DispatchQueue, 10, 0, 0)
		if err != nil || len(got) != 1 {
			b.Fatal(got, err)
		}
		if d, err := message.Decode[message.Dispatch](got[0].Body); err != nil || d.Slice != slice.String() {
			b.Errorf("it carries %+v, %v", d, err)
		}
	})
	bubble(t, "and a slice that is just full does not", memory.Options{}, func(b *bundle) {
		crowd(b, 25*time.Minute, contract.CrowdedSlice)
		b.promote()
		if n := len(b.World.Timers().Armed()); n != contract.CrowdedSlice {
			b.Errorf("%d timers", n)
		}
	})
}

func TestPromoter_LosesNothingToAThrottledScheduler(t *testing.T) {
	t.Parallel()
	bubble(t, "every third call for five minutes", memory.Options{}, func(b *bundle) {
		var rows []job.Row
		for n := range 300 {
			rows = append(rows, b.far(n, 20*time.Minute+time.Duration(n%180)*time.Second))
		}
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TimerArm && c.N%3 == 0 {
				return memory.Fault{Fail: fault.Throttled}
			}
			return memory.Fault{}
		})
		failed := 0
		for range 5 {
			failed += b.promote().Failed
			time.Sleep(30 * time.Second)
		}
		b.World.SetFaults(nil)
		b.promote()
		b.requireArmed(rows...)
		if failed == 0 {
			b.Error("nothing was throttled")
		}
	})
	bubble(t, "and the watermark waits before the slice", memory.Options{}, func(b *bundle) {
		r := b.far(0, 20*time.Minute)
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TimerArm {
				return memory.Fault{Fail: fault.Throttled}
			}
			return memory.Fault{}
		})
		if sum := b.promote(); sum.Failed != 1 || sum.Came["failed"] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
		mark, err := b.Store.Watermark(b.Context(), store.Promoted, 0)
		if want := r.DueAt.Truncate(time.Minute).Add(-time.Minute); err != nil || !mark.Whole().Equal(want) {
			b.Errorf("it stands at %s, want %s, %v", mark, want, err)
		}
	})
}

func TestPromoter_PassesOverABadEntry(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]func(item.Item){
		"a key that is none": func(i item.Item) { i[contract.AttrPK] = "nobody" },
		"no such pool, so soon": func(i item.Item) {
			soon := time.Now().Add(5 * time.Minute).UnixMilli()
			i["pool"], i["due_at"], i[contract.AttrWakeAt] = "gone", soon, soon
		},
	} {
		bubble(t, name, memory.Options{}, func(b *bundle) {
			first, last := b.far(0, 20*time.Minute), b.far(8, 20*time.Minute, func(r *job.Row) { r.Shard = 0 })
			bad := b.far(4, 20*time.Minute, func(r *job.Row) { r.Shard = 0 }).Item()
			if err := b.Store.Put(b.Context(), item.Write{Ref: jobtest.Key(4).Ref(), Name: "test.delete", Delete: true}); err != nil {
				b.Fatal(err)
			}
			poison(bad)
			b.PutItem(bad)
			sum := b.promote()
			b.requireArmed(first, last)
			if sum.Came["passed_over"] != 1 || sum.Failed != 0 {
				b.Errorf("the pass says %+v", sum)
			}
		})
	}
}

func TestPromoter_LeavesTheRestToTheNextPass(t *testing.T) {
	t.Parallel()
	bubble(t, "and says so", memory.Options{}, func(b *bundle) {
		r := b.far(1, 29*time.Minute)
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TableQuery {
				return memory.Fault{Wait: time.Second}
			}
			return memory.Fault{}
		})
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		sum, err := b.stage.Handle(ctx, nil)
		if err != nil || !sum.Cut {
			b.Fatalf("%+v, %v", sum, err)
		}
		b.requireArmed()
		b.World.SetFaults(nil)
		b.promote()
		b.requireArmed(r)
	})
}
