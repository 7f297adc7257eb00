package usage

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/tenant"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// all adds up what a change used.
func all(before, after job.Row) (u Use) {
	for _, at := range Of(before, after) {
		u.Add(at.Use)
	}
	return u
}

func TestOf_FollowsFromTheRowBeforeAndAfter(t *testing.T) {
	t.Parallel()
	row := func(change ...func(*job.Row)) job.Row { return jobtest.Row(1, noon, noon, change...) }
	attempt := func(n int64, ran time.Duration) job.Attempt {
		return job.Attempt{Attempt: n, Outcome: "failed", StartedAt: noon, FinishedAt: noon.Add(ran)}
	}
	ended := func(change ...func(*job.Row)) job.Row {
		return row(append(change, func(r *job.Row) {
			r.Status, r.FinishedAt = job.Succeeded, noon.Add(time.Second)
		})...)
	}
	retried := row(func(r *job.Row) { r.Attempts = []job.Attempt{attempt(1, 2*time.Second)} })
	second := func(r *job.Row) {
		r.Attempts = []job.Attempt{attempt(1, 2*time.Second), attempt(2, 300*time.Millisecond)}
	}
	size := func(r job.Row) int64 { return int64(r.Size()) }
	for name, c := range map[string]struct {
		before, after job.Row
		want          Use
	}{
		"a new job": {job.Row{}, row(), Use{}},
		"a retry":   {row(), retried, Use{Attempts: 1, RunningMS: 2000}},
		"the last attempt": {retried, ended(second),
			Use{Jobs: 1, Attempts: 1, RunningMS: 300, Requests: row().Version, Bytes: size(ended(second))}},
		"what follows on the end": {ended(second), ended(second), Use{}},
		"an attempt that never started": {row(), row(func(r *job.Row) {
			r.Attempts = []job.Attempt{{Attempt: 1, Outcome: "failed"}}
		}), Use{}},
		"edits":                {row(), ended(func(r *job.Row) { r.Version = 4 }), Use{Jobs: 1, Requests: 4}},
		"a job of a schedule":  {row(), ended(func(r *job.Row) { r.ScheduleID = "s" }), Use{Jobs: 1}},
		"a run that was asked": {row(), ended(func(r *job.Row) { r.ManualOf = "s" }), Use{Jobs: 1, Requests: 1}},
		"a node":               {row(), ended(func(r *job.Row) { r.RunID = "r" }), Use{Jobs: 1}},
		"a run of a DAG":       {row(), ended(func(r *job.Row) { r.Dag = "etl" }), Use{}},
		"a payload elsewhere": {row(), ended(func(r *job.Row) { r.PayloadIn, r.PayloadSize = job.InBlob, 1<<20 }),
			Use{Jobs: 1, Requests: 1, Bytes: size(ended(func(r *job.Row) {
				r.PayloadIn, r.PayloadSize = job.InBlob, 1<<20
			})) + 1<<20}},
	} {
		got := all(c.before, c.after)
		if c.want.Jobs > 0 && c.want.Bytes == 0 {
			c.want.Bytes = size(c.after)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDollars_GrowWithEachPart(t *testing.T) {
	t.Parallel()
	million := Use{Jobs: 1e6, Attempts: 1e6, RunningMS: 1e6, Bytes: 1e6 * 1024, Requests: 1e6}
	// The page of costs says $11 for a million jobs that are due later, one a request.
	if d := million.Dollars(); d < 10 || d > 13 {
		t.Errorf("a million jobs cost $%.2f", d)
	}
	for _, f := range fields {
		more := million
		*f.of(&more) *= 2
		if f.name != "j" && more.Dollars() <= million.Dollars() {
			t.Errorf("twice the %q cost $%.2f", f.name, more.Dollars())
		}
	}
}

// Whatever is added in whatever order, and carried or not, the items hold the sum.
func TestSum_IsWhatTheItemsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sum Sum
		stored, want := map[item.Ref]item.Item{}, map[string]Use{}
		for range rapid.IntRange(1, 4).Draw(t, "sums") {
			var one Sum
			for range rapid.IntRange(1, 60).Draw(t, "values") {
				value := "v " + strconv.Itoa(rapid.IntRange(0, 200).Draw(t, "value"))
				u := Use{Jobs: rapid.Int64Range(0, 3).Draw(t, "jobs"), Bytes: 5, Attempts: 1}
				g := Group{tenant.ID("acme"), TagPrefix + "a team", DayOf(noon)}
				one.Add(g, value, u)
				sumOf := want[value]
				sumOf.Add(u)
				want[value] = sumOf
			}
			state := map[string]string{"stats#acme# 000000000000": "{"}
			one.State(state)
			var carried Sum
			if err := carried.AddState(state); err != nil || !reflect.DeepEqual(carried, one) {
				t.Fatalf("carried is %+v, %v; want %+v", carried, err, one)
			}
			sum.AddSum(carried)
			for _, a := range carried.Additions() {
				if len(a.Write.Add) > 150 {
					t.Fatalf("a write adds to %d attributes", len(a.Write.Add))
				}
				stored[a.Write.Ref] = a.Write.Applied(stored[a.Write.Ref], contract.AttrPK, contract.AttrSK)
			}
		}
		got := map[string]Use{}
		for _, i := range stored {
			for value, u := range Values(i) {
				got[value] = u
			}
		}
		if !reflect.DeepEqual(got, want) || len(stored) > parts || sum.Len() != len(want) {
			t.Fatalf("%d items hold %+v, want %+v", len(stored), got, want)
		}
	})
}
