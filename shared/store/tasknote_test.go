package store_test

import (
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// notedUntil is until when the only note of a row's task is kept.
func notedUntil(t *testing.T, w *memory.World, r job.Row) time.Time {
	t.Helper()
	page, err := w.Table().Query(t.Context(), item.Query{Table: contract.Tasks, PK: "tasked#" + string(r.Tenant) + "#" +
		r.Task, Limit: 10})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%d notes, %v", len(page.Items), err)
	}
	return time.Unix(page.Items[0].Int(contract.AttrExpiresAt), 0)
}

func TestStore_KeepsTheNoteOfATaskAsLongAsItsJobs(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	accepted := func(change ...func(*job.Row)) (*memory.World, *store.Store, job.Row) {
		w := memory.New(memory.Options{})
		t.Cleanup(w.Close)
		s := store.New(w.Table(), w.Blobs())
		r := jobtest.Row(1, time.Now(), time.Now(), change...)
		if err := s.Accept(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return w, s, r
	}
	within := func(t *testing.T, got, least time.Time) {
		t.Helper()
		if got.Before(least) || got.After(least.Add(31*day)) {
			t.Errorf("it is kept until %s, want %s or up to 31 days more", got, least)
		}
	}
	retries := contract.MaxAttempts * (contract.MaxRetryDelay + contract.MaxTimeoutLong)
	t.Run("a job that is due now", func(t *testing.T) {
		t.Parallel()
		w, _, r := accepted()
		within(t, notedUntil(t, w, r), r.DueAt.Add(retries+contract.DeadKept))
	})
	t.Run("a job of next year prolongs it, and one of today does not shorten it", func(t *testing.T) {
		t.Parallel()
		w, s, r := accepted()
		later := r
		later.DueAt = r.DueAt.Add(365 * day)
		for _, row := range []job.Row{later, r} {
			for _, s := range []*store.Store{s, store.New(w.Table(), w.Blobs())} { // this process, and a new one
				_ = s.Accept(t.Context(), row) // the row is there already; the note comes before it
			}
			within(t, notedUntil(t, w, r), later.DueAt.Add(retries+contract.DeadKept))
		}
	})
	t.Run("a job that is parked, or waits for parents, as long as it may wait", func(t *testing.T) {
		t.Parallel()
		w, s, r := accepted()
		if err := s.NoteOpen(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		within(t, notedUntil(t, w, r), r.ID.At().Add(contract.MaxAhead+contract.DeadKept))
		w, _, r = accepted(func(r *job.Row) { r.Status, r.DueAt = job.Blocked, time.Time{} })
		within(t, notedUntil(t, w, r), r.ID.At().Add(contract.MaxAhead+contract.DeadKept))
	})
}
