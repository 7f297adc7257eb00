package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

var at = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func world(t *testing.T, o memory.Options) (*memory.World, *store.Store) {
	t.Helper()
	w := memory.New(o)
	t.Cleanup(w.Close)
	return w, store.New(w.Table(), w.Blobs())
}

// accepted puts a row of that tenant, the n-th of its kind.
func accepted(t *testing.T, s *store.Store, owner tenant.ID, n int, change ...func(*job.Row)) job.Row {
	t.Helper()
	r := job.Row{
		Key: job.Key{Tenant: owner, ID: job.NewID(at.Add(time.Duration(n)*time.Millisecond),
			[10]byte{byte(n * 7), byte(n)})}, Status: job.Scheduled, Version: 1, Attempt: 1,
		DueAt: at, CreatedAt: at, Settings: job.Settings{Task: "echo", Executor: "echo", Pool: "short",
			Priority: job.Normal,
			Timeout:  time.Second,
			Retry:    job.DefaultRetry},
	}
	for _, c := range change {
		c(&r)
	}
	if err := s.Put(context.Background(), job.Accept(r)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStore_NewestMergesAllPartitionsNewestFirst(t *testing.T) {
	t.Parallel()
	for _, empty := range []bool{false, true} {
		_, s := world(t, memory.Options{EmptyPages: empty})
		var ids []job.ID
		for n := range 300 {
			ids = append(ids, accepted(t, s, "acme", n).ID)
			accepted(t, s, "globex", n)
		}
		slices.Reverse(ids)
		read := func(from, before job.ID, expect, most int) (got []job.ID) {
			for r, err := range s.Newest(context.Background(), "acme", from, before, expect) {
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, r.ID); len(got) == most {
					break
				}
			}
			return got
		}
		for _, expect := range []int{0, 1, 50, 1000} {
			if got := read("", "", expect, -1); !slices.Equal(got, ids) {
				t.Errorf("expecting %d: %d ids, or in another order", expect, len(got))
			}
		}
		if got := read(ids[250], ids[100], 10, -1); !slices.Equal(got, ids[101:251]) {
			t.Errorf("half-open range: %d ids", len(got))
		}
		if got := read("", ids[10], 5, 5); !slices.Equal(got, ids[11:16]) {
			t.Errorf("the first five after a place: %v", got)
		}
	}
}

func TestStore_APageOfTheNewestCostsLittle(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	for n := range 2000 {
		accepted(t, s, "acme", n)
	}
	before := w.Counts()
	taken := 0
	for _, err := range s.Newest(context.Background(), "acme", "", "", 50) {
		if err != nil {
			t.Fatal(err)
		}
		if taken++; taken == 50 {
			break
		}
	}
	if calls := w.Counts().TableCalls - before.TableCalls; calls > 3*contract.Partitions {
		t.Errorf("50 rows took %d calls", calls)
	}
}

func TestStore_NamesARowThatCannotBeReadAndGoesOn(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	bad, good := accepted(t, s, "acme", 2), accepted(t, s, "acme", 1)
	if _, err := w.Table().Write(context.Background(),
		item.Write{Ref: bad.Ref(), Name: "spoil", Set: map[string]any{"schema_v": int64(9)}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range s.Newest(context.Background(), "acme", "", "", 10) {
		got = append(got, fmt.Sprint(r.ID, " ", fault.KindOf(err)))
	}
	if want := []string{string(bad.ID) + " undecodable", string(good.ID) + " "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStore_EndsAListAtAFault(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	accepted(t, s, "acme", 1)
	w.SetFaults(func(memory.Call) memory.Fault { return memory.Fault{Fail: fault.Throttled} })
	steps := 0
	for _, err := range s.Newest(context.Background(), "acme", "", "", 10) {
		if steps++; fault.KindOf(err) != fault.Throttled {
			t.Errorf("step %d: %v", steps, err)
		}
	}
	if steps != 1 {
		t.Errorf("%d steps", steps)
	}
}

func TestStore_ListsDeadLettersOfOneInstantByFallingID(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{EmptyPages: true})
	type letter struct {
		at time.Time
		id job.ID
	}
	var want []letter
	for n := range 120 {
		died := at.Add(time.Duration(n/50) * time.Second) // fifty die at once
		r := accepted(t, s, "acme", n, func(r *job.Row) { r.Status, r.DeadAt = job.Dead, died })
		want = append(want, letter{died, r.ID})
	}
	slices.Reverse(want)
	for _, expect := range []int{1, 10, 500} {
		var got []letter
		for d, err := range s.DeadLetters(context.Background(), "acme", time.Time{}, time.Time{}, expect) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, letter{d.DeadAt, d.ID})
		}
		if !slices.Equal(got, want) {
			t.Errorf("expecting %d: %d letters, or in another order", expect, len(got))
		}
	}
	n := 0
	for range s.DeadLetters(context.Background(), "acme", at.Add(time.Second), at.Add(2*time.Second), 10) {
		n++
	}
	if n != 50 {
		t.Errorf("half-open range: %d", n)
	}
}

func TestStore_RowsTellsTheAbsentAndTheForgottenApart(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	here := accepted(t, s, "acme", 1)
	gone := accepted(t, s, "acme", 2, func(r *job.Row) { r.Status = job.Succeeded })
	if err := s.Put(ctx, job.Forget(gone, at)); err != nil {
		t.Fatal(err)
	}
	rows, there, err := s.Rows(ctx, []job.Key{gone.Key, here.Key, {Tenant: "acme", ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}})
	if err != nil || !slices.Equal(there, []bool{false, true, false}) || rows[1].ID != here.ID {
		t.Errorf("%v, %v", there, err)
	}
	if rows, there, err := s.Rows(ctx, nil); rows != nil || there != nil || err != nil {
		t.Error("no keys gave something")
	}
}

func TestStore_KeepsAnIdempotencyKeyForItsTimeAndTenant(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	remember := func(owner tenant.ID, id job.ID, now time.Time, gone ...job.ID) error {
		return s.Commit(ctx, store.Remember(owner, "k",
			store.Remembered{IdempotencyKey: job.IdempotencyKey{JobID: id, BodyHash: "h",
				ExpiresAt: now.Add(time.Hour)}, Answer: "a"}, append(gone, "")[0], now))
	}
	if err := remember("acme", "one", at); err != nil {
		t.Fatal(err)
	}
	if err := remember("acme", "two", at.Add(time.Hour-time.Second)); store.Refused(err) == nil {
		t.Errorf("a key that stands was put again: %v", err)
	}
	if err := remember("globex", "three", at); err != nil {
		t.Errorf("another tenant's: %v", err)
	}
	if r, ok, err := s.Remembered(ctx, "acme", "k",
		at.Add(time.Hour-time.Second)); !ok || err != nil || r.JobID != "one" || r.BodyHash != "h" || r.Answer != "a" {
		t.Errorf("%+v, %v, %v", r, ok, err)
	}
	if _, ok, err := s.Remembered(ctx, "acme", "k", at.Add(time.Hour)); ok || err != nil {
		t.Errorf("past its time it still stands: %v", err)
	}
	if err := remember("acme", "two", at, "other"); store.Refused(err) == nil {
		t.Errorf("a key of another job was taken: %v", err)
	}
	if err := remember("acme", "free", at, "one"); err != nil {
		t.Errorf("the key of a job that is gone was not taken: %v", err)
	}
	if err := remember("acme", "late", at, "one"); store.Refused(err) == nil {
		t.Errorf("a freed key was taken twice: %v", err)
	}
	if err := remember("acme", "four", at.Add(time.Hour)); err != nil {
		t.Errorf("past its time it could not be put: %v", err)
	}
}

func TestStore_ReadsOwnTasksAndTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	putTask(t, s, "acme", job.Task{Name: "charge", Executor: "go", Retry: job.DefaultRetry})
	for name, want := range map[string]fault.Kind{"charge": "", "echo": "", "nope": fault.NotFound} {
		if _, err := s.Task(ctx, "acme", name); fault.KindOf(err) != want {
			t.Errorf("task %s: %v", name, err)
		}
	}
	if _, err := s.Task(ctx, "globex", "charge"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant's: %v", err)
	}
	if err := errors.Join(s.DeleteTask(ctx, "acme", "charge")); err != nil {
		t.Error(err)
	}
	if err := s.DeleteTask(ctx, "acme", "charge"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestStore_TakesHowFarAPassIsFromTheSlowestShard(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	if when, n, err := s.Slowest(ctx, store.Swept); !when.IsZero() || n != 0 || err != nil {
		t.Errorf("before the first pass: %v, %d, %v", when, n, err)
	}
	for shard, when := range []time.Time{at, at.Add(-time.Hour), at.Add(time.Hour)} {
		if err := errors.Join(s.SetWatermark(ctx, store.Swept, shard, when),
			s.SetWatermark(ctx, store.Promoted, shard, at)); err != nil {
			t.Fatal(err)
		}
	}
	if when, n, err := s.Slowest(ctx, store.Swept); !when.Equal(at.Add(-time.Hour)) || n != 3 || err != nil {
		t.Errorf("%v, %d, %v", when, n, err)
	}
}
