package dispatch_test

import (
	"testing"
	"time"

	"punctual/functions/engine/recur"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/message"
	"punctual/shared/schedule"
)

func TestDispatch_PromotesSchedules(t *testing.T) {
	t.Parallel()
	put := func(b *bench, change ...func(*schedule.Schedule)) schedule.Schedule {
		cron := "* * * * *"
		s := schedule.Schedule{Key: schedule.Key{Tenant: jobtest.Tenant, Name: "s"}, Spec: calendar.Spec{Cron: &cron},
			CatchUp: schedule.DefaultCatchUp,
			Template: schedule.Template{Settings: job.Settings{Task: "echo", Executor: "echo", Pool: "short",
				Priority: job.Normal,
				Timeout:  time.Minute, Retry: job.DefaultRetry}}}
		for _, f := range change {
			f(&s)
		}
		s, w, err := schedule.Create(nil, s, time.Now().UTC())
		if err == nil {
			err = b.Store.Put(b.Context(), w)
		}
		b.Must(err)
		return s
	}
	read := func(b *bench, s schedule.Schedule) schedule.Schedule {
		s, err := b.Store.Schedule(b.Context(), s.Key)
		b.Must(err)
		return s
	}
	bubble(t, "a message for the end of a pause resumes its schedule at that time", func(b *bench) {
		s := put(b)
		paused, w := schedule.PauseSchedule(s, schedule.Pause{Until: time.Now().Add(10 * time.Minute).UTC()},
			time.Now().UTC())
		b.Write(w)
		body := message.Encode(recur.Ask(paused.Key, paused.Paused.Until))
		if failed := b.handle(b.Context(), body); failed != "" || read(b, s).Paused == nil {
			b.Errorf("before: %q, %+v", failed, read(b, s).Paused)
		}
		if d, err := b.World.Queues().Depth(b.Context(), contract.DispatchQueue); err != nil || d.Delayed != 1 {
			b.Errorf("it was not sent to come later: %+v, %v", d, err)
		}
		time.Sleep(10 * time.Minute)
		if failed := b.handle(b.Context(), body); failed != "" || read(b, s).Paused != nil {
			b.Errorf("then: %q, %+v", failed, read(b, s).Paused)
		}
	})
	bubble(t, "lifting a pause promotes the schedules that it held", func(b *bench) {
		s := put(b)
		held, w := schedule.Hold(s, job.Pause{Since: time.Now().UTC()}, time.Now().UTC())
		b.Write(w)
		b.handle(b.Context(), message.Encode(message.Dispatch{V: 1, Slice: held.Slice()}))
		if now := read(b, s); now.Parked || !now.Next.After(time.Now().Add(29*time.Minute)) {
			b.Errorf("next %s, parked %v", now.Next, now.Parked)
		}
	})
	bubble(t, "the next queued job of a schedule is fired", func(b *bench) {
		s := put(b, func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		due := time.Now().Add(-time.Minute)
		r := jobtest.Row(0, due, due, func(r *job.Row) {
			r.ScheduleID, r.Epoch, r.NominalAt, r.Parked, r.QueuedBehind, r.WakeAt = s.Name, 1, due, true, true, due
		})
		b.Write(item.Write{Ref: r.Ref(), Name: "test.put", Put: r.Item()})
		if failed := b.handle(b.Context(),
			message.Encode(message.Dispatch{V: 1, Slice: horizon.Line(jobtest.Tenant, "s")})); failed != "" {
			b.Error("it failed")
		}
		if now, err := b.Store.Row(b.Context(), r.Key); err != nil || now.Parked || now.QueuedBehind {
			b.Errorf("%+v, %v", now, err)
		}
	})
	bubble(t, "a message about an unreadable schedule is not redelivered", func(b *bench) {
		s := put(b)
		i := s.Item()
		i["body"] = "{"
		b.Write(item.Write{Ref: s.Ref(), Name: "test.put", Put: i})
		if failed := b.handle(b.Context(),
			message.Encode(message.Dispatch{V: 1, Slice: "promote#" + jobtest.Tenant + "#s"})); failed != "" {
			b.Error("it is redelivered")
		}
	})
}
