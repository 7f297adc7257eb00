package sweeper_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/functions/sweeper"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

type bench struct {
	*stagetest.Bench
	stage *sweeper.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) { bubbleOf(t, name, memory.Options{}, do) }

func bubbleOf(t *testing.T, name string, o memory.Options, do func(b *bench)) {
	stagetest.Bubble(t, name, o, func(s *stagetest.Bench) {
		b := &bench{Bench: s}
		b.stage = b.another()
		do(b)
	})
}

func (b *bench) another() *sweeper.Stage {
	return sweeper.New(sweeper.Deps{Base: b.ProcessBase(), Store: b.Store, Queue: b.World.Queues()})
}

// lost stores job n, due then, as it is after its firing was lost.
func (b *bench) lost(n int, in time.Duration, change ...func(*job.Row)) job.Row {
	b.Helper()
	return b.Overdue(n, -in, change...)
}

func (b *bench) sweep() sweeper.Summary {
	b.Helper()
	sum, err := b.stage.Handle(b.Context(), nil)
	b.Must(err)
	return sum
}

// sweepFor sweeps each minute for that long.
func (b *bench) sweepFor(d time.Duration) {
	b.Helper()
	for ; d > 0; d -= time.Minute {
		b.sweep()
		time.Sleep(time.Minute)
	}
}

const lost = -(contract.Grace + 10*time.Second) // due that long ago, and its firing was lost

func TestSweeper_RecoversLostJobs(t *testing.T) {
	t.Parallel()
	//proof:of 150
	bubble(t, "recovers a lost job after the grace, and leaves younger jobs alone", func(b *bench) {
		b.sweep()
		var rows []job.Row
		for n := range 8 {
			rows = append(rows, b.lost(n, time.Duration(n)*7*time.Second))
		}
		start := time.Now()
		fired := map[string]time.Duration{}
		for range 6 {
			time.Sleep(time.Minute)
			b.sweep()
			for id := range b.Fired() {
				if fired[id] == 0 {
					fired[id] = time.Since(start)
				}
			}
		}
		for _, r := range rows {
			late := fired[string(r.ID)] - r.DueAt.Sub(start)
			if late < contract.Grace || late > contract.Grace+time.Minute {
				b.Errorf("it came back %s after it was due", late)
			}
		}
	})
	bubble(t, "takes up at once what is due when it starts alone, and waits for the grace from then on",
		func(b *bench) {
			b.stage = sweeper.New(sweeper.Deps{Base: b.ProcessBase(), Store: b.Store,
				Queue: b.World.Queues(), Alone: true})
			old, young := b.lost(1, -time.Minute), b.lost(2, 0)
			time.Sleep(time.Second)
			b.Fail(stagetest.Every(memory.TableQuery))
			_, _ = b.stage.Handle(b.Context(), nil) // a pass that fails is not the first
			b.World.SetFaults(nil)
			b.sweep()
			if got := b.Fired(); got[string(old.ID)] != 1 || got[string(young.ID)] != 1 {
				b.Errorf("fired %v", got)
			}
			b.lost(3, 0)
			time.Sleep(time.Minute)
			b.sweep()
			if got := b.Fired(); len(got) != 0 {
				b.Errorf("fired %v, which may be on its way", got)
			}
		})
	bubble(t, "fires once in each grace although it rereads passed slices", func(b *bench) {
		r := b.lost(1, lost)
		b.sweepFor(3 * time.Minute)
		if got := b.Fired(); got[string(r.ID)] != 1 {
			b.Errorf("fired %v", got)
		}
	})
	//proof:of 88 S14
	bubble(t, "resumes at its watermark after an outage of hours, oldest first", func(b *bench) {
		b.sweep()
		old, young := b.lost(1, time.Minute), b.lost(2, 3*time.Hour)
		time.Sleep(4 * time.Hour)
		var order []string
		b.Each(stagetest.Named(job.WriteRewake), func(c memory.Call) { order = append(order, c.Ref.SK) })
		b.sweep()
		if len(order) != 2 || order[0] != string(old.ID) || order[1] != string(young.ID) {
			b.Errorf("brought on %v", order)
		}
	})
	bubbleOf(t, "finds a job that the index shows after its slice was passed", memory.Options{
		IndexLag: func(_ string, ref item.Ref, _ int64) time.Duration {
			if ref == jobtest.Key(1).Ref() {
				return 10 * time.Minute
			}
			return 0
		},
	}, func(b *bench) {
		b.sweep()
		r := b.lost(1, time.Second)
		b.sweepFor(12 * time.Minute)
		if got := b.Fired(); got[string(r.ID)] != 1 {
			b.Errorf("fired %v", got)
		}
	})
	//proof:of 89
	bubble(t, "finds within the hour a job that the index shows hours late", func(b *bench) {
		b.sweep()
		time.Sleep(20 * time.Hour)
		b.sweep()
		r := b.lost(1, -15*time.Hour)
		b.sweepFor(time.Hour)
		if got := b.Fired(); got[string(r.ID)] == 0 {
			b.Error("it is lost")
		}
	})
	bubbleOf(t, "ignores an index entry that is older than its row", memory.Options{
		IndexLag: func(string, item.Ref, int64) time.Duration { return time.Hour },
	}, func(b *bench) {
		r := b.lost(1, lost)
		time.Sleep(time.Hour - contract.Grace)
		_, w := job.Rewake(r, time.Now().Add(time.Second), time.Now(), 0)
		b.Write(w)
		time.Sleep(contract.Grace + time.Second)
		if sum := b.sweep(); len(sum.Came) != 0 {
			b.Errorf("brought on %v", sum.Came)
		}
	})
	//proof:of 169 S28
	bubble(t, "two passes at once fire once", func(b *bench) {
		for n := range 50 {
			b.lost(n, lost)
		}
		start := time.Now()
		// each read takes another millisecond: two equal decisions of the same millisecond are both sent
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op != memory.TableGet {
				return memory.Fault{}
			}
			return memory.Fault{Wait: time.Until(start.Add(time.Duration(c.N) * time.Millisecond))}
		})
		var both sync.WaitGroup
		for range 2 {
			s := b.another()
			both.Go(func() {
				if _, err := s.Handle(b.Context(), nil); err != nil {
					b.Error(err)
				}
			})
		}
		both.Wait()
		got := b.Fired()
		for id, n := range got {
			if n != 1 {
				b.Errorf("%s was fired %d times", id, n)
			}
		}
		if len(got) != 50 {
			b.Errorf("%d of 50 were fired", len(got))
		}
	})
	//proof:of 156
	bubble(t, "a pass counts its steps", func(b *bench) {
		b.lost(1, lost)
		b.lost(2, lost, func(r *job.Row) { r.Stop = job.StopCancel })
		sum := b.sweep()
		if sum.Came[string(job.StepFire)] != 1 || sum.Came[string(job.StepFinishStop)] != 1 ||
			b.Meter.Total(telemetry.Swept) != 2 {
			b.Errorf("%+v, %v", sum, b.Meter.Total(telemetry.Swept))
		}
	})
	//proof:of S33
	bubbleOf(t, "does not take an empty page for the end", memory.Options{EmptyPages: true}, func(b *bench) {
		for n := range 300 {
			b.lost(n, lost, func(r *job.Row) { r.Shard = 0 })
		}
		b.sweep()
		if got := b.Fired(); len(got) != 300 {
			b.Errorf("%d of 300 were fired", len(got))
		}
	})
	bubble(t, "only reads while no job is overdue", func(b *bench) {
		b.sweep()
		before := b.World.Counts()
		time.Sleep(time.Minute)
		b.sweep()
		after := b.World.Counts()
		if writes := after.Total().Write - before.Total().Write; writes > stagetest.Shards+1 ||
			after.QueueCalls != before.QueueCalls {
			b.Errorf("%v write units and %d calls to queues", writes, after.QueueCalls-before.QueueCalls)
		}
	})
}

//proof:of 87 S11
func TestSweeper_SetsAnUnreadableRowAside(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]func(b *bench, i item.Item){
		//proof:of 191
		"an unknown version":           func(_ *bench, i item.Item) { i["schema_v"] = int64(99) },
		"an unknown status":            func(_ *bench, i item.Item) { i["status"] = "LOST" },
		"attempts that are not a list": func(_ *bench, i item.Item) { i["attempts"] = "{" },
		"children without a run": func(_ *bench, i item.Item) {
			i["status"], i["owes"] = "SUCCEEDED", "children"
		},
		"a final row without pending effects": func(_ *bench, i item.Item) { i["status"] = "CANCELLED" },
		"a claim that cannot be read": func(b *bench, _ item.Item) {
			ref := jobtest.Key(4).ClaimRef()
			b.Write(item.Write{Ref: ref, Name: "test.claim", Set: map[string]any{"attempt": int64(1), "outcome": "{"}})
		},
	} {
		bubble(t, "sets a row aside for "+name, func(b *bench) {
			first := b.lost(0, lost, func(r *job.Row) { r.Shard = 0 })
			bad := b.lost(4, lost, func(r *job.Row) { r.Shard, r.Payload = 0, `{"secret":1}` }).Item()
			last := b.lost(8, lost, func(r *job.Row) { r.Shard = 0 })
			poison(b, bad)
			ref := jobtest.Key(4).Ref()
			b.Overwrite(ref, bad)
			sum := b.sweep()
			if got := b.Fired(); got[string(first.ID)] != 1 || got[string(last.ID)] != 1 || len(got) != 2 {
				b.Errorf("fired %v", got)
			}
			if sum.Came["set_aside"] != 1 || sum.Failed != 0 || b.Meter.Total(telemetry.Quarantined) != 1 {
				b.Errorf("the pass says %+v", sum)
			}
			i, err := b.World.Table().Get(b.Context(), ref)
			next := time.Now().Add(contract.RetryEvery)
			if err != nil || i.Str(contract.AttrWakeSlice) != horizon.SliceOf(next, 0).String() ||
				!i.Time(contract.AttrWakeAt).Equal(next) || i.Str("payload") == "" {
				b.Errorf("the row is left as %v, %v", i, err)
			}
			if b.sweep(); b.Meter.Total(telemetry.Quarantined) != 1 {
				b.Error("the next pass visits it once more")
			}
			page, err := b.World.Table().Query(b.Context(), item.Query{Table: contract.Tasks, PK: "system#set_aside"})
			if err != nil || len(page.Items) != 1 || page.Items[0].Str("reason") == "" {
				b.Errorf("listed as %v, %v", page.Items, err)
			}
		})
	}
	bubble(t, "sets aside an entry whose key is not a job's", func(b *bench) {
		good := b.lost(0, lost)
		i := b.lost(4, lost, func(r *job.Row) { r.Shard = 0 }).Item()
		i[contract.AttrPK] = "nobody"
		b.Write(item.Write{Ref: jobtest.Key(4).Ref(), Name: "test.delete", Delete: true})
		b.Write(item.Write{Ref: item.Ref{Table: contract.Jobs, PK: "nobody", SK: i.Str(contract.AttrJobID)},
			Name: "test.put", Put: i})
		if sum := b.sweep(); sum.Came["set_aside"] != 1 || b.Fired()[string(good.ID)] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
		if sum := b.sweep(); sum.Came["set_aside"] != 0 {
			b.Error("the next pass visits it once more")
		}
	})
	bubble(t, "two passes set the same row aside without an error", func(b *bench) {
		bad := b.lost(4, lost).Item()
		bad["schema_v"] = int64(99)
		b.Overwrite(jobtest.Key(4).Ref(), bad)
		b.Before(stagetest.Named(store.WriteDueDeferFailed), func() {
			if _, err := b.another().Handle(b.Context(), nil); err != nil {
				b.Error(err)
			}
		})
		if sum := b.sweep(); sum.Failed != 0 {
			b.Errorf("the pass says %+v", sum)
		}
	})
	bubble(t, "a panic over one row sets only that row aside", func(b *bench) {
		good := b.lost(0, lost)
		b.lost(4, lost, func(r *job.Row) { r.Shard = 0 })
		b.Each(stagetest.On(memory.TableGet, jobtest.Key(4).Ref()), func(memory.Call) { panic("nil map") })
		if sum := b.sweep(); sum.Came["set_aside"] != 1 || b.Fired()[string(good.ID)] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
	})
}

func TestSweeper_MovesItsWatermark(t *testing.T) {
	t.Parallel()
	bubble(t, "its watermark passes only slices that were handled completely", func(b *bench) {
		b.sweep()
		before := b.Mark(store.Swept, 1)
		time.Sleep(10 * time.Minute)
		bad, good := b.lost(1, -8*time.Minute), b.lost(5, -5*time.Minute, func(r *job.Row) { r.Shard = 1 })
		b.Fault(stagetest.On(memory.TableGet, bad.Ref()), memory.Fault{Fail: fault.Throttled})
		if sum := b.sweep(); sum.Failed != 1 || sum.Came["failed"] != 1 {
			b.Errorf("the pass says %+v", sum)
		}
		if at := b.Mark(store.Swept, 1); !at.Equal(bad.DueAt.Truncate(time.Minute).Add(-time.Minute)) ||
			!at.After(before) {
			b.Errorf("the watermark is %s, the bad row at %s", at, bad.DueAt)
		}
		if got := b.Fired(); got[string(good.ID)] != 1 {
			b.Error("the later rows had to wait")
		}
		b.World.SetFaults(nil)
		b.sweep()
		if got := b.Fired(); got[string(bad.ID)] != 1 || len(got) != 1 {
			b.Errorf("then fired %v", got)
		}
	})
	bubble(t, "its watermark stays where time ran short, and the next pass continues there", func(b *bench) {
		b.sweep()
		time.Sleep(3 * time.Hour)
		b.lost(1, lost)
		b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Wait: time.Second})
		passes := 0
		for ; len(b.Fired()) == 0 && passes < 12; passes++ {
			ctx, cancel := context.WithTimeout(b.Context(), 55*time.Second)
			sum, err := b.stage.Handle(ctx, nil)
			b.Must(err)
			if !sum.Cut && passes == 0 {
				b.Fatal("it was not cut: the test is about nothing")
			}
			cancel()
		}
		if passes < 3 || passes == 12 {
			b.Errorf("%d passes", passes)
		}
	})
}

func TestSweeper_UnparksJobs(t *testing.T) {
	t.Parallel()
	// park pauses, lets the sweeper park n jobs, and lifts the pause without a message.
	park := func(b *bench, scope string, n int) {
		b.Helper()
		b.Pause(scope, time.Time{})
		for i := range n {
			b.lost(i, lost)
		}
		b.sweep()
		if !b.Row(jobtest.Key(0)).Parked {
			b.Fatal("nothing was parked")
		}
	}
	bubble(t, "jobs whose unparking was lost are unparked by the next pass", func(b *bench) {
		park(b, job.PauseAll, 20)
		b.Lift(job.PauseAll)
		time.Sleep(2 * time.Second)
		b.sweep()
		if got := b.Fired(); len(got) != 20 {
			b.Errorf("%d of 20 were woken", len(got))
		}
	})
	bubble(t, "jobs whose pause has ended are unparked", func(b *bench) {
		p := job.Pause{Scope: job.PauseAll, Since: time.Now(), Until: time.Now().Add(5 * time.Minute)}
		b.Write(item.Write{Ref: job.PauseRef(jobtest.Tenant, p.Scope), Name: "test.pause", Put: p.Item(jobtest.Tenant)})
		b.lost(0, lost)
		b.sweep()
		if !b.Row(jobtest.Key(0)).Parked {
			b.Fatal("nothing was parked")
		}
		b.sweepFor(5 * time.Minute)
		if got := b.Fired(); len(got) != 0 {
			b.Fatal("it was woken early")
		}
		b.sweep()
		if got := b.Fired(); len(got) != 1 {
			b.Error("it was not woken")
		}
	})
	bubble(t, "a paused tenant's parking places are not read", func(b *bench) {
		park(b, job.PauseAll, 20)
		time.Sleep(time.Minute)
		if sum := b.sweep(); sum.Parked.Slices != 0 {
			b.Errorf("%d parking places were read", sum.Parked.Slices)
		}
	})
	bubble(t, "unpaused jobs among paused ones are fired within eight minutes", func(b *bench) {
		park(b, "task:echo", 4)
		b.Pause("task:mail", time.Time{})
		b.Lift("task:echo")
		time.Sleep(2 * time.Second)
		if sum := b.sweep(); sum.Parked.Slices != 1 {
			b.Errorf("%d parking places were read", sum.Parked.Slices)
		}
		time.Sleep(time.Minute)
		b.sweepFor(7 * time.Minute)
		for n := range 4 {
			if b.Row(jobtest.Key(n)).Parked {
				b.Errorf("job %d is parked still", n)
			}
		}
	})
	bubble(t, "jobs that a pause of their task holds are never forgotten", func(b *bench) {
		park(b, "task:echo", 3)
		b.sweepFor(2 * time.Hour)
		if tenants, err := b.Store.ParkedTenants(b.Context()); err != nil || len(tenants) != 1 {
			b.Errorf("noted are %v, %v", tenants, err)
		}
	})
	bubble(t, "a tenant's parking places are forgotten an hour after the last job, no sooner", func(b *bench) {
		park(b, job.PauseAll, 1)
		b.Lift(job.PauseAll)
		time.Sleep(2 * time.Second)
		noted := func() []store.Parked {
			tenants, err := b.Store.ParkedTenants(b.Context())
			b.Must(err)
			return tenants
		}
		b.sweepFor(58 * time.Minute)
		if len(noted()) != 1 {
			b.Error("a parking that the index does not show yet would be lost")
		}
		b.sweepFor(4 * time.Minute)
		if len(noted()) != 0 {
			b.Error("its places are read for ever")
		}
	})
}

func TestSweeper_ReadsEachSliceOfADayOnceAnHour(t *testing.T) {
	t.Parallel()
	bubble(t, "reads each slice of a day once an hour, and no more", func(b *bench) {
		b.sweep()
		time.Sleep(25 * time.Hour)
		b.sweep()
		time.Sleep(time.Minute)
		sum := 0
		for range 60 {
			sum += b.sweep().Repeated.Slices
			time.Sleep(time.Minute)
		}
		if sum != 24*60*stagetest.Shards {
			b.Errorf("%d slices were read, a day has %d", sum, 24*60*stagetest.Shards)
		}
	})
}

//proof:of F10
func TestSweeper_ForgetsNoJob(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that cannot be fired for more than a day is fired once it can be", func(b *bench) {
		r := b.lost(1, lost)
		b.Fault(stagetest.On(memory.TableGet, r.ClaimRef()), memory.Fault{Fail: fault.Forbidden})
		for range 30 * 2 {
			if sum := b.sweep(); sum.Failed != 0 {
				b.Fatalf("the pass says %+v", sum)
			}
			time.Sleep(30 * time.Minute)
		}
		b.World.SetFaults(nil)
		b.sweepFor(20 * time.Minute)
		if got := b.Fired(); got[string(r.ID)] == 0 {
			b.Error("it is lost")
		}
	})
	for name, change := range map[string]func(*job.Row){
		"in a slice":           func(*job.Row) {},
		"in a parking place":   func(r *job.Row) { r.Parked = true },
		"in a schedule's line": func(r *job.Row) { r.Parked, r.QueuedBehind, r.ScheduleID = true, true, "s" },
	} {
		bubble(t, "a row "+name+" is retried and fires once it is mended", func(b *bench) {
			r := b.lost(7, lost, change)
			bad := r.Item()
			bad["schema_v"] = int64(99)
			b.Overwrite(r.Ref(), bad)
			line := schedule.Key{Tenant: r.Tenant, Name: "s"}
			b.Must(errors.Join(b.Store.NoteParked(b.Context(), r.Tenant, time.Now()),
				b.Store.NoteQueue(b.Context(), line, time.Now())))
			for range 26 * 2 {
				b.sweep()
				time.Sleep(30 * time.Minute)
			}
			b.Write(item.Write{Ref: r.Ref(), Name: "test.mend", Set: map[string]any{"schema_v": int64(1)}})
			b.sweepFor(20 * time.Minute)
			if got := b.Fired(); got[string(r.ID)] == 0 {
				b.Error("it is lost")
			}
		})
	}
}

//proof:of F03
func TestSweeper_KeepsAnUnreadablePause(t *testing.T) {
	t.Parallel()
	for _, owner := range []tenant.ID{job.Everyone, jobtest.Tenant} {
		bubble(t, "a broken pause of "+string(owner)+" holds its jobs until it is mended", func(b *bench) {
			p := job.Pause{Scope: job.PauseAll, Since: time.Now()}
			i := p.Item(owner)
			i["body"] = `{"scope":"all","since":"yesterday"}`
			ref := job.PauseRef(owner, job.PauseAll)
			b.Overwrite(ref, i)
			r := b.lost(1, lost)
			if sum := b.sweep(); sum.Came["set_aside"] != 0 || !b.Row(r.Key).Parked {
				b.Errorf("the pass says %+v", sum)
			}
			time.Sleep(time.Minute)
			if b.sweep(); b.Meter.Total(telemetry.Quarantined) == 0 {
				b.Error("the unreadable pause is not reported")
			}
			p.Until = time.Now()
			b.Write(item.Write{Ref: ref, Name: "test.mend", Put: p.Item(owner)})
			b.sweepFor(10 * time.Minute)
			if got := b.Fired(); got[string(r.ID)] == 0 {
				b.Error("what it held is lost")
			}
		})
	}
}

//proof:of F10
func TestSweeper_SharesItsTimeFairly(t *testing.T) {
	t.Parallel()
	bubble(t, "a backlog of slices does not delay parked jobs and late slices", func(b *bench) {
		b.sweep()
		time.Sleep(3 * time.Hour)
		r := b.lost(1, lost, func(r *job.Row) { r.Parked = true })
		b.Must(b.Store.NoteParked(b.Context(), r.Tenant, time.Now()))
		slices := func(c memory.Call) bool { return c.Op == memory.TableQuery && c.Ref.Table != contract.Tasks }
		b.Fault(slices, memory.Fault{Wait: time.Second})
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Second)
		defer cancel()
		sum, err := b.stage.Handle(ctx, nil)
		if err != nil || !sum.Cut || sum.Parked.Slices == 0 || sum.Repeated.Slices == 0 {
			b.Errorf("the pass says %+v, %v", sum, err)
		}
		if b.Row(r.Key).Parked {
			b.Error("the job is parked still")
		}
	})
	bubble(t, "a tenant with very many parked jobs does not delay the others", func(b *bench) {
		b.sweep()
		for _, owner := range []tenant.ID{"a", "b", "c"} {
			b.Must(b.Store.NoteParked(b.Context(), owner, time.Now()))
		}
		var mu sync.Mutex
		seen := map[tenant.ID]bool{}
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			kind, rest, _ := strings.Cut(c.Ref.PK, "#")
			if owner, _, _ := strings.Cut(rest, "#"); kind == "parked" && c.Op == memory.TableQuery {
				mu.Lock()
				seen[tenant.ID(owner)] = true
				mu.Unlock()
				return memory.Fault{Wait: 4 * time.Second}
			}
			return memory.Fault{}
		})
		ctx, cancel := context.WithTimeout(b.Context(), 120*time.Second)
		defer cancel()
		if _, err := b.stage.Handle(ctx, nil); err != nil || len(seen) != 3 {
			b.Errorf("visited %v, %v", seen, err)
		}
	})
	bubble(t, "a slice too large for one pass is finished by the next", func(b *bench) {
		const many = 1200
		for n := range many {
			b.lost(n, lost, func(r *job.Row) { r.Shard = 0 })
		}
		claims := func(c memory.Call) bool { return c.Op == memory.TableGet && c.Ref.Table == contract.Claims }
		b.Fault(claims, memory.Fault{Wait: 500 * time.Millisecond})
		for range 6 {
			ctx, cancel := context.WithTimeout(b.Context(), 60*time.Second)
			if _, err := b.stage.Handle(ctx, nil); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
		if got := b.Fired(); len(got) != many {
			b.Errorf("%d of %d are fired", len(got), many)
		}
	})
}
