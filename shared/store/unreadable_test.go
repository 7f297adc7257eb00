package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func write(t *testing.T, s *store.Store, w item.Write) {
	t.Helper()
	if err := s.Put(context.Background(), w); err != nil {
		t.Fatal(err)
	}
}

//proof:of F03
func TestStore_ListsLeaveOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := world(t, memory.Options{})
	spoil := func(ref item.Ref, attr string) {
		t.Helper()
		write(t, s, item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{attr: "{"}})
	}
	good, bad := accepted(t, s, "acme", 1), accepted(t, s, "acme", 2)
	spoil(bad.Ref(), "schema_v")
	spoil(bad.ClaimRef(), "outcome")
	write(t, s, job.ClaimNew(good.Key, 1, job.Owner{Worker: "w", LeaseUntil: at, DueAt: at}))
	keys := []job.Key{bad.Key, good.Key}
	if rows, there, err := s.Rows(ctx, keys); err != nil || there[0] || !there[1] || rows[1].ID != good.ID {
		t.Errorf("rows: %v, %v", there, err)
	}
	if claims, err := s.Claims(ctx, keys); err != nil || claims[0].Attempt != 0 || claims[1].Attempt != 1 {
		t.Errorf("claims: %+v, %v", claims, err)
	}
	for n := range 3 {
		name := fmt.Sprint("x", n)
		putTask(t, s, "acme", job.Task{Name: name, Executor: "go", Retry: job.DefaultRetry})
		putExclusion(t, s, "acme", store.Exclusion{Name: name, Exclusion: calendar.Exclusion{Weekly: []string{"sun"}}})
		write(t, s, good.PutAttempt(job.Attempt{Attempt: int64(n + 1), Outcome: "failed"}))
	}
	spoil(job.TaskRef("acme", "x1"), "body")
	spoil(item.Ref{Table: contract.Tasks, PK: "exclusion#acme", SK: "x1"}, "body")
	spoil(good.ContentRef(job.AttemptContent(2)), "body")
	if list, more, err := s.Tasks(ctx, "acme", "", 5); err != nil || more || len(list) != 2 {
		t.Errorf("tasks: %v, %v, %v", list, more, err)
	}
	if list, more, err := s.Exclusions(ctx, "acme", "", 5); err != nil || more || len(list) != 2 {
		t.Errorf("exclusions: %v, %v, %v", list, more, err)
	}
	if list, _, err := s.Attempts(ctx, good, 0, 5); err != nil || len(list) != 2 {
		t.Errorf("attempts: %v, %v", list, err)
	}
	if task, err := s.Task(ctx, "acme", "x1"); fault.KindOf(err) != fault.Undecodable || task.Version != 1 {
		t.Errorf("the task itself: %+v, %v", task, err)
	}
	k := schedule.Key{Tenant: "acme", Name: "s"}
	for n := range 3 {
		from := at.Add(time.Duration(n) * time.Hour)
		write(t, s, schedule.Entry{Key: k, From: from, To: from, Count: 1, Outcome: schedule.Missed,
			At: time.Now()}.Put())
	}
	spoil(schedule.Entry{Key: k, From: at.Add(time.Hour), To: at, Outcome: schedule.Missed}.Put().Ref, "from")
	if list, _, err := s.Recorded(ctx, k, time.Time{}, time.Time{}, false, 10, ""); err != nil || len(list) != 2 {
		t.Errorf("the ledger: %v, %v", list, err)
	}
}

//proof:of F03
func TestStore_PauseThatCannotBeReadHoldsWhatItsKeyNames(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := world(t, memory.Options{})
	if err := s.PutPause(ctx, "acme", job.Pause{Scope: "task:mail"}); err != nil {
		t.Fatal(err)
	}
	write(t, s, item.Write{Ref: job.PauseRef("acme", "task:bad"), Name: "test.put",
		Set: map[string]any{"body": `{"until":"31.12.2027"}`}})
	pauses, err := s.Pauses(ctx, "acme")
	if err != nil || len(pauses) != 2 {
		t.Fatalf("%+v, %v", pauses, err)
	}
	for task, want := range map[string]bool{"bad": true, "mail": true, "other": false} {
		if _, held := pauses.Hold(task, at); held != want {
			t.Errorf("task %s is held: %v", task, held)
		}
	}
	if err := s.DeletePause(ctx, "acme", "task:bad", time.Now()); err != nil {
		t.Errorf("it cannot be lifted: %v", err)
	}
}

//proof:of F03
func TestStore_MendsWhatItCannotReadOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := world(t, memory.Options{})
	mark := item.Ref{Table: contract.Tasks, PK: "system#swept", SK: "0"}
	for _, failed := range [][]time.Time{nil, {at.Add(-time.Minute)}} {
		write(t, s, item.Write{Ref: mark, Name: "test.spoil", Set: map[string]any{"at": "noon", "behind": "x,,9"}})
		if m, err := s.Watermark(ctx, store.Swept, 0); err != nil || !m.At.IsZero() {
			t.Errorf("%+v, %v", m, err)
		}
		if err := s.Pass(ctx, store.Swept, 0, at, nil, failed); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Watermark(ctx, store.Swept, 0); err != nil || !m.At.Equal(at) {
			t.Errorf("%+v, %v", m, err)
		}
	}
	write(t, s, item.Write{Ref: item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "shards"}, Name: "test.spoil",
		Set: map[string]any{"n": "many"}})
	for range 2 {
		if n, err := s.Shards(ctx, 8); err != nil || n != 8 {
			t.Errorf("%d shards, %v", n, err)
		}
	}
}

//proof:of F10
func TestStore_MarksKeepWhatFailed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := world(t, memory.Options{})
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	pass := func(to int, done, failed []time.Time) store.Mark {
		t.Helper()
		if err := s.Pass(ctx, store.Swept, 0, minute(to), done, failed); err != nil {
			t.Fatal(err)
		}
		m, err := s.Watermark(ctx, store.Swept, 0)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	pass(1, nil, nil)
	pass(5, nil, []time.Time{minute(4), minute(2)})
	if m := pass(3, nil, []time.Time{minute(2)}); !m.At.Equal(minute(5)) || len(m.Behind) != 2 ||
		!m.Whole().Equal(minute(1)) {
		t.Errorf("after two passes that overlap: %+v", m)
	}
	if m := pass(6, nil, nil); !m.At.Equal(minute(6)) || len(m.Behind) != 2 {
		t.Errorf("after one where nothing failed: %+v", m)
	}
	if m := pass(7, []time.Time{minute(2), minute(4)}, nil); !m.Whole().Equal(minute(7)) {
		t.Errorf("after one that handled them: %+v", m)
	}
	var many []time.Time
	for n := range 1500 {
		many = append(many, minute(8+n))
	}
	if m := pass(1600, nil, many); !m.At.Equal(minute(7)) || len(m.Behind) != 0 {
		t.Errorf("with more than a mark can hold it moved to %s, with %d behind", m.At, len(m.Behind))
	}
}

//proof:of F08
func TestStore_NotesAreSpreadAndWrittenOnceInAWhile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, s := world(t, memory.Options{})
	partitions, writes := map[string]bool{}, 0
	w.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == memory.TableWrite {
			partitions[c.Ref.PK] = true
			writes++
		}
		return memory.Fault{}
	})
	const tenants = 40
	note := func(s *store.Store, now time.Time) {
		t.Helper()
		for n := range tenants {
			owner := tenant.ID(fmt.Sprint("t", n))
			if err := s.NoteParked(ctx, owner, now); err != nil {
				t.Fatal(err)
			}
			if err := s.NoteQueue(ctx, schedule.Key{Tenant: owner, Name: "s"}, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		note(s, at)
	}
	if writes != 2*tenants || len(partitions) < 6 {
		t.Errorf("%d writes to %d partitions for %d places", writes, len(partitions), 2*tenants)
	}
	note(s, at.Add(time.Hour))
	if writes != 4*tenants {
		t.Errorf("an hour later %d writes in all", writes)
	}
	note(store.New(w.Table(), w.Blobs()), at.Add(time.Hour))
	if writes != 6*tenants {
		t.Errorf("another process leaves it at %d writes in all", writes)
	}
	if parked, err := s.ParkedTenants(ctx); err != nil || len(parked) != tenants ||
		!parked[0].NotedAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%d tenants, %v", len(parked), err)
	}
	if queues, err := s.Queues(ctx); err != nil || len(queues) != tenants {
		t.Errorf("%d lines, %v", len(queues), err)
	}
	for _, c := range []struct {
		after time.Duration
		left  int
	}{{store.NoteKept, tenants}, {store.NoteKept + time.Second, tenants - 1}} {
		if err := s.ForgetParked(ctx, "t1", at.Add(time.Hour+c.after)); err != nil {
			t.Fatal(err)
		}
		if parked, err := s.ParkedTenants(ctx); err != nil || len(parked) != c.left {
			t.Errorf("forgotten after %s: %d are left, %v", c.after, len(parked), err)
		}
	}
}
