package decide_test

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/limit"
	"punctual/shared/schedule"
)

// pause pauses a job and returns its row as it then is.
func (b *bench) pause(r job.Row) job.Row {
	b.Helper()
	after, w := job.PauseRow(r, b.Claim(r.Key), job.OwnPause{By: "ada", Since: stagetest.Now()}, stagetest.Now())
	b.Write(w)
	if after.Status == job.Scheduled {
		b.Write(job.Fence(r, b.Claim(r.Key), r.DueAt, stagetest.Now()))
	}
	return after
}

func TestDecider_StartsNoPausedJob(t *testing.T) {
	t.Parallel()
	bubble(t, "whose wake-up an older write has left due", func(b *bench) {
		r := b.pause(b.Overdue(1, stagetest.Late))
		after, w := job.Rewake(r, stagetest.Now(), stagetest.Now(), 0)
		b.Write(w)
		b.RequireStep(b.sweep(after), job.StepPark)
		b.RequireSilence()
		if is := b.Row(r.Key); !is.IsPaused() || is.WakeAt.Before(stagetest.Now().AddDate(50, 0, 0)) {
			b.Errorf("it wakes up at %s", is.WakeAt)
		}
	})
	bubble(t, "whose old firing a worker has released", func(b *bench) {
		r := b.pause(b.Overdue(1, stagetest.Late))
		step, err := b.engine.Reevaluate(b.Context(), r.Key, r.Version, r.Attempt)
		b.Must(err)
		b.RequireStep(step, job.StepPark)
		b.RequireSilence()
		if is := b.Row(r.Key); !is.WakeAt.Equal(r.WakeAt) {
			b.Errorf("it wakes up at %s, and did at %s", is.WakeAt, r.WakeAt)
		}
	})
	bubble(t, "under a pause of everything, whose end starts it no more", func(b *bench) {
		b.Pause(job.PauseAll, time.Time{})
		r := b.Overdue(1, stagetest.Late)
		b.RequireStep(b.sweep(r), job.StepPark)
		r = b.pause(b.Row(r.Key))
		b.Lift(job.PauseAll)
		time.Sleep(time.Minute)
		step, err := b.engine.Parked(b.Context(), r.Key)
		b.Must(err)
		b.RequireStep(step, job.StepNothing)
		b.RequireSilence()
	})
}

func TestDecider_EndsAPausedJobAtItsDeadline(t *testing.T) {
	t.Parallel()
	within := func(r *job.Row) { r.StartWithin = 2 * stagetest.Late }
	bubble(t, "start_within", func(b *bench) {
		r := b.pause(b.Overdue(1, stagetest.Late, within))
		time.Sleep(time.Until(r.WakeAt))
		b.RequireStep(b.sweep(r), job.StepExpire)
		if is := b.Row(r.Key); is.Status != job.Expired || is.Reason.Code != job.CodeStartWithin {
			b.Errorf("it is %s, %+v", is.Status, is.Reason)
		}
	})
	bubble(t, "expire_after, where a lost start has made start_within void", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, within, func(r *job.Row) { r.ExpiryAt = r.DueAt.Add(time.Hour) })
		b.Own(r, time.Second)
		time.Sleep(2 * time.Second)
		r = b.pause(r)
		time.Sleep(time.Until(r.WakeAt))
		b.RequireStep(b.sweep(r), job.StepPark)
		r = b.Row(r.Key)
		time.Sleep(time.Until(r.WakeAt))
		b.RequireStep(b.sweep(r), job.StepExpire)
		if is := b.Row(r.Key); is.Status != job.Expired || is.Reason.Code != job.CodeExpireAfter {
			b.Errorf("it is %s, %+v", is.Status, is.Reason)
		}
	})
	bubble(t, "a stop whose process ended before the job did", func(b *bench) {
		r := b.pause(b.Overdue(1, stagetest.Late))
		stopped, w := job.RequestStop(r, job.StopCancel, job.Reason{}, stagetest.Now())
		b.Write(w)
		b.RequireStep(b.sweep(stopped), job.StepFinishStop)
		if is := b.Row(r.Key); is.Status != job.Cancelled {
			b.Errorf("it is %s", is.Status)
		}
	})
	bubble(t, "a lost start that fails its attempt", func(b *bench) {
		r := b.Overdue(1, stagetest.Late, func(r *job.Row) { r.Retry.FailOnLost = true })
		b.Own(r, time.Second)
		time.Sleep(2 * time.Second)
		b.RequireStep(b.sweep(b.pause(r)), job.StepRecordLost)
		if len(b.Received(contract.ReportQueue)) != 1 {
			b.Error("its outcome is not reported")
		}
	})
}

func TestDecider_EndsAPausedJobThatItsScheduleHasGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempt int64
		gone    bool
		step    job.Step
		status  job.Status
	}{
		"deleted":          {1, true, "skip", job.Skipped},
		"deleted, a retry": {2, true, job.StepFinishStop, job.Cancelled},
		"still there":      {1, false, job.StepPark, job.Scheduled},
	} {
		bubble(t, name, func(b *bench) {
			s := b.Rule()
			r := b.pause(b.Overdue(1, stagetest.Late, stagetest.Of(s), func(r *job.Row) { r.Attempt = c.attempt }))
			if c.gone {
				_, w := schedule.Delete(s, nil, stagetest.Now())
				b.Write(w...)
			}
			time.Sleep(time.Until(r.WakeAt))
			b.RequireStep(b.sweep(r), c.step)
			b.RequireSilence()
			is := b.Row(r.Key)
			if is.Status != c.status {
				b.Errorf("it is %s", is.Status)
			}
			if wait := is.WakeAt.Sub(stagetest.Now()); is.Status == job.Scheduled && wait > contract.MaxPostpone {
				b.Errorf("it wakes up after %s", wait)
			}
		})
	}
}

// A paused job holds no permit and no position, so the next one goes on in its stead.
func TestDecider_LetsTheNextGoBeforeAPausedJob(t *testing.T) {
	t.Parallel()
	bubble(t, "among those that wait for a permit", func(b *bench) {
		under := job.LimitKey{Name: "github"}
		key := limit.Key{Tenant: jobtest.Tenant, LimitKey: under}
		_, err := b.Store.UpdateLimit(b.Context(), key.Tenant, under.Name, stagetest.Now(),
			func(*limit.Limit) (limit.Limit, error) { return limit.Limit{MaxRunning: 1}, nil })
		b.Must(err)
		limited := func(r *job.Row) { r.Limits = job.LimitsOf(under) }
		woken := b.Overdue(1, time.Hour, limited)
		next, write := job.ParkForLimit(b.Overdue(2, time.Minute, limited), 1, stagetest.Now())
		b.Write(write, key.MarkWaiting(stagetest.Now()))
		b.engine.Paused(b.Context(), b.pause(woken))
		b.RequireFired(b.Row(next.Key))
	})
	bubble(t, "among those that wait for their turn", func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.Overlap, s.Before = schedule.OverlapBufferAll, nil })
		at := stagetest.Now().Truncate(time.Hour)
		of := func(ago time.Duration) job.Row {
			r := jobtest.Row(1, at.Add(-ago), at.Add(-ago), stagetest.Of(s))
			r.Key.ID = s.JobID(r.NominalAt)
			return b.Put(r)
		}
		s.CreatedAt = at.Add(-3 * time.Hour)
		b.Overwrite(s.Ref(), s.Item())
		first, next := of(2*time.Hour), of(time.Hour)
		b.RequireStep(b.sweep(next), job.StepPark)
		next = b.Row(next.Key)
		if !next.QueuedBehind {
			b.Fatalf("it does not wait: %+v", next.WakeUp)
		}
		b.engine.Paused(b.Context(), b.pause(first))
		b.RequireFired(b.Row(next.Key))
	})
	bubble(t, "where only one may wait", func(b *bench) {
		s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferOne })
		holder, first := b.Overdue(1, time.Hour, stagetest.Of(s)), b.Overdue(2, time.Minute, stagetest.Of(s))
		b.Write(s.TakeSlot(holder.ID))
		b.RequireStep(b.sweep(first), job.StepPark)
		b.pause(b.Row(first.Key))
		next := b.Overdue(3, time.Second, stagetest.Of(s))
		b.RequireStep(b.sweep(next), job.StepPark)
		slot, err := b.Store.Slot(b.Context(), s.Key)
		b.Must(err)
		if slot.Waiting != next.ID || !b.Row(next.Key).QueuedBehind {
			b.Errorf("%s waits, not %s", slot.Waiting, next.ID)
		}
	})
}
