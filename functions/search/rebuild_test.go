package search_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"punctual/functions/search"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	searches "punctual/shared/search"
	"punctual/shared/store"
)

// inTable has the stage write the index of a table.
func (b *bench) inTable() *store.SearchTable {
	x := store.NewSearchTable(nil, b.World.Table())
	b.index = &index{SearchWriter: x}
	b.stage = search.New(search.Deps{Base: b.ProcessBase(), Store: b.Store, Index: b.index})
	return x
}

func (b *bench) rebuild() *search.Rebuild {
	return &search.Rebuild{Stage: b.stage, Jobs: b.World.Table()}
}

// indexItems are all items of the index's table.
func (b *bench) indexItems() map[item.Ref]item.Item {
	b.Helper()
	all := map[item.Ref]item.Item{}
	for cursor := ""; ; {
		page, err := b.World.Table().Scan(b.Context(), contract.Search, cursor, 50)
		b.Must(err)
		for _, i := range page.Items {
			all[item.Ref{Table: contract.Search, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrSK)}] = i
		}
		if cursor = page.Cursor; cursor == "" {
			return all
		}
	}
}

// empty deletes all items of the index's table.
func (b *bench) empty() {
	b.Helper()
	for ref := range b.indexItems() {
		b.Write(item.Write{Ref: ref, Name: "test.delete", Delete: true})
	}
}

// endedAt ends a job with a status.
func endedAt(r job.Row, s job.Status, at time.Time) job.Row {
	r.Status, r.FinishedAt, r.ExpiresAt = s, at, at.Add(contract.FinishedKept)
	if s == job.Dead {
		r.DeadAt, r.Reason = at, job.Reason{Code: "handler_failed", Message: "no luck"}
	}
	return r
}

func TestRebuild_MakesTheSameIndex(t *testing.T) {
	t.Parallel()
	bubble(t, "each entry, reference and death of an emptied table is written anew", func(b *bench) {
		b.inTable()
		for n := range 250 {
			r := b.tagged(n, `{"env":"prod","customer":"`+string(rune('a'+n%7))+`"}`)
			b.follow()
			switch n % 4 {
			case 0:
				b.Put(endedAt(r, job.Dead, stagetest.Now()))
			case 1:
				b.Put(endedAt(r, job.Succeeded, stagetest.Now()))
			}
		}
		b.follow()
		before := b.indexItems()
		if len(before) < 250*4 {
			b.Fatalf("the index has %d items", len(before))
		}
		b.empty()
		p, err := b.rebuild().Handle(b.Context(), search.Progress{})
		if b.Must(err); !p.Done || p.Indexed != 250 || p.Cursor != "" {
			b.Errorf("%+v", p)
		}
		after := b.indexItems()
		for ref := range before {
			if !maps.Equal(before[ref], after[ref]) {
				b.Errorf("%s is %v; it was %v", ref, after[ref], before[ref])
			}
		}
		if len(after) != len(before) {
			b.Errorf("the index has %d items; it had %d", len(after), len(before))
		}
	})
	bubble(t, "the index in memory is made anew, too", func(b *bench) {
		for n := range 50 {
			r := b.tagged(n, `{"env":"prod"}`)
			if n%3 == 0 {
				b.Put(endedAt(r, job.Dead, stagetest.Now()))
			}
		}
		b.follow()
		before := b.all()
		b.World.Search().Clear()
		if len(b.all()) != 0 {
			b.Fatal("it is not empty")
		}
		_, err := b.rebuild().Handle(b.Context(), search.Progress{})
		b.Must(err)
		if after := b.all(); len(before) != 50 || !reflect.DeepEqual(before, after) {
			b.Errorf("before %+v, after %+v", before, after)
		}
	})
	bubble(t, "jobs whose time has ended are left out", func(b *bench) {
		b.Put(endedAt(jobtest.Row(1, time.Now(), time.Now()), job.Succeeded, stagetest.Now()))
		time.Sleep(contract.FinishedKept + time.Second)
		p, err := b.rebuild().Handle(b.Context(), search.Progress{})
		if b.Must(err); p.Indexed != 0 {
			b.Errorf("%+v", p)
		}
	})
}

func TestRebuild_GoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	bubble(t, "call by call, at its rate", func(b *bench) {
		for n := range 450 {
			b.Put(jobtest.Row(n, time.Now(), time.Now()))
		}
		r, began := b.rebuild(), time.Now()
		r.Rate, r.Time = 100, 2*time.Second
		var p search.Progress
		calls := 0
		for ; !p.Done; calls++ {
			var err error
			p, err = r.Handle(b.Context(), p)
			b.Must(err)
		}
		// Three pages in the first call, at 0, 1 and 2 s; two in the other one.
		if took := time.Since(began); p.Indexed != 450 || calls != 2 || b.index.put != 450 || took != 3*time.Second {
			b.Errorf("%+v after %d calls in %s, %d written", p, calls, took, b.index.put)
		}
	})
	bubble(t, "a call that fails is repeated with the same progress", func(b *bench) {
		for n := range 150 {
			b.Put(jobtest.Row(n, time.Now(), time.Now()))
		}
		b.FaultFirst(1, stagetest.Every(memory.TableScan), memory.Fault{Fail: fault.Throttled})
		p, err := b.rebuild().Handle(b.Context(), search.Progress{})
		if !fault.Retryable(err) || p.Done {
			b.Fatalf("%+v, %v", p, err)
		}
		p, err = b.rebuild().Handle(b.Context(), p)
		if b.Must(err); p.Indexed != 150 || len(b.all()) != 150 {
			b.Errorf("%+v, %d are found", p, len(b.all()))
		}
	})
}

func TestRebuild_CountsNoDeathOfADeletedJob(t *testing.T) {
	t.Parallel()
	bubble(t, "a dead job that is deleted while its entry is written", func(b *bench) {
		x := b.inTable()
		dead := endedAt(jobtest.Row(1, time.Now(), time.Now()), job.Dead, stagetest.Now())
		b.Put(dead)
		b.follow()
		b.empty()
		b.index.before = func() {
			b.Write(job.Forget(dead, time.Now()))
			b.index.before = nil
			b.follow() // its change comes first
		}
		_, err := b.rebuild().Handle(b.Context(), search.Progress{})
		b.Must(err)
		causes, err := x.DeadGroups(b.Context(), jobtest.Tenant, time.Time{}, stagetest.Now())
		if b.Must(err); len(causes.Groups) != 0 {
			b.Errorf("it counts as dead: %+v", causes.Groups)
		}
		found, err := x.Search(b.Context(), jobtest.Tenant, searches.Query{Limit: 10})
		if b.Must(err); len(found.Entries) != 0 {
			b.Errorf("it is found: %+v", found.Entries)
		}
	})
}
