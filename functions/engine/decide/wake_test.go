package decide_test

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// bubble runs a sentence about the Waker in virtual time.
func bubble(t *testing.T, name string, do func(b *bundle)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { do(setup(t)) })
	})
}

const found = contract.Grace + 20*time.Second // how long after its wake-up the sweeper meets a job

func TestAWakeUp(t *testing.T) {
	t.Parallel()
	bubble(t, "that was lost is fired again, and again after the grace", func(b *bundle) {
		r := b.overdue(1, found)
		b.requireStep(b.sweep(r), job.StepFire)
		b.requireFired(r)
		if after := b.row(r.Key); !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Status != job.Scheduled {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	bubble(t, "later than the entry makes the entry stale, whoever reads it", func(b *bundle) {
		r := b.overdue(1, found)
		_, w := job.Rewake(r, time.Now().Add(-time.Second), time.Now(), 0)
		b.write(w)
		b.requireStep(b.sweep(r), job.StepNothing)
		b.requireSilence()
	})
	bubble(t, "of a job that is gone is nothing", func(b *bundle) {
		b.requireStep(b.sweep(jobtest.Row(1, time.Now(), time.Now())), job.StepNothing)
	})
	bubble(t, "of a DEAD job that owes its letter sends the letter again and comes back after the grace", func(b *bundle) {
		r := b.overdue(1, found, dead)
		b.requireStep(b.sweep(r), job.StepPayOwed)
		letters := b.drain(contract.RedriveQueue)
		if len(letters) != 1 {
			b.Fatalf("%d letters", len(letters))
		}
		l, err := message.Decode[message.Letter](letters[0].Body)
		if err != nil || !l.SentAt.Equal(time.Now()) || job.CameBack(l, letters[0]) {
			b.Errorf("the letter %+v would be taken for a redriven one: %v", l, err)
		}
		after := b.row(r.Key)
		if after.Owes != job.OwesLetter || !after.WakeAt.Equal(time.Now().Add(contract.Grace)) {
			b.Errorf("it owes %q and wakes at %s", after.Owes, after.WakeAt)
		}
	})
	bubble(t, "of a final job that owes what nobody can pay is a row to set aside", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { dead(r); r.Status, r.Owes = job.Succeeded, job.OwesChildren })
		if _, err := b.waker.Entry(b.Context(), entry(r)); fault.KindOf(err) != fault.Undecodable {
			b.Errorf("got %v", err)
		}
	})
	bubble(t, "of a job with an unsettled outcome repeats the report", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Stop = job.StopCancel })
		c := b.own(r, -time.Second)
		o := job.Outcome{Kind: job.OutcomeSucceeded, Worker: "w1", Result: []byte(`{"n":1}`)}
		b.write(job.RecordOutcome(r.Key, 1, c.Token, o))
		b.requireStep(b.sweep(r), job.StepRepeatReport)
		reports := b.drain(contract.ReportQueue)
		if len(reports) != 1 {
			b.Fatalf("%d reports", len(reports))
		}
		rep, err := message.Decode[message.Report](reports[0].Body)
		if err != nil || rep.Kind != message.Ended || rep.Attempt != 1 || rep.Token != c.Token || len(rep.Outcome) != 0 { // ids can always be sent
			b.Errorf("reported %+v, %v", rep, err)
		}
		if after := b.row(r.Key); !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Status != job.Scheduled {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	bubble(t, "of a job that runs waits for the end of its lease", func(b *bundle) {
		r := b.overdue(1, found)
		c := b.own(r, 7*time.Second)
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		b.requireSilence()
		if after := b.row(r.Key); !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("it wakes at %s", after.WakeAt)
		}
		if b.claim(r.Key).Cancel {
			b.Error("nobody cancelled it")
		}
	})
	bubble(t, "of a job that runs and is to stop asks its worker once more", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Stop = job.StopCancel })
		c := b.own(r, 7*time.Second)
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		if !b.claim(r.Key).Cancel {
			b.Error("its worker was not asked")
		}
		if after := b.row(r.Key); after.Status != job.Scheduled || !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("it is %s and wakes at %s", after.Status, after.WakeAt)
		}
	})
	bubble(t, "of a job that is to stop fences its attempt before it is over", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Stop, r.CancelRequestedAt = job.StopCancel, time.Now().Add(-time.Minute) })
		fenced := false
		b.once("row.finish_stop", func() { fenced = b.claim(r.Key).Token == 1 })
		b.requireStep(b.sweep(r), job.StepFinishStop)
		if after := b.row(r.Key); after.Status != job.Cancelled || !after.WakeAt.IsZero() || !fenced {
			b.Errorf("it is %s, wakes at %s, fenced before: %v", after.Status, after.WakeAt, fenced)
		}
		b.requireSilence()
	})
	bubble(t, "of a job that is to stop and whose worker starts meanwhile leaves it to its worker", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Stop = job.StopCancel })
		b.once("claim.fence", func() { b.own(r, contract.Lease) })
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		if after := b.row(r.Key); after.Status != job.Scheduled || !b.claim(r.Key).Cancel {
			b.Errorf("it is %s, its worker asked: %v", after.Status, b.claim(r.Key).Cancel)
		}
	})
	bubble(t, "whose window has passed expires it with the window's name", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.StartWithin = time.Minute })
		b.requireStep(b.sweep(r), job.StepExpire)
		after := b.row(r.Key)
		if after.Status != job.Expired || after.Reason.Code != job.CodeStartWithin || after.Reason.Message != "start_within of 1m0s has passed" {
			b.Errorf("it is %s because of %+v", after.Status, after.Reason)
		}
		if b.claim(r.Key).Token != 1 {
			b.Error("it was not fenced")
		}
		b.requireSilence()
	})
	bubble(t, "whose window has passed lets a worker finish that starts just then", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.StartWithin = time.Minute })
		b.once("row.stop", func() { b.own(r, contract.Lease) })
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		if after := b.row(r.Key); after.Status != job.Scheduled || after.Stop != job.StopExpire || !b.claim(r.Key).Cancel {
			b.Errorf("it is %s with stop %q, its worker asked: %v", after.Status, after.Stop, b.claim(r.Key).Cancel)
		}
	})
	bubble(t, "never overturns a success that came after the row was read", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.StartWithin = time.Minute })
		b.once("row.stop", func() {
			d, err := job.Settle(b.row(r.Key), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			b.write(d.Write)
		})
		b.requireStep(b.sweep(r), job.StepNothing)
		if after := b.row(r.Key); after.Status != job.Succeeded {
			b.Errorf("it is %s", after.Status)
		}
	})
}

func dead(r *job.Row) {
	r.Status, r.Owes, r.Reason = job.Dead, job.OwesLetter, job.Reason{Code: job.CodeHandler, Message: "no"}
	r.WakeAt, r.DeadAt, r.FinishedAt = r.DueAt, r.DueAt, r.DueAt
}

func TestTwoSweepersAtOnceFireOnce(t *testing.T) {
	t.Parallel()
	bubble(t, "whichever is later finds the other's wake-up", func(b *bundle) {
		r := b.overdue(1, found)
		b.once("row.rewake", func() {
			time.Sleep(time.Millisecond) // in the same one neither could tell the other's write from its own
			if step, err := b.another().Entry(b.Context(), entry(r)); err != nil || step != job.StepFire {
				b.Fatal(step, err)
			}
		})
		b.requireStep(b.sweep(r), job.StepNothing)
		b.requireFired(r)
	})
}

func TestAFiringThatCouldNotBeSentLeavesItsWakeUp(t *testing.T) {
	t.Parallel()
	bubble(t, "which the next sweep meets", func(b *bundle) {
		r := b.overdue(1, found)
		b.failSends(firingQueue)
		if _, err := b.waker.Entry(b.Context(), entry(r)); !fault.Retryable(err) {
			b.Fatalf("got %v", err)
		}
		b.w.SetFaults(nil)
		time.Sleep(contract.Grace + time.Minute)
		r = b.row(r.Key)
		b.requireStep(b.sweep(r), job.StepFire)
		b.requireFired(r)
	})
}

func TestADeepQueuePostponesInsteadOfDoublingTheLoad(t *testing.T) {
	t.Parallel()
	bubble(t, "3, 6, 12 … minutes, and fires once it is no longer deep", func(b *bundle) {
		r := b.overdue(1, found)
		load := make([]message.Outgoing, decide.DeepQueue+1)
		for i := range load {
			load[i] = message.Outgoing{Body: "x"}
		}
		if err := b.w.Queues().Send(b.Context(), firingQueue, load...); err != nil {
			b.Fatal(err)
		}
		for n, want := range []time.Duration{3, 6, 12, 24, 48, 48} {
			b.requireStep(b.sweep(r), decide.Postponed)
			r = b.row(r.Key)
			if got := time.Until(r.WakeAt); got != want*time.Minute {
				b.Fatalf("the %dth postponement is of %s, want %d min", n+1, got, want)
			}
			time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		}
		if depth, _ := b.w.Queues().Depth(b.Context(), firingQueue); depth.Visible != len(load) {
			b.Errorf("the queue holds %d, it held %d", depth.Visible, len(load))
		}
		b.drain(firingQueue)
		b.requireStep(b.sweep(r), job.StepFire)
		b.requireFired(r)
	})
}

func TestWaker_FiresAgainEverLessOftenWhatNobodyTakes(t *testing.T) {
	t.Parallel()
	bubble(t, "3, 6, 12 … minutes after the last firing", func(b *bundle) {
		r := b.overdue(1, found)
		for n, want := range []time.Duration{3, 6, 12, 24, 48, 48} {
			b.requireStep(b.sweep(r), job.StepFire)
			r = b.row(r.Key)
			if got := time.Until(r.WakeAt); got != want*time.Minute {
				b.Fatalf("after firing %d it is looked at again in %s, want %d min", n+1, got, want)
			}
			time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		}
	})
}

func TestWaker_SendsNoSecondFiringWhileAWorkerHasGivenTheFirstBack(t *testing.T) {
	t.Parallel()
	noted := func(b *bundle, away time.Duration) job.Row {
		r := b.overdue(1, found)
		b.write(job.NoteWaits(r.Key, job.Waits{Attempt: 1, For: job.WaitsForPlace, Until: time.Now().Add(away)}, r.DueAt, time.Now()))
		return r
	}
	bubble(t, "until a grace after it comes back", func(b *bundle) {
		r := noted(b, 5*time.Minute)
		b.requireStep(b.sweep(r), decide.Postponed)
		r = b.row(r.Key)
		if got := time.Until(r.WakeAt); got != 5*time.Minute+contract.Grace {
			b.Errorf("it is looked at again in %s", got)
		}
		time.Sleep(time.Until(r.WakeAt) + contract.Grace)
		b.requireStep(b.sweep(r), job.StepFire)
	})
	bubble(t, "but at once when a worker asks for a look", func(b *bundle) {
		r := noted(b, 5*time.Minute)
		step, err := b.waker.Look(b.Context(), r.Key, r.Version, r.Attempt)
		if err != nil {
			b.Fatal(err)
		}
		b.requireStep(step, job.StepFire)
	})
}

func TestAPause(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{job.PauseAll, "task:echo"} {
		bubble(t, "of "+scope+" parks what it holds, noted for the sweeper", func(b *bundle) {
			b.pause(scope, time.Time{})
			r := b.overdue(1, found)
			noted := false
			b.once("row.park", func() {
				tenants, _ := b.store.ParkedTenants(b.Context())
				noted = len(tenants) == 1 && tenants[0].ID == jobtest.Tenant
			})
			b.requireStep(b.sweep(r), job.StepPark)
			if after := b.row(r.Key); !after.Parked || after.Slice() != "parked#acme#1" || !noted {
				b.Errorf("it lies in %s, noted before: %v", after.Slice(), noted)
			}
			b.requireSilence()
		})
	}
	bubble(t, "of another task holds nothing", func(b *bundle) {
		b.pause("task:mail", time.Time{})
		r := b.overdue(1, found)
		b.requireStep(b.sweep(r), job.StepFire)
	})
	bubble(t, "comes before a window that has passed", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, found, func(r *job.Row) { r.StartWithin = time.Minute })
		b.requireStep(b.sweep(r), job.StepPark)
	})
	bubble(t, "parks what a dead worker left running, and it can be woken", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, found, func(r *job.Row) { r.Status = job.Running; r.WakeAt = r.DueAt })
		b.own(r, -time.Second)
		b.requireStep(b.sweep(r), job.StepPark)
		if after := b.row(r.Key); !after.Parked || after.Status != job.Scheduled {
			b.Errorf("it is %s, parked: %v", after.Status, after.Parked)
		}
		b.lift(job.PauseAll)
		b.waker.Reread(jobtest.Tenant)
		if step, err := b.waker.Parked(b.Context(), r.Key); err != nil || step != job.StepFire {
			b.Fatal(step, err)
		}
		b.requireFired(r)
	})
	bubble(t, "that is lifted while its job is being parked wakes it at once", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, found)
		b.once("row.park", func() { b.lift(job.PauseAll) })
		b.requireStep(b.sweep(r), job.StepFire)
		b.requireFired(r)
		if after := b.row(r.Key); after.Parked || !after.WakeAt.Equal(time.Now()) {
			b.Errorf("parked: %v, wakes at %s", after.Parked, after.WakeAt)
		}
	})
	bubble(t, "that still stands leaves the parked where they are", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, found)
		b.sweep(r)
		before := b.w.Counts().Total()
		if step, err := b.waker.Parked(b.Context(), r.Key); err != nil || step != job.StepPark {
			b.Fatal(step, err)
		}
		if after := b.w.Counts().Total(); after.Write != before.Write || after.Read == before.Read {
			b.Errorf("it wrote %v units and read %v", after.Write-before.Write, after.Read-before.Read)
		}
		if !b.row(r.Key).Parked {
			b.Error("it was woken")
		}
	})
	bubble(t, "whose until has passed holds nothing any more", func(b *bundle) {
		b.pause(job.PauseAll, time.Now().Add(time.Minute))
		r := b.overdue(1, found)
		b.requireStep(b.sweep(r), job.StepPark)
		time.Sleep(time.Minute)
		if step, err := b.waker.Parked(b.Context(), r.Key); err != nil || step != job.StepFire {
			b.Fatal(step, err)
		}
		b.requireFired(r)
	})
}

func TestAParkedJob(t *testing.T) {
	t.Parallel()
	bubble(t, "that was woken is not woken a second time", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
		for range 2 {
			if _, err := b.waker.Parked(b.Context(), r.Key); err != nil {
				b.Fatal(err)
			}
		}
		b.requireFired(r)
	})
	bubble(t, "that a worker runs all the same comes back to the slices", func(b *bundle) {
		r := b.overdue(1, found, func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
		c := b.own(r, contract.Lease)
		if step, err := b.waker.Parked(b.Context(), r.Key); err != nil || step != job.StepWaitForLease {
			b.Fatal(step, err)
		}
		if after := b.row(r.Key); after.Parked || !after.WakeAt.Equal(c.LeaseUntil) {
			b.Errorf("parked: %v, wakes at %s", after.Parked, after.WakeAt)
		}
	})
	bubble(t, "that was cancelled is over without waiting for the pause", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, found, func(r *job.Row) { r.Parked, r.WakeAt, r.Stop = true, r.DueAt, job.StopCancel })
		if step, err := b.waker.Parked(b.Context(), r.Key); err != nil || step != job.StepFinishStop {
			b.Fatal(step, err)
		}
	})
}

func TestALook(t *testing.T) {
	t.Parallel()
	look := func(b *bundle, r job.Row) job.Step {
		b.Helper()
		step, err := b.waker.Look(b.Context(), r.Key, r.Version, r.Attempt)
		if err != nil {
			b.Fatal(err)
		}
		return step
	}
	bubble(t, "parks a paused job though it is not due for the moment that workers claim ahead", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.put(jobtest.Row(1, time.Now().Add(contract.HoldUntil), time.Now()))
		b.requireStep(look(b, r), job.StepPark)
		if !b.row(r.Key).Parked {
			b.Error("lifting the pause would not find it")
		}
	})
	bubble(t, "parks a paused job though its wake-up was put off when it was fired", func(b *bundle) {
		b.pause(job.PauseAll, time.Time{})
		r := b.overdue(1, time.Minute, func(r *job.Row) { r.WakeAt = time.Now().Add(2 * time.Minute) })
		b.requireStep(look(b, r), job.StepPark)
	})
	bubble(t, "fires a job again that nothing holds any more, however deep the queue", func(b *bundle) {
		r := b.overdue(1, time.Second)
		load := make([]message.Outgoing, decide.DeepQueue+1)
		for i := range load {
			load[i] = message.Outgoing{Body: message.Encode(r.Firing().Message())}
		}
		if err := b.w.Queues().Send(b.Context(), firingQueue, load...); err != nil {
			b.Fatal(err)
		}
		b.requireStep(look(b, r), job.StepFire)
		if got := len(b.firings()); got != len(load)+1 {
			b.Errorf("%d firings, want one more than %d", got, len(load))
		}
	})
	bubble(t, "expires a job whose window has passed, at once", func(b *bundle) {
		r := b.overdue(1, 2*time.Second, func(r *job.Row) { r.StartWithin = time.Second })
		b.requireStep(look(b, r), job.StepExpire)
	})
	for name, change := range map[string]func(*job.Row){
		"another version": func(r *job.Row) { r.Version++ },
		"another attempt": func(r *job.Row) { r.Attempt++ },
		"a due time that was moved": func(r *job.Row) {
			r.DueAt = time.Now().Add(time.Minute)
			r.WakeAt = r.DueAt
		},
	} {
		bubble(t, "at a job of "+name+" changes nothing", func(b *bundle) {
			b.pause(job.PauseAll, time.Time{})
			r := b.overdue(1, time.Second)
			moved := r
			change(&moved)
			b.put(moved)
			b.requireStep(look(b, r), job.StepNothing)
			b.requireSilence()
			if b.row(r.Key).Parked {
				b.Error("it was parked")
			}
		})
	}
}

func TestAJobThatChangesAllTheTimeIsAFaultToTryAgain(t *testing.T) {
	t.Parallel()
	bubble(t, "and no endless loop", func(b *bundle) {
		r := b.overdue(1, found)
		inside := false
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			if c.Name == "row.rewake" && !inside {
				inside = true
				now := b.row(r.Key)
				now.WakeAt = now.WakeAt.Add(-time.Millisecond)
				b.put(now)
				inside = false
			}
			return memory.Fault{}
		})
		if _, err := b.waker.Entry(b.Context(), entry(r)); fault.KindOf(err) != fault.Conflict {
			b.Errorf("got %v", err)
		}
	})
}
