package submit_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/submit"
	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
)

// wanting reads a job that is due now and has a unique key.
func wanting(how job.OnConflict) func(time.Time) (*accept.Draft, error) {
	return func(now time.Time) (*accept.Draft, error) {
		r := jobtest.Row(1, now, now)
		r.ID, r.Unique = "", job.Unique{Key: "k", Until: job.UntilDone, OnConflict: how}
		return &accept.Draft{Row: r}, nil
	}
}

func (b *bench) ask(r submit.Request, how job.OnConflict) submit.Job {
	b.Helper()
	j, err := b.Job(b.Context(), r, wanting(how), answer)
	b.Must(err)
	return j
}

func reads(c memory.Call) bool {
	return c.Op == memory.TableGet && c.Ref == job.UniqueRef(jobtest.Tenant, "k")
}

func TestSubmitter_LetsOneOfManyHaveAUniqueKey(t *testing.T) {
	t.Parallel()
	bubble(t, "twenty that have all read it as free", func(b *bench) {
		b.Fault(commit, memory.Fault{Wait: time.Second}) // all read before the first writes
		var mu sync.Mutex
		made, found := map[job.ID]int{}, map[job.ID]int{}
		var g sync.WaitGroup
		for range 20 {
			g.Go(func() {
				j := b.ask(keyed("", ""), job.ConflictReturn)
				mu.Lock()
				defer mu.Unlock()
				if j.Held {
					found[j.Row.ID]++
				} else {
					made[j.Row.ID]++
				}
			})
		}
		g.Wait()
		if len(made) != 1 || len(found) != 1 {
			b.Fatalf("made %v, found %v", made, found)
		}
		for id := range made {
			if found[id] != 19 {
				b.Errorf("made %s, and found %v", id, found)
			}
		}
	})
	bubble(t, "one that the first holder has left meanwhile", func(b *bench) {
		first := b.ask(keyed("", ""), job.ConflictReturn)
		b.Once(reads, func() memory.Fault {
			_, w := job.Skip(first.Row, job.Reason{Code: job.CodeLimitFull}, stagetest.Now())
			b.Write(w)
			return memory.Fault{}
		})
		second := b.ask(keyed("", ""), job.ConflictReject)
		if second.Held || second.Row.ID == first.Row.ID {
			b.Errorf("found %s", second.Row.ID)
		}
		_, err := b.Job(b.Context(), keyed("", ""), wanting(job.ConflictReject), answer)
		var held *accept.NotUnique
		if !errors.As(err, &held) || held.Holder != second.Row.ID {
			b.Errorf("the third is refused with %v", err)
		}
	})
}

func TestSubmitter_RecognisesItsOwnUniqueKey(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]submit.Request{
		"without an idempotency key": keyed("", ""), "with one": keyed("i", "body"),
	} {
		bubble(t, name+", where the write happens twice", func(b *bench) {
			b.Once(commit, func() memory.Fault { return memory.Fault{Twice: true} })
			if j := b.ask(r, job.ConflictReject); j.Held || j.Replayed {
				b.Errorf("found %+v", j)
			}
		})
	}
	bubble(t, "where the answer is lost, and the client repeats its request", func(b *bench) {
		b.Once(commit, func() memory.Fault { return memory.Fault{Lost: true} })
		_, err := b.Job(b.Context(), keyed("i", "body"), wanting(job.ConflictReject), answer)
		if fault.KindOf(err) != fault.Unavailable {
			b.Fatal(err)
		}
		first := b.ask(keyed("i", "body"), job.ConflictReject)
		if !first.Replayed || first.Held {
			b.Errorf("found %+v", first)
		}
	})
}
