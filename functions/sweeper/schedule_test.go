package sweeper_test

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

func (b *bench) rule(cron string, change ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	return b.Create(stagetest.Schedule("rule", cron, change...))
}

func TestSweeper_PromotesForgottenSchedules(t *testing.T) {
	t.Parallel()
	bubble(t, "a schedule that was never promoted is promoted after the grace", func(b *bench) {
		b.sweep()
		s := b.rule("* * * * *")
		time.Sleep(contract.Grace + time.Minute)
		b.sweep()
		if now := b.Schedule(s.Key); !now.Next.After(time.Now().Add(29 * time.Minute)) {
			b.Errorf("next is %s", now.Next)
		}
	})
	bubble(t, "a schedule that the promoter missed is promoted before it is due", func(b *bench) {
		b.sweep()
		s := b.rule("0 */6 * * *")
		at := s.Next
		time.Sleep(time.Until(at) - 20*time.Minute)
		b.sweep()
		if _, err := b.Store.Row(b.Context(), job.Key{Tenant: s.Tenant, ID: s.JobID(at)}); err != nil {
			b.Error(err)
		}
	})
	bubble(t, "a schedule parked after its pause was lifted is promoted by the next pass", func(b *bench) {
		s := b.rule("* * * * *")
		b.Must(b.Store.NoteParked(b.Context(), s.Tenant, time.Now()))
		_, w := schedule.Hold(s, job.Pause{Since: time.Now().UTC()}, time.Now().UTC())
		b.Write(w)
		b.sweep()
		if now := b.Schedule(s.Key); now.Parked || !now.Next.After(time.Now().Add(29*time.Minute)) {
			b.Errorf("parked %v, next %s", now.Parked, now.Next)
		}
	})
	bubbleOf(t, "a queued job is fired after the one before, and an empty line goes", memory.Options{EmptyPages: true},
		func(b *bench) {
			s := b.rule("0 0 1 1 *", func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
			inLine := func(r *job.Row) {
				r.ScheduleID, r.Epoch, r.NominalAt, r.Parked, r.QueuedBehind, r.WakeAt = s.Name, 1, r.DueAt, true, true,
					r.DueAt
			}
			r := b.lost(0, -time.Hour, inLine)
			over := b.lost(1, -2*time.Hour, inLine,
				func(r *job.Row) { r.Status, r.WakeAt = job.Succeeded, time.Time{} })
			b.Write(s.TakeSlot(over.ID))
			b.Must(b.Store.NoteQueue(b.Context(), s.Key, time.Now()))
			b.sweep()
			if now := b.Row(r.Key); now.QueuedBehind || b.Fired()[string(r.ID)] != 1 {
				b.Errorf("it still waits: %+v", now)
			}
			time.Sleep(2 * time.Hour)
			b.Write(item.Write{Ref: r.Ref(), Name: "test.gone", Delete: true})
			b.sweep()
			if keys, err := b.Store.Queues(b.Context()); err != nil || len(keys) != 0 {
				b.Errorf("lines %v, %v", keys, err)
			}
		})
}
