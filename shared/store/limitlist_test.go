package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/limit"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// putLimit gives a limit of acme those bounds.
func putLimit(t *testing.T, s *store.Store, name string, running int, now time.Time) limit.Limit {
	t.Helper()
	l, err := s.UpdateLimit(t.Context(), "acme", name, now, func(*limit.Limit) (limit.Limit, error) {
		return limit.Limit{MaxRunning: running, WhenFull: limit.Wait}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestStore_ChangesALimitByItsVersion(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	writes := 0
	w.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == memory.TableWrite {
			writes++
		}
		return memory.Fault{}
	})
	first := putLimit(t, s, "github", 5, noon)
	if first.Version != 1 || first.Widest != 5 || !first.CreatedAt.Equal(noon) || first.Tenant != "acme" {
		t.Errorf("made as %+v", first)
	}
	if same := putLimit(t, s, "github", 5, noon.Add(time.Hour)); same != first || writes != 1 {
		t.Errorf("the same bounds made %+v in %d writes", same, writes)
	}
	later := noon.Add(2 * time.Hour)
	more := putLimit(t, s, "github", 8, later)
	if more.Version != 2 || more.Widest != 8 || !more.CreatedAt.Equal(noon) || !more.UpdatedAt.Equal(later) {
		t.Errorf("changed to %+v", more)
	}
	if read, err := s.Limit(t.Context(), "acme", "github"); err != nil || read != more {
		t.Errorf("reads %+v, %v", read, err)
	}
}

func TestStore_KeepsANoteOfADeletedLimit(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	yes := func(limit.Limit) error { return nil }
	was := putLimit(t, s, "github", 40, noon)
	no := fault.New(fault.Refused, nil, "it is used")
	if err := s.DeleteLimit(t.Context(), "acme", "github", noon, func(l limit.Limit) error {
		if l != was {
			t.Errorf("asked about %+v", l)
		}
		return no
	}); fault.KindOf(err) != fault.Refused {
		t.Errorf("not allowed: %v", err)
	}
	if err := s.DeleteLimit(t.Context(), "acme", "github", noon, yes); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"github", "absent"} {
		if err := s.DeleteLimit(t.Context(), "acme", name, noon, yes); fault.KindOf(err) != fault.NotFound {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	left, err := s.Limit(t.Context(), "acme", "github")
	if err != nil || !left.Deleted || left.Widest != 40 || left.Version != 2 {
		t.Errorf("left is %+v, %v", left, err)
	}
	anew := putLimit(t, s, "github", 3, noon.Add(time.Minute))
	if anew.Deleted || anew.Version != 3 || anew.Widest != 40 || anew.Epoch == 0 ||
		!anew.CreatedAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("made anew as %+v", anew)
	}
}

func TestStore_ListsLimitsByNameWithoutDeletedOnes(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{EmptyPages: true})
	for _, name := range []string{"d", "b", "a", "c"} {
		putLimit(t, s, name, 1, noon)
	}
	if err := s.DeleteLimit(t.Context(), "acme", "b", noon, func(limit.Limit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after string
		most  int
		want  string
		more  bool
	}{
		{"", 2, "[a c]", true}, {"", 3, "[a c d]", false}, {"", 9, "[a c d]", false}, {"a", 1, "[c]", true},
		{"c", 1, "[d]", false}, {"d", 1, "[]", false},
	} {
		list, more, err := s.Limits(t.Context(), "acme", c.after, c.most)
		names := []string{}
		for _, l := range list {
			names = append(names, l.Name)
		}
		if fmt.Sprint(names) != c.want || more != c.more || err != nil {
			t.Errorf("after %q, at most %d: %v, more: %v, %v; want %s, %v", c.after, c.most, names, more, err, c.want,
				c.more)
		}
	}
	if list, _, err := s.Limits(t.Context(), "globex", "", 9); len(list) > 0 || err != nil {
		t.Errorf("another tenant sees %v, %v", list, err)
	}
}

func keyOf(key string) limit.Key {
	return limit.Key{Tenant: "acme", LimitKey: job.LimitKey{Name: "github", Key: key}}
}

func TestStore_NotesAKeyOnceAnHourInAProcess(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	writes, partitions := 0, map[string]bool{}
	w.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == memory.TableWrite {
			writes++
			partitions[c.Ref.PK] = true
		}
		return memory.Fault{}
	})
	keys := []string{""}
	for n := range 30 {
		keys = append(keys, fmt.Sprint("acct#", n))
	}
	note := func(s *store.Store, now time.Time) {
		t.Helper()
		for _, k := range keys {
			if err := s.NoteLimitKey(context.Background(), keyOf(k), now); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		note(s, noon)
	}
	note(s, noon.Add(59*time.Minute))
	if writes != len(keys) || len(partitions) < 2 {
		t.Errorf("%d writes to %d partitions for %d keys", writes, len(partitions), len(keys))
	}
	note(s, noon.Add(time.Hour))
	note(store.New(w.Table(), w.Blobs()), noon.Add(time.Hour))
	if writes != 3*len(keys) {
		t.Errorf("an hour later, and by another process: %d writes", writes)
	}
	found, more, err := s.LimitKeys(t.Context(), "acme", "github", len(keys))
	if len(found) != len(keys) || more || err != nil || found[0] != keyOf("") {
		t.Errorf("lists %d keys, more: %v, %v", len(found), more, err)
	}
	if found, more, err = s.LimitKeys(t.Context(), "acme", "github", 7); len(found) != 7 || !more || err != nil {
		t.Errorf("at most 7: %d keys, more: %v, %v", len(found), more, err)
	}
	if found, _, err = s.LimitKeys(t.Context(), "acme", "other", 9); len(found) > 0 || err != nil {
		t.Errorf("another limit has %v, %v", found, err)
	}
}

func TestStore_ReadsHowMuchOfEachKeyIsUsed(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	l := putLimit(t, s, "github", 40, time.Now())
	l.Rate = limit.Rate{Count: 10, Per: time.Minute}
	for n := range 35 {
		id := job.ID(fmt.Sprintf("job%05d", n))
		if _, taken, err := s.TakePermit(t.Context(), l, keyOf("a"), id, 1, noon); err != nil || !taken {
			t.Fatal(taken, err)
		}
	}
	for range 3 {
		if _, err := s.DrawStart(t.Context(), l.Rate, keyOf("b"), noon); err != nil {
			t.Fatal(err)
		}
	}
	uses, err := s.LimitUses(t.Context(), l, []limit.Key{keyOf("b"), keyOf("a"), keyOf("c")})
	if err != nil || len(uses) != 3 {
		t.Fatal(uses, err)
	}
	for n, want := range []struct{ running, starts int }{{0, 3}, {35, 0}, {0, 0}} {
		got := uses[n]
		if starts := got.Window.Started(l.Rate, noon); got.Running != want.running || starts != want.starts {
			t.Errorf("key %q: %d run, %d started; want %+v", got.Key.Key, got.Running, starts, want)
		}
	}
}

func TestStore_ListsWaitersInTheOrderInWhichTheyAreServed(t *testing.T) {
	t.Parallel()
	w, s := world(t, memory.Options{})
	now := time.Now().UTC().Truncate(time.Millisecond)
	put := func(n int, p job.Priority, due time.Duration, key string, change ...func(*job.Row)) {
		r := jobtest.Row(n, now.Add(due), now, append(change, func(r *job.Row) {
			r.Tenant, r.Priority = "acme", p
			r.Limits = job.LimitsOf(job.LimitKey{Name: "all"}, job.LimitKey{Name: "github", Key: key})
			r.Parked, r.WaitsLimit = true, 2
			r.WakeAt = r.DueAt.Add(1000 * time.Hour)
		})...)
		if _, err := w.Table().Write(t.Context(), job.Accept(r)); err != nil {
			t.Fatal(err)
		}
	}
	put(1, job.Normal, -time.Minute, "a")
	put(2, job.Normal, -2*time.Minute, "a")
	put(3, job.Low, -time.Hour, "a")
	put(4, job.High, 0, "a")
	put(5, job.High, -time.Hour, "b")
	ids := func(most int) (ids []job.ID) {
		waiters, err := s.LimitWaiters(t.Context(), keyOf("a"), most)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range waiters {
			ids = append(ids, e.Key.ID)
		}
		return ids
	}
	want := []job.ID{jobtest.Key(4).ID, jobtest.Key(2).ID, jobtest.Key(1).ID, jobtest.Key(3).ID}
	if got := ids(10); !slices.Equal(got, want) {
		t.Errorf("they wait as %v, want %v", got, want)
	}
	if got := ids(2); len(got) != 2 {
		t.Errorf("at most two: %v", got)
	}
}
