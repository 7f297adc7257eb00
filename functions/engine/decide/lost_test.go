package decide_test

import (
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// repeated makes the next write of that name happen twice, as an SDK does that never saw the
// first answer; what the second is told is the first one's own effect.
func (b *bundle) repeated(write string) {
	done := false
	b.w.SetFaults(func(c memory.Call) memory.Fault {
		first := !done && c.Op == memory.TableWrite && c.Name == write
		done = done || first
		return memory.Fault{Twice: first}
	})
	b.Cleanup(func() {
		if !done {
			b.Errorf("nothing was written by the name of %s", write)
		}
	})
}

func TestAnActWhoseWriteMeetsItsOwnLostFirstTryGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	expiring := func(r *job.Row) { r.StartWithin = time.Second }
	parked := func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt }
	for name, c := range map[string]struct {
		write  string
		change func(*job.Row)
		step   job.Step
		queue  string
		sent   int
		status job.Status
	}{
		"firing again":     {"row.rewake", nil, job.StepFire, firingQueue, 1, job.Scheduled},
		"unparking":        {"row.unpark", parked, job.StepFire, firingQueue, 1, job.Scheduled},
		"paying a letter":  {"row.rewake_owing", dead, job.StepPayOwed, contract.RedriveQueue, 1, job.Dead},
		"expiring":         {"row.stop", expiring, job.StepExpire, firingQueue, 0, job.Expired},
		"expiring, at end": {"row.finish_stop", expiring, job.StepExpire, firingQueue, 0, job.Expired},
		"stopping":         {"row.finish_stop", func(r *job.Row) { r.Stop = job.StopCancel }, job.StepFinishStop, firingQueue, 0, job.Cancelled},
	} {
		bubble(t, name, func(b *bundle) {
			// Another run of its schedule stands behind it: whoever ends the job wakes that.
			s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferOne })
			r := b.overdue(0, found, func(r *job.Row) {
				of(s)(r)
				if c.change != nil {
					c.change(r)
				}
			})
			next := b.put(jobtest.Row(1, time.Now(), time.Now(), of(s), func(r *job.Row) { r.Parked, r.Behind, r.WakeAt = true, true, r.DueAt }))
			b.write(s.TakeSlot(r.ID))
			b.write(s.Wait(next.ID, schedule.Slot{Holder: r.ID}))

			b.repeated(c.write)
			b.requireStep(b.sweep(r), c.step)
			if now := b.row(r.Key); now.Status != c.status {
				b.Errorf("it is %s", now.Status)
			}
			sent := c.sent
			if c.status == job.Expired || c.status == job.Cancelled {
				sent++ // the one behind it
			}
			if got := b.drain(c.queue); len(got) != sent {
				b.Errorf("%d messages were sent, want %d", len(got), sent)
			}
		})
	}
	bubble(t, "repeating a report", func(b *bundle) {
		r := b.overdue(0, found)
		claim := b.own(r, time.Second)
		b.write(job.RecordOutcome(r.Key, r.Attempt, claim.Token, job.Outcome{Kind: job.OutcomeSucceeded}))
		b.repeated("row.rewake")
		b.requireStep(b.sweep(r), job.StepRepeatReport)
		if got := b.drain(contract.ReportQueue); len(got) != 1 {
			b.Errorf("%d reports were sent", len(got))
		}
	})
	bubble(t, "counting a death pauses the schedule", func(b *bundle) {
		s := b.rule(func(s *schedule.Schedule) { s.PauseAfter = 1 })
		r := jobtest.Row(0, time.Now(), time.Now(), of(s), dead)
		b.repeated("schedule.count_dead")
		if err := b.waker.Ended(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		if now, err := b.store.Schedule(b.Context(), s.Key); err != nil || now.Paused == nil || now.Failures != 1 {
			b.Errorf("after %d failures: %+v, %v", now.Failures, now.Paused, err)
		}
	})
}
