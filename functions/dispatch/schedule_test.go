package dispatch_test

import (
	"testing"
	"time"

	"punctual/functions/engine/recur"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/message"
	"punctual/shared/schedule"
)

func TestDispatch_PromotesSchedules(t *testing.T) {
	t.Parallel()
	put := func(b *bench, change ...func(*schedule.Schedule)) schedule.Schedule {
		return b.Create(stagetest.Schedule("s", "* * * * *", change...))
	}
	bubble(t, "a message for the end of a pause resumes its schedule at that time", func(b *bench) {
		s := put(b)
		paused, w := schedule.PauseSchedule(s, schedule.Pause{Until: time.Now().Add(10 * time.Minute).UTC()},
			time.Now().UTC())
		b.Write(w)
		body := message.Encode(recur.Ask(paused.Key, paused.Paused.Until))
		if failed := b.handle(b.Context(), body); failed != "" || b.Schedule(s.Key).Paused == nil {
			b.Errorf("before: %q, %+v", failed, b.Schedule(s.Key).Paused)
		}
		if d, err := b.World.Queues().Depth(b.Context(), contract.DispatchQueue); err != nil || d.Delayed != 1 {
			b.Errorf("it was not sent to come later: %+v, %v", d, err)
		}
		time.Sleep(10 * time.Minute)
		if failed := b.handle(b.Context(), body); failed != "" || b.Schedule(s.Key).Paused != nil {
			b.Errorf("then: %q, %+v", failed, b.Schedule(s.Key).Paused)
		}
	})
	bubble(t, "lifting a pause promotes the schedules that it held", func(b *bench) {
		s := put(b)
		held, w := schedule.Hold(s, job.Pause{Since: time.Now().UTC()}, time.Now().UTC())
		b.Write(w)
		b.handle(b.Context(), message.Encode(message.Dispatch{V: 1, Slice: held.Slice()}))
		if now := b.Schedule(s.Key); now.Parked || !now.Next.After(time.Now().Add(29*time.Minute)) {
			b.Errorf("next %s, parked %v", now.Next, now.Parked)
		}
	})
	bubble(t, "the next queued job of a schedule is fired", func(b *bench) {
		s := put(b, func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		due := time.Now().Add(-time.Minute)
		r := jobtest.Row(0, due, due, func(r *job.Row) {
			r.ScheduleID, r.Epoch, r.NominalAt, r.Parked, r.QueuedBehind, r.WakeAt = s.Name, 1, due, true, true, due
		})
		b.Put(r)
		if failed := b.handle(b.Context(),
			message.Encode(message.Dispatch{V: 1, Slice: horizon.Line(jobtest.Tenant, "s")})); failed != "" {
			b.Error("it failed")
		}
		if now := b.Row(r.Key); now.Parked || now.QueuedBehind {
			b.Errorf("%+v", now)
		}
	})
	bubble(t, "a message about an unreadable schedule is not redelivered", func(b *bench) {
		s := put(b)
		i := s.Item()
		i["body"] = "{"
		b.Overwrite(s.Ref(), i)
		if failed := b.handle(b.Context(),
			message.Encode(message.Dispatch{V: 1, Slice: "promote#" + jobtest.Tenant + "#s"})); failed != "" {
			b.Error("it is redelivered")
		}
	})
}
