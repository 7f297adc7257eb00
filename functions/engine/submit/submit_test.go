package submit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/submit"
	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

type bench struct {
	*stagetest.Bench
	*submit.Submitter
	reads int // how often a request was read
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{Bench: s, Submitter: over(s, s.Store)})
	})
}

// over returns a Submitter of a process of its own.
func over(s *stagetest.Bench, rows *store.Store) *submit.Submitter {
	e := s.Engine()
	return &submit.Submitter{
		Base: s.ProcessBase(), Store: rows, Runs: e.Runs, Entropy: &accept.Entropy{R: rand.Reader},
		Accept: accept.New(accept.Deps{Base: s.ProcessBase(), Jobs: rows, Queue: s.World.Queues()}),
	}
}

func keyed(key, body string) submit.Request {
	return submit.Request{Who: tenant.Identity{Tenant: jobtest.Tenant, Subject: "s"}, Key: key, Hash: body}
}

// draft reads a job that is due now.
func (b *bench) draft(now time.Time) (*accept.Draft, error) {
	b.reads++
	r := jobtest.Row(1, now, now)
	r.ID = ""
	return &accept.Draft{Row: r}, nil
}

func answer(job.Row, time.Time) ([]byte, error) { return []byte("{}"), nil }

func (b *bench) submit(r submit.Request) submit.Job {
	b.Helper()
	j, err := b.Job(b.Context(), r, b.draft, answer)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func commit(c memory.Call) bool { return c.Op == memory.TableCommit }

// forget deletes a job's row.
func (b *bench) forget(r job.Row) {
	b.Helper()
	b.Write(item.Write{Ref: r.Ref(), Name: "test.forget", Delete: true})
}

func TestSubmitter_AcceptsAJobOnceForEachKey(t *testing.T) {
	t.Parallel()
	bubble(t, "a repeated request finds the job of the first and is not read", func(b *bench) {
		first := b.submit(keyed("k", "body"))
		second := b.submit(keyed("k", "body"))
		if first.Replayed || !second.Replayed || second.Row.ID != first.Row.ID || b.reads != 1 {
			b.Errorf("%+v, then %+v; read %d times", first, second, b.reads)
		}
	})
	bubble(t, "requests without a key make jobs of their own", func(b *bench) {
		if first, second := b.submit(keyed("", "")), b.submit(keyed("", "")); first.Row.ID == second.Row.ID {
			b.Errorf("both made %s", first.Row.ID)
		}
	})
	bubble(t, "a key of another body is refused", func(b *bench) {
		b.submit(keyed("k", "body"))
		if _, err := b.Job(b.Context(), keyed("k", "other"), b.draft, answer); !errors.Is(err, submit.ErrKeyReused) {
			b.Error(err)
		}
	})
	bubble(t, "a deleted job frees its key for any body", func(b *bench) {
		first := b.submit(keyed("k", "body"))
		b.forget(first.Row)
		time.Sleep(time.Second)
		second := b.submit(keyed("k", "other"))
		third := b.submit(keyed("k", "other"))
		if second.Replayed || second.Row.ID == first.Row.ID || !third.Replayed || third.Row.ID != second.Row.ID {
			b.Errorf("%+v, then %+v, then %+v", first, second, third)
		}
	})
	bubble(t, "of two requests at once, one makes the job and the other finds it", func(b *bench) {
		var theirs submit.Job
		b.Before(commit, func() { theirs = b.submit(keyed("k", "body")) })
		ours := b.submit(keyed("k", "body"))
		if theirs.Replayed || !ours.Replayed || ours.Row.ID != theirs.Row.ID {
			b.Errorf("theirs %+v, ours %+v", theirs, ours)
		}
	})
	bubble(t, "of two requests at once with one key, the one with another body is refused", func(b *bench) {
		b.Before(commit, func() { b.submit(keyed("k", "body")) })
		if _, err := b.Job(b.Context(), keyed("k", "other"), b.draft, answer); !errors.Is(err, submit.ErrKeyReused) {
			b.Error(err)
		}
	})
	bubble(t, "a key that is freed while the request runs can be tried once more", func(b *bench) {
		b.Before(commit, func() {
			theirs := b.submit(keyed("k", "body"))
			b.Before(func(c memory.Call) bool { return c.Op == memory.TableGet }, func() { b.forget(theirs.Row) })
		})
		_, err := b.Job(b.Context(), keyed("k", "body"), b.draft, answer)
		if fault.KindOf(err) != fault.Conflict {
			b.Error(err)
		}
	})
	bubble(t, "a retry whose first answer was lost has made the job", func(b *bench) {
		b.Submitter = over(b.Bench, store.New(twice{b.World.Table()}, b.World.Blobs()))
		first := b.submit(keyed("k", "body"))
		if second := b.submit(keyed("k", "body")); first.Replayed || second.Row.ID != first.Row.ID {
			b.Errorf("%+v, then %+v", first, second)
		}
		b.submit(keyed("", ""))
	})
}

// twice repeats each write of a job and each transaction, as an SDK does that lost the first answer.
type twice struct{ store.Table }

func (t twice) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if w.Name == job.WriteAccept {
		if _, err := t.Table.Write(ctx, w); err != nil {
			return nil, err
		}
	}
	return t.Table.Write(ctx, w)
}

func (t twice) Commit(ctx context.Context, writes ...item.Write) error {
	if err := t.Table.Commit(ctx, writes...); err != nil {
		return err
	}
	return t.Table.Commit(ctx, writes...)
}

func TestSubmitter_FiresWhatIsDueNow(t *testing.T) {
	t.Parallel()
	bubble(t, "a replay fires a job whose first request ended before it did", func(b *bench) {
		first := b.submit(keyed("k", "body"))
		b.RequireSilence()
		second := b.submit(keyed("k", "body"))
		b.Fire(b.Context(), second)
		b.RequireFired(first.Row)
	})
	bubble(t, "a replay of a job that a worker has fires nothing", func(b *bench) {
		first := b.submit(keyed("k", "body"))
		b.Own(first.Row, time.Minute)
		b.Fire(b.Context(), b.submit(keyed("k", "body")))
		b.RequireSilence()
	})
}

func TestSubmitter_DecidesAboutAJobWhoseParentEndsMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, "between its reading and its row", func(b *bench) {
		parent := b.Overdue(7, time.Second)
		child, err := b.Job(b.Context(), keyed("", ""), func(now time.Time) (*accept.Draft, error) {
			d, err := b.draft(now)
			d.After = new(dag.After{Rule: dag.AllSucceeded, Parents: []dag.Parent{{ID: parent.ID}}}.Learn(parent))
			parent.Status, parent.FinishedAt = job.Cancelled, now
			b.Put(parent)
			return d, err
		}, answer)
		if is := b.Row(child.Row.Key); err != nil || child.Row.Status != job.Blocked || is.Status != job.Cancelled {
			b.Errorf("accepted as %s, then %s; %v", child.Row.Status, is.Status, err)
		}
	})
}

func TestSubmitter_MakesARunOnceForEachKey(t *testing.T) {
	t.Parallel()
	made := func(b *bench, r submit.Request) (run.Key, bool) {
		b.Helper()
		k, replayed, err := b.Run(b.Context(), r, func(time.Time) (runs.Request, error) {
			b.reads++
			return runs.Request{Definition: dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo"}}},
				By: runs.By{Who: "s"}}, nil
		}, func(runs.Request, time.Time) []byte { return []byte("{}") })
		if err != nil {
			b.Fatal(err)
		}
		return k, replayed
	}
	bubble(t, "a repeated request finds the run of the first and is not read", func(b *bench) {
		first, early := made(b, keyed("k", "body"))
		second, late := made(b, keyed("k", "body"))
		if early || !late || first != second || b.reads != 1 {
			b.Errorf("%s, then %s; read %d times", first.ID, second.ID, b.reads)
		}
	})
	bubble(t, "of two requests at once, one makes the run and the other finds it", func(b *bench) {
		var theirs run.Key
		b.Before(commit, func() { theirs, _ = made(b, keyed("k", "body")) })
		if ours, replayed := made(b, keyed("k", "body")); !replayed || ours != theirs {
			b.Errorf("theirs is %s and ours %s, replayed %v", theirs.ID, ours.ID, replayed)
		}
	})
	bubble(t, "a repeated request continues a run that was only begun", func(b *bench) {
		var begun atomic.Bool
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if begun.Load() {
				return memory.Fault{Fail: fault.Unavailable}
			}
			begun.Store(c.Op == memory.TableCommit)
			return memory.Fault{}
		})
		k, _ := made(b, keyed("k", "body"))
		b.World.SetFaults(nil)
		if is, err := b.Bench.Store.Run(b.Context(), k); err != nil || is.Status != run.Building {
			b.Fatalf("%s, %v", is.Status, err)
		}
		made(b, keyed("k", "body"))
		if is, err := b.Bench.Store.Run(b.Context(), k); err != nil || is.Status != run.Running {
			b.Errorf("%s, %v", is.Status, err)
		}
	})
	bubble(t, "a job and a run share one space of keys", func(b *bench) {
		b.submit(keyed("k", "body"))
		_, _, err := b.Run(b.Context(), keyed("k", "run body"), nil, nil)
		if !errors.Is(err, submit.ErrKeyReused) {
			b.Error(err)
		}
	})
}
