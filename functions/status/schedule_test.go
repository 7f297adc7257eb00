package status_test

import (
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

func TestStatus_NotifiesTheScheduleOfAnEnd(t *testing.T) {
	t.Parallel()
	rule := func(b *bundle) schedule.Schedule {
		cron := "0 0 1 1 *"
		s, w, err := schedule.Create(nil, schedule.Schedule{
			Key: schedule.Key{Tenant: jobtest.Tenant, Name: "rule"}, Spec: calendar.Spec{Cron: &cron}, PauseAfter: 1,
			Overlap: schedule.OverlapBufferOne,
		}, time.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		if err := b.Store.Put(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		return s
	}
	put := func(b *bundle, s schedule.Schedule, n int, change func(*job.Row)) job.Row {
		r := jobtest.Row(n, time.Now(), time.Now(), func(r *job.Row) {
			r.ScheduleID, r.Epoch, r.NominalAt = s.Name, 1, r.DueAt
			change(r)
		})
		if err := b.Store.Put(b.Context(), item.Write{Ref: r.Ref(), Name: "test.put", Put: r.Item()}); err != nil {
			b.Fatal(err)
		}
		return r
	}
	bubble(t, "an end fires the queued job, and a dead job pauses the schedule", func(b *bundle) {
		s := rule(b)
		first := put(b, s, 0, func(*job.Row) {})
		next := put(b, s, 1, func(r *job.Row) { r.Parked, r.QueuedBehind, r.WakeAt = true, true, r.DueAt })
		for _, w := range []item.Write{s.TakeSlot(first.ID), s.Wait(next.ID, schedule.Slot{Holder: first.ID})} {
			if err := b.Store.Put(b.Context(), w); err != nil {
				b.Fatal(err)
			}
		}
		b.report(b.ended(first, 1, success()))
		if d, err := b.World.Queues().Depth(b.Context(), contract.FiringQueue("short", "normal")); err != nil ||
			d.Visible != 1 {
			b.Errorf("the next was not fired: %+v, %v", d, err)
		}
		b.report(b.ended(next, 1, failure(permanent)))
		if now, err := b.Store.Schedule(b.Context(), s.Key); err != nil || now.Paused == nil ||
			now.Paused.By != schedule.ByPunctual {
			b.Errorf("%+v, %v", now.Paused, err)
		}
	})
	bubble(t, "a redelivered report notifies the schedule that an earlier try did not reach", func(b *bundle) {
		s := rule(b)
		r := put(b, s, 0, func(*job.Row) {})
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Name == schedule.WriteCountDead {
				return memory.Fault{Fail: fault.Unavailable}
			}
			return memory.Fault{}
		})
		body := b.ended(r, 1, failure(permanent))
		if failed := b.handle(1, body); failed != "0" {
			b.Fatal("the report was done although its schedule does not know")
		}
		b.World.SetFaults(nil)
		if failed := b.handle(2, body); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		if now, err := b.Store.Schedule(b.Context(), s.Key); err != nil || now.Paused == nil {
			b.Errorf("%+v, %v", now.Paused, err)
		}
	})
}
