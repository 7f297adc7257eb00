package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/decide"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/tenant"
)

// bench is a Decider over the in-memory implementations, in a bubble's time.
type bench struct {
	*stagetest.Bench
	engine *engine.Engine
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	// Lists have empty pages before their end.
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true},
		func(s *stagetest.Bench) { do(&bench{s, s.Engine()}) })
}

// sweep decides about the row as the sweeper does, and returns the step.
func (b *bench) sweep(r job.Row) job.Step { b.Helper(); return b.Sweep(b.engine, r) }

func TestDecider_ActsOnAWakeUp(t *testing.T) {
	t.Parallel()
	bubble(t, "a lost firing is repeated, and once more after the grace", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		b.RequireStep(b.sweep(r), job.StepFire)
		b.RequireFired(r)
		if after := b.Row(r.Key); !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Status != job.Scheduled {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	bubble(t, "an index entry older than the row's wake-up is ignored", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		_, w := job.Rewake(r, time.Now().Add(-time.Second), time.Now(), 0)
		b.Write(w)
		b.RequireStep(b.sweep(r), job.StepNothing)
		b.RequireSilence()
	})
	bubble(t, "a job that is gone needs nothing", func(b *bench) {
		b.RequireStep(b.sweep(jobtest.Row(1, time.Now(), time.Now())), job.StepNothing)
	})
	//proof:of 111
	bubble(t, "a dead letter that was not buried is sent once more, and once more after the grace",
		func(b *bench) {
			r := b.Overdue(1, stagetest.Late, stagetest.Dead)
			b.RequireStep(b.sweep(r), job.StepEffects)
			dead := b.Received(contract.RedriveQueue)
			if len(dead) != 1 {
				b.Fatalf("%d dead letters", len(dead))
			}
			l, err := message.Decode[message.DeadLetter](dead[0].Body)
			if err != nil || !l.SentAt.Equal(time.Now()) || job.CameBack(l, dead[0]) {
				b.Errorf("the dead letter %+v would be taken for a redriven one: %v", l, err)
			}
			after := b.Row(r.Key)
			if after.PendingEffects != job.PendingDeadLetter || !after.WakeAt.Equal(time.Now().Add(contract.Grace)) {
				b.Errorf("its pending effects are %q, and it wakes at %s", after.PendingEffects, after.WakeAt)
			}
		})
	bubble(t, "a final row with unknown pending effects is undecodable", func(b *bench) {
		r := b.Overdue(1, stagetest.Late,
			func(r *job.Row) { stagetest.Dead(r); r.Status, r.PendingEffects = job.Succeeded, job.PendingChildren })
		if _, err := b.engine.Entry(b.Context(), stagetest.Entry(r)); fault.KindOf(err) != fault.Undecodable {
			b.Errorf("got %v", err)
		}
	})
	//proof:of 177
	bubble(t, "the report of an unsettled outcome is repeated", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Stop = job.StopCancel })
		c := b.Own(r, -time.Second)
		o := job.Outcome{Kind: job.OutcomeSucceeded, Worker: "w1", Result: []byte(`{"n":1}`)}
		b.Write(job.RecordOutcome(r.Key, 1, c.Token, o))
		b.RequireStep(b.sweep(r), job.StepRepeatReport)
		reports := b.Received(contract.ReportQueue)
		if len(reports) != 1 {
			b.Fatalf("%d reports", len(reports))
		}
		rep, err := message.Decode[message.Report](reports[0].Body)
		// ids can always be sent
		if err != nil || rep.Kind != message.Ended || rep.Attempt != 1 || rep.Token != c.Token ||
			len(rep.Outcome) != 0 {
			b.Errorf("reported %+v, %v", rep, err)
		}
		if after := b.Row(r.Key); !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Status != job.Scheduled {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	//proof:of 116
	bubble(t, "a running job waits for the end of its lease", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		c := b.Own(r, 7*time.Second)
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		b.RequireSilence()
		if after := b.Row(r.Key); !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("it wakes at %s", after.WakeAt)
		}
		if b.Claim(r.Key).Cancel {
			b.Error("nobody cancelled it")
		}
	})
	bubble(t, "the worker of a job with a stop is asked once more", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Stop = job.StopCancel })
		c := b.Own(r, 7*time.Second)
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		if !b.Claim(r.Key).Cancel {
			b.Error("its worker was not asked")
		}
		if after := b.Row(r.Key); after.Status != job.Scheduled || !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	bubble(t, "a job with a stop is fenced before it ends", func(b *bench) {
		r := b.Overdue(1, stagetest.Late,
			func(r *job.Row) { r.Stop, r.CancelRequestedAt = job.StopCancel, time.Now().Add(-time.Minute) })
		fenced := false
		b.Before(stagetest.Named(job.WriteFinishStop), func() { fenced = b.Claim(r.Key).Token == 1 })
		b.RequireStep(b.sweep(r), job.StepFinishStop)
		if after := b.Row(r.Key); after.Status != job.Cancelled || !after.WakeAt.IsZero() || !fenced {
			b.Errorf("it is %s, wakes at %s, fenced before: %v", after.Status, after.WakeAt, fenced)
		}
		b.RequireSilence()
	})
	bubble(t, "a job with a stop that starts meanwhile is left to its worker", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Stop = job.StopCancel })
		b.Before(stagetest.Named(job.WriteClaimFence), func() { b.Own(r, contract.Lease) })
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		if after := b.Row(r.Key); after.Status != job.Scheduled || !b.Claim(r.Key).Cancel {
			b.Errorf("it is %s, its worker asked: %v", after.Status, b.Claim(r.Key).Cancel)
		}
	})
	bubble(t, "a job whose window has passed expires with the window's name", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.StartWithin = time.Minute })
		b.RequireStep(b.sweep(r), job.StepExpire)
		after := b.Row(r.Key)
		if after.Status != job.Expired || after.Reason.Code != job.CodeStartWithin ||
			after.Reason.Message != "start_within of 1m0s has passed" {
			b.Errorf("it is %s because of %+v", after.Status, after.Reason)
		}
		if b.Claim(r.Key).Token != 1 {
			b.Error("it was not fenced")
		}
		b.RequireSilence()
	})
	bubble(t, "a job that starts while it is expired is left to its worker", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.StartWithin = time.Minute })
		b.Before(stagetest.Named(job.WriteStop), func() { b.Own(r, contract.Lease) })
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		if after := b.Row(r.Key); after.Status != job.Scheduled || after.Stop != job.StopExpire ||
			!b.Claim(r.Key).Cancel {
			b.Errorf("it is %s with stop %q, its worker asked: %v", after.Status, after.Stop, b.Claim(r.Key).Cancel)
		}
	})
	//proof:of S28
	bubble(t, "a success that is settled after the row was read stays", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.StartWithin = time.Minute })
		b.Before(stagetest.Named(job.WriteStop), func() {
			d, err := job.Settle(new(b.Row(r.Key)), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			b.Must(err)
			b.Write(d.Write)
		})
		b.RequireStep(b.sweep(r), job.StepNothing)
		if after := b.Row(r.Key); after.Status != job.Succeeded {
			b.Errorf("it is %s", after.Status)
		}
	})
}

//proof:of S28
func TestDecider_FiresOnceForTwoSweepers(t *testing.T) {
	t.Parallel()
	bubble(t, "of two sweepers one fires, and the other finds a later wake-up", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		b.Before(stagetest.Named(job.WriteRewake), func() {
			time.Sleep(time.Millisecond) // in the same one neither could distinguish the other's write from its own
			if step, err := b.Engine().Entry(b.Context(), stagetest.Entry(r)); err != nil ||
				step != job.StepFire {
				b.Fatal(step, err)
			}
		})
		b.RequireStep(b.sweep(r), job.StepNothing)
		b.RequireFired(r)
	})
}

func TestDecider_KeepsAWakeUpWhenTheFiringCannotBeSent(t *testing.T) {
	t.Parallel()
	bubble(t, "a firing that cannot be sent is repeated by the next sweep", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		b.Fail(stagetest.To(memory.QueueSend, stagetest.FiringQueue))
		if _, err := b.engine.Entry(b.Context(), stagetest.Entry(r)); !fault.Retryable(err) {
			b.Fatalf("got %v", err)
		}
		b.World.SetFaults(nil)
		time.Sleep(contract.Grace + time.Minute)
		r = b.Row(r.Key)
		b.RequireStep(b.sweep(r), job.StepFire)
		b.RequireFired(r)
	})
}

//proof:of 15
func TestDecider_PostponesWhileTheQueueIsDeep(t *testing.T) {
	t.Parallel()
	bubble(t, "postpones by 3, 6, 12 … minutes and fires once the queue is no longer deep", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		const load = decide.DeepQueue + 1
		b.Send(stagetest.FiringQueue, slices.Repeat([]string{"x"}, load)...)
		for n, want := range []time.Duration{3, 6, 12, 24, 48, 48} {
			b.RequireStep(b.sweep(r), decide.Postponed)
			r = b.Row(r.Key)
			if got := time.Until(r.WakeAt); got != want*time.Minute {
				b.Fatalf("the %dth postponement is of %s, want %d min", n+1, got, want)
			}
			time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		}
		if n := b.Visible(stagetest.FiringQueue); n != load {
			b.Errorf("the queue holds %d, it held %d", n, load)
		}
		b.Received(stagetest.FiringQueue)
		b.RequireStep(b.sweep(r), job.StepFire)
		b.RequireFired(r)
	})
}

//proof:of F05
func TestDecider_RepeatsAFiringLessAndLessOften(t *testing.T) {
	t.Parallel()
	bubble(t, "a firing that no worker takes is repeated after 3, 6, 12 … minutes", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		for n, want := range []time.Duration{3, 6, 12, 24, 48, 48} {
			b.RequireStep(b.sweep(r), job.StepFire)
			r = b.Row(r.Key)
			if got := time.Until(r.WakeAt); got != want*time.Minute {
				b.Fatalf("after firing %d it wakes up in %s, want %d min", n+1, got, want)
			}
			time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		}
	})
}

//proof:of F05
func TestDecider_WaitsForAFiringThatAWorkerGaveBack(t *testing.T) {
	t.Parallel()
	noted := func(b *bench, away time.Duration) job.Row {
		r := b.Overdue(1, stagetest.Late)
		b.Write(job.NoteWaits(r.Key, job.Waits{Attempt: 1, For: job.WaitsForPermit, Until: time.Now().Add(away)},
			r.DueAt, time.Now()))
		return r
	}
	bubble(t, "the sweeper waits until a grace after the firing returns", func(b *bench) {
		r := noted(b, 5*time.Minute)
		b.RequireStep(b.sweep(r), decide.Postponed)
		r = b.Row(r.Key)
		if got := time.Until(r.WakeAt); got != 5*time.Minute+contract.Grace {
			b.Errorf("it wakes up in %s", got)
		}
		time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		b.RequireStep(b.sweep(r), job.StepFire)
	})
	bubble(t, "a re-evaluation does not wait for the firing", func(b *bench) {
		r := noted(b, 5*time.Minute)
		step, err := b.engine.Reevaluate(b.Context(), r.Key, r.Version, r.Attempt)
		b.Must(err)
		b.RequireStep(step, job.StepFire)
	})
}

func TestDecider_ObeysPauses(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{job.PauseAll, "task:echo"} {
		bubble(t, "a pause of "+scope+" parks a job and notes it for the sweeper", func(b *bench) {
			b.Pause(scope, time.Time{})
			r := b.Overdue(1, stagetest.Late)
			noted := false
			b.Before(stagetest.Named(job.WritePark), func() {
				tenants, _ := b.Store.ParkedTenants(b.Context())
				noted = len(tenants) == 1 && tenants[0].ID == jobtest.Tenant
			})
			b.RequireStep(b.sweep(r), job.StepPark)
			if after := b.Row(r.Key); !after.Parked || after.Slice() != "parked#acme#1" || !noted {
				b.Errorf("it lies in %s, noted before: %v", after.Slice(), noted)
			}
			b.RequireSilence()
		})
	}
	bubble(t, "a pause of another task does not hold the job", func(b *bench) {
		b.Pause("task:mail", time.Time{})
		r := b.Overdue(1, stagetest.Late)
		b.RequireStep(b.sweep(r), job.StepFire)
	})
	bubble(t, "a paused job expires when its window has passed", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.StartWithin = time.Minute })
		b.RequireStep(b.sweep(r), job.StepExpire)
		if now := b.Row(r.Key); now.Status != job.Expired {
			b.Errorf("it is %s", now.Status)
		}
	})
	bubble(t, "a paused job of a dead worker is parked and can be unparked", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Status = job.Running; r.WakeAt = r.DueAt })
		b.Own(r, -time.Second)
		b.RequireStep(b.sweep(r), job.StepPark)
		if after := b.Row(r.Key); !after.Parked || after.Status != job.Scheduled {
			b.Errorf("it is %s, parked: %v", after.Status, after.Parked)
		}
		b.Lift(job.PauseAll)
		b.engine.Reread(jobtest.Tenant)
		if step, err := b.engine.Parked(b.Context(), r.Key); err != nil || step != job.StepFire {
			b.Fatal(step, err)
		}
		b.RequireFired(r)
	})
	bubble(t, "a job is fired at once when its pause is lifted while it is parked", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late)
		b.Before(stagetest.Named(job.WritePark), func() { b.Lift(job.PauseAll) })
		b.RequireStep(b.sweep(r), job.StepFire)
		b.RequireFired(r)
		if after := b.Row(r.Key); after.Parked || !after.WakeAt.Equal(time.Now()) {
			b.Errorf("parked: %v, wakes at %s", after.Parked, after.WakeAt)
		}
	})
	bubble(t, "a parked job stays parked while its pause holds", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late)
		b.sweep(r)
		before := b.World.Counts().Total()
		if step, err := b.engine.Parked(b.Context(), r.Key); err != nil || step != job.StepPark {
			b.Fatal(step, err)
		}
		if after := b.World.Counts().Total(); after.Write != before.Write || after.Read == before.Read {
			b.Errorf("it wrote %v units and read %v", after.Write-before.Write, after.Read-before.Read)
		}
		if !b.Row(r.Key).Parked {
			b.Error("it was woken")
		}
	})
	bubble(t, "a pause whose until has passed holds nothing", func(b *bench) {
		b.Pause(job.PauseAll, time.Now().Add(time.Minute))
		r := b.Overdue(1, stagetest.Late)
		b.RequireStep(b.sweep(r), job.StepPark)
		time.Sleep(time.Minute)
		if step, err := b.engine.Parked(b.Context(), r.Key); err != nil || step != job.StepFire {
			b.Fatal(step, err)
		}
		b.RequireFired(r)
	})
}

func TestDecider_UnparksJobs(t *testing.T) {
	t.Parallel()
	bubble(t, "a job is unparked once", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
		for range 2 {
			if _, err := b.engine.Parked(b.Context(), r.Key); err != nil {
				b.Fatal(err)
			}
		}
		b.RequireFired(r)
	})
	bubble(t, "a parked job that a worker runs moves to the slices", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
		c := b.Own(r, contract.Lease)
		if step, err := b.engine.Parked(b.Context(), r.Key); err != nil || step != job.StepWaitForLease {
			b.Fatal(step, err)
		}
		if after := b.Row(r.Key); after.Parked || !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("parked: %v, wakes at %s", after.Parked, after.WakeAt)
		}
	})
	bubble(t, "a parked job that was cancelled ends during the pause", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late,
			func(r *job.Row) { r.Parked, r.WakeAt, r.Stop = true, r.DueAt, job.StopCancel })
		if step, err := b.engine.Parked(b.Context(), r.Key); err != nil || step != job.StepFinishStop {
			b.Fatal(step, err)
		}
	})
}

func TestDecider_Reevaluates(t *testing.T) {
	t.Parallel()
	reevaluate := func(b *bench, r job.Row) job.Step {
		b.Helper()
		step, err := b.engine.Reevaluate(b.Context(), r.Key, r.Version, r.Attempt)
		b.Must(err)
		return step
	}
	bubble(t, "parks a paused job a moment before it is due", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Put(jobtest.Row(1, time.Now().Add(contract.HoldUntil), time.Now()))
		b.RequireStep(reevaluate(b, r), job.StepPark)
		if !b.Row(r.Key).Parked {
			b.Error("lifting the pause would not find it")
		}
	})
	bubble(t, "parks a paused job although its wake-up is later", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, time.Minute, func(r *job.Row) { r.WakeAt = time.Now().Add(2 * time.Minute) })
		b.RequireStep(reevaluate(b, r), job.StepPark)
	})
	bubble(t, "fires a job that nothing holds, even if the queue is deep", func(b *bench) {
		r := b.Overdue(1, time.Second)
		const load = decide.DeepQueue + 1
		b.Send(stagetest.FiringQueue, slices.Repeat([]string{message.Encode(r.Firing().Message())}, load)...)
		b.RequireStep(reevaluate(b, r), job.StepFire)
		if got := len(b.Firings()); got != load+1 {
			b.Errorf("%d firings, want one more than %d", got, load)
		}
	})
	bubble(t, "expires a job whose window has passed", func(b *bench) {
		r := b.Overdue(1, 2*time.Second, func(r *job.Row) { r.StartWithin = time.Second })
		b.RequireStep(reevaluate(b, r), job.StepExpire)
	})
	for name, change := range map[string]func(*job.Row){
		"another version": func(r *job.Row) { r.Version++ },
		"another attempt": func(r *job.Row) { r.Attempt++ },
		"a later due time": func(r *job.Row) {
			r.DueAt = time.Now().Add(time.Minute)
			r.WakeAt = r.DueAt
		},
	} {
		bubble(t, "ignores a job of "+name, func(b *bench) {
			b.Pause(job.PauseAll, time.Time{})
			r := b.Overdue(1, time.Second)
			moved := r
			change(&moved)
			b.Put(moved)
			b.RequireStep(reevaluate(b, r), job.StepNothing)
			b.RequireSilence()
			if b.Row(r.Key).Parked {
				b.Error("it was parked")
			}
		})
	}
}

func TestDecider_GivesUpOnAJobThatKeepsChanging(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that changes before every write is a conflict", func(b *bench) {
		r := b.Overdue(1, stagetest.Late)
		inside := false
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Name == job.WriteRewake && !inside {
				inside = true
				now := b.Row(r.Key)
				now.WakeAt = now.WakeAt.Add(-time.Millisecond)
				b.Put(now)
				inside = false
			}
			return memory.Fault{}
		})
		if _, err := b.engine.Entry(b.Context(), stagetest.Entry(r)); fault.KindOf(err) != fault.Conflict {
			b.Errorf("got %v", err)
		}
	})
}

//proof:of F08
func TestDecider_ReadsThePausesForEveryoneOnceASecond(t *testing.T) {
	t.Parallel()
	bubble(t, "jobs of 50 tenants cause one read of the pauses for everyone", func(b *bench) {
		reads := b.Count(stagetest.Queries(job.PausesKey(job.Everyone)))
		once := 0 // a read may take several pages
		for n := range 50 {
			if n == 1 {
				once = reads()
			}
			b.sweep(b.Overdue(n, stagetest.Late, func(r *job.Row) { r.Tenant = tenant.ID(fmt.Sprint("t", n)) }))
		}
		if n := reads(); once == 0 || n != once {
			b.Errorf("they were read with %d calls, once takes %d", n, once)
		}
	})
}
