package operation

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/search"
)

func bulk(change ...func(*Operation)) Operation {
	o := Operation{
		Key: Key{Tenant: "acme", ID: "01KD000000000000000000000A"}, Action: RedriveJobs, Status: Running, By: "ann",
		CreatedAt: noon, Version: 1, Matched: 1200, Bulk: Bulk{Phase: Running},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func withCanary(count int) func(*Operation) {
	return func(o *Operation) {
		o.Status, o.Bulk.Phase = InCanary, InCanary
		o.Bulk.Canary = Canary{Count: count, MinSucceeded: 0.9, Within: Span(10 * time.Minute)}
	}
}

func TestBulk_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	delay := Span(time.Minute)
	o := bulk(withCanary(10), func(o *Operation) {
		o.Bulk.Filter = search.Filter{Task: "load"}.With("env", "prod")
		o.Bulk.Set = Set{Priority: job.High, Delay: &delay}
		o.Bulk.Rate, o.Bulk.Spread = Rate{500, Span(time.Second)}, Span(time.Hour)
		o.Bulk.Canary.Open, o.Bulk.Canary.Until = []job.ID{"A"}, noon
		o.Bulk.Position, o.Bulk.Worked, o.Bulk.Chunk = "p", 7, []int64{1, 0, 3}
		o.Bulk.BegunAt, o.Bulk.MovedAt, o.Bulk.RowsAt, o.Bulk.NextAt = noon, noon, noon, noon
		o.Bulk.Owner, o.Bulk.LeaseUntil, o.Bulk.Tries = "x", noon, 2
	})
	is, err := Parse(o.Item(), o.Tenant)
	if err != nil || !reflect.DeepEqual(is, o) {
		t.Errorf("%v\nread    %+v\nwritten %+v", err, is, o)
	}
}

// Whatever is found at a time, the pages hold each id once, and the slots name them from the oldest on.
func TestPages_HoldEachRowOnce(t *testing.T) {
	t.Parallel()
	for _, lots := range [][]int{{1}, {500}, {501}, {100, 100, 499, 1}, {0, 499, 2, 0, 600}, {1100, 1100}} {
		t.Run(fmt.Sprint(lots), func(t *testing.T) {
			t.Parallel()
			o := bulk(func(o *Operation) { o.Matched = 0 })
			pages := map[string][]job.ID{}
			var all, latest []job.ID
			for _, n := range lots {
				var ids []job.ID
				for range n {
					ids = append(ids, job.NewID(noon.Add(-time.Duration(len(all)+len(ids))*time.Second), [10]byte{}))
				}
				var writes []item.Write
				writes, latest = o.Pages(o.Matched, latest, ids, noon)
				for _, w := range writes {
					on, err := ParsePage(w.Put)
					if err != nil {
						t.Fatal(err)
					}
					pages[w.Ref.SK] = on
				}
				all = append(all, ids...)
				o.Matched += n
			}
			for row := range all {
				page, index := o.Slot(row)
				on := pages[o.PageRef(page).SK]
				if index >= len(on) || on[index] != all[len(all)-1-row] {
					t.Fatalf("row %d is not in page %d at %d", row, page, index)
				}
			}
		})
	}
	if _, err := ParsePage(nil); err == nil {
		t.Error("a page that is gone was read")
	}
	if _, err := ParsePage(item.Item{"ids": "short"}); err == nil {
		t.Error("an unreadable page was read")
	}
}

func TestBulk_WorksOnEachRowOnceInChunksOfOnePage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Operation){
		"as fast as it can": func(*Operation) {},
		"by a rate":         func(o *Operation) { o.Bulk.Rate = Rate{300, Span(time.Second)} },
		"one an hour":       func(o *Operation) { o.Bulk.Rate = Rate{1, Span(time.Hour)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bulk(change)
			now, n := noon, 0
			for o.Status == Running {
				size := o.ChunkSize()
				first, _ := o.Slot(o.Bulk.Worked)
				last, _ := o.Slot(o.Bulk.Worked + size - 1)
				if size < 1 || size > MaxChunk || first != last {
					t.Fatalf("a chunk of %d rows from page %d to %d", size, first, last)
				}
				if now.Before(o.Bulk.RowsAt) {
					now = o.Bulk.RowsAt
				}
				o.Begin(make([]int64, size), now)
				o.Settle(slices.Repeat([]Outcome{{Done: true}}, size), now)
				n += size
			}
			if o.Status != Succeeded || n != 1200 || o.Done != 1200 {
				t.Errorf("%d rows, %+v", n, o)
			}
			if took := now.Sub(noon) + time.Millisecond; took < o.Bulk.Rate.Of(1200-MaxChunk) {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestCanary_DecidesWhetherTheOthersFollow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		succeeded, failed, open int
		after                   time.Duration
		want                    Status
	}{
		"nine of ten":                     {9, 1, 0, time.Minute, Running},
		"eight of ten":                    {8, 2, 0, time.Minute, Failed},
		"one is open":                     {9, 0, 1, time.Minute, InCanary},
		"one is open when the time is up": {9, 0, 1, time.Hour, Running},
		"two are":                         {8, 0, 2, time.Hour, Failed},
		"all of them":                     {10, 0, 0, time.Minute, Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bulk(withCanary(10))
			if o.ChunkSize() != 10 {
				t.Fatalf("%d rows", o.ChunkSize())
			}
			o.Begin(make([]int64, 10), noon)
			var out []Outcome
			ended := map[job.ID]bool{}
			for n := range 10 {
				id := job.ID(fmt.Sprint(n))
				out = append(out, Outcome{Done: true, Started: id})
				if n < c.succeeded+c.failed {
					ended[id] = n < c.succeeded
				}
			}
			o.Settle(out, noon)
			if o.ChunkSize() != 0 {
				t.Fatal("others follow before the canary has ended")
			}
			o.Watch(ended, noon.Add(c.after))
			if o.Status != c.want || c.want == Failed && o.Why.Code != CodeCanaryFailed {
				t.Errorf("%s, %+v", o.Status, o.Bulk.Canary)
			}
		})
	}
}

func TestCanary_HasOtherRowsForThoseThatWereLeftOut(t *testing.T) {
	t.Parallel()
	o := bulk(withCanary(3))
	o.Begin(make([]int64, 3), noon)
	o.Settle([]Outcome{{}, {Done: true, Started: "A"}, {Failed: &Error{Code: "internal"}}}, noon)
	if o.ChunkSize() != 1 || !o.Bulk.Canary.Until.IsZero() || o.Skipped != 1 || o.Failed != 1 {
		t.Errorf("%+v", o)
	}
	few := bulk(withCanary(3), func(o *Operation) { o.Matched = 2 })
	few.Begin(make([]int64, 2), noon)
	few.Settle([]Outcome{{}, {}}, noon)
	few.Watch(nil, noon)
	if few.Status != Succeeded || few.Skipped != 2 {
		t.Errorf("%+v", few)
	}
}

func TestProceed_OverrulesACanary(t *testing.T) {
	t.Parallel()
	failed := func(o *Operation) { o.Abort(job.Reason{Code: CodeCanaryFailed}, noon) }
	expired := func(o *Operation) { o.Abort(job.Reason{Code: CodeExpired}, noon) }
	counting := func(o *Operation) { o.Status, o.Bulk.Phase = Counting, Counting }
	overruled := func(o *Operation) { o.enter(Running); o.Bulk.Canary.Overruled = true }
	worked := func(o *Operation) { o.Bulk.Worked, o.Done = 1200, 1200 }
	for name, c := range map[string]struct {
		of   Operation
		want Status // "": it is refused
	}{
		"without one":            {bulk(), ""},
		"of a backfill":          {backfill(), ""},
		"in it":                  {bulk(withCanary(3)), Running},
		"while it is counted":    {bulk(withCanary(3), counting), Counting},
		"paused":                 {bulk(withCanary(3), func(o *Operation) { o.Status = Paused }), Paused},
		"failed":                 {bulk(withCanary(3), failed), Running},
		"failed for another":     {bulk(withCanary(3), expired), ""},
		"stopped":                {bulk(withCanary(3), func(o *Operation) { o.Status = Stopped }), ""},
		"after it":               {bulk(withCanary(3), func(o *Operation) { o.enter(Running) }), ""},
		"a second time":          {bulk(withCanary(3), overruled), Running},
		"with nothing after it":  {bulk(withCanary(3), failed, worked), Succeeded},
		"succeeded a while ago ": {bulk(withCanary(3), func(o *Operation) { o.Finish(noon) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := c.of.Proceed(noon)
			if (err == nil) != (c.want != "") || c.want != "" && after.Status != c.want {
				t.Fatalf("%s, %v", after.Status, err)
			}
			if err == nil && after.Status == Running && (after.Why.Code != "" || !after.EndedAt.IsZero()) {
				t.Errorf("%+v", after)
			}
			if err == nil && after.Status == Counting {
				if after.Counted(noon); after.Status != Running {
					t.Errorf("the canary was not left out: %s", after.Status)
				}
			}
		})
	}
}

func TestBulk_IsPausedInEachPhaseAndGoesOnThere(t *testing.T) {
	t.Parallel()
	for _, phase := range []Status{Counting, InCanary, Running} {
		o := bulk(withCanary(3), func(o *Operation) { o.Status, o.Bulk.Phase = phase, phase })
		paused, err := o.Pause()
		if err != nil || paused.Status != Paused {
			t.Fatalf("%s, %v", paused.Status, err)
		}
		if resumed, err := paused.Resume(); err != nil || resumed.Status != phase {
			t.Errorf("%s, %v", resumed.Status, err)
		}
		if same, err := o.Resume(); err != nil || same.Status != phase {
			t.Errorf("%s, %v", same.Status, err)
		}
	}
	counted := bulk(func(o *Operation) { o.Status, o.Bulk.Phase = Paused, Counting })
	if counted.Counted(noon); counted.Status != Paused || counted.Bulk.Phase != Running {
		t.Errorf("%s, %s", counted.Status, counted.Bulk.Phase)
	}
	none := bulk(func(o *Operation) { o.Matched, o.Status, o.Bulk.Phase = 0, Counting, Counting })
	if none.Counted(noon); none.Status != Succeeded {
		t.Error(none.Status)
	}
}

func TestBulk_StalledUnlessItWaits(t *testing.T) {
	t.Parallel()
	retries := func(o *Operation) { o.Bulk.NextAt, o.Bulk.Tries = noon.Add(2*time.Hour), 3 }
	at := func(change func(*Operation)) time.Duration {
		o := bulk(func(o *Operation) { o.Bulk.MovedAt = noon }, change)
		return o.Stalled(noon.Add(time.Hour))
	}
	for name, c := range map[string]struct {
		change func(*Operation)
		want   time.Duration
	}{
		"for an hour":         {func(*Operation) {}, time.Hour},
		"never yet":           {func(o *Operation) { o.Bulk.MovedAt = time.Time{} }, time.Hour},
		"it waits":            {func(o *Operation) { o.Bulk.NextAt = noon.Add(2 * time.Hour) }, 0},
		"its rate lets it":    {func(o *Operation) { o.Bulk.RowsAt = noon.Add(50 * time.Minute) }, 10 * time.Minute},
		"it waits to try":     {retries, time.Hour},
		"it is paused":        {func(o *Operation) { o.Status = Paused }, 0},
		"it has ended":        {func(o *Operation) { o.Status = Stopped }, 0},
		"it makes past times": {func(o *Operation) { o.Action = Backfill }, 0},
	} {
		if got := at(c.change); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestReleased_TakesTheLeaseOfAProcessThatHasEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Operation)
		want   bool
	}{
		"it ended after its last write": {func(*Operation) {}, true},
		"it wrote since":                {func(o *Operation) { o.Bulk.LeaseUntil = noon.Add(Lease) }, false},
		"it has none":                   {func(o *Operation) { o.Bulk.Owner = "" }, false},
		"it has ended":                  {func(o *Operation) { o.Status = Stopped }, false},
	} {
		o := bulk(func(o *Operation) { o.Bulk.Owner, o.Bulk.LeaseUntil = "x", noon.Add(Lease-time.Second) }, c.change)
		next, held := o.Released(noon)
		if held != c.want || held && next.Waits(noon) {
			t.Errorf("%s: %v, %+v", name, held, next.Bulk)
		}
	}
}
