package conformance

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// SearchIndex is an index of jobs.
type SearchIndex interface {
	store.SearchReader
	store.SearchWriter
}

// Search exercises an index of jobs. Each exercise has a tenant of its own.
func Search(t *testing.T, open func(*testing.T) SearchIndex, k Knobs) {
	t.Helper()
	run(t, k, open, []exercise[SearchIndex]{
		{name: "finds in each order, page by page, what a filter matches", run: findsWhatMatches},
		{name: "keeps the later entry", run: keepsTheLater},
		{name: "finds a job by new tags, and no longer by its death, when it is changed", run: followsChanges},
		{name: "counts causes of death", run: countsCauses},
		{name: "hides what is gone", run: hidesWhatIsGone},
	})
}

const indexedJobs = 300

// IndexEntry is entry number n of jobs with few values, each made a millisecond after the one before.
func IndexEntry(t tenant.ID, n int, began time.Time) search.Entry {
	at := began.Add(time.Duration(n) * time.Millisecond)
	e := search.Entry{
		Key:   job.Key{Tenant: t, ID: job.DeterministicID(at, "entry", strconv.Itoa(n))},
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

// anyFilter is a filter of one to three values, of which most match some entries.
func anyFilter(r *rand.Rand, began time.Time) (f search.Filter) {
	n := r.IntN(indexedJobs)
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
			f.Code = "handler_failed"
		case 7:
			f = f.With("customer", strconv.Itoa(r.IntN(50)))
		case 8:
			f = f.With("env", "test")
		case 9:
			f.CreatedAfter, f.DueBefore = at, at.Add(2*time.Minute)
		case 10:
			f.FinishedAfter = at.Add(2 * time.Minute)
		case 11:
			f.DeadBefore = at.Add(2 * time.Minute)
		case 12:
			f.Priority = []job.Priority{job.Normal, job.Low}[r.IntN(2)]
		case 13:
			f.IDPrefix = string(IndexEntry("t", n, began).ID[:6+r.IntN(21)])
		}
	}
	return f
}

// ownTenant is a tenant that no exercise before had.
func ownTenant() tenant.ID { return tenant.ID("t" + strconv.FormatUint(rand.Uint64(), 36)) }

func putAll(t T, x SearchIndex, updates []search.Update) {
	t.Helper()
	for _, err := range x.PutEntries(t.Context(), updates) {
		if err != nil {
			t.Fatalf("writing an entry: %v", err)
		}
	}
}

// findAll reads all pages of a query.
func findAll(t T, x SearchIndex, who tenant.ID, q search.Query) (found []search.Entry) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := x.Search(t.Context(), who, q)
		if err != nil || len(page.Entries) > q.Limit || page.AsOf.IsZero() || pages > indexedJobs {
			t.Fatalf("%d entries on page %d, as of %s: %v", len(page.Entries), pages, page.AsOf, err)
		}
		found = append(found, page.Entries...)
		if q.Position = page.Next; q.Position == "" {
			return found
		}
	}
}

func beganNow() time.Time { return time.Now().UTC().Truncate(time.Hour).Add(-time.Hour) }

func findsWhatMatches(t T, x SearchIndex) {
	who, began, r := ownTenant(), beganNow(), rand.New(rand.NewPCG(1, 2))
	var all []search.Entry
	var updates []search.Update
	for n := range indexedJobs {
		all = append(all, IndexEntry(who, n, began))
		updates = append(updates, search.Update{Entry: all[n]})
	}
	r.Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
	putAll(t, x, updates)
	for range 60 {
		q := search.Query{Filter: anyFilter(r, began), Limit: 1 + r.IntN(100),
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
		for _, e := range findAll(t, x, who, q) {
			got = append(got, e.ID)
			if !q.Matches(e) || e.Tags["env"] == "" || e.Stage != 4 {
				t.Errorf("%v found %+v", q.Names(), e)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v %s before %q found %d, want %d", q.Filter, q.Order, q.Before, len(got), len(want))
		}
	}
}

func keepsTheLater(t T, x SearchIndex) {
	who, began := ownTenant(), beganNow()
	dead, open := IndexEntry(who, 3, began), IndexEntry(who, 3, began)
	open.Status, open.Stage, open.DeadAt, open.Group, open.Code = job.Scheduled, 3, time.Time{}, "", ""
	for _, u := range []search.Update{{Entry: open}, {Entry: dead, Found: true}, {Entry: open}, {Entry: dead}} {
		putAll(t, x, []search.Update{u})
	}
	found := findAll(t, x, who, search.Query{Limit: 10})
	if len(found) != 1 || found[0].Status != job.Dead || found[0].Tags["customer"] != "3" {
		t.Errorf("%+v", found)
	}
	if other := findAll(t, x, ownTenant(), search.Query{Limit: 10}); len(other) != 0 {
		t.Errorf("another tenant finds %+v", other)
	}
}

func followsChanges(t T, x SearchIndex) {
	who, began := ownTenant(), beganNow()
	dead := IndexEntry(who, 3, began)
	alive := dead
	alive.Stage, alive.Status, alive.DeadAt, alive.Group, alive.Code = 9, job.Scheduled, time.Time{}, "", ""
	alive.Tags = map[string]string{"env": "other"}
	putAll(t, x, []search.Update{{Entry: dead}})
	deaths := search.Query{Order: search.LastDead, Limit: 10}
	if found := findAll(t, x, who, deaths); len(found) != 1 {
		t.Errorf("of one death %+v are found", found)
	}
	putAll(t, x, []search.Update{{Entry: alive, DeadBefore: dead.DeadAt}})
	if found := findAll(t, x, who, deaths); len(found) != 0 {
		t.Errorf("a job that lives is found by its death: %+v", found)
	}
	if causes, err := x.DeadGroups(t.Context(), who, time.Time{}, began); err != nil || len(causes.Groups) != 0 {
		t.Errorf("a job that lives counts as dead: %+v, %v", causes, err)
	}
	for tag, want := range map[string]int{dead.Tags["env"]: 0, "other": 1} {
		q := search.Query{Filter: search.Filter{}.With("env", tag), Limit: 10}
		if found := findAll(t, x, who, q); len(found) != want {
			t.Errorf("by the tag %q %d are found; want %d", tag, len(found), want)
		}
	}
}

func countsCauses(t T, x SearchIndex) {
	who, began := ownTenant(), beganNow()
	webhook := IndexEntry(who, 3, began)
	webhook.ID, webhook.Task = IndexEntry(who, 4, began).ID, search.WebhookTask
	updates := []search.Update{{Entry: webhook}}
	const each = 5
	for n := range 7 * each {
		updates = append(updates, search.Update{Entry: IndexEntry(who, 10*n+3, began)})
	}
	putAll(t, x, updates)
	found, err := x.DeadGroups(t.Context(), who, time.Time{}, began.Add(time.Hour))
	if err != nil || len(found.Groups) != 7 || found.AsOf.IsZero() {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, g := range found.Groups {
		if g.Group != search.Group(g.Task, g.Code, "cause") || g.Count != each || !slices.Contains(g.Hourly[:], each) ||
			g.Example == "" || !g.FirstAt.Before(g.LastAt) {
			t.Errorf("%+v", g)
		}
	}
	last := IndexEntry(who, 10*(7*each-1)+3, began)
	late, err := x.DeadGroups(t.Context(), who, last.DeadAt, began.Add(time.Hour))
	if err != nil || len(late.Groups) != 1 || late.Groups[0].Count != 1 || late.Groups[0].Example != last.ID {
		t.Errorf("%+v, %v", late, err)
	}
}

func hidesWhatIsGone(t T, x SearchIndex) {
	who, began := ownTenant(), beganNow()
	kept, expired, removed := IndexEntry(who, 0, began), IndexEntry(who, 13, began), IndexEntry(who, 23, began)
	kept.ExpiresAt, expired.ExpiresAt = began.Add(1000*time.Hour), began.Add(time.Minute)
	putAll(t, x, []search.Update{{Entry: kept}, {Entry: expired}, {Entry: removed}})
	for _, e := range []search.Entry{removed, expired, removed} {
		if err := x.RemoveEntry(t.Context(), e); err != nil {
			t.Errorf("removing an entry: %v", err)
		}
	}
	for _, q := range []search.Query{{Limit: 10}, {Limit: 10, Filter: search.Filter{Task: removed.Task}},
		{Limit: 10, Filter: search.Filter{}.With("env", "test")}, {Limit: 10, Order: search.LastDead}} {
		for _, e := range findAll(t, x, who, q) {
			if e.ID != kept.ID || !e.ExpiresAt.Equal(kept.ExpiresAt) {
				t.Errorf("%v %s finds %+v", q.Names(), q.Order, e)
			}
		}
	}
	if causes, err := x.DeadGroups(t.Context(), who, time.Time{}, began); err != nil || len(causes.Groups) != 0 {
		t.Errorf("what is gone counts as dead: %+v, %v", causes, err)
	}
}
