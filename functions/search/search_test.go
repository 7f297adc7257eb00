package search_test

import (
	"context"
	"maps"
	"slices"
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
	"punctual/shared/run"
	searches "punctual/shared/search"
	"punctual/shared/store"
)

// index counts what is written to an index.
type index struct {
	store.SearchWriter
	put    int
	before func() // is called before entries are written; nil: nothing
}

func (x *index) PutEntries(ctx context.Context, updates []searches.Update) []error {
	if x.before != nil {
		x.before()
	}
	x.put += len(updates)
	return x.SearchWriter.PutEntries(ctx, updates)
}

type bench struct {
	*stagetest.Bench
	stage *search.Stage
	index *index
	seen  string // of the table's stream
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		b := &bench{Bench: s, index: &index{SearchWriter: s.World.Search()}}
		b.stage = search.New(search.Deps{Base: s.ProcessBase(), Store: s.Store, Index: b.index})
		do(b)
	})
}

// changes are those since the last call.
func (b *bench) changes() []item.Change {
	b.Helper()
	changes, err := b.World.Table().Stream(b.Context(), b.seen, 1000, 0)
	b.Must(err)
	if len(changes) > 0 {
		b.seen = changes[len(changes)-1].Seq
	}
	return changes
}

// follow indexes all changes since the last call.
func (b *bench) follow() {
	b.Helper()
	for _, err := range b.stage.Changes(b.Context(), b.changes()) {
		b.Must(err)
	}
}

func (b *bench) all() (entries []searches.Entry) {
	b.Helper()
	page, err := b.World.Search().Search(b.Context(), jobtest.Tenant, store.SearchQuery{Limit: 1000})
	b.Must(err)
	return page.Entries
}

func (b *bench) found(f searches.Filter) int {
	b.Helper()
	page, err := b.World.Search().Search(b.Context(), jobtest.Tenant, store.SearchQuery{Filter: f, Limit: 1000})
	b.Must(err)
	return len(page.Entries)
}

// tagged puts job n with a tag, as a request does.
func (b *bench) tagged(n int, tags string, change ...func(*job.Row)) job.Row {
	b.Helper()
	l := job.Labels{Tags: tags}
	r := jobtest.Row(n, time.Now(), time.Now(), append(change, func(r *job.Row) { r.Labelled = l.Labelled() })...)
	b.Must(b.Store.Accept(b.Context(), r, r.PutLabels(l)))
	return r
}

func TestSearch_FollowsTheRows(t *testing.T) {
	t.Parallel()
	bubble(t, "finds a job by its tags, and by its status as that changes", func(b *bench) {
		r := b.tagged(1, `{"env":"prod"}`)
		b.follow()
		prod := searches.Filter{}.With("env", "prod")
		if b.found(prod) != 1 || b.found(searches.Filter{Status: job.Scheduled}) != 1 {
			t.Fatalf("after it was accepted: %+v", b.all())
		}
		b.Put(deadOf(r))
		b.follow()
		group := searches.Group(r.Task, "handler_failed", "no luck")
		if b.found(prod) != 1 || b.found(searches.Filter{Status: job.Scheduled}) != 0 ||
			b.found(searches.Filter{Group: group, Code: "handler_failed"}) != 1 {
			t.Fatalf("after its death: %+v", b.all())
		}
	})
	bubble(t, "forgets a job that is deleted, and one whose row is gone", func(b *bench) {
		gone, removed := b.tagged(1, `{"env":"prod"}`), b.tagged(2, `{"env":"prod"}`)
		b.follow()
		done := gone
		done.Status, done.FinishedAt = job.Succeeded, time.Now()
		b.Put(done)
		b.follow()
		if b.found(searches.Filter{Status: job.Succeeded}) != 1 {
			t.Fatalf("%+v", b.all())
		}
		b.Write(job.Forget(done, time.Now()))
		b.Write(item.Write{Ref: removed.Ref(), Name: "test.delete", Delete: true})
		b.follow()
		if got := b.all(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
	bubble(t, "lists no row that represents a run, and no contents", func(b *bench) {
		b.tagged(1, `{}`, func(r *job.Row) { r.Dag = "etl" })
		b.follow()
		if got := b.all(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
	bubble(t, "finds a node by the dag of its run", func(b *bench) {
		k := run.Key{Tenant: jobtest.Tenant, ID: jobtest.Key(9).ID}
		is := b.CreateRun(k, stagetest.Graph("a"))
		b.Overwrite(is.Ref(), withDag(is.Item(), "etl"))
		r := b.tagged(1, `{}`, func(r *job.Row) { r.RunID, r.Node = string(k.ID), "a" })
		b.follow()
		if b.found(searches.Filter{DAG: "etl", RunID: r.RunID}) != 2 { // the run has made one, too
			t.Errorf("%+v", b.all())
		}
	})
}

func withDag(i item.Item, dag string) item.Item {
	i = i.Clone()
	i["dag"] = dag
	return i
}

func deadOf(r job.Row) job.Row {
	r.Status, r.DeadAt, r.FinishedAt = job.Dead, stagetest.Now(), stagetest.Now()
	r.Reason = job.Reason{Code: "handler_failed", Message: "no luck"}
	return r
}

func TestSearch_WritesWhatCanBeSearchedForOnly(t *testing.T) {
	t.Parallel()
	bubble(t, "once for several changes in one batch, and not for a wake-up", func(b *bench) {
		r := deadOf(jobtest.Row(1, time.Now(), time.Now()))
		r.PendingEffects = job.PendingDeadLetter
		b.Put(jobtest.Row(1, time.Now(), time.Now()))
		b.Put(r)
		b.follow()
		r.PendingEffects = job.NoPendingEffects
		b.Put(r)
		b.follow()
		if b.index.put != 1 {
			t.Errorf("%d entries were written", b.index.put)
		}
	})
}

func TestSearch_EndsEqualInAnyOrder(t *testing.T) {
	t.Parallel()
	bubble(t, "keeps the last state however late the others come, and however often", func(b *bench) {
		r := b.tagged(1, `{"env":"prod"}`)
		first := b.changes()
		b.Put(deadOf(r))
		last := b.changes()
		for _, changes := range [][]item.Change{last, first, last, slices.Concat(last, first)} {
			for _, err := range b.stage.Changes(b.Context(), changes) {
				b.Must(err)
			}
			if b.found(searches.Filter{Status: job.Dead}) != 1 && len(changes) == len(last) {
				t.Fatalf("%+v", b.all())
			}
		}
	})
}

func TestSearch_AnswersForEachChange(t *testing.T) {
	t.Parallel()
	bubble(t, "sets one aside that cannot be read, and indexes the others", func(b *bench) {
		for n := range 3 {
			b.tagged(n, `{"env":"prod"}`)
		}
		changes := b.changes()
		for i, c := range changes {
			if c.New.Str(contract.AttrJobID) == string(jobtest.Key(1).ID) {
				changes[i].New = withStatus(c.New, "UNKNOWN")
			}
		}
		for i, err := range b.stage.Changes(b.Context(), changes) {
			bad := changes[i].New.Str("status") == "UNKNOWN"
			if (fault.KindOf(err) == fault.Undecodable) != bad {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if b.found(searches.Filter{}.With("env", "prod")) != 2 {
			t.Errorf("%+v", b.all())
		}
	})
	bubble(t, "has changes redelivered whose labels cannot be read now", func(b *bench) {
		b.tagged(1, `{"env":"prod"}`)
		changes := b.changes()
		b.FaultFirst(1, stagetest.Every(memory.TableGet), memory.Fault{Fail: fault.Unavailable})
		failed := false
		for _, err := range b.stage.Changes(b.Context(), changes) {
			failed = failed || fault.Retryable(err)
		}
		if !failed {
			t.Error("all are said to be indexed")
		}
		for _, err := range b.stage.Changes(b.Context(), changes) {
			b.Must(err)
		}
		if b.found(searches.Filter{}.With("env", "prod")) != 1 {
			t.Errorf("%+v", b.all())
		}
	})
}

func withStatus(i item.Item, status string) item.Item {
	i = maps.Clone(i)
	i["status"] = status
	return i
}
