package runs_test

import (
	"context"
	"testing"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
)

func TestSlice_DerivesRunsAfterACrash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.create(def("a", "b: a"))
	row := b.current("a")
	b.start(row)
	b.finish(row, false) // a crash keeps it from being announced
	due := b.run().WakeAt
	var came scan.Counter
	slice := horizon.SliceOf(due, b.run().Shard).String()
	b.Must(b.rel.Slice(ctx, slice, due, &came))
	if b.current("b").Status != "" || came.Counts()["derived"] != 0 {
		t.Error("a run is brought on before its wake-up")
	}
	b.now = due
	b.Must(b.rel.Slice(ctx, slice, due.Add(1e6), &came))
	if b.current("b").Status != job.Scheduled || came.Counts()["derived"] != 1 {
		t.Errorf("b is %q, and there came %v", b.current("b").Status, came.Counts())
	}
	if next := b.run().WakeAt; !next.After(b.now) {
		t.Errorf("it still wakes at %s", next)
	}
}

func TestSlice_SetsAsideARunThatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.create(def("a"))
	is := b.run()
	b.Write(item.Write{Ref: is.Ref(), Name: "spoil", Set: map[string]any{"nodes": "["}})
	b.now = is.WakeAt
	var came scan.Counter
	b.Must(b.rel.Slice(ctx, horizon.SliceOf(is.WakeAt, is.Shard).String(), is.WakeAt.Add(1e6), &came))
	i, err := b.World.Table().Get(ctx, is.Ref())
	b.Must(err)
	if came.Counts()["run_set_aside"] != 1 || !i.Time(contract.AttrWakeAt).After(b.now) {
		t.Errorf("there came %v, and it wakes at %s", came.Counts(), i.Time(contract.AttrWakeAt))
	}
}

func TestSlice_ReadsOnAfterAnEmptyPage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.World = memory.New(memory.Options{Clock: b, EmptyPages: true})
	t.Cleanup(b.World.Close)
	b.Store = store.New(b.World.Table(), b.World.Blobs())
	b.rel = b.another()
	b.create(def("a"))
	is := b.run()
	b.now = is.WakeAt
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == memory.TableQuery && c.N > 100 { // it reads the same page again and again
			return memory.Fault{Fail: fault.Unavailable}
		}
		return memory.Fault{}
	})
	var came scan.Counter
	b.Must(b.rel.Slice(ctx, horizon.SliceOf(is.WakeAt, is.Shard).String(), is.WakeAt.Add(1e6), &came))
	if came.Counts()["derived"] != 1 {
		t.Errorf("there came %v", came.Counts())
	}
}
