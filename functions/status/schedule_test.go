package status_test

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/schedule"
)

func TestStatus_NotifiesTheScheduleOfAnEnd(t *testing.T) {
	t.Parallel()
	rule := func(b *bench) schedule.Schedule {
		return b.Create(stagetest.Schedule("rule", "0 0 1 1 *", func(s *schedule.Schedule) {
			s.PauseAfter, s.Overlap = 1, schedule.OverlapBufferOne
		}))
	}
	put := func(b *bench, s schedule.Schedule, n int, change func(*job.Row)) job.Row {
		return b.Put(jobtest.Row(n, time.Now(), time.Now(), stagetest.Of(s), change))
	}
	bubble(t, "an end fires the queued job, and a dead job pauses the schedule", func(b *bench) {
		s := rule(b)
		first := put(b, s, 0, func(*job.Row) {})
		next := put(b, s, 1, func(r *job.Row) { r.Parked, r.QueuedBehind, r.WakeAt = true, true, r.DueAt })
		for _, w := range []item.Write{s.TakeSlot(first.ID), s.Wait(next.ID, schedule.Slot{Holder: first.ID})} {
			b.Write(w)
		}
		b.report(b.ended(first, 1, success()))
		if n := b.Visible(stagetest.FiringQueue); n != 1 {
			b.Errorf("the next was not fired, but %d", n)
		}
		b.report(b.ended(next, 1, failure(permanent)))
		if now := b.Schedule(s.Key); now.Paused == nil ||
			now.Paused.By != schedule.ByPunctual {
			b.Errorf("%+v", now.Paused)
		}
	})
	bubble(t, "a redelivered report notifies the schedule that an earlier try did not reach", func(b *bench) {
		s := rule(b)
		r := put(b, s, 0, func(*job.Row) {})
		b.Fail(stagetest.Named(schedule.WriteCountDead))
		body := b.ended(r, 1, failure(permanent))
		if failed := b.handle(1, body); failed != "0" {
			b.Fatal("the report was done although its schedule does not know")
		}
		b.World.SetFaults(nil)
		if failed := b.handle(2, body); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		if now := b.Schedule(s.Key); now.Paused == nil {
			b.Errorf("%+v", now.Paused)
		}
	})
}
