package promoter_test

import (
	"context"
	"testing"
	"time"

	"punctual/functions/promoter"
	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

type bench struct {
	*stagetest.Bench
	stage *promoter.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) { bubbleOf(t, name, memory.Options{}, do) }

func bubbleOf(t *testing.T, name string, o memory.Options, do func(b *bench)) {
	stagetest.Bubble(t, name, o, func(s *stagetest.Bench) {
		b := &bench{Bench: s}
		b.stage = b.another()
		do(b)
	})
}

func (b *bench) another() *promoter.Stage {
	return promoter.New(promoter.Deps{
		Store: b.Store, Queue: b.World.Queues(), Base: process.Base{Shards: stagetest.Shards},
	})
}

func (b *bench) promote() promoter.Summary {
	b.Helper()
	sum, err := b.stage.Handle(b.Context(), nil)
	b.Must(err)
	return sum
}

//proof:of 88
func TestPromoter_AsksForSlicesThatEnterTheHorizon(t *testing.T) {
	t.Parallel()
	//proof:of 6
	bubble(t, "asks for each slice when it enters the horizon, and only then", func(b *bench) {
		r := b.Due(1, 45*time.Minute+30*time.Second)
		b.promote()
		b.RequireAsked()
		for range 14 {
			time.Sleep(time.Minute)
			b.promote()
		}
		b.RequireAsked()
		time.Sleep(time.Minute)
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
	})
	bubble(t, "asks once for a slice, however often the minute is repeated", func(b *bench) {
		at := time.Now().Truncate(time.Minute).Add(25 * time.Minute)
		var rows []job.Row
		for n := range 8 {
			rows = append(rows, b.Due(n, time.Until(at)+time.Duration(n)*time.Second))
		}
		for range 5 {
			b.promote()
			time.Sleep(10 * time.Second)
		}
		b.RequireAsked(stagetest.Slices(rows...)...)
		b.stage = b.another()
		b.promote()
		b.RequireAsked(stagetest.Slices(rows...)...)
	})
	bubble(t, "does not read a slice that it has asked for", func(b *bench) {
		at := time.Now().Truncate(time.Minute).Add(25 * time.Minute)
		for n := range 200 {
			b.Due(n, time.Until(at), func(r *job.Row) { r.Shard = 0 })
		}
		b.promote()
		before := b.World.Counts().Tables[contract.Jobs].Read
		time.Sleep(time.Minute)
		b.promote()
		// An empty slice costs half a unit to read: ten minutes and the new one, of four shards.
		if units := b.World.Counts().Tables[contract.Jobs].Read - before; units > stagetest.Shards*11*0.5 {
			b.Errorf("another pass took %v read units of the jobs table", units)
		}
	})
	//proof:of 182 S16
	bubble(t, "continues after a pass of 75 s where it ended, not at the clock", func(b *bench) {
		b.promote()
		var rows []job.Row
		for m := range 3 {
			for shard := range stagetest.Shards {
				at := time.Now().Truncate(time.Minute).Add(contract.Horizon + time.Duration(m+1)*time.Minute)
				rows = append(rows, b.Due(m*stagetest.Shards+shard, time.Until(at)))
			}
		}
		b.FaultFirst(1, stagetest.Every(memory.TableQuery), memory.Fault{Wait: 75 * time.Second})
		for range 4 {
			time.Sleep(time.Minute)
			b.promote()
		}
		b.RequireAsked(stagetest.Slices(rows...)...)
	})
	//proof:of 169
	bubble(t, "catches up after an outage, and leaves jobs that are long overdue to the sweeper", func(b *bench) {
		b.promote()
		b.Due(1, 35*time.Minute)
		overdue, near, ahead := b.Due(2, 49*time.Minute), b.Due(3, 55*time.Minute), b.Due(4, 70*time.Minute)
		time.Sleep(50 * time.Minute)
		b.promote()
		b.RequireAsked(stagetest.Slices(overdue, near, ahead)...)
	})
	bubble(t, "asks for no slice twice although it reads passed slices once more", func(b *bench) {
		r := b.Due(1, 5*time.Minute)
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
		for range 8 {
			time.Sleep(time.Minute)
			b.stage = b.another() // which remembers nothing
			b.promote()
		}
		b.RequireAsked()
	})
	bubbleOf(t, "finds a job that the index shows after its slice was passed", memory.Options{
		IndexLag: func(string, item.Ref, int64) time.Duration { return 7 * time.Minute },
	}, func(b *bench) {
		b.promote()
		time.Sleep(time.Minute)
		r := b.Due(1, 29*time.Minute)
		for range 8 {
			b.promote()
			time.Sleep(time.Minute)
		}
		b.RequireAsked(stagetest.Slices(r)...)
	})
	//proof:of S33
	bubbleOf(t, "does not take an empty page for the end", memory.Options{EmptyPages: true}, func(b *bench) {
		at := time.Now().Truncate(time.Minute).Add(20 * time.Minute)
		for n := range 120 {
			b.Due(n, -time.Minute, func(r *job.Row) { r.Shard, r.WakeAt = 0, at })
		}
		r := b.Due(120, time.Until(at)+time.Second, func(r *job.Row) { r.Shard = 0 })
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
	})
	//proof:of 181 197
	bubble(t, "covers all recorded shards although the deployment has fewer", func(b *bench) {
		if _, err := b.Store.Shards(b.Context(), 9); err != nil {
			b.Fatal(err)
		}
		r := b.Due(1, 20*time.Minute, func(r *job.Row) { r.Shard = 8 })
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
	})
}

//proof:of F04
func TestPromoter_LeavesJobsToOtherStages(t *testing.T) {
	t.Parallel()
	bubble(t, "asks for no slice of a job that the sweeper has put off", func(b *bench) {
		b.promote()
		r := b.Due(1, -time.Minute)
		_, w := job.Rewake(r, time.Now().Add(contract.MaxPostpone), time.Now(), 4)
		b.Write(w)
		var came int
		for range 48 {
			time.Sleep(time.Minute)
			came += b.promote().Came["put_off"]
		}
		if b.RequireAsked(); came == 0 {
			b.Error("it was never met")
		}
	})
	bubble(t, "asks for no slice of a job that the stream consumer sends", func(b *bench) {
		b.Due(1, 10*time.Minute, func(r *job.Row) { r.WakeAt = r.DueAt.Add(contract.AfterDue) })
		if sum := b.promote(); sum.Came["put_off"] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
		b.RequireAsked()
	})
}

//proof:of S20
func TestPromoter_LosesNothingWhenAQueueFails(t *testing.T) {
	t.Parallel()
	bubble(t, "asks for each slice although every third call fails", func(b *bench) {
		var rows []job.Row
		for n := range 40 {
			rows = append(rows, b.Due(n, 20*time.Minute+time.Duration(n/4)*time.Minute))
		}
		third := func(c memory.Call) bool { return c.Op == memory.QueueSend && c.N%3 == 0 }
		b.Fault(third, memory.Fault{Fail: fault.Throttled})
		failed := 0
		for range 5 {
			failed += b.promote().Failed
			time.Sleep(30 * time.Second)
		}
		b.World.SetFaults(nil)
		b.promote()
		b.RequireAsked(stagetest.Slices(rows...)...)
		if failed == 0 {
			b.Error("nothing was throttled")
		}
	})
	bubble(t, "keeps its watermark before a slice that could not be asked for", func(b *bench) {
		r := b.Due(0, 20*time.Minute)
		b.Fail(stagetest.To(memory.QueueSend, contract.DispatchQueue))
		if sum := b.promote(); sum.Failed != 1 || sum.Came["failed"] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
		mark, err := b.Store.Watermark(b.Context(), store.Promoted, 0)
		if want := r.DueAt.Truncate(time.Minute).Add(-time.Minute); err != nil || !mark.Whole().Equal(want) {
			b.Errorf("the watermark is %s, want %s, %v", mark, want, err)
		}
	})
}

//proof:of S11
func TestPromoter_PassesOverABadEntry(t *testing.T) {
	t.Parallel()
	bubble(t, "asks for the slice of an unreadable entry if it has another job", func(b *bench) {
		bad := b.Due(4, 25*time.Minute, func(r *job.Row) { r.Shard = 0 }).Item()
		b.Must(b.Store.Put(b.Context(),
			item.Write{Ref: jobtest.Key(4).Ref(), Name: "test.delete", Delete: true}))
		bad[contract.AttrPK] = "nobody"
		b.PutItem(bad)
		if sum := b.promote(); sum.Came["passed_over"] != 1 || sum.Failed != 0 {
			b.Errorf("alone in its slice: the pass says %+v", sum)
		}
		b.RequireAsked()
		r := b.Due(8, 25*time.Minute+time.Second, func(r *job.Row) { r.Shard = 0 })
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
	})
}

//proof:of 178
func TestPromoter_LeavesTheRestToTheNextPass(t *testing.T) {
	t.Parallel()
	bubble(t, "stops a pass without time, and says so", func(b *bench) {
		r := b.Due(1, 29*time.Minute)
		b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Wait: time.Second})
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		sum, err := b.stage.Handle(ctx, nil)
		if err != nil || !sum.Cut {
			b.Fatalf("%+v, %v", sum, err)
		}
		b.RequireAsked()
		b.World.SetFaults(nil)
		b.promote()
		b.RequireAsked(stagetest.Slices(r)...)
	})
}

func TestPromoter_WritesTheAgeOfTheTimeZoneRules(t *testing.T) {
	t.Parallel()
	bubble(t, "in days, once they are no longer new", func(b *bench) {
		meter := &telemetry.Meter{}
		stage := promoter.New(promoter.Deps{Store: b.Store, Queue: b.World.Queues(),
			Base: process.Base{Meter: meter, Shards: stagetest.Shards}})
		for _, age := range []time.Duration{time.Hour, contract.MaxZoneRulesAge + time.Hour} {
			time.Sleep(time.Until(calendar.Zones().ReleasedAt.Add(age)))
			if _, err := stage.Handle(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			want := 0.0
			if age > contract.MaxZoneRulesAge {
				want = age.Hours() / 24
			}
			if got := meter.Total(telemetry.ZoneRulesAge); got != want {
				b.Errorf("at %s the age is %v days, want %v", age, got, want)
			}
		}
	})
}
