package permit_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/runs/permit"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/store"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// bench is a store that holds one run.
type bench struct {
	*testing.T
	store *store.Store
	run   run.Run
}

func setup(t *testing.T) bench {
	w := memory.New(memory.Options{})
	t.Cleanup(w.Close)
	s := store.New(w.Table(), w.Blobs())
	r, write := run.Create(run.Run{
		Key: run.Key{Tenant: "acme", ID: job.DeterministicID(noon, "r")}, Definition: "h", DueAt: noon,
	}, noon)
	if err := s.WriteRun(t.Context(), r, write); err != nil {
		t.Fatal(err)
	}
	r.Status = run.Running
	return bench{t, s, r}
}

// end is the Set of the end of a job that holds the permits which its row names.
func (b bench) end(row job.Row) *permit.Set { return permit.New(b.store, b.run, permit.HeldBy(row)) }

// job is a job of the run, without a permit.
func (b bench) job(id job.ID) job.Row {
	return job.Row{Key: job.Key{Tenant: b.run.Tenant, ID: id}, NodeRef: job.NodeRef{RunID: string(b.run.ID)}}
}

// acquire calls Acquire for the limit of the run until none is found, or most are.
func (b bench) acquire(s *permit.Set, n, most int) (found []permit.Permit) {
	b.Helper()
	for range most {
		p, ok, err := s.Acquire(b.Context(), "", n)
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			return found
		}
		found = append(found, p)
	}
	return found
}

func (b bench) write(p permit.Permit, to job.ID) error {
	return b.store.Put(b.Context(), p.Write(to, noon))
}

func (b bench) mustWrite(p permit.Permit, to job.ID) {
	b.Helper()
	if err := b.write(p, to); err != nil {
		b.Fatal(err)
	}
}

func (b bench) requireHolders(want string) {
	b.Helper()
	holders, err := b.store.PermitHolders(b.Context(), []run.Bucket{{Key: b.run.Key}})
	if got := fmt.Sprint(holders[0]); err != nil || got != want {
		b.Errorf("the holders are %s, want %s (%v)", got, want, err)
	}
}

func TestSet_GivesAsManyPermitsAsTheLimitHas(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 8, 9, 20, 200} {
		t.Run(fmt.Sprint("a limit of ", n), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if got := len(b.acquire(b.end(job.Row{}), n, 2*n)); got != n {
				t.Errorf("%d were found", got)
			}
		})
	}
}

func TestSet_GivesPermitsThatAreNotHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, p := range b.acquire(b.end(b.job("x")), 3, 2) {
		b.mustWrite(p, job.ID(fmt.Sprint("holder", i)))
	}
	if got := len(b.acquire(b.end(b.job("y")), 3, 9)); got != 1 {
		t.Errorf("%d were found, want 1", got)
	}
}

func TestSet_NeedsNoPermitWithoutALimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, p := range b.acquire(b.end(b.job("x")), 0, 5) {
		if p.Limited() {
			t.Error("a permit is to be written")
		}
	}
}

func TestSet_GivesAPermitThatWasGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.end(b.job("x"))
	s.GiveBack(b.acquire(s, 1, 9)...)
	if got := len(b.acquire(s, 1, 9)); got != 1 {
		t.Errorf("%d were found, want 1", got)
	}
}

func TestSet_PassesOnThePermitOfTheEndedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustWrite(b.acquire(b.end(b.job("x")), 1, 1)[0], "x")
	x := b.job("x")
	x.Permit = 1
	s := b.end(x)
	s.GiveBack(b.acquire(s, 1, 1)...)
	found := b.acquire(s, 1, 9)
	if len(found) != 1 {
		t.Fatalf("%d were found, want 1", len(found))
	}
	b.mustWrite(found[0], "y")
	b.requireHolders("[y]")
}

func TestSet_FreesWhatTheEndedJobStillHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustWrite(b.acquire(b.end(b.job("x")), 1, 1)[0], "x")
	x := b.job("x")
	x.Permit = 1
	held := permit.HeldBy(x)
	for range 2 { // a second try finds nothing to free, and still has to read the waiters
		ofRun, err := permit.New(b.store, b.run, held).FreeHeld(t.Context())
		if !ofRun || err != nil {
			t.Errorf("the waiters are not to be read: %v", err)
		}
	}
	b.requireHolders("[]")
	s := permit.New(b.store, b.run, held)
	s.WaitersRead()
	if ofRun, err := s.FreeHeld(t.Context()); ofRun || err != nil {
		t.Errorf("the waiters are to be read once more: %v", err)
	}
}

func TestSet_CountsTheBucketOfALostPermitAsFull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.end(b.job("x")), b.end(b.job("x"))
	second := b.acquire(other, 2, 1)
	for i, p := range b.acquire(one, 2, 2) {
		b.mustWrite(p, job.ID(fmt.Sprint("holder", i)))
	}
	if err := b.write(second[0], "b"); store.Refused(err) == nil {
		t.Fatalf("the write was not refused: %v", err)
	}
	other.Lose(second[0])
	if got := len(b.acquire(other, 2, 9)); got != 0 {
		t.Errorf("%d were found, want 0", got)
	}
}

func TestSet_FreesThePermitsOfEndedHoldersInAReconcileOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.mustWrite(b.acquire(b.end(b.job("x")), 1, 1)[0], "gone")
	if got := len(b.acquire(b.end(b.job("y")), 1, 9)); got != 0 {
		t.Errorf("%d were found by an end, want 0", got)
	}
	if got := len(b.acquire(b.end(job.Row{}), 1, 9)); got != 1 {
		t.Errorf("%d were found by a reconcile, want 1", got)
	}
}
