package decide_test

import (
	"testing"
	"time"

	"punctual/functions/engine/decide"
	"punctual/functions/engine/stop"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

func TestDecider_RecognizesItsOwnWrite(t *testing.T) {
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
		"fires once":   {job.WriteRewake, nil, job.StepFire, stagetest.FiringQueue, 1, job.Scheduled},
		"unparks once": {job.WriteUnpark, parked, job.StepFire, stagetest.FiringQueue, 1, job.Scheduled},
		"sends a dead letter": {job.WriteRewakeEnded, stagetest.Dead, job.StepEffects, contract.RedriveQueue, 1,
			job.Dead},
		"stops and expires": {job.WriteStop, expiring, job.StepExpire, stagetest.FiringQueue, 0, job.Expired},
		"expires":           {job.WriteFinishStop, expiring, job.StepExpire, stagetest.FiringQueue, 0, job.Expired},
		"finishes a stop": {job.WriteFinishStop, func(r *job.Row) { r.Stop = job.StopCancel }, job.StepFinishStop,
			stagetest.FiringQueue, 0, job.Cancelled},
	} {
		bubble(t, name+" after a lost answer", func(b *bench) {
			// Another job of its schedule is queued behind it, and is fired when it ends.
			s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferOne })
			r := b.Overdue(0, stagetest.Late, func(r *job.Row) {
				stagetest.Of(s)(r)
				if c.change != nil {
					c.change(r)
				}
			})
			next := b.Put(jobtest.Row(1, time.Now(), time.Now(), stagetest.Of(s),
				func(r *job.Row) { r.Parked, r.QueuedBehind, r.WakeAt = true, true, r.DueAt }))
			b.Write(s.TakeSlot(r.ID))
			b.Write(s.Wait(next.ID, schedule.Slot{Holder: r.ID}))

			b.Twice(c.write)
			b.RequireStep(b.sweep(r), c.step)
			if now := b.Row(r.Key); now.Status != c.status {
				b.Errorf("it is %s", now.Status)
			}
			sent := c.sent
			if c.status == job.Expired || c.status == job.Cancelled {
				sent++ // the firing of the queued job
			}
			if got := b.Received(c.queue); len(got) != sent {
				b.Errorf("%d messages were sent, want %d", len(got), sent)
			}
		})
	}
	bubble(t, "repeats a report once after a lost answer", func(b *bench) {
		r := b.Overdue(0, stagetest.Late)
		claim := b.Own(r, time.Second)
		b.Write(job.RecordOutcome(r.Key, r.Attempt, claim.Token, job.Outcome{Kind: job.OutcomeSucceeded}))
		b.Twice(job.WriteRewake)
		b.RequireStep(b.sweep(r), job.StepRepeatReport)
		if got := b.Received(contract.ReportQueue); len(got) != 1 {
			b.Errorf("%d reports were sent", len(got))
		}
	})
}

// A worker that died over a job has started it, whichever process ends the job then, and whatever an edit did in
// between.
func TestDecider_ShowsAStartWhoseWorkerDied(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, r job.Row) error{
		"of a job that is cancelled": func(b *bench, r job.Row) error {
			_, err := b.engine.Cancel(b.Context(), r.Key, func(job.Row, time.Time) error { return nil })
			return err
		},
		"of a job that expires": func(b *bench, r job.Row) error {
			b.sweep(r)
			return nil
		},
		"of a job that was edited and then cancelled": func(b *bench, r job.Row) error {
			edited, w, _ := job.Reschedule(r, job.Edit{}, time.Now())
			b.Write(w, job.Fence(r, b.Claim(r.Key), r.DueAt, time.Now()))
			_, err := b.engine.Cancel(b.Context(), edited.Key, func(job.Row, time.Time) error { return nil })
			return err
		},
	} {
		bubble(t, name, func(b *bench) {
			s := b.Rule()
			r := b.Overdue(0, stagetest.Late, stagetest.Of(s), func(r *job.Row) {
				r.ExpireAfter, r.ExpiryAt = time.Second, r.DueAt.Add(time.Second)
			})
			b.Own(r, -time.Second)
			b.Must(end(b, r))
			row := b.Row(r.Key)
			attempts, _, err := b.Store.Attempts(b.Context(), row, 0, 10)
			if err != nil || !row.Status.Final() || len(attempts) != 1 || attempts[0].Worker != "w1" ||
				attempts[0].Outcome != job.OutcomeLost || attempts[0].StartedAt.IsZero() {
				b.Errorf("it is %s after %+v, %v", row.Status, attempts, err)
			}
		})
	}
}

// A worker that died before its first heartbeat leaves no trace on the row. The claim knows of the start.
//
//proof:of F71
func TestDecider_TreatsALostStartAsAStart(t *testing.T) {
	t.Parallel()
	within := func(r *job.Row) { r.StartWithin = time.Second }
	fails := func(r *job.Row) { r.Retry = job.RetryPolicy{MaxAttempts: 1, FailOnLost: true} }
	settle := func(b *bench, r job.Row) {
		b.Helper()
		if got := b.Received(contract.ReportQueue); len(got) != 1 {
			b.Fatalf("%d reports were sent", len(got))
		}
		b.Must(b.engine.Settle(b.Context(), r.Key, r.Attempt, b.Claim(r.Key).Token, decide.Arrival{}))
	}
	bubble(t, "start_within does not end it", func(b *bench) {
		r := b.Overdue(0, stagetest.Late, within)
		b.Own(r, -time.Second)
		b.RequireStep(b.sweep(r), job.StepFire)
	})
	bubble(t, "that fails the job is settled without a worker, once", func(b *bench) {
		r := b.Overdue(0, stagetest.Late, within, fails)
		b.Own(r, -time.Second)
		b.Twice(job.WriteClaimOutcomeLost)
		b.RequireStep(b.sweep(r), job.StepRepeatReport) // its own write was found
		settle(b, r)
		row := b.Row(r.Key)
		if row.Status != job.Dead || row.Reason.Code != job.CodeWorkerLost || row.StartedAt.IsZero() ||
			!row.PendingEffects.DeadLetter() {
			b.Errorf("it is %s (%s), started at %s", row.Status, row.Reason.Code, row.StartedAt)
		}
	})
	bubble(t, "that fails the job is settled under a pause", func(b *bench) {
		r := b.Overdue(0, stagetest.Late, fails)
		b.Own(r, -time.Second)
		b.Pause(job.PauseAll, time.Time{})
		b.RequireStep(b.sweep(r), job.StepRecordLost)
		settle(b, r)
		if row := b.Row(r.Key); row.Status != job.Dead {
			b.Errorf("it is %s", row.Status)
		}
	})
	for name, c := range map[string]struct {
		change func(*schedule.Schedule)
		step   job.Step
		status job.Status
	}{
		"an edit of its schedule does not end it": {func(s *schedule.Schedule) { s.Epoch++ }, job.StepFire,
			job.Scheduled},
		"a delete of its schedule cancels it, as any that has started": {
			func(s *schedule.Schedule) { s.Epoch++; s.DeletedAt = stagetest.Now() }, job.StepFinishStop,
			job.Cancelled},
	} {
		bubble(t, name, func(b *bench) {
			s := b.Rule()
			r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
			b.Own(r, -time.Second)
			c.change(&s)
			b.Overwrite(s.Ref(), s.Item())
			b.RequireStep(b.sweep(r), c.step)
			row := b.Row(r.Key)
			if row.Status != c.status || c.status.Final() && row.StartedAt.IsZero() {
				b.Errorf("it is %s, started at %s", row.Status, row.StartedAt)
			}
		})
	}
	bubble(t, "no rule of its schedule skips it", func(b *bench) {
		s := b.Rule()
		r := b.Overdue(0, stagetest.Late, stagetest.Of(s))
		b.Own(r, -time.Second)
		stopper := stop.Stopper{Jobs: b.Store, Log: telemetry.Silent()}
		why := job.Reason{Code: job.CodeOverlap}
		_, err := stopper.Skip(b.Context(), r, why, false, time.Now(), schedule.Is(s))
		if store.Refused(err) == nil || b.Row(r.Key).Status != job.Scheduled {
			b.Errorf("it was skipped: %v", err)
		}
	})
}
