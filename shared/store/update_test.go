package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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

func putTask(t *testing.T, s *store.Store, owner tenant.ID, task job.Task) {
	t.Helper()
	put := func(*job.Task) (job.Task, error) { return task, nil }
	if _, err := s.UpdateTask(context.Background(), owner, task.Name, put); err != nil {
		t.Fatal(err)
	}
}

func putExclusion(t *testing.T, s *store.Store, owner tenant.ID, e store.Exclusion) {
	t.Helper()
	put := func(*store.Exclusion) (store.Exclusion, error) { return e, nil }
	if _, err := s.UpdateExclusion(context.Background(), owner, e.Name, put); err != nil {
		t.Fatal(err)
	}
}

// unreliable repeats writes and transactions at random, as an SDK does when an answer is lost.
type unreliable struct {
	store.Table
	mu     *sync.Mutex
	random *rand.Rand
}

func (u unreliable) twice() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.random != nil && u.random.IntN(3) == 0
}

func (u unreliable) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if u.twice() {
		_, _ = u.Table.Write(ctx, w)
	}
	return u.Table.Write(ctx, w)
}

func (u unreliable) Commit(ctx context.Context, writes ...item.Write) error {
	if u.twice() {
		_ = u.Table.Commit(ctx, writes...)
	}
	return u.Table.Commit(ctx, writes...)
}

// unreliableStore returns a store over such a table, and a job that is accepted there. With seed 0 the
// table is reliable.
func unreliableStore(t *testing.T, seed uint64) (*store.Store, job.Row) {
	w, s := world(t, memory.Options{})
	u := unreliable{Table: w.Table(), mu: &sync.Mutex{}}
	if seed != 0 {
		u.random = rand.New(rand.NewPCG(seed, 1))
	}
	return store.New(u, w.Blobs()), accepted(t, s, "acme", 1)
}

// atVersion is a write that raises a number of an item and changes more of it.
func atVersion(ref item.Ref, attr string, version int64, set map[string]any) item.Write {
	set[attr] = version + 1
	return item.Write{
		Ref: ref, Name: "test.change", Set: set, When: []item.All{{{Attr: attr, Op: item.Eq, Value: version}}},
	}
}

// updaters run at the same time; each notes what was made by its answer.
const (
	updaters  = 6
	perActor  = 8
	seedsEach = 10
)

// atOnce runs make for each updater and round until it is made, and returns the marks of all.
func atOnce(t *testing.T, make func(mark string) error) []string {
	t.Helper()
	var all sync.WaitGroup
	var marks []string
	for actor := range updaters {
		for round := range perActor {
			marks = append(marks, fmt.Sprintf("m%d-%d", actor, round))
		}
		all.Go(func() {
			for round := range perActor {
				mark := fmt.Sprintf("m%d-%d", actor, round)
				err := make(mark)
				for fault.KindOf(err) == fault.Conflict { // too many others: nothing was written
					err = make(mark)
				}
				if err != nil {
					t.Errorf("%s: %v", mark, err)
				}
			}
		})
	}
	all.Wait()
	return marks
}

// requireEach fails unless each mark is there, and there once. Only where an answer was lost and another
// updater came in between may it be there twice.
func requireEach(t *testing.T, seed uint64, marks, present []string) {
	t.Helper()
	slices.Sort(marks)
	present = slices.Sorted(slices.Values(present))
	if seed != 0 {
		present = slices.Compact(present)
	}
	if !slices.Equal(marks, present) {
		t.Errorf("%d changes were made, %d stand: %v", len(marks), len(present), present)
	}
}

func TestStore_ConcurrentUpdatersLoseNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(seedsEach) {
		t.Run(fmt.Sprintf("of a row, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s, r := unreliableStore(t, seed)
			marks := atOnce(t, func(mark string) error {
				_, err := s.Update(ctx, r.Key, func(r job.Row) ([]item.Write, error) {
					set := map[string]any{"reason_text": r.Reason.Message + " " + mark}
					return []item.Write{atVersion(r.Ref(), "version", r.Version, set)}, nil
				})
				return err
			})
			after, err := s.Row(ctx, r.Key)
			if err != nil {
				t.Fatal(err)
			}
			requireEach(t, seed, marks, strings.Fields(after.Reason.Message))
		})
		t.Run(fmt.Sprintf("of a schedule that is absent at first, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s, _ := unreliableStore(t, seed)
			k := schedule.Key{Tenant: "acme", Name: "s"}
			marks := atOnce(t, func(mark string) error {
				_, err := s.UpdateSchedule(ctx, k, func(old *schedule.Schedule) ([]item.Write, error) {
					if old == nil {
						cron := "0 0 * * *"
						wanted := schedule.Schedule{Key: k, Spec: calendar.Spec{Cron: &cron}}
						wanted.Template.Task = mark
						_, write, err := schedule.Create(nil, wanted, at)
						return []item.Write{write}, err
					}
					wanted := *old
					wanted.Template.Task += " " + mark
					_, writes, err := schedule.Edit(*old, wanted, nil, at)
					return writes, err
				})
				return err
			})
			after, err := s.Schedule(ctx, k)
			if err != nil {
				t.Fatal(err)
			}
			requireEach(t, seed, marks, strings.Fields(after.Template.Task))
		})
		t.Run(fmt.Sprintf("of a task, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s, _ := unreliableStore(t, seed)
			marks := atOnce(t, func(mark string) error {
				_, err := s.UpdateTask(ctx, "acme", "charge", func(old *job.Task) (job.Task, error) {
					if old == nil {
						return job.Task{Name: "charge", Executor: mark, Retry: job.DefaultRetry}, nil
					}
					next := *old
					next.Executor += " " + mark
					return next, nil
				})
				return err
			})
			after, err := s.Task(ctx, "acme", "charge")
			if err != nil {
				t.Fatal(err)
			}
			requireEach(t, seed, marks, strings.Fields(after.Executor))
			if got := int64(len(strings.Fields(after.Executor))); after.Version != got {
				t.Errorf("after %d changes the version is %d", got, after.Version)
			}
		})
		t.Run(fmt.Sprintf("of an exclusion, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s, _ := unreliableStore(t, seed)
			marks := atOnce(t, func(mark string) error {
				_, err := s.UpdateExclusion(ctx, "acme", "x", func(old *store.Exclusion) (store.Exclusion, error) {
					next := store.Exclusion{Name: "x"}
					if old != nil {
						next.Weekly = slices.Clone(old.Weekly)
					}
					next.Weekly = append(next.Weekly, mark)
					return next, nil
				})
				return err
			})
			after, err := s.Exclusion(ctx, "acme", "x")
			if err != nil {
				t.Fatal(err)
			}
			requireEach(t, seed, marks, after.Weekly)
		})
		t.Run(fmt.Sprintf("of how far a pass is, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s, _ := unreliableStore(t, seed)
			var want []time.Time
			for n := range updaters * perActor {
				want = append(want, at.Add(time.Duration(n)*time.Minute))
			}
			end := at.Add(time.Hour)
			var next sync.Mutex
			left := slices.Clone(want)
			atOnce(t, func(string) error {
				next.Lock()
				failed := left[0]
				left = left[1:]
				next.Unlock()
				err := s.Pass(ctx, store.Swept, 0, end, nil, []time.Time{failed})
				for fault.KindOf(err) == fault.Conflict {
					err = s.Pass(ctx, store.Swept, 0, end, nil, []time.Time{failed})
				}
				return err
			})
			if m, err := s.Watermark(ctx, store.Swept, 0); err != nil ||
				!slices.EqualFunc(m.Behind, want, time.Time.Equal) {
				t.Errorf("behind are %v, %v", m.Behind, err)
			}
		})
	}
}

// Two who change a row alike in the same millisecond make it the same row; what each attaches to it
// distinguishes them.
func TestStore_UpdateNeverTakesAnotherWriterForItself(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(seedsEach) {
		s, r := unreliableStore(t, seed)
		var mu sync.Mutex
		made := map[int64]string{}
		marks := atOnce(t, func(mark string) error {
			after, err := s.Update(ctx, r.Key, func(r job.Row) ([]item.Write, error) {
				return []item.Write{
					atVersion(r.Ref(), "version", r.Version, map[string]any{}), r.PutContent("x", mark),
				}, nil
			})
			if err == nil {
				mu.Lock()
				made[after.Version] = mark
				mu.Unlock()
			}
			return err
		})
		after, err := s.Row(ctx, r.Key)
		if err != nil {
			t.Fatal(err)
		}
		if after.Version < 1+int64(len(marks)) || len(made) != len(marks) {
			t.Errorf("seed %d: %d changes of %d made version %d", seed, len(made), len(marks), after.Version)
		}
		if body, err := s.Content(ctx, r.Key, "x"); err != nil || body != made[after.Version] {
			t.Errorf("seed %d: %s stands beside the row, not %s: %v", seed, body, made[after.Version], err)
		}
	}
}

func TestStore_UpdateDecidesOnceWhenAnAnswerWasLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, writes := range map[string]func(job.Row) []item.Write{
		"of one write": func(r job.Row) []item.Write {
			return []item.Write{atVersion(r.Ref(), "version", r.Version, map[string]any{})}
		},
		"of a transaction": func(r job.Row) []item.Write {
			return []item.Write{
				r.PutContent("x", "body"), atVersion(r.Ref(), "version", r.Version, map[string]any{}),
				job.Fence(r, job.Claim{}, r.DueAt, at),
			}
		},
	} {
		t.Run("decides once when the answer was lost "+name, func(t *testing.T) {
			t.Parallel()
			w, plain := world(t, memory.Options{})
			r := accepted(t, plain, "acme", 1)
			s := store.New(always{w.Table()}, w.Blobs())
			decided := 0
			after, err := s.Update(ctx, r.Key, func(r job.Row) ([]item.Write, error) {
				decided++
				return writes(r), nil
			})
			if err != nil || after.Version != 2 {
				t.Errorf("version %d, %v", after.Version, err)
			}
			if decided != 1 {
				t.Errorf("it was decided %d times", decided)
			}
		})
	}
	t.Run("of a write that takes the row away", func(t *testing.T) {
		t.Parallel()
		w, plain := world(t, memory.Options{})
		r := accepted(t, plain, "acme", 1, finished(job.Succeeded))
		s := store.New(always{w.Table()}, w.Blobs())
		decided := 0
		old, err := s.Update(ctx, r.Key, func(r job.Row) ([]item.Write, error) {
			decided++
			return []item.Write{job.Forget(r, at)}, nil
		})
		if err != nil || old.ID != r.ID || old.Status != job.Succeeded {
			t.Errorf("%+v, %v", old, err)
		}
		if decided != 1 {
			t.Errorf("it was decided %d times", decided)
		}
	})
}

// always repeats every write.
type always struct{ store.Table }

func (a always) Write(ctx context.Context, w item.Write) (item.Item, error) {
	_, _ = a.Table.Write(ctx, w)
	return a.Table.Write(ctx, w)
}

func (a always) Commit(ctx context.Context, writes ...item.Write) error {
	_ = a.Table.Commit(ctx, writes...)
	return a.Table.Commit(ctx, writes...)
}

func TestStore_UpdateIsAConflictAfterEightTries(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	r := accepted(t, s, "acme", 1)
	bump := func(r job.Row) ([]item.Write, error) {
		return []item.Write{atVersion(r.Ref(), "version", r.Version, map[string]any{})}, nil
	}
	decided := 0
	_, err := s.Update(ctx, r.Key, func(r job.Row) ([]item.Write, error) {
		decided++
		if _, err := s.Update(ctx, r.Key, bump); err != nil {
			t.Error(err)
		}
		return []item.Write{atVersion(r.Ref(), "version", r.Version, map[string]any{"reason": "mine"})}, nil
	})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("error %v", err)
	}
	if decided != 8 {
		t.Errorf("it was decided %d times", decided)
	}
	if after, err := s.Row(ctx, r.Key); err != nil || after.Version != 9 || after.Reason.Code != "" {
		t.Errorf("version %d, reason %q, %v", after.Version, after.Reason.Code, err)
	}
}

func TestStore_UpdateAsksWhatTheDecisionMeans(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	r := accepted(t, s, "acme", 1)
	decide := func(writes []item.Write, err error) error {
		_, err = s.Update(ctx, r.Key, func(job.Row) ([]item.Write, error) { return writes, err })
		return err
	}
	mine, full := errors.New("mine"), errors.New("full")
	own := atVersion(r.Ref(), "version", 1, map[string]any{})
	refused := item.Write{
		Ref: r.ContentRef("x"), Name: "x", Check: true, Else: full,
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	}
	for name, c := range map[string]struct {
		writes []item.Write
		err    error
		want   error
		kind   fault.Kind
	}{
		"no writes: nothing":                  {},
		"an error: that error":                {err: mine, want: mine},
		"none of the writes is the row's":     {writes: []item.Write{r.PutContent("y", "")}, kind: fault.Invalid},
		"only one with an Else: that error":   {writes: []item.Write{own, refused}, want: full},
		"a refusal of its own, always: again": {err: &item.Refused{Name: "own"}, kind: fault.Conflict},
	} {
		if err := decide(c.writes, c.err); fault.KindOf(err) != c.kind || c.kind == "" && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := s.Row(ctx, r.Key); err != nil || after.Version != 1 {
		t.Errorf("version %d, %v", after.Version, err)
	}
	asked := false
	_, err := s.Update(ctx, job.Key{Tenant: "globex", ID: r.ID}, func(job.Row) ([]item.Write, error) {
		asked = true
		return nil, nil
	})
	if fault.KindOf(err) != fault.NotFound || asked {
		t.Errorf("another tenant's: %v, asked %v", err, asked)
	}
}

func TestStore_UpdateTaskWritesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	charge := job.Task{Name: "charge", Executor: "go", Retry: job.DefaultRetry}
	putTask(t, s, "acme", charge)
	putTask(t, s, "acme", charge)
	if got, err := s.Task(ctx, "acme", "charge"); err != nil || got.Version != 1 {
		t.Errorf("put twice it has version %d, %v", got.Version, err)
	}
	_, err := s.UpdateTask(ctx, "acme", "echo", func(old *job.Task) (job.Task, error) { return *old, nil })
	if err != nil {
		t.Errorf("a built-in task as it is: %v", err)
	}
	_, err = s.UpdateTask(ctx, "acme", "echo", func(*job.Task) (job.Task, error) { return charge, nil })
	if fault.KindOf(err) != fault.Refused {
		t.Errorf("a built-in task, changed: %v", err)
	}
}
