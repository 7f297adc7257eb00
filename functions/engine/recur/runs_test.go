package recur_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/recur"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// emptyPages is a world whose lists have empty pages before their end.
var emptyPages = memory.Options{EmptyPages: true}

func attemptTwo(r *job.Row) { r.Attempt = 2 }

func TestRecurrer_JudgesJobsAtTheirWakeUp(t *testing.T) {
	t.Parallel()
	pause := func(s schedule.Schedule) []item.Write {
		_, w := schedule.PauseSchedule(s, schedule.Pause{}, stagetest.Now())
		return []item.Write{w}
	}
	remove := func(s schedule.Schedule) []item.Write {
		_, w := schedule.Delete(s, nil, stagetest.Now())
		return w[:1]
	}
	editAt := func(before time.Duration) func(schedule.Schedule) []item.Write {
		return func(s schedule.Schedule) []item.Write {
			_, w, err := schedule.Edit(s, s, nil, stagetest.Now().Add(-before))
			if err != nil {
				t.Fatal(err)
			}
			return w[:1]
		}
	}
	edit, editAfterDue := editAt(stagetest.Late+time.Second), editAt(0)
	resumed := func(s schedule.Schedule) []item.Write { // it is not promoted yet
		s.Epoch, s.Next = 2, stagetest.Now().Add(-time.Hour)
		return []item.Write{{Ref: s.Ref(), Name: "test.put", Put: s.Item()}}
	}
	expiring := func(r *job.Row) { r.StartWithin = time.Second }
	for name, c := range map[string]struct {
		write  func(schedule.Schedule) []item.Write
		change func(*job.Row)
		step   job.Step
		status job.Status
		reason string
	}{
		"a current job is fired":                 {nil, nil, job.StepFire, job.Scheduled, ""},
		"a job of a paused schedule is parked":   {pause, nil, job.StepPark, job.Scheduled, ""},
		"a retry of a paused schedule is parked": {pause, attemptTwo, job.StepPark, job.Scheduled, ""},
		"a job of a deleted schedule is skipped": {remove, nil, recur.Skipped, job.Skipped, job.CodeDeleted},
		"a retry of a deleted schedule is cancelled": {remove, attemptTwo, job.StepFinishStop, job.Cancelled,
			job.CodeDeleted},
		"a job of an edited schedule is skipped":          {edit, nil, recur.Skipped, job.Skipped, job.CodeEdited},
		"a retry of an edited schedule is fired":          {edit, attemptTwo, job.StepFire, job.Scheduled, ""},
		"an overdue job of an edited schedule is skipped": {edit, expiring, recur.Skipped, job.Skipped, job.CodeEdited},
		"a job due before the edit is fired":              {editAfterDue, nil, job.StepFire, job.Scheduled, ""},
		"a job due before the edit expires by its window": {editAfterDue, expiring, job.StepExpire, job.Expired,
			job.CodeStartWithin},
		"a job to be adopted is left to promotion": {resumed, nil, recur.Left, job.Scheduled, ""},
	} {
		bubbleOf(t, name, emptyPages, func(b *bench) {
			s := b.Rule()
			r := b.Overdue(0, stagetest.Late, stagetest.Of(s), func(r *job.Row) {
				if c.change != nil {
					c.change(r)
				}
			})
			if c.write != nil {
				b.Must(b.Store.Commit(b.Context(), c.write(s)...))
			}
			b.RequireStep(b.sweep(r), c.step)
			now := b.Row(r.Key)
			if now.Status != c.status || now.Reason.Code != c.reason {
				b.Errorf("it is %s: %v", now.Status, now.Reason)
			}
			if now.Parked != (c.step == job.StepPark) || now.Status.Final() == !now.WakeAt.IsZero() {
				b.Errorf("parked %v, wake-up %s", now.Parked, now.WakeAt)
			}
			if c.step != job.StepFire {
				b.RequireSilence()
			}
			if now.Status == job.Skipped && b.Claim(r.Key).Token == 0 {
				b.Error("it was not fenced first")
			}
		})
	}
	bubbleOf(t, "a job that starts while it is skipped is left to its worker", emptyPages, func(b *bench) {
		s := b.Rule()
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Must(b.Store.Commit(b.Context(), remove(s)...))
		b.Before(stagetest.Named(job.WriteSkip), func() { b.Own(r, contract.Lease) })
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		if now := b.Row(r.Key); now.Status != job.Scheduled {
			b.Errorf("it is %s", now.Status)
		}
	})
	bubbleOf(t, "an attempt that is taken over before the skip is left to its worker", emptyPages, func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip })
		holder := b.Overdue(1, stagetest.Late, stagetest.Of(s))
		b.Write(s.TakeSlot(holder.ID))
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Before(stagetest.Named(job.WriteSkip), func() { // the holder ends, and a second firing of the job is claimed
			d, err := job.Settle(&holder, 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			b.Must(err)
			b.Write(d.Write)
			o := job.Owner{Worker: "w1", Nonce: "n1", LeaseUntil: time.Now().Add(contract.Lease), DueAt: r.DueAt}
			if err := b.Store.Put(b.Context(), job.ClaimNew(r.Key, 1, o)); err != nil { // it was fenced
				b.Write(job.TakeOver(r.Key, b.Claim(r.Key), o, time.Now()))
			}
		})
		b.RequireStep(b.sweep(r), job.StepWaitForLease)
		if now, c := b.Row(r.Key), b.Claim(r.Key); now.Status != job.Scheduled || !c.Live(1, time.Now()) {
			b.Errorf("it is %s, with the claim %+v", now.Status, c)
		}
	})
	bubbleOf(t, "an edit just before the skip leaves the job to the new epoch", emptyPages, func(b *bench) {
		s := b.Rule()
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Must(b.Store.Commit(b.Context(), edit(s)...))
		b.Before(stagetest.Named(job.WriteSkip), func() {
			now := s
			now.Epoch, now.Next = 3, r.NominalAt
			b.Overwrite(s.Ref(), now.Item())
		})
		b.RequireStep(b.sweep(r), recur.Left)
	})
}

func TestRecurrer_KeepsRunsFromOverlapping(t *testing.T) {
	t.Parallel()
	policy := func(o schedule.Overlap) func(*schedule.Schedule) {
		return func(s *schedule.Schedule) { s.Overlap = o }
	}
	hold := func(b *bench, s schedule.Schedule) job.Row {
		h := b.Overdue(9, stagetest.Late+time.Hour, stagetest.Of(s), func(r *job.Row) { r.Status = job.Running })
		b.Write(s.TakeSlot(h.ID))
		b.Own(h, 24*time.Hour)
		return h
	}
	end := func(b *bench, h job.Row) {
		d, err := job.Settle(new(b.Row(h.Key)), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
		b.Must(err)
		b.Write(d.Write)
		b.Must(b.engine.Ended(b.Context(), d.After))
	}
	bubbleOf(t, "overlap skip skips the later job", emptyPages, func(b *bench) {
		s := b.Rule(policy(schedule.OverlapSkip))
		hold(b, s)
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.RequireStep(b.sweep(r), recur.Skipped)
		if now := b.Row(r.Key); now.Status != job.Skipped || now.Reason.Code != job.CodeOverlap {
			b.Errorf("it is %s: %v", now.Status, now.Reason)
		}
	})
	bubbleOf(t, "overlap buffer_one queues one job, skips the next, and fires the queued one at the end", emptyPages,
		func(b *bench) {
			s := b.Rule(policy(schedule.OverlapBufferOne))
			h := hold(b, s)
			one, two := b.Overdue(0, stagetest.Late, stagetest.Of(s)), b.Overdue(1, stagetest.Late, stagetest.Of(s))
			b.RequireStep(b.sweep(one), job.StepPark)
			b.RequireStep(b.sweep(one), job.StepPark) // a late index entry shows it twice
			b.RequireStep(b.sweep(two), recur.Skipped)
			b.RequireSilence()
			end(b, h)
			b.RequireFired(b.Row(one.Key))
			if b.Row(one.Key).Parked {
				b.Error("it is still parked")
			}
		})
	bubbleOf(t, "overlap buffer_all queues all jobs, and each end fires the oldest", emptyPages, func(b *bench) {
		s := b.Rule(policy(schedule.OverlapBufferAll))
		h := hold(b, s)
		one, two := b.Overdue(0, stagetest.Late+time.Minute, stagetest.Of(s)),
			b.Overdue(1, stagetest.Late, stagetest.Of(s))
		b.RequireStep(b.sweep(two), job.StepPark)
		b.RequireStep(b.sweep(one), job.StepPark)
		if keys, err := b.Store.Queues(b.Context()); err != nil || len(keys) != 1 || keys[0] != s.Key {
			b.Errorf("lines: %v, %v", keys, err)
		}
		end(b, h)
		b.RequireFired(b.Row(one.Key))
		b.Write(s.TakeSlotFrom(one.ID, h.ID))
		end(b, one)
		b.RequireFired(b.Row(two.Key))
		b.Write(s.TakeSlotFrom(two.ID, one.ID))
		end(b, two)
		if got := b.Received(contract.DispatchQueue); len(got) != 0 { // it is delayed, because the index lags
			b.Errorf("an empty line is read at once: %v", got)
		}
	})
	bubbleOf(t, "overlap cancel_running queues the newest until the first has ended", emptyPages, func(b *bench) {
		s := b.Rule(policy(schedule.OverlapCancelRunning))
		h := hold(b, s)
		one, two, late := b.Overdue(0, stagetest.Late+time.Minute, stagetest.Of(s)),
			b.Overdue(1, stagetest.Late, stagetest.Of(s)), b.Overdue(2, stagetest.Late+time.Hour, stagetest.Of(s))
		b.RequireStep(b.sweep(one), job.StepPark)
		if now := b.Row(h.Key); now.Stop != job.StopCancel || !b.Claim(h.Key).Cancel {
			b.Errorf("the first is not asked to stop: %+v", now)
		}
		b.RequireStep(b.sweep(two), job.StepPark)
		if now := b.Row(one.Key); now.Status != job.Skipped || now.Reason.Code != job.CodeOverlap {
			b.Errorf("the one that waited is %s: %v", now.Status, now.Reason)
		}
		b.RequireStep(b.sweep(late), recur.Skipped)
		d, err := job.Settle(new(b.Row(h.Key)), 1, job.Outcome{Kind: job.OutcomeFailed}, time.Now())
		if err != nil || d.After.Status != job.Cancelled {
			b.Fatalf("%s, %v", d.After.Status, err)
		}
		b.Write(d.Write)
		b.Must(b.engine.Ended(b.Context(), d.After))
		b.RequireFired(b.Row(two.Key))
	})
	bubbleOf(t, "a queued job that is skipped does not start the next one",
		emptyPages, func(b *bench) {
			s := b.Rule(policy(schedule.OverlapBufferAll))
			h := hold(b, s)
			one, two := b.Overdue(0, stagetest.Late+time.Minute, stagetest.Of(s)),
				b.Overdue(1, stagetest.Late, stagetest.Of(s))
			b.RequireStep(b.sweep(one), job.StepPark)
			b.RequireStep(b.sweep(two), job.StepPark)
			_, w := schedule.Delete(s, nil, stagetest.Now())
			b.Write(w[0])
			time.Sleep(2 * time.Second)
			if step, err := b.engine.Parked(b.Context(), one.Key); err != nil || step != recur.Skipped {
				b.Fatalf("%q, %v", step, err)
			}
			if now := b.Row(two.Key); !now.QueuedBehind || b.Row(h.Key).Status != job.Running {
				b.Errorf("the other is %s, queued %v", now.Status, now.QueuedBehind)
			}
		})
	bubbleOf(t, "a job is fired when the one before ends while it is queued", emptyPages, func(b *bench) {
		s := b.Rule(policy(schedule.OverlapBufferAll))
		h := hold(b, s)
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Before(stagetest.Named(job.WritePark), func() {
			d, err := job.Settle(new(b.Row(h.Key)), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			if err != nil {
				b.Error(err)
			}
			b.Write(d.Write)
		})
		b.sweep(r)
		b.RequireFired(b.Row(r.Key))
	})
	for _, lost := range []bool{false, true} {
		bubbleOf(t, fmt.Sprintf("a job is fired after any crash of its queueing, last answer lost: %v", lost),
			emptyPages, func(b *bench) {
				s := b.Rule(policy(schedule.OverlapBufferOne))
				var h, r job.Row
				b.Crashes(lost, func(n int) {
					h = b.Overdue(100+n, stagetest.Late+time.Hour, stagetest.Of(s))
					b.Write(item.Write{Ref: s.SlotRef(), Name: "test.slot",
						Set: map[string]any{"holder": string(h.ID), "waiting": nil}})
					r = b.Overdue(n, stagetest.Late, stagetest.Of(s))
				}, func() error {
					_, err := b.engine.Entry(b.Context(), stagetest.Entry(r))
					return err
				}, func(n int) {
					b.restart()
					time.Sleep(contract.Grace + time.Minute)
					now := b.Row(r.Key)
					if now.WakeAt.IsZero() {
						b.Fatalf("crashed at call %d: nothing brings it back", n)
					}
					if keys, err := b.Store.Queues(b.Context()); now.Parked && (err != nil || len(keys) == 0) {
						b.Fatalf("crashed at call %d: it is queued, and the sweeper does not know of it, %v", n, err)
					}
					d, err := job.Settle(new(b.Row(h.Key)), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
					b.Must(err)
					b.Write(d.Write)
					if now.Parked {
						_, err = b.engine.Parked(b.Context(), r.Key)
					} else {
						_, err = b.engine.Entry(b.Context(), stagetest.Entry(now))
					}
					if err != nil || !b.HasFired(r) {
						b.Errorf("crashed at call %d: it is not fired, %v", n, err)
					}
				})
			})
	}
}

func TestRecurrer_EndsAScheduleAfterItsLastRun(t *testing.T) {
	t.Parallel()
	bubbleOf(t, "a job beyond max_runs is skipped and ends the schedule", emptyPages, func(b *bench) {
		one := 1
		s := b.Rule(func(s *schedule.Schedule) { s.Spec.MaxRuns = &one })
		first, second := b.Overdue(0, stagetest.Late, stagetest.Of(s)), b.Overdue(1, stagetest.Late, stagetest.Of(s))
		b.RequireStep(b.sweep(first), job.StepFire)
		b.Must(b.Store.Commit(b.Context(), s.CountRun(first, []bool{false})...))
		time.Sleep(contract.Grace + time.Minute)
		b.RequireStep(b.sweep(b.Row(first.Key)), job.StepFire) // it is counted already, so it may run
		b.RequireStep(b.sweep(second), recur.Skipped)
		now, err := b.Store.Schedule(b.Context(), s.Key)
		if err != nil || !now.Next.IsZero() || now.EndedBy != job.CodeMaxRuns {
			b.Errorf("next %s, ended by %q, %v", now.Next, now.EndedBy, err)
		}
	})
}

func TestRecurrer_PausesAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	bubbleOf(t, "failures are counted once each until a success, and pause at the limit", emptyPages, func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.PauseAfter = 2 })
		ended := func(n int, status job.Status, change ...func(*job.Row)) schedule.Schedule {
			b.Helper()
			r := jobtest.Row(n, time.Now(), time.Now(), append([]func(*job.Row){stagetest.Of(s)}, change...)...)
			r.Status = status
			for range 2 {
				b.Must(b.engine.Ended(b.Context(), r))
			}
			now := b.Schedule(s.Key)
			return now
		}
		if now := ended(1, job.Dead); now.Failures != 1 || now.Paused != nil {
			b.Errorf("after one: %d, %v", now.Failures, now.Paused)
		}
		if now := ended(2, job.Succeeded); now.Failures != 0 {
			b.Errorf("after a success: %d", now.Failures)
		}
		ended(3, job.Dead)
		if now := ended(4, job.Cancelled); now.Failures != 1 {
			b.Errorf("a cancelled one counts: %d", now.Failures)
		}
		if now := ended(5, job.Dead, func(r *job.Row) { r.Epoch = 0 }); now.Failures != 1 {
			b.Errorf("one of an older epoch counts: %d", now.Failures)
		}
		now := ended(6, job.Dead)
		if now.Paused == nil || now.Paused.By != schedule.ByPunctual || now.Epoch != s.Epoch+1 {
			b.Errorf("after two in a row: %+v", now.Paused)
		}
	})
}

//proof:of F03
func TestRecurrer_SurvivesUnreadableItems(t *testing.T) {
	t.Parallel()
	bubbleOf(t, "a job whose schedule cannot be read waits, and runs once it can be", emptyPages, func(b *bench) {
		s := b.Rule()
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Spoil(s.Ref())
		b.RequireStep(b.sweep(r), recur.Left)
		after := b.Row(r.Key)
		if !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Postponed != 1 {
			b.Errorf("it wakes at %s", after.WakeAt)
		}
		b.Write(item.Write{Ref: s.Ref(), Name: "test.mend", Set: map[string]any{"schema_v": int64(1)}})
		time.Sleep(contract.Grace)
		b.RequireStep(b.sweep(after), job.StepFire)
	})
	bubbleOf(t, "a job ends although its schedule cannot be read", emptyPages, func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.PauseAfter = 1 })
		b.Spoil(s.Ref())
		if err := b.engine.Ended(b.Context(),
			jobtest.Row(0, time.Now(), time.Now(), stagetest.Of(s), stagetest.Dead)); err != nil {
			b.Error(err)
		}
	})
	for _, c := range []struct {
		lease time.Duration // of the job that holds the slot; 0: it has no claim
		step  job.Step
	}{{0, job.StepFire}, {time.Hour, job.StepPark}} {
		name := fmt.Sprintf("a slot whose holder cannot be read, with a lease of %v, comes to %s", c.lease, c.step)
		bubbleOf(t, name, emptyPages, func(b *bench) {
			s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapCancelRunning })
			holder, r := b.Overdue(0, stagetest.Late+time.Hour, stagetest.Of(s)),
				b.Overdue(1, stagetest.Late, stagetest.Of(s))
			if c.lease > 0 {
				b.Own(holder, c.lease)
			}
			b.Write(s.TakeSlot(holder.ID))
			b.Spoil(holder.Ref())
			b.RequireStep(b.sweep(r), c.step)
		})
	}
	bubbleOf(t, "a queued job that cannot be read does not hold up the next one", emptyPages, func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		holder := b.Overdue(0, stagetest.Late+time.Hour, stagetest.Of(s))
		b.Write(s.TakeSlot(holder.ID))
		first, second := b.Overdue(1, stagetest.Late+time.Minute, stagetest.Of(s)),
			b.Overdue(2, stagetest.Late, stagetest.Of(s))
		b.RequireStep(b.sweep(first), job.StepPark)
		b.RequireStep(b.sweep(second), job.StepPark)
		b.Spoil(first.Ref())
		_, w := job.FinishStop(func() job.Row { r := holder; r.Stop = job.StopCancel; return r }(), time.Now())
		w.When = nil
		b.Write(w)
		b.Must(b.engine.Ended(b.Context(), b.Row(holder.Key)))
		b.RequireFired(b.Row(second.Key))
	})
}

//proof:of F12
func TestRecurrer_CountsFailuresInARow(t *testing.T) {
	t.Parallel()
	ended := func(b *bench, w *engine.Engine, s schedule.Schedule, n int, status job.Status) {
		b.Helper()
		if err := w.Ended(b.Context(),
			jobtest.Row(n, time.Now(), time.Now(), stagetest.Of(s),
				func(r *job.Row) { r.Status = status })); err != nil {
			b.Fatal(err)
		}
	}
	bubbleOf(t, "a success ends a count of failures that another process has just begun", emptyPages, func(b *bench) {
		s, other := b.Rule(func(s *schedule.Schedule) { s.PauseAfter = 2 }), b.Engine()
		ended(b, other, s, 0, job.Succeeded)
		ended(b, b.engine, s, 1, job.Dead)
		ended(b, other, s, 2, job.Succeeded)
		ended(b, b.engine, s, 3, job.Dead)
		if now := b.Schedule(s.Key); now.Failures != 1 || now.Paused != nil {
			b.Errorf("%d failures, paused %+v", now.Failures, now.Paused)
		}
	})
	bubbleOf(t, "a dead job counts for a schedule that was edited a moment ago", emptyPages, func(b *bench) {
		s := b.Rule()
		ended(b, b.engine, s, 0, job.Succeeded)
		edited := s
		edited.PauseAfter = 1
		after, writes, err := schedule.Edit(s, edited, nil, stagetest.Now())
		b.Must(err)
		b.Write(writes[0])
		ended(b, b.engine, after, 1, job.Dead)
		if now := b.Schedule(s.Key); now.Paused == nil {
			b.Errorf("%d failures, not paused", now.Failures)
		}
	})
}

func TestRecurrer_SkipsJobsAsALiftedPauseSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed string
		last   bool // it is the last time of the schedule under the pause
		step   job.Step
	}{
		{schedule.MissedDrop, true, recur.Skipped}, {schedule.MissedLast, false, recur.Skipped},
		{schedule.MissedLast, true, job.StepFire}, {schedule.MissedAll, false, job.StepFire},
	} {
		name := fmt.Sprintf("missed %s, the last time under the pause: %v, comes to %s", c.missed, c.last, c.step)
		bubbleOf(t, name, emptyPages, func(b *bench) {
			s := b.Rule()
			ago := 10 * time.Minute
			if !c.last {
				ago = 3 * time.Hour
			}
			now := stagetest.Now()
			b.Must(b.Store.PutPause(b.Context(), s.Tenant,
				job.Pause{Scope: job.PauseAll, Since: now.Add(-4 * time.Hour), Missed: c.missed}))
			r := b.Overdue(0, ago, stagetest.Of(s), func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
			if c.last {
				r.NominalAt = now.Truncate(time.Hour) // the next time is an hour later
				b.Put(r)
			}
			b.Must(b.Store.DeletePause(b.Context(), s.Tenant, job.PauseAll, time.Now()))
			step, err := b.engine.Parked(b.Context(), r.Key)
			b.Must(err)
			b.RequireStep(step, c.step)
			if now := b.Row(r.Key); c.step == recur.Skipped && now.Reason.Code != job.CodePaused {
				b.Errorf("it is %s: %v", now.Status, now.Reason)
			}
		})
	}
}

//proof:of F40
func TestRecurrer_RunsAJobThatIsDueWhenAPauseOfItsTaskEnds(t *testing.T) {
	t.Parallel()
	bubbleOf(t, "due at the end of the pause", emptyPages, func(b *bench) {
		s := b.Rule()
		r := b.Overdue(0, time.Minute, stagetest.Of(s), func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
		if err := b.Store.PutPause(b.Context(), s.Tenant, job.Pause{
			Scope: job.PauseAll, Since: r.DueAt.Add(-time.Hour), Until: r.DueAt, Missed: schedule.MissedDrop,
		}); err != nil {
			b.Fatal(err)
		}
		step, err := b.engine.Parked(b.Context(), r.Key)
		b.Must(err)
		b.RequireStep(step, job.StepFire)
	})
}

func TestRecurrer_RecognizesItsOwnWrite(t *testing.T) {
	t.Parallel()
	bubbleOf(t, "a dead job is counted once after a lost answer and pauses the schedule", emptyPages, func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.PauseAfter = 1 })
		r := jobtest.Row(0, time.Now(), time.Now(), stagetest.Of(s), stagetest.Dead)
		b.Twice(schedule.WriteCountDead)
		b.Must(b.engine.Ended(b.Context(), r))
		if now := b.Schedule(s.Key); now.Paused == nil || now.Failures != 1 {
			b.Errorf("after %d failures: %+v", now.Failures, now.Paused)
		}
	})
}
