package decide_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

func wakeNow() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// rule puts an hourly schedule that was made an hour ago, changed as each says.
func (b *bundle) rule(change ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	cron := "0 * * * *"
	s := schedule.Schedule{Key: schedule.Key{Tenant: jobtest.Tenant, Name: "rule"}, Spec: calendar.Spec{Cron: &cron}}
	for _, f := range change {
		f(&s)
	}
	s, w, err := schedule.Create(nil, s, wakeNow().Add(-time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	s.Next = wakeNow().Add(time.Hour)
	w.Put = s.Item()
	b.write(w)
	return s
}

func of(s schedule.Schedule) func(*job.Row) {
	return func(r *job.Row) { r.ScheduleID, r.Epoch, r.NominalAt = s.Name, s.Epoch, r.DueAt }
}

func attemptTwo(r *job.Row) { r.Attempt = 2 }

func TestAWakeUpAsksTheSchedule(t *testing.T) {
	t.Parallel()
	pause := func(s schedule.Schedule) []item.Write {
		_, w := schedule.PauseSchedule(s, schedule.Pause{}, wakeNow())
		return []item.Write{w}
	}
	remove := func(s schedule.Schedule) []item.Write {
		_, w := schedule.Delete(s, nil, wakeNow())
		return w[:1]
	}
	edit := func(s schedule.Schedule) []item.Write {
		_, w, err := schedule.Edit(s, s, nil, wakeNow())
		if err != nil {
			t.Fatal(err)
		}
		return w[:1]
	}
	resumed := func(s schedule.Schedule) []item.Write { // promotion has not come to it yet
		s.Epoch, s.Next = 2, wakeNow().Add(-time.Hour)
		return []item.Write{{Ref: s.Ref(), Name: "test.put", Put: s.Item()}}
	}
	for name, c := range map[string]struct {
		write  func(schedule.Schedule) []item.Write
		change func(*job.Row)
		step   job.Step
		status job.Status
		reason string
	}{
		"current":                 {nil, nil, job.StepFire, job.Scheduled, ""},
		"paused":                  {pause, nil, job.StepPark, job.Scheduled, ""},
		"paused, while retrying":  {pause, attemptTwo, job.StepPark, job.Scheduled, ""},
		"deleted":                 {remove, nil, decide.Skipped, job.Skipped, job.CodeDeleted},
		"deleted, while retrying": {remove, attemptTwo, job.StepFinishStop, job.Cancelled, job.CodeDeleted},
		"edited":                  {edit, nil, decide.Skipped, job.Skipped, job.CodeEdited},
		"edited, while retrying":  {edit, attemptTwo, job.StepFire, job.Scheduled, ""},
		"edited, window passed":   {edit, func(r *job.Row) { r.StartWithin = time.Second }, decide.Skipped, job.Skipped, job.CodeEdited},
		"to be adopted":           {resumed, nil, decide.Left, job.Scheduled, ""},
	} {
		bubble(t, name, func(b *bundle) {
			s := b.rule()
			r := b.overdue(0, found, of(s), func(r *job.Row) {
				if c.change != nil {
					c.change(r)
				}
			})
			if c.write != nil {
				if err := b.store.Commit(b.Context(), c.write(s)...); err != nil {
					b.Fatal(err)
				}
			}
			b.requireStep(b.sweep(r), c.step)
			now := b.row(r.Key)
			if now.Status != c.status || now.Reason.Code != c.reason {
				b.Errorf("it is %s: %v", now.Status, now.Reason)
			}
			if now.Parked != (c.step == job.StepPark) || now.Status.Final() == !now.WakeAt.IsZero() {
				b.Errorf("parked %v, wake-up %s", now.Parked, now.WakeAt)
			}
			if c.step != job.StepFire {
				b.requireSilence()
			}
			if now.Status == job.Skipped && b.claim(r.Key).Token == 0 {
				b.Error("it was not fenced first")
			}
		})
	}
	bubble(t, "a worker that starts it while it is to be skipped goes on", func(b *bundle) {
		s := b.rule()
		r := b.overdue(0, found, of(s))
		if err := b.store.Commit(b.Context(), remove(s)...); err != nil {
			b.Fatal(err)
		}
		b.once("row.skip", func() { b.own(r, contract.Lease) })
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		if now := b.row(r.Key); now.Status != job.Scheduled {
			b.Errorf("it is %s", now.Status)
		}
	})
	bubble(t, "nobody takes an attempt over between its fence and the skip", func(b *bundle) {
		s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip })
		holder := b.overdue(1, found, of(s))
		b.write(s.TakeSlot(holder.ID))
		r := b.overdue(0, found, of(s))
		b.once("row.skip", func() { // the holder ends, and a second firing of the job comes
			d, err := job.Settle(holder, 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			b.write(d.Write)
			o := job.Owner{Worker: "w1", Nonce: "n1", LeaseUntil: time.Now().Add(contract.Lease), DueAt: r.DueAt}
			if err := b.store.Put(b.Context(), job.ClaimNew(r.Key, 1, o)); err != nil { // it was fenced
				b.write(job.TakeOver(r.Key, b.claim(r.Key), o, time.Now()))
			}
		})
		b.requireStep(b.sweep(r), job.StepWaitForLease)
		if now, c := b.row(r.Key), b.claim(r.Key); now.Status != job.Scheduled || !c.Live(1, time.Now()) {
			b.Errorf("it is %s, with the claim %+v", now.Status, c)
		}
	})
	bubble(t, "an edit that comes between leaves it to the new epoch", func(b *bundle) {
		s := b.rule()
		r := b.overdue(0, found, of(s))
		if err := b.store.Commit(b.Context(), edit(s)...); err != nil {
			b.Fatal(err)
		}
		b.once("row.skip", func() {
			now := s
			now.Epoch, now.Next = 3, r.NominalAt
			b.write(item.Write{Ref: s.Ref(), Name: "test.put", Put: now.Item()})
		})
		b.requireStep(b.sweep(r), decide.Left)
	})
}

func TestRunsThatMayNotOverlap(t *testing.T) {
	t.Parallel()
	policy := func(o schedule.Overlap) func(*schedule.Schedule) {
		return func(s *schedule.Schedule) { s.Overlap = o }
	}
	hold := func(b *bundle, s schedule.Schedule) job.Row {
		h := b.overdue(9, found+time.Hour, of(s), func(r *job.Row) { r.Status = job.Running })
		b.write(s.TakeSlot(h.ID))
		b.own(h, 24*time.Hour)
		return h
	}
	end := func(b *bundle, h job.Row) {
		d, err := job.Settle(b.row(h.Key), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		b.write(d.Write)
		if err := b.waker.Ended(b.Context(), d.After); err != nil {
			b.Fatal(err)
		}
	}
	bubble(t, "skip", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapSkip))
		hold(b, s)
		r := b.overdue(0, found, of(s))
		b.requireStep(b.sweep(r), decide.Skipped)
		if now := b.row(r.Key); now.Status != job.Skipped || now.Reason.Code != job.CodeOverlap {
			b.Errorf("it is %s: %v", now.Status, now.Reason)
		}
	})
	bubble(t, "buffer_one: one waits, the next is skipped, and the end of the first wakes the one", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapBufferOne))
		h := hold(b, s)
		one, two := b.overdue(0, found, of(s)), b.overdue(1, found, of(s))
		b.requireStep(b.sweep(one), job.StepPark)
		b.requireStep(b.sweep(one), job.StepPark) // again, of a lagging entry
		b.requireStep(b.sweep(two), decide.Skipped)
		b.requireSilence()
		end(b, h)
		b.requireFired(b.row(one.Key))
		if b.row(one.Key).Parked {
			b.Error("it is still parked")
		}
	})
	bubble(t, "buffer_all: all wait, and each end wakes the oldest", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapBufferAll))
		h := hold(b, s)
		one, two := b.overdue(0, found+time.Minute, of(s)), b.overdue(1, found, of(s))
		b.requireStep(b.sweep(two), job.StepPark)
		b.requireStep(b.sweep(one), job.StepPark)
		if keys, err := b.store.Lines(b.Context()); err != nil || len(keys) != 1 || keys[0] != s.Key {
			b.Errorf("lines: %v, %v", keys, err)
		}
		end(b, h)
		b.requireFired(b.row(one.Key))
		b.write(s.TakeSlotFrom(one.ID, h.ID))
		end(b, one)
		b.requireFired(b.row(two.Key))
		b.write(s.TakeSlotFrom(two.ID, one.ID))
		end(b, two)
		if got := b.drain(contract.DispatchQueue); len(got) != 0 { // it comes later: the index lags
			b.Errorf("an empty line is looked at at once: %v", got)
		}
	})
	bubble(t, "cancel_running: the newest waits for the end of the first", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapCancelRunning))
		h := hold(b, s)
		one, two, late := b.overdue(0, found+time.Minute, of(s)), b.overdue(1, found, of(s)), b.overdue(2, found+time.Hour, of(s))
		b.requireStep(b.sweep(one), job.StepPark)
		if now := b.row(h.Key); now.Stop != job.StopCancel || !b.claim(h.Key).Cancel {
			b.Errorf("the first is not asked to stop: %+v", now)
		}
		b.requireStep(b.sweep(two), job.StepPark)
		if now := b.row(one.Key); now.Status != job.Skipped || now.Reason.Code != job.CodeOverlap {
			b.Errorf("the one that waited is %s: %v", now.Status, now.Reason)
		}
		b.requireStep(b.sweep(late), decide.Skipped)
		d, err := job.Settle(b.row(h.Key), 1, job.Outcome{Kind: job.OutcomeFailed}, time.Now())
		if err != nil || d.After.Status != job.Cancelled {
			b.Fatalf("%s, %v", d.After.Status, err)
		}
		b.write(d.Write)
		if err := b.waker.Ended(b.Context(), d.After); err != nil {
			b.Fatal(err)
		}
		b.requireFired(b.row(two.Key))
	})
	bubble(t, "one that leaves the line without having run does not make the others go, one after the other", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapBufferAll))
		h := hold(b, s)
		one, two := b.overdue(0, found+time.Minute, of(s)), b.overdue(1, found, of(s))
		b.requireStep(b.sweep(one), job.StepPark)
		b.requireStep(b.sweep(two), job.StepPark)
		_, w := schedule.Delete(s, nil, wakeNow())
		b.write(w[0])
		time.Sleep(2 * time.Second)
		if step, err := b.waker.Parked(b.Context(), one.Key); err != nil || step != decide.Skipped {
			b.Fatalf("%q, %v", step, err)
		}
		if now := b.row(two.Key); !now.Behind || b.row(h.Key).Status != job.Running {
			b.Errorf("the other is %s, behind %v", now.Status, now.Behind)
		}
	})
	bubble(t, "a first that ends while the next lines up wakes it", func(b *bundle) {
		s := b.rule(policy(schedule.OverlapBufferAll))
		h := hold(b, s)
		r := b.overdue(0, found, of(s))
		b.once("row.park", func() {
			d, err := job.Settle(b.row(h.Key), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
			if err != nil {
				b.Error(err)
			}
			b.write(d.Write)
		})
		b.sweep(r)
		b.requireFired(b.row(r.Key))
	})
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("a crash anywhere while it lines up is made good, the last answer lost: %v", lost), func(b *bundle) {
			s := b.rule(policy(schedule.OverlapBufferOne))
			var h, r job.Row
			b.crashes(lost, func(n int) {
				h = b.overdue(100+n, found+time.Hour, of(s))
				slot, _ := b.store.Slot(b.Context(), s.Key)
				b.write(item.Write{Ref: s.SlotRef(), Name: "test.slot", Set: map[string]any{"holder": string(h.ID), "waiting": nil}})
				_ = slot
				r = b.overdue(n, found, of(s))
			}, func() error {
				_, err := b.waker.Entry(b.Context(), entry(r))
				return err
			}, func(n int) {
				time.Sleep(contract.Grace + time.Minute)
				now := b.row(r.Key)
				if now.WakeAt.IsZero() {
					b.Fatalf("crashed at call %d: nothing brings it back", n)
				}
				if keys, err := b.store.Lines(b.Context()); now.Parked && (err != nil || len(keys) == 0) {
					b.Fatalf("crashed at call %d: it is in the line, and nobody knows, %v", n, err)
				}
				d, err := job.Settle(b.row(h.Key), 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
				if err != nil {
					b.Fatal(err)
				}
				b.write(d.Write)
				if now.Parked {
					_, err = b.waker.Parked(b.Context(), r.Key)
				} else {
					_, err = b.waker.Entry(b.Context(), entry(now))
				}
				if err != nil || !firedOne(b, r) {
					b.Errorf("crashed at call %d: it is not fired, %v", n, err)
				}
			})
		})
	}
}

func TestASchedulesLastRun(t *testing.T) {
	t.Parallel()
	bubble(t, "one too many is skipped and ends the schedule", func(b *bundle) {
		one := 1
		s := b.rule(func(s *schedule.Schedule) { s.Spec.MaxRuns = &one })
		first, second := b.overdue(0, found, of(s)), b.overdue(1, found, of(s))
		b.requireStep(b.sweep(first), job.StepFire)
		if err := b.store.Commit(b.Context(), s.CountRun(first)...); err != nil {
			b.Fatal(err)
		}
		time.Sleep(contract.Grace + time.Minute)
		b.requireStep(b.sweep(b.row(first.Key)), job.StepFire) // it was counted: it may still run
		b.requireStep(b.sweep(second), decide.Skipped)
		now, err := b.store.Schedule(b.Context(), s.Key)
		if err != nil || !now.Next.IsZero() || now.EndedBy != job.CodeMaxRuns {
			b.Errorf("next %s, ended by %q, %v", now.Next, now.EndedBy, err)
		}
	})
}

func TestFailuresInARow(t *testing.T) {
	t.Parallel()
	bubble(t, "are counted once each, end with a success, and pause at the limit", func(b *bundle) {
		s := b.rule(func(s *schedule.Schedule) { s.PauseAfter = 2 })
		ended := func(n int, status job.Status, change ...func(*job.Row)) schedule.Schedule {
			b.Helper()
			r := jobtest.Row(n, time.Now(), time.Now(), append([]func(*job.Row){of(s)}, change...)...)
			r.Status = status
			for range 2 {
				if err := b.waker.Ended(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			now, err := b.store.Schedule(b.Context(), s.Key)
			if err != nil {
				b.Fatal(err)
			}
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

// spoil makes an item one that nobody can read.
func (b *bundle) spoil(ref item.Ref) {
	b.Helper()
	b.write(item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{"schema_v": int64(99)}})
}

func TestWaker_UnreadableNeighbours(t *testing.T) {
	t.Parallel()
	bubble(t, "a job whose schedule cannot be read waits, and runs once it can be", func(b *bundle) {
		s := b.rule()
		r := b.overdue(0, found, of(s))
		b.spoil(s.Ref())
		b.requireStep(b.sweep(r), decide.Left)
		after := b.row(r.Key)
		if !after.WakeAt.Equal(time.Now().Add(contract.Grace)) || after.Postponed != 1 {
			b.Errorf("it wakes at %s", after.WakeAt)
		}
		b.write(item.Write{Ref: s.Ref(), Name: "test.mend", Set: map[string]any{"schema_v": int64(1)}})
		time.Sleep(contract.Grace)
		b.requireStep(b.sweep(after), job.StepFire)
	})
	bubble(t, "the end of a job whose schedule cannot be read is no fault of the job", func(b *bundle) {
		s := b.rule(func(s *schedule.Schedule) { s.PauseAfter = 1 })
		b.spoil(s.Ref())
		if err := b.waker.Ended(b.Context(), jobtest.Row(0, time.Now(), time.Now(), of(s), dead)); err != nil {
			b.Error(err)
		}
	})
	for _, c := range []struct {
		lease time.Duration // of the one that holds the slot; 0: nobody is at it
		step  job.Step
	}{{0, job.StepFire}, {time.Hour, job.StepPark}} {
		name := fmt.Sprintf("a slot whose holder cannot be read is free unless a worker is at it: %v left of its lease", c.lease)
		bubble(t, name, func(b *bundle) {
			s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapCancelRunning })
			holder, r := b.overdue(0, found+time.Hour, of(s)), b.overdue(1, found, of(s))
			if c.lease > 0 {
				b.own(holder, c.lease)
			}
			b.write(s.TakeSlot(holder.ID))
			b.spoil(holder.Ref())
			b.requireStep(b.sweep(r), c.step)
		})
	}
	bubble(t, "one in a line that cannot be read does not keep those behind it", func(b *bundle) {
		s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		holder := b.overdue(0, found+time.Hour, of(s))
		b.write(s.TakeSlot(holder.ID))
		first, second := b.overdue(1, found+time.Minute, of(s)), b.overdue(2, found, of(s))
		b.requireStep(b.sweep(first), job.StepPark)
		b.requireStep(b.sweep(second), job.StepPark)
		b.spoil(first.Ref())
		_, w := job.FinishStop(func() job.Row { r := holder; r.Stop = job.StopCancel; return r }(), time.Now())
		w.When = nil
		b.write(w)
		if err := b.waker.Ended(b.Context(), b.row(holder.Key)); err != nil {
			b.Fatal(err)
		}
		b.requireFired(b.row(second.Key))
	})
}

func TestWaker_ReadsThePausesForEveryoneOnceASecond(t *testing.T) {
	t.Parallel()
	bubble(t, "however many tenants' jobs it brings on", func(b *bundle) {
		reads := 0
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TableQuery && c.Ref.PK == job.PausesKey(job.Everyone) {
				reads++
			}
			return memory.Fault{}
		})
		once := 0 // a read may take several pages
		for n := range 50 {
			if n == 1 {
				once = reads
			}
			b.sweep(b.overdue(n, found, func(r *job.Row) { r.Tenant = tenant.ID(fmt.Sprint("t", n)) }))
		}
		if once == 0 || reads != once {
			b.Errorf("they were read with %d calls, once takes %d", reads, once)
		}
	})
}

func TestWaker_CountsFailuresInARow(t *testing.T) {
	t.Parallel()
	ended := func(b *bundle, w *decide.Waker, s schedule.Schedule, n int, status job.Status) {
		b.Helper()
		if err := w.Ended(b.Context(), jobtest.Row(n, time.Now(), time.Now(), of(s), func(r *job.Row) { r.Status = status })); err != nil {
			b.Fatal(err)
		}
	}
	bubble(t, "a success ends a row of failures that another process has just begun", func(b *bundle) {
		s, other := b.rule(func(s *schedule.Schedule) { s.PauseAfter = 2 }), b.another()
		ended(b, other, s, 0, job.Succeeded)
		ended(b, b.waker, s, 1, job.Dead)
		ended(b, other, s, 2, job.Succeeded)
		ended(b, b.waker, s, 3, job.Dead)
		if now, err := b.store.Schedule(b.Context(), s.Key); err != nil || now.Failures != 1 || now.Paused != nil {
			b.Errorf("%d failures, paused %+v, %v", now.Failures, now.Paused, err)
		}
	})
	bubble(t, "a death under an edit of this second counts", func(b *bundle) {
		s := b.rule()
		ended(b, b.waker, s, 0, job.Succeeded)
		edited := s
		edited.PauseAfter = 1
		after, writes, err := schedule.Edit(s, edited, nil, wakeNow())
		if err != nil {
			b.Fatal(err)
		}
		b.write(writes[0])
		ended(b, b.waker, after, 1, job.Dead)
		if now, err := b.store.Schedule(b.Context(), s.Key); err != nil || now.Paused == nil {
			b.Errorf("%d failures, not paused, %v", now.Failures, err)
		}
	})
}

func TestWhatALiftedPauseHadParked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed string
		last   bool // no later time of the schedule was due under the pause
		step   job.Step
	}{
		{schedule.MissedDrop, true, decide.Skipped}, {schedule.MissedLast, false, decide.Skipped}, {schedule.MissedLast, true, job.StepFire}, {schedule.MissedAll, false, job.StepFire},
	} {
		bubble(t, fmt.Sprintf("%s, the last: %v", c.missed, c.last), func(b *bundle) {
			s := b.rule()
			ago := 10 * time.Minute
			if !c.last {
				ago = 3 * time.Hour
			}
			now := wakeNow()
			if err := b.store.PutPause(b.Context(), s.Tenant, job.Pause{Scope: job.PauseAll, Since: now.Add(-4 * time.Hour), Missed: c.missed}); err != nil {
				b.Fatal(err)
			}
			r := b.overdue(0, ago, of(s), func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt })
			if c.last {
				r.NominalAt = now.Truncate(time.Hour) // the next is an hour later
				b.put(r)
			}
			if err := b.store.DeletePause(b.Context(), s.Tenant, job.PauseAll, time.Now()); err != nil {
				b.Fatal(err)
			}
			step, err := b.waker.Parked(b.Context(), r.Key)
			if err != nil {
				b.Fatal(err)
			}
			b.requireStep(step, c.step)
			if now := b.row(r.Key); c.step == decide.Skipped && now.Reason.Code != job.CodePaused {
				b.Errorf("it is %s: %v", now.Status, now.Reason)
			}
		})
	}
}
