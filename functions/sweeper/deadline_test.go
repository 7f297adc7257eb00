package sweeper_test

import (
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// Whatever holds a job, and by whichever lane it came, its deadline ends it in the pass that follows.
//
//proof:of F74
func TestSweeper_EndsWhatWaitsAtItsDeadline(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) func(*job.Row) { return func(r *job.Row) { r.StartWithin = d } }
	parked := func(ahead time.Duration) func(*job.Row) {
		return func(r *job.Row) { job.Route(r, r.DueAt.Add(-ahead)) }
	}
	for name, c := range map[string]struct {
		change []func(*job.Row)
		hold   func(b *bench, r job.Row) job.Row
		after  time.Duration // of the deadline, past due
	}{
		"while it waits for a worker": {[]func(*job.Row){within(5 * time.Second), parked(time.Minute)}, nil,
			5 * time.Second},
		"where its slice has fired it": {[]func(*job.Row){within(5 * time.Second), parked(time.Hour)}, nil,
			5 * time.Second},
		"where it expires": {[]func(*job.Row){func(r *job.Row) {
			r.ExpireAfter, r.ExpiryAt = 5*time.Second, r.DueAt.Add(5*time.Second)
		}, parked(time.Minute)}, nil, 5 * time.Second},
		"hours after it was put off": {[]func(*job.Row){within(2 * time.Hour), parked(time.Minute)},
			func(b *bench, r job.Row) job.Row {
				after, w := job.Rewake(r, r.DueAt.Add(3*time.Hour), stagetest.Now(), 5)
				b.Write(w)
				return after
			}, 2 * time.Hour},
		"under a pause": {[]func(*job.Row){within(10 * time.Second), parked(time.Minute)},
			func(b *bench, r job.Row) job.Row {
				b.Pause(job.PauseAll, time.Time{})
				b.Must(b.Store.NoteParked(b.Context(), r.Tenant, stagetest.Now()))
				after, w := job.Park(r, stagetest.Now())
				b.Write(w)
				return after
			}, 10 * time.Second},
		"while it is paused itself": {[]func(*job.Row){within(10 * time.Second), parked(time.Minute)},
			func(b *bench, r job.Row) job.Row {
				after, w := job.PauseRow(r, job.Claim{}, job.OwnPause{Since: stagetest.Now()}, stagetest.Now())
				b.Write(w)
				return after
			}, 10 * time.Second},
		"hours after it was paused itself": {[]func(*job.Row){within(2 * time.Hour), parked(time.Minute)},
			func(b *bench, r job.Row) job.Row {
				after, w := job.PauseRow(r, job.Claim{}, job.OwnPause{Since: stagetest.Now()}, stagetest.Now())
				b.Write(w)
				return after
			}, 2 * time.Hour},
		"behind another run": {[]func(*job.Row){within(10 * time.Second), parked(time.Minute)},
			func(b *bench, r job.Row) job.Row {
				s := b.Rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
				r = b.Put(jobtest.Row(1, r.DueAt, r.CreatedAt, stagetest.Of(s), within(10*time.Second)))
				holder := b.Put(jobtest.Row(2, r.DueAt, r.CreatedAt, stagetest.Of(s)))
				b.Write(s.TakeSlot(holder.ID))
				b.Must(b.Store.NoteQueue(b.Context(), s.Key, stagetest.Now()))
				after, w := job.ParkQueuedBehind(r, stagetest.Now())
				b.Write(w)
				return after
			}, 10 * time.Second},
	} {
		bubble(t, name, func(b *bench) {
			due := stagetest.Now()
			r := b.Put(jobtest.Row(0, due, due.Add(-time.Second), c.change...))
			if c.hold != nil {
				r = c.hold(b, r)
			}
			if r.Parked && horizon.Line(string(r.Tenant), r.ScheduleID) == r.Slice() != r.QueuedBehind {
				b.Errorf("it lies in %s", r.Slice())
			}
			end := due.Add(c.after)
			for now := stagetest.Now(); now.Before(end.Add(2 * time.Second)); now = stagetest.Now() {
				b.Must(b.stage.Deadlines(b.Context()))
				if row := b.Row(r.Key); row.Status.Final() && !stagetest.Now().After(end) {
					b.Fatalf("it is %s, %s before its deadline", row.Status, end.Sub(stagetest.Now()))
				}
				step := time.Second
				if end.Sub(now) > time.Minute {
					step = min(30*time.Second, end.Sub(now)-time.Minute+time.Second)
				}
				time.Sleep(step)
			}
			if row := b.Row(r.Key); row.Status != job.Expired {
				b.Errorf(
					"two seconds past its deadline it is %s: wakes at %s, due %s",
					row.Status,
					row.WakeAt,
					row.DueAt,
				)
			}
		})
	}
}

func TestSweeper_LeavesAloneWhatHasTime(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that runs past its deadline goes on", func(b *bench) {
		r := b.Put(
			jobtest.Row(
				0,
				time.Now(),
				time.Now(),
				func(r *job.Row) { r.StartWithin = time.Second; job.Route(r, r.DueAt) },
			),
		)
		b.Own(r, 30*time.Second)
		time.Sleep(3 * time.Second)
		b.Must(b.stage.Deadlines(b.Context()))
		if row := b.Row(r.Key); row.Status != job.Scheduled || row.Stop != job.NoStop {
			b.Errorf("it is %s, stop %q", row.Status, row.Stop)
		}
	})
	bubble(t, "one without a deadline is not read", func(b *bench) {
		b.Put(jobtest.Row(0, time.Now(), time.Now(), func(r *job.Row) { job.Route(r, r.DueAt) }))
		reads := 0
		b.Before(
			func(c memory.Call) bool { return strings.Contains(c.Op, "get") && c.Ref.Table == contract.Jobs },
			func() { reads++ },
		)
		time.Sleep(3 * time.Second)
		if err := b.stage.Deadlines(b.Context()); err != nil || reads > 0 {
			b.Errorf("%d reads, %v", reads, err)
		}
	})
	bubble(t, "one that has died, and waits for its dead letter, is read once", func(b *bench) {
		r := b.Put(jobtest.Row(0, time.Now(), time.Now(), stagetest.Dead,
			func(r *job.Row) { r.WakeAt = time.Now().Add(time.Second) }))
		reads := 0
		b.Each(
			func(c memory.Call) bool { return strings.Contains(c.Op, "get") && c.Ref == r.Ref() },
			func(memory.Call) { reads++ },
		)
		for range 5 {
			time.Sleep(time.Second)
			b.Must(b.stage.Deadlines(b.Context()))
		}
		if reads != 1 {
			b.Errorf("%d reads", reads)
		}
	})
	bubble(t, "one whose firing may be lost is fired again after the grace", func(b *bench) {
		r := b.Put(
			jobtest.Row(
				0,
				time.Now(),
				time.Now(),
				func(r *job.Row) { r.StartWithin = 4 * time.Minute; job.Route(r, r.DueAt) },
			),
		)
		time.Sleep(3*time.Minute + time.Second)
		b.Must(b.stage.Deadlines(b.Context()))
		b.RequireFired(r)
	})
}
