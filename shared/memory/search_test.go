package memory_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"punctual/shared/conformance"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/search"
)

var began = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

func entry(n int) search.Entry { return conformance.IndexEntry("acme", n, began) }

// BenchmarkSearchIndex measures the first page of every two filters among a million jobs that have ended, and the
// memory of an entry.
func BenchmarkSearchIndex(b *testing.B) {
	w := memory.New(memory.Options{})
	defer w.Close()
	const jobs = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range jobs {
		w.Search().PutEntries(context.Background(), []search.Update{{Entry: entry(n)}})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	single := []search.Filter{
		{Status: job.Dead}, {Status: job.Running}, {Task: "task-3"}, {Task: "task-9"}, {Schedule: "nightly"},
		{DAG: "etl"}, {RunID: "run-7"}, {Pool: "long"}, {Priority: job.Normal}, {Code: "handler_failed"},
		{Code: "timeout"}, {Group: search.Group("task-3", "handler_failed", "cause")},
		search.Filter{}.With("customer", "42"), search.Filter{}.With("env", "prod"),
		{IDPrefix: string(entry(9).ID[:8])},
		{CreatedBefore: began.Add(time.Second)}, {DueAfter: began.Add(time.Minute)},
		{FinishedBefore: began.Add(time.Minute)}, {DeadAfter: began.Add(time.Hour)},
	}
	var took []time.Duration
	for b.Loop() {
		for _, one := range single {
			for _, other := range single {
				for _, order := range []search.Order{search.NewestFirst, search.OldestFirst} {
					start := time.Now()
					_, _ = w.Search().Search(context.Background(), "acme",
						search.Query{Filter: both(one, other), Limit: 50, Order: order})
					took = append(took, time.Since(start))
				}
			}
		}
	}
	slices.SortFunc(took, cmp.Compare[time.Duration])
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/jobs, "B/job")
}

// both is a filter of what two filters ask for; of the second, where both ask for the same.
func both(one, other search.Filter) search.Filter {
	f := one
	for name, value := range other.Tags {
		f = f.With(name, value)
	}
	f.Status, f.Task, f.Schedule = cmp.Or(other.Status, one.Status), cmp.Or(other.Task, one.Task),
		cmp.Or(other.Schedule, one.Schedule)
	f.DAG, f.RunID, f.Pool = cmp.Or(other.DAG, one.DAG), cmp.Or(other.RunID, one.RunID), cmp.Or(other.Pool, one.Pool)
	f.Priority, f.Code = cmp.Or(other.Priority, one.Priority), cmp.Or(other.Code, one.Code)
	f.Group, f.IDPrefix = cmp.Or(other.Group, one.Group), cmp.Or(other.IDPrefix, one.IDPrefix)
	f.CreatedBefore = cmp.Or(other.CreatedBefore, one.CreatedBefore)
	f.DueAfter, f.DeadAfter = cmp.Or(other.DueAfter, one.DueAfter), cmp.Or(other.DeadAfter, one.DeadAfter)
	f.FinishedBefore = cmp.Or(other.FinishedBefore, one.FinishedBefore)
	return f
}

func ExampleSearchIndex() {
	w := memory.New(memory.Options{})
	defer w.Close()
	w.Search().PutEntries(context.Background(), []search.Update{{Entry: entry(3)}, {Entry: entry(4)}})
	page, _ := w.Search().Search(context.Background(), "acme",
		search.Query{Filter: search.Filter{Status: job.Dead}, Limit: 10})
	fmt.Println(len(page.Entries), page.Entries[0].Task)
	// Output: 1 task-3
}
