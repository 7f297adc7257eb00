package stats

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// of returns what a sum has counted of a tenant's task, whatever the minute.
func of(s Sum, task string) (all Counts) {
	for _, c := range s[Series{jobtest.Tenant, task}] {
		all.Add(c)
	}
	return all
}

func attempt(n int64, outcome job.OutcomeKind, started time.Time, lateness int64) job.Attempt {
	return job.Attempt{Attempt: n, Outcome: string(outcome), StartedAt: started, LatenessMS: lateness,
		FinishedAt: started.Add(time.Second)}
}

func TestCount_FollowsFromTheRowBeforeAndAfter(t *testing.T) {
	t.Parallel()
	started := noon.Add(time.Minute)
	row := func(change ...func(*job.Row)) job.Row { return jobtest.Row(1, noon, noon, change...) }
	ended := func(s job.Status, attempts ...job.Attempt) job.Row {
		return row(func(r *job.Row) {
			r.Status, r.FinishedAt, r.Attempts = s, started.Add(time.Second), attempts
			for _, a := range attempts {
				r.StartedAt, r.LatenessMS = a.StartedAt, a.LatenessMS
			}
		})
	}
	failed, good := job.OutcomeFailed, job.OutcomeSucceeded
	late := Histogram{bucketOf(40): 1}
	fresh := row()
	running := row(func(r *job.Row) { r.Status, r.StartedAt, r.LatenessMS = job.Running, started, 40 })
	retried := row(func(r *job.Row) {
		r.Attempt, r.StartedAt, r.LatenessMS = 2, started, 40
		r.Attempts = []job.Attempt{attempt(1, failed, started, 40)}
	})
	succeeded := ended(job.Succeeded, attempt(1, good, started, 40))
	lost := ended(job.Succeeded,
		attempt(1, job.OutcomeLost, started.Add(-time.Second), 40), attempt(1, good, started, 40))
	lost.Attempts[0].Start = 1
	for name, c := range map[string]struct {
		before *job.Row
		after  job.Row
		want   Counts
	}{
		"a new job":                {nil, fresh, Counts{Created: 1}},
		"an edit":                  {&fresh, row(func(r *job.Row) { r.Version = 2 }), Counts{}},
		"the first heartbeat":      {&fresh, running, Counts{Started: 1, Lateness: late}},
		"a success":                {&fresh, succeeded, Counts{Started: 1, Succeeded: 1, Lateness: late}},
		"one whose start is known": {&running, succeeded, Counts{Succeeded: 1}},
		"a retry":                  {&fresh, retried, Counts{Started: 1, FailedAttempts: 1, Lateness: late}},
		"death at the second attempt": {&retried,
			ended(job.Dead, retried.Attempts[0], attempt(2, failed, started.Add(time.Minute), 40)),
			Counts{Started: 1, FailedAttempts: 1, Dead: 1, Lateness: late}},
		"a lost start before the one that ended": {&fresh, lost,
			Counts{Started: 2, Succeeded: 1, Lateness: Histogram{bucketOf(40): 2}}},
		"death without a start": {&fresh, ended(job.Dead, job.Attempt{Attempt: 1, Outcome: string(failed)}),
			Counts{FailedAttempts: 1, Dead: 1}},
		"a job that expires":      {&fresh, ended(job.Expired), Counts{Expired: 1}},
		"a job that is skipped":   {&fresh, ended(job.Skipped), Counts{Skipped: 1}},
		"a job that is cancelled": {&fresh, ended(job.Cancelled), Counts{}},
		"what follows on its end": {new(ended(job.Dead)), ended(job.Dead), Counts{}},
		"a run of a DAG":          {nil, row(func(r *job.Row) { r.Dag = "etl" }), Counts{}},
		"a mapped node of a run":  {nil, row(func(r *job.Row) { r.RunID, r.Items = "r", 2 }), Counts{}},
		"an item of such a node":  {nil, row(func(r *job.Row) { r.RunID, r.ItemNo = "r", 2 }), Counts{Created: 1}},
	} {
		var s Sum
		s.Count(c.before, c.after, noon)
		for _, task := range []string{c.after.Task, ""} {
			if got := of(s, task); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: task %q has %+v, want %+v", name, task, got, c.want)
			}
		}
	}
}

func TestCount_LeavesDeliveriesToTheirTask(t *testing.T) {
	t.Parallel()
	var s Sum
	s.Count(nil, jobtest.Row(1, noon, noon, func(r *job.Row) { r.Task, r.Webhook = "webhook", "ops" }), noon)
	if of(s, "").Created != 0 || of(s, "webhook").Created != 1 {
		t.Errorf("a delivery counts as %+v", s)
	}
}

// added returns what a sum adds to each attribute of each span.
func added(s Sum) map[string]int64 {
	all := map[string]int64{}
	for _, a := range s.Additions() {
		for name, n := range a.Write.Add {
			all[a.Write.Ref.String()+name] += n
		}
	}
	return all
}

// Whatever is added in whatever order, and in how many writes, the spans hold the sum.
func TestSpans_HoldWhatWasAdded(t *testing.T) {
	t.Parallel()
	counts := rapid.Custom(func(t *rapid.T) (c Counts) {
		for _, counter := range counters {
			*counter.of(&c) = rapid.Int64Range(0, 3).Draw(t, counter.name)
		}
		for range rapid.IntRange(0, 40).Draw(t, "starts") {
			c.Lateness.add(Histogram{rapid.IntRange(0, buckets-1).Draw(t, "bucket"): 1})
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		of := Series{"acme", "load"}
		want, stored := map[time.Time]Counts{}, map[item.Ref]item.Item{}
		for range rapid.IntRange(1, 4).Draw(t, "sums") {
			var s Sum
			for range rapid.IntRange(1, 8).Draw(t, "changes") {
				minute := noon.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "minute")) * time.Minute)
				c := counts.Draw(t, "counts")
				s.Add(of, minute, c)
				all := want[minute]
				all.Add(c)
				want[minute] = all
			}
			var carried Sum
			if err := carried.AddState(s.State()); err != nil || !reflect.DeepEqual(added(carried), added(s)) {
				t.Fatalf("carried is %+v, %v; want %+v", added(carried), err, added(s))
			}
			additions := s.Additions()
			rand.Shuffle(len(additions), func(a, b int) { additions[a], additions[b] = additions[b], additions[a] })
			for _, a := range additions {
				w := a.Write
				if len(w.Add) > 150 {
					t.Fatalf("a write adds to %d attributes", len(w.Add))
				}
				stored[w.Ref] = w.Applied(stored[w.Ref], contract.AttrPK, contract.AttrSK)
			}
		}
		got := map[time.Time]Counts{}
		for _, i := range stored {
			minutes, err := Minutes(i)
			if err != nil {
				t.Fatal(err)
			}
			for minute, c := range minutes {
				got[minute] = c
			}
		}
		for minute, c := range want {
			if reflect.DeepEqual(c, Counts{}) {
				delete(want, minute)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("stored is %+v, want %+v", got, want)
		}
	})
}

func TestPercentile_IsCloseToTheValue(t *testing.T) {
	t.Parallel()
	if _, ok := (Histogram{}).Percentile(0.5); ok {
		t.Error("an empty histogram has a percentile")
	}
	if ms, ok := (Histogram{bucketOf(-5): 1}).Percentile(0.99); ms != 0 || !ok {
		t.Errorf("a start that was not late has %d, %v", ms, ok)
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<34), 1, 200).Draw(t, "values")
		var h Histogram
		for _, v := range values {
			h.add(Histogram{bucketOf(v): 1})
		}
		slices.Sort(values)
		for _, p := range []float64{0.5, 0.99, 1} {
			rank := max(1, int(float64(len(values))*p+0.999999))
			want := float64(values[min(rank, len(values))-1])
			got, _ := h.Percentile(p)
			if off := float64(got) - want; off > 0.05*want+0.5 || off < -0.05*want-0.5 {
				t.Fatalf("percentile %v of %v is %d, want %v", p, values, got, want)
			}
		}
	})
}

func TestRange_IsAlignedOutwards(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		from, to string
		step     time.Duration
		want     string
		n        int
	}{
		{"2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z", time.Minute, "2026-11-30T12:00:00Z", 60},
		{"2026-11-30T12:00:59Z", "2026-11-30T12:01:01Z", time.Minute, "2026-11-30T12:00:00Z", 2},
		{"2026-11-30T12:07:00+05:30", "2026-11-30T12:08:00+05:30", time.Hour, "2026-11-30T06:00:00Z", 1},
		{"2026-11-30T12:00:00Z", "2026-12-01T00:00:00.001Z", 24 * time.Hour, "2026-11-30T00:00:00Z", 2},
	} {
		r := Aligned(at(c.from), at(c.to), c.step)
		if !r.From.Equal(at(c.want)) || r.N != c.n {
			t.Errorf("%s to %s by %s: %d steps from %s", c.from, c.to, c.step, r.N, r.From)
		}
		table := NewTable(r)
		for minute := r.From.Add(-time.Hour); minute.Before(r.End().Add(time.Hour)); minute = minute.Add(time.Minute) {
			table.Add(minute, Counts{Created: 1})
		}
		for n, got := range table.Counts {
			if want := int64(c.step / time.Minute); got.Created != want {
				t.Errorf("step %d by %s has %d minutes, want %d", n, c.step, got.Created, want)
			}
		}
	}
}
