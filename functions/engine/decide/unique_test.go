package decide_test

import (
	"strings"
	"testing"
	"time"

	"punctual/functions/engine/recur"
	"punctual/functions/stagetest"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// keyed gives a row a unique key.
func keyed(how job.OnConflict) func(*job.Row) {
	return func(r *job.Row) { r.Unique = job.Unique{Key: "k", Until: job.UntilDone, OnConflict: how} }
}

// holder puts a job that is due in an hour and holds the key.
func (b *bench) holder(n int, change ...func(*job.Row)) job.Row {
	b.Helper()
	r := b.Due(n, time.Hour, append([]func(*job.Row){keyed(job.ConflictReturn)}, change...)...)
	b.Write(job.TakeKey(r, "", stagetest.Now()))
	return r
}

func TestDecider_SkipsAnOccurrenceWhoseKeyIsHeld(t *testing.T) {
	t.Parallel()
	for _, how := range []job.OnConflict{job.ConflictReturn, job.ConflictReject} {
		bubble(t, string(how), func(b *bench) {
			s := b.Rule()
			holder := b.holder(1)
			r := b.Overdue(2, time.Second, keyed(how), stagetest.Of(s))
			b.RequireStep(b.sweep(r), recur.Skipped)
			is := b.Row(r.Key)
			outcome, reason, why := schedule.OfJob(is)
			if is.Status != job.Skipped || outcome != schedule.Skipped || reason != job.CodeNotUnique ||
				!strings.Contains(why, string(holder.ID)) {
				b.Errorf("%s: %s, %s, %s", is.Status, outcome, reason, why)
			}
			if b.Row(holder.Key).Status != job.Scheduled {
				b.Error("the holder has changed")
			}
		})
	}
	bubble(t, "a job that a person asked for", func(b *bench) {
		b.holder(1)
		r := b.Overdue(2, time.Second, keyed(job.ConflictReturn), func(r *job.Row) { r.ManualOf = "rule" })
		b.RequireStep(b.sweep(r), recur.Skipped)
		if is := b.Row(r.Key); is.Reason.Code != job.CodeNotUnique {
			b.Errorf("it is %s, %+v", is.Status, is.Reason)
		}
	})
	for name, free := range map[string]func(b *bench, holder, r job.Row){
		"the holder has ended": func(b *bench, holder, _ job.Row) {
			_, w := job.Skip(holder, job.Reason{Code: job.CodeLimitFull}, stagetest.Now())
			b.Write(w)
		},
		"it holds the key itself": func(b *bench, holder, r job.Row) {
			b.Write(job.TakeKey(r, holder.ID, stagetest.Now()))
		},
	} {
		bubble(t, "not if "+name, func(b *bench) {
			s := b.Rule()
			r := b.Overdue(2, time.Second, keyed(job.ConflictReject), stagetest.Of(s))
			free(b, b.holder(1), r)
			b.RequireStep(b.sweep(r), job.StepFire)
			b.RequireFired(b.Row(r.Key))
		})
	}
	bubble(t, "even if a worker was lost before it took the key", func(b *bench) {
		s := b.Rule()
		b.holder(1)
		r := b.Overdue(2, time.Minute, keyed(job.ConflictReturn), stagetest.Of(s))
		b.Own(r, -time.Second)
		b.RequireStep(b.sweep(r), recur.Skipped)
	})
	bubble(t, "not if a worker was lost after it took the key", func(b *bench) {
		s := b.Rule()
		r := b.Overdue(2, time.Minute, keyed(job.ConflictReturn), stagetest.Of(s))
		b.Write(job.TakeKey(r, "", stagetest.Now()))
		b.Own(r, -time.Second)
		b.RequireStep(b.sweep(r), job.StepFire)
	})
}

func TestDecider_SupersedesTheHolderOfAKey(t *testing.T) {
	t.Parallel()
	same := func(*job.Row) {}
	blocked := func(r *job.Row) { r.Status, r.Parents = job.Blocked, `{"parents":[],"rule":"all_done"}` }
	for name, c := range map[string]struct {
		change     func(*job.Row)
		then       func(b *bench, holder job.Row)
		superseded bool
	}{
		"that waits for its time":       {same, nil, true},
		"that waits for others":         {blocked, nil, true},
		"that a pause holds":            {func(r *job.Row) { r.Parked = true }, nil, true},
		"that is claimed":               {same, func(b *bench, h job.Row) { b.Own(h, time.Minute) }, false},
		"that may have started":         {same, func(b *bench, h job.Row) { b.Own(h, -time.Second) }, false},
		"that waits for a retry":        {func(r *job.Row) { r.Attempt = 2 }, nil, false},
		"of another task":               {func(r *job.Row) { r.Task = "other" }, nil, false},
		"that is about to be cancelled": {func(r *job.Row) { r.Stop = job.StopCancel }, nil, false},
	} {
		bubble(t, name, func(b *bench) {
			s := b.Rule()
			holder := b.holder(1, c.change)
			if c.then != nil {
				c.then(b, holder)
			}
			r := b.Overdue(2, time.Second, keyed(job.ConflictReplace), stagetest.Of(s))
			step := b.sweep(r)
			after, is := b.Row(holder.Key), b.Row(r.Key)
			if c.superseded {
				b.RequireStep(step, job.StepFire)
				outcome, reason, _ := schedule.OfJob(after)
				if outcome != schedule.Superseded || reason != job.CodeSuperseded || !is.Status.Open() {
					b.Errorf("the holder is %s, %s, %s; the occurrence %s", after.Status, outcome, reason, is.Status)
				}
				return
			}
			b.RequireStep(step, recur.Skipped)
			if after.Status.Final() || is.Reason.Code != job.CodeNotUnique {
				b.Errorf("the holder is %s, the occurrence %s, %+v", after.Status, is.Status, is.Reason)
			}
		})
	}
	bubble(t, "decides anew if the holder is claimed meanwhile", func(b *bench) {
		s := b.Rule()
		holder := b.holder(1)
		r := b.Overdue(2, time.Second, keyed(job.ConflictReplace), stagetest.Of(s))
		b.Once(stagetest.To(memory.TableCommit, job.WriteSkip), func() memory.Fault {
			b.Own(holder, time.Minute)
			return memory.Fault{}
		})
		b.RequireStep(b.sweep(r), recur.Skipped)
		if after, is := b.Row(holder.Key), b.Row(r.Key); after.Status != job.Scheduled ||
			is.Reason.Code != job.CodeNotUnique {
			b.Errorf("the holder is %s, the occurrence %s, %+v", after.Status, is.Status, is.Reason)
		}
	})
}
