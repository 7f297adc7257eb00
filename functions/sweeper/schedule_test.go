package sweeper_test

import (
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

func (b *bundle) rule(cron string, change ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	s := schedule.Schedule{Key: schedule.Key{Tenant: jobtest.Tenant, Name: "rule"}, Spec: calendar.Spec{Cron: &cron}, CatchUp: schedule.DefaultCatchUp,
		Template: schedule.Template{Task: "echo", Executor: "echo", Pool: "short", Priority: job.Normal, Timeout: time.Minute, Retry: job.DefaultRetry}}
	for _, f := range change {
		f(&s)
	}
	s, w, err := schedule.Create(nil, s, time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	b.write(w)
	return s
}

func (b *bundle) schedule(s schedule.Schedule) schedule.Schedule {
	b.Helper()
	s, err := b.store.Schedule(b.Context(), s.Key)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func TestSchedulesLeftBehind(t *testing.T) {
	t.Parallel()
	bubble(t, "by whoever wrote one are promoted after the grace", memory.Options{}, func(b *bundle) {
		b.sweep()
		s := b.rule("* * * * *")
		time.Sleep(contract.Grace + time.Minute)
		b.sweep()
		if now := b.schedule(s); !now.Next.After(time.Now().Add(29 * time.Minute)) {
			b.Errorf("next is %s", now.Next)
		}
	})
	bubble(t, "by the promoter are promoted well before they are due", memory.Options{}, func(b *bundle) {
		b.sweep()
		s := b.rule("0 */6 * * *")
		at := s.Next
		time.Sleep(time.Until(at) - 20*time.Minute)
		b.sweep()
		if _, err := b.store.Row(b.Context(), job.Key{Tenant: s.Tenant, ID: s.JobID(at)}); err != nil {
			b.Error(err)
		}
	})
	bubble(t, "by the message that lifted a pause are promoted by the next pass", memory.Options{}, func(b *bundle) {
		s := b.rule("* * * * *")
		if err := b.store.NoteParked(b.Context(), s.Tenant, time.Now()); err != nil {
			b.Fatal(err)
		}
		_, w := schedule.Hold(s, job.Pause{Since: time.Now().UTC()}, time.Now().UTC())
		b.write(w)
		b.sweep()
		if now := b.schedule(s); now.Parked || !now.Next.After(time.Now().Add(29*time.Minute)) {
			b.Errorf("parked %v, next %s", now.Parked, now.Next)
		}
	})
	bubble(t, "a line whose first run is over goes on, and an empty one is forgotten", memory.Options{EmptyPages: true}, func(b *bundle) {
		s := b.rule("0 0 1 1 *", func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		inLine := func(r *job.Row) {
			r.ScheduleID, r.Epoch, r.NominalAt, r.Parked, r.Behind, r.WakeAt = s.Name, 1, r.DueAt, true, true, r.DueAt
		}
		r := b.put(0, -time.Hour, inLine)
		over := b.put(1, -2*time.Hour, inLine, func(r *job.Row) { r.Status, r.WakeAt = job.Succeeded, time.Time{} })
		b.write(s.TakeSlot(over.ID))
		if err := b.store.NoteLine(b.Context(), s.Key, time.Now()); err != nil {
			b.Fatal(err)
		}
		b.sweep()
		if now := b.row(r.Key); now.Behind || b.firings()[string(r.ID)] != 1 {
			b.Errorf("it still waits: %+v", now)
		}
		time.Sleep(2 * time.Hour)
		b.write(item.Write{Ref: r.Ref(), Name: "test.gone", Delete: true})
		b.sweep()
		if keys, err := b.store.Lines(b.Context()); err != nil || len(keys) != 0 {
			b.Errorf("lines %v, %v", keys, err)
		}
	})
}
