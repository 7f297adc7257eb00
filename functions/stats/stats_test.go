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
	counts "punctual/shared/stats"
	"punctual/shared/tenant"
)

type bench struct {
	*stagetest.Bench
	stage *stats.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{s, stats.New(stats.Deps{Store: s.Store, Base: process.Base{Meter: s.Meter}})})
	})
}

// count gives the stage the records of new jobs.
func (b *bench) count(rows ...job.Row) {
	b.Helper()
	var changes []item.Change
	for _, r := range rows {
		changes = append(changes, item.Change{New: r.Item()})
	}
	b.stage.Changes(b.Context(), changes)
}

// created returns how many jobs of a tenant's task are stored as made.
func (b *bench) created(t tenant.ID, task string) (n int64) {
	b.Helper()
	now := time.Now()
	r := counts.Aligned(now.Add(-time.Hour), now.Add(time.Hour), time.Minute)
	b.Must(b.Store.Stats(b.Context(), counts.Series{Tenant: t, Task: task}, r,
		func(_ time.Time, c counts.Counts) { n += c.Created }))
	return n
}

func row(n int, change ...func(*job.Row)) job.Row {
	return jobtest.Row(n, time.Now(), time.Now(), change...)
}

func TestStage_AddsWhatItCounted(t *testing.T) {
	t.Parallel()
	bubble(t, "writes a span once for many jobs", func(b *bench) {
		writes := b.Count(stagetest.Named(counts.WriteAdd))
		for n := range 100 {
			b.count(row(n))
		}
		if b.created(jobtest.Tenant, "") != 0 {
			b.Error("it wrote before the flush")
		}
		b.Must(b.stage.Flush(b.Context()))
		b.Must(b.stage.Flush(b.Context()))
		if b.created(jobtest.Tenant, "") != 100 || b.created(jobtest.Tenant, row(1).Task) != 100 || writes() != 2 {
			b.Errorf("%d jobs of %d in %d writes", b.created(jobtest.Tenant, ""), 100, writes())
		}
	})
	bubble(t, "adds later what could not be added, and only that", func(b *bench) {
		b.count(row(1), row(2, func(r *job.Row) { r.Task = "other" }))
		b.FaultFirst(1, stagetest.Named(counts.WriteAdd), memory.Fault{Fail: fault.Unavailable})
		if err := b.stage.Flush(b.Context()); err == nil {
			b.Error("no error was reported")
		}
		b.Must(b.stage.Flush(b.Context()))
		if b.created(jobtest.Tenant, "") != 2 || b.created(jobtest.Tenant, "other") != 1 {
			b.Errorf("%d and %d", b.created(jobtest.Tenant, ""), b.created(jobtest.Tenant, "other"))
		}
	})
	bubble(t, "counts nothing of a row that it cannot read, and goes on", func(b *bench) {
		unreadable := row(1).Item()
		unreadable["due_at"] = "tomorrow"
		b.stage.Changes(b.Context(), []item.Change{{New: unreadable}, {Old: row(1).Item()}, {New: row(2).Item()}})
		b.Must(b.stage.Flush(b.Context()))
		if got := b.created(jobtest.Tenant, ""); got != 1 {
			b.Errorf("%d", got)
		}
	})
	bubble(t, "holds a bounded sum, whatever fails", func(b *bench) {
		b.Fail(stagetest.Named(counts.WriteAdd))
		for n := range 5000 {
			if n%1000 == 999 {
				_ = b.stage.Flush(b.Context())
			}
			b.count(row(n, func(r *job.Row) { r.Task = fmt.Sprint("task-", n) }))
		}
		b.World.SetFaults(nil)
		b.Must(b.stage.Flush(b.Context()))
		if got := b.created(jobtest.Tenant, ""); got < 1000 || got > 1100 {
			b.Errorf("%d of 5000 were held", got)
		}
	})
}

func TestWindow_AddsAtItsEnd(t *testing.T) {
	t.Parallel()
	bubble(t, "carries the counts from call to call", func(b *bench) {
		var state map[string]string
		for n := range 10 {
			state = b.stage.Window(b.Context(), state, []item.Change{{New: row(n).Item()}}, false)
		}
		if b.created(jobtest.Tenant, "") != 0 || len(state) != 2 {
			b.Errorf("%d were added before the end; the state is %v", b.created(jobtest.Tenant, ""), state)
		}
		state = b.stage.Window(b.Context(), state, nil, true)
		if len(state) != 0 || b.created(jobtest.Tenant, "") != 10 {
			b.Errorf("%d at the end; the state is %v", b.created(jobtest.Tenant, ""), state)
		}
	})
	bubble(t, "adds early what would be too large to carry", func(b *bench) {
		var state map[string]string
		most := 0
		for n := range 8 {
			var changes []item.Change
			for k := range 1000 {
				r := row(n, func(r *job.Row) { r.Task = fmt.Sprint("a-task-with-a-long-name-", n*1000+k) })
				changes = append(changes, item.Change{New: r.Item()})
			}
			state = b.stage.Window(b.Context(), state, changes, false)
			most = max(most, len(state))
		}
		if b.created(jobtest.Tenant, "") == 0 || most > 8000 {
			b.Errorf("%d were added; the state had up to %d series", b.created(jobtest.Tenant, ""), most)
		}
	})
	bubble(t, "goes on after a state that it cannot read", func(b *bench) {
		state := map[string]string{"stats#acme# 000000000000": "{", "x": "{}"}
		b.stage.Window(b.Context(), state, []item.Change{{New: row(1).Item()}}, true)
		if got := b.created(jobtest.Tenant, ""); got != 1 {
			b.Errorf("%d", got)
		}
	})
}
