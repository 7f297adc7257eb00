package memory_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/search"
)

var began = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

// entry is entry number n of a few thousand jobs with few values.
func entry(n int) search.Entry {
	at := began.Add(time.Duration(n) * time.Millisecond)
	e := search.Entry{
		Key:   job.Key{Tenant: "acme", ID: job.DeterministicID(at, "entry", strconv.Itoa(n))},
		Stage: 4, Status: job.Succeeded, Task: "task-" + strconv.Itoa(n%7), Pool: contract.Pools[n%2],
		Priority: job.Normal, CreatedAt: at, DueAt: at.Add(time.Minute), FinishedAt: at.Add(2 * time.Minute),
		Tags: map[string]string{"customer": strconv.Itoa(n % 1000), "env": []string{"prod", "test"}[n%2]},
	}
	switch n % 10 {
	case 3:
		e.Status, e.Code, e.DeadAt = job.Dead, "handler_failed", e.FinishedAt
		e.Group = search.Group(e.Task, e.Code, "cause")
	case 4:
		e.Status, e.FinishedAt = job.Scheduled, time.Time{}
	}
	if n%3 == 0 {
		e.Schedule = "nightly"
	}
	if n%5 == 0 {
		e.RunID, e.DAG = "run-"+strconv.Itoa(n/5), "etl"
	}
	return e
}

func filters(r *rand.Rand) (f search.Filter) {
	n := r.IntN(3000)
	at := began.Add(time.Duration(n) * time.Millisecond)
	for range 1 + r.IntN(3) {
		switch r.IntN(14) {
		case 0:
			f.Status = []job.Status{job.Dead, job.Queued, job.Scheduled, job.Succeeded, job.Running}[r.IntN(5)]
		case 1:
			f.Task = "task-" + strconv.Itoa(r.IntN(8))
		case 2:
			f.Schedule = "nightly"
		case 3:
			f.DAG = "etl"
		case 4:
			f.RunID = "run-" + strconv.Itoa(n/5)
		case 5:
			f.Pool = contract.Pools[r.IntN(2)]
		case 6:
			f.Priority = []job.Priority{job.Normal, job.Low}[r.IntN(2)]
		case 7:
			f.Code = "handler_failed"
		case 8:
			f = f.With("customer", strconv.Itoa(r.IntN(1000)))
		case 9:
			f = f.With("env", "test")
		case 10:
			f.CreatedAfter, f.DueBefore = at, at.Add(2*time.Minute)
		case 11:
			f.FinishedAfter = at
		case 12:
			f.DeadBefore = at.Add(2 * time.Minute)
		case 13:
			f.IDPrefix = string(entry(n).ID[:6+r.IntN(21)])
		}
	}
	return f
}

func TestSearchIndex_FindsWhatTheFilterMatches(t *testing.T) {
	t.Parallel()
	w := memory.New(memory.Options{})
	defer w.Close()
	var all []search.Entry
	var mixed []search.Update
	for n := range 3000 {
		all, mixed = append(all, entry(n)), append(mixed, search.Update{Entry: entry(n)})
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	w.Search().PutEntries(t.Context(), mixed)
	for range 500 {
		q := search.Query{Filter: filters(r), Limit: 1 + r.IntN(100),
			Order: []search.Order{search.NewestFirst, search.OldestFirst, search.LastDead}[r.IntN(3)]}
		if r.IntN(3) == 0 {
			q.Before = all[r.IntN(len(all))].ID
		}
		var want, got []job.ID
		for _, e := range all {
			if q.Matches(e) && (q.Before == "" || e.ID < q.Before) &&
				(q.Order != search.LastDead || e.Status == job.Dead) {
				want = append(want, e.ID) // in the order of their deaths, too
			}
		}
		if q.Order != search.OldestFirst {
			slices.Reverse(want)
		}
		for {
			page, err := w.Search().Search(t.Context(), "acme", q)
			if err != nil || len(page.Entries) > q.Limit {
				t.Fatal(len(page.Entries), err)
			}
			for _, e := range page.Entries {
				if !q.Matches(e) {
					t.Errorf("%v found %+v", q.Names(), e)
				}
				got = append(got, e.ID)
			}
			if q.Position = page.Next; q.Position == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v %s before %q found %d, want %d", q.Filter, q.Order, q.Before, len(got), len(want))
		}
	}
}

func TestSearchIndex_KeepsTheLaterEntry(t *testing.T) {
	t.Parallel()
	w := memory.New(memory.Options{})
	defer w.Close()
	x, q := w.Search(), search.Query{Limit: 10}
	dead, open := entry(3), entry(3)
	open.Status, open.Stage, open.DeadAt, open.Group = job.Scheduled, 3, time.Time{}, ""
	for _, e := range []search.Entry{open, dead, open, dead} {
		x.PutEntries(t.Context(), []search.Update{{Entry: e}})
	}
	page, _ := x.Search(t.Context(), "acme", q)
	if len(page.Entries) != 1 || page.Entries[0].Status != job.Dead || page.Entries[0].Tags["customer"] != "3" {
		t.Errorf("%+v", page.Entries)
	}
	if other, _ := x.Search(t.Context(), "other", q); len(other.Entries) != 0 {
		t.Errorf("another tenant finds %+v", other.Entries)
	}
	if err := x.RemoveEntry(t.Context(), dead); err != nil || x.Len() != 0 {
		t.Errorf("%d are left, %v", x.Len(), err)
	}
	gone := entry(5)
	gone.ExpiresAt = time.Now().Add(-time.Second)
	x.PutEntries(t.Context(), []search.Update{{Entry: gone}})
	if page, _ := x.Search(t.Context(), "acme", q); len(page.Entries) != 0 {
		t.Error("one that has expired is found")
	}
}

func TestSearchIndex_CountsCausesOfDeath(t *testing.T) {
	t.Parallel()
	w := memory.New(memory.Options{})
	defer w.Close()
	webhook := entry(3)
	webhook.ID, webhook.Task = entry(4).ID, search.WebhookTask
	entries := []search.Update{{Entry: webhook}}
	for n := range 700 {
		entries = append(entries, search.Update{Entry: entry(10*n + 3)})
	}
	w.Search().PutEntries(t.Context(), entries)
	found, err := w.Search().DeadGroups(t.Context(), "acme", time.Time{}, began.Add(time.Hour))
	if err != nil || len(found.Groups) != 7 || found.Groups[0].Count != 100 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, g := range found.Groups {
		if g.Group != search.Group(g.Task, g.Code, "cause") || !slices.Contains(g.Hourly[:], 100) {
			t.Errorf("%+v", g)
		}
	}
	late, _ := w.Search().DeadGroups(t.Context(), "acme", entry(6990).FinishedAt, began.Add(time.Hour))
	if len(late.Groups) != 1 || late.Groups[0].Count != 1 {
		t.Errorf("%+v", late)
	}
}

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
