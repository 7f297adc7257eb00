package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// later runs a sentence about what was put before and has expired since, but is there still.
func later(t *testing.T, name string, do func(t *testing.T, s *store.Store, ctx context.Context)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := memory.New(memory.Options{})
			defer w.Close()
			do(t, store.New(w.Table(), w.Blobs()), context.Background())
		})
	})
}

// A laptop may be set to another time, and a store far from the machine's clock must go by its own.
func TestStore_GoesByItsOwnClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offset time.Duration
		there  bool
	}{
		"behind the machine's clock a finished job is there":                   {-400 * 24 * time.Hour, true},
		"ahead of the machine's clock a job that was finished now has expired": {400 * 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := memory.New(memory.Options{})
			defer w.Close()
			ctx, clk := context.Background(), clock.Skewed{Offset: c.offset}
			s := store.By(clk, w.Table(), w.Blobs())
			at := time.Now()
			if c.there {
				at = clk.Now()
			}
			r := accepted(t, s, "acme", 1, func(r *job.Row) {
				r.DueAt, r.CreatedAt, r.Status, r.FinishedAt = at, at, job.Succeeded, at
				r.ExpiresAt = at.Add(contract.FinishedKept)
			})
			_, err := s.Row(ctx, r.Key)
			_, there, err2 := s.Rows(ctx, []job.Key{r.Key})
			listed := 0
			for range s.Newest(ctx, "acme", "", "", 10) {
				listed++
			}
			put := s.Put(ctx, job.Accept(r)) // asks for no item
			if (err == nil) != c.there || err2 != nil || there[0] != c.there || (listed == 1) != c.there ||
				(store.Refused(put) != nil) != c.there {
				t.Errorf("read %v, read among several %v, listed %d, put again %v", err, there, listed, put)
			}
		})
	}
}

func finished(s job.Status) func(*job.Row) {
	return func(r *job.Row) {
		now := time.Now()
		r.DueAt, r.CreatedAt, r.Status, r.FinishedAt, r.ExpiresAt = now, now, s, now, now.Add(contract.FinishedKept)
		if s == job.Dead {
			r.DeadAt = now
		}
	}
}

func isGone(t *testing.T, what string, err error) {
	t.Helper()
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("%s: %v, want not found", what, err)
	}
}

//proof:of F18
func TestStore_HidesWhatHasExpired(t *testing.T) {
	t.Parallel()
	later(t, "an expired job is gone for every reader", func(t *testing.T, s *store.Store, ctx context.Context) {
		r := accepted(t, s, "acme", 1, finished(job.Dead))
		if err := s.Put(ctx, r.PutContent(job.TagsContent, "{}")); err != nil {
			t.Fatal(err)
		}
		list := func() (n int) {
			for range s.Newest(ctx, "acme", "", "", 10) {
				n++
			}
			return n
		}
		time.Sleep(contract.FinishedKept - time.Second)
		if _, err := s.Row(ctx, r.Key); err != nil || list() != 1 {
			t.Fatalf("a second too early: %v, %d in the list", err, list())
		}
		time.Sleep(time.Second)
		_, err := s.Row(ctx, r.Key)
		isGone(t, "the row", err)
		if _, there, err := s.Rows(ctx, []job.Key{r.Key}); err != nil || there[0] {
			t.Errorf("it is among the rows: %v, %v", there, err)
		}
		if n := list(); n != 0 {
			t.Errorf("it is in the list")
		}
		_, redriven := job.Redriven(r, "01ARZ3NDEKTSV4RRFFQ69G5FAV", time.Now())
		redriven.When[0][1].Value = []string{"SCHEDULED"} // refused, whatever is there
		refused := store.Refused(s.Put(ctx, redriven))
		if refused == nil {
			t.Fatal("the write was not refused")
		}
		_, err = store.OldRow(refused, 0, r.Key)
		isGone(t, "what stood in the way", err)
		if err := s.Put(ctx, job.Accept(r)); err != nil {
			t.Errorf("its id is not free: %v", err)
		}
	})
	later(t, "an expired payload is gone", func(t *testing.T, s *store.Store, ctx context.Context) {
		r := accepted(t, s, "acme", 1, finished(job.Succeeded))
		w := r.PutContent(job.ResultContent, "{}")
		w.Put[contract.AttrExpiresAt] = time.Now().Add(time.Hour).Unix()
		if err := s.Put(ctx, w); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		_, err := s.Content(ctx, r.Key, job.ResultContent)
		isGone(t, "the result", err)
	})
	later(t, "an expired pause neither holds nor is listed", func(t *testing.T, s *store.Store, ctx context.Context) {
		p := job.Pause{Scope: job.PauseAll, Since: time.Now(), Until: time.Now().Add(time.Hour)}
		if err := s.PutPause(ctx, "acme", p); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Hour)
		if all, err := s.Pauses(ctx, "acme"); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
	later(t, "an expired ledger entry is gone", func(t *testing.T, s *store.Store, ctx context.Context) {
		k, now := schedule.Key{Tenant: "acme", Name: "a"}, time.Now()
		e := schedule.Entry{Key: k, Epoch: 1, From: now, To: now, Count: 1, Outcome: schedule.Missed, At: now}
		if err := s.Put(ctx, e.Put()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(schedule.LedgerKept)
		if got, _, err := s.Recorded(ctx, k, time.Time{}, time.Time{}, false, 10, ""); err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
	later(t, "the name of a schedule that was deleted long ago is free",
		func(t *testing.T, s *store.Store, ctx context.Context) {
			cron := "0 0 * * *"
			anew := schedule.Schedule{Key: schedule.Key{Tenant: "acme", Name: "a"}, Spec: calendar.Spec{Cron: &cron}}
			create := func() schedule.Schedule {
				t.Helper()
				one, write, err := schedule.Create(nil, anew, time.Now())
				if err == nil {
					err = s.Put(ctx, write)
				}
				if err != nil {
					t.Fatal(err)
				}
				return one
			}
			_, writes := schedule.Delete(create(), nil, time.Now())
			if err := s.Commit(ctx, writes...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(schedule.TombstoneKept)
			_, err := s.Schedule(ctx, anew.Key)
			isGone(t, "the tombstone", err)
			create()
		})
	later(t, "a claim is judged by what it says, however old it is",
		func(t *testing.T, s *store.Store, ctx context.Context) {
			k := job.Key{Tenant: "acme", ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
			if err := s.Put(ctx, job.ClaimNew(k, 1,
				job.Owner{Worker: "w", LeaseUntil: time.Now(), DueAt: time.Now()})); err != nil {
				t.Fatal(err)
			}
			time.Sleep(contract.ClaimKept + time.Hour)
			if c, err := s.Claim(ctx, k); err != nil || c.Attempt != 1 {
				t.Errorf("%+v, %v", c, err)
			}
		})
}
