package stats_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/functions/stats"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/usage"
)

func tagged(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{s, stats.New(stats.Deps{Store: s.Store, Base: process.Base{Meter: s.Meter},
			UsageTags: []string{"team"}})})
	})
}

// ended is the record of a job that ends after an attempt of two seconds.
func ended(n int, change ...func(*job.Row)) item.Change {
	r := row(n, change...)
	before := r.Item()
	r.Status, r.FinishedAt = job.Succeeded, time.Now()
	r.Attempts = []job.Attempt{{Attempt: 1, Outcome: "succeeded", StartedAt: r.FinishedAt.Add(-2 * time.Second),
		FinishedAt: r.FinishedAt}}
	return item.Change{Old: before, New: r.Item()}
}

// used returns what is stored of today.
func (b *bench) used(by usage.By) map[string]usage.Use {
	b.Helper()
	all, now := map[string]usage.Use{}, time.Now()
	b.Must(b.Store.Usage(b.Context(), jobtest.Tenant, by, usage.DayOf(now), usage.DayOf(now),
		func(value string, u usage.Use) { all[value] = u }))
	return all
}

func TestStage_AddsWhatJobsUsed(t *testing.T) {
	t.Parallel()
	tagged(t, "by task, schedule and tag", func(b *bench) {
		r := row(1, func(r *job.Row) { r.Tagged = true })
		b.Must(b.Store.Put(b.Context(), r.PutLabels(job.Labels{Tags: `{"team":"red","color":"blue"}`})))
		b.stage.Changes(b.Context(), []item.Change{
			ended(1, func(r *job.Row) { r.Tagged = true }),
			ended(2, func(r *job.Row) { r.ScheduleID = "nightly" }),
		})
		b.Must(b.stage.Flush(b.Context()))
		if u := b.used(usage.ByTask)[r.Task]; u.Jobs != 2 || u.Attempts != 2 || u.RunningMS != 4000 || u.Bytes == 0 {
			b.Errorf("by task: %+v", u)
		}
		if u := b.used(usage.BySchedule)["nightly"]; u.Jobs != 1 {
			b.Errorf("by schedule: %+v", u)
		}
		if all := b.used("tag.team"); len(all) != 1 || all["red"].Jobs != 1 {
			b.Errorf("by tag: %+v", all)
		}
		if all := b.used("tag.color"); len(all) != 0 {
			b.Errorf("by a tag that nobody names: %+v", all)
		}
	})
	tagged(t, "later where it could not be added, and only that", func(b *bench) {
		b.stage.Changes(b.Context(), []item.Change{ended(1), ended(2, func(r *job.Row) { r.Task = "other-task" })})
		b.FaultFirst(1, stagetest.Named(usage.WriteAdd), memory.Fault{Fail: fault.Unavailable})
		if err := b.stage.Flush(b.Context()); err == nil {
			b.Error("no error was reported")
		}
		b.Must(b.stage.Flush(b.Context()))
		if all := b.used(usage.ByTask); all[row(1).Task].Jobs != 1 || all["other-task"].Jobs != 1 {
			b.Errorf("%+v", all)
		}
	})
	tagged(t, "of a bounded number of values", func(b *bench) {
		for n := range usage.MaxValues + 20 {
			b.stage.Changes(b.Context(), []item.Change{ended(n, func(r *job.Row) { r.Task = fmt.Sprint("task-", n) })})
		}
		b.Must(b.stage.Flush(b.Context()))
		all := b.used(usage.ByTask)
		if len(all) != usage.MaxValues+1 || all[usage.Other].Jobs != 20 {
			b.Errorf("%d values, others %+v", len(all), all[usage.Other])
		}
	})
	tagged(t, "of a bounded number of bytes of a tag", func(b *bench) {
		const size = 250
		has := func(r *job.Row) { r.Tagged = true }
		for n := range usage.MaxTagBytes/size + 5 {
			tags := fmt.Sprintf(`{"team":"%0*d"}`, size, n)
			b.Must(b.Store.Put(b.Context(), row(n, has).PutLabels(job.Labels{Tags: tags})))
			b.stage.Changes(b.Context(), []item.Change{ended(n, has)})
		}
		b.Must(b.stage.Flush(b.Context()))
		all := b.used("tag.team")
		if len(all) != usage.MaxTagBytes/size+1 || all[usage.Other].Jobs != 5 {
			b.Errorf("%d values, others %+v", len(all), all[usage.Other])
		}
	})
	tagged(t, "from call to call of a window", func(b *bench) {
		var state map[string]string
		for n := range 3 {
			state = b.stage.Window(b.Context(), state, []item.Change{ended(n)}, n == 2)
			if got := b.used(usage.ByTask)[row(1).Task].Jobs; got != int64(n/2*3) {
				b.Errorf("after call %d there are %d", n, got)
			}
		}
	})
}
