package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

var (
	limited = limit.Limit{Tenant: "acme", Name: "github", WhenFull: limit.Wait}
	account = limit.Key{Tenant: tenant.ID("acme"), LimitKey: job.LimitKey{Name: "github", Key: "acct#42"}}
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// permits are the permits of one key, as jobs take them and give them back.
type permits struct {
	t    *testing.T
	s    *store.Store
	is   limit.Limit
	now  time.Time
	held map[job.ID]int // and in which bucket
	last int            // of the ids given
}

func newPermits(t *testing.T, n int) *permits {
	t.Helper()
	w := memory.New(memory.Options{})
	p := &permits{t: t, s: store.New(w.Table(), w.Blobs()), now: noon, held: map[job.ID]int{}}
	p.change(n)
	return p
}

func (p *permits) change(n int) {
	next := limited
	next.MaxRunning = n
	p.is = next.Becomes(p.is, p.now)
}

// take has a new job take a permit by the limit as it was read.
func (p *permits) take(by limit.Limit) bool {
	p.t.Helper()
	p.last++
	id := job.ID(fmt.Sprintf("job%05d", p.last))
	bucket, taken, err := p.s.TakePermit(context.Background(), by, account, id, 1, p.now)
	if err != nil && fault.KindOf(err) != fault.Conflict {
		p.t.Fatal(err)
	}
	if taken && err == nil {
		p.held[id] = bucket
		return true
	}
	return false
}

func (p *permits) free(id job.ID, bucket int) {
	p.t.Helper()
	if _, err := p.s.FreePermit(context.Background(), p.is, account, id, 1, bucket); err != nil {
		p.t.Fatal(err)
	}
	delete(p.held, id)
}

// A limit changes, also while jobs hold more permits than it has afterwards. No job gets one while as many are held as
// there may be, and each that is free can be had once all buckets are read.
func TestTakePermit_KeepsToTheLimitThroughItsChanges(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 5, 16, 17, 40, 70}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := newPermits(t, sizes[random.IntN(len(sizes))])
		for range 300 {
			p.now = p.now.Add(time.Duration(random.IntN(20)) * time.Second)
			if random.IntN(10) == 0 {
				p.now = p.now.Add(time.Hour) // so that a process of an old read is no longer expected
			}
			switch n := random.IntN(20); {
			case n == 0:
				p.change(sizes[random.IntN(len(sizes))])
			case n < 13:
				before := len(p.held)
				taken := p.take(p.is)
				if may := before < p.is.MaxRunning; taken != may {
					t.Fatalf("seed %d: with %d of %d permits held, one was taken: %v", seed, before, p.is.MaxRunning,
						taken)
				}
			default:
				for id, bucket := range p.held {
					if random.IntN(2) == 0 {
						bucket = -1
					}
					p.free(id, bucket)
					break
				}
			}
		}
	}
}

// Workers that have read the limit before it was lowered take permits as if it was not, for as long as a read may be
// old. A worker that has read it since gets none unless fewer are held than there may be.
func TestTakePermit_CountsWhatIsTakenByAnOldRead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		p := newPermits(t, 70)
		for range 30 {
			p.take(p.is)
		}
		old := p.is
		p.change(40)
		for range 100 {
			p.now = p.now.Add(400 * time.Millisecond)
			if random.IntN(4) == 0 {
				p.take(old)
				continue
			}
			before := len(p.held)
			if p.take(p.is) && before >= p.is.MaxRunning {
				t.Fatalf("seed %d: with %d of %d permits held, one was taken", seed, before, p.is.MaxRunning)
			}
			for id, bucket := range p.held {
				if random.IntN(2) == 0 {
					p.free(id, bucket)
				}
				break
			}
		}
	}
}

// An attempt that takes its permit twice holds one; the next attempt gets that of the one before, and the end of the
// earlier one, which comes late, frees none of the later.
func TestTakePermit_IsOfOneAttempt(t *testing.T) {
	t.Parallel()
	p := newPermits(t, 2)
	ctx := context.Background()
	for attempt := range int64(3) {
		for range 2 {
			if _, taken, err := p.s.TakePermit(ctx, p.is, account, "a", attempt+1, p.now); !taken || err != nil {
				t.Fatalf("attempt %d: %v, %v", attempt+1, taken, err)
			}
		}
	}
	if _, err := p.s.FreePermit(ctx, p.is, account, "a", 2, 0); err != nil {
		t.Fatal(err)
	}
	are, err := p.s.Buckets(ctx, p.is, account)
	if err != nil || are[0].N != 1 || len(are[0].Holders) != 1 || are[0].Holders[0].Attempt != 3 {
		t.Errorf("%+v, %v", are, err)
	}
	p.free("a", -1)
	if _, err := p.s.FreePermit(ctx, p.is, account, "a", 3, -1); err != nil { // a second time
		t.Fatal(err)
	}
	if are, err = p.s.Buckets(ctx, p.is, account); err == nil && are[0].N == 1 {
		_, err = p.s.FreePermit(ctx, p.is, account, "a", 3, -1)
		are, _ = p.s.Buckets(ctx, p.is, account)
	}
	if err != nil || are[0].N != 0 || len(are[0].Holders) != 0 {
		t.Errorf("after its end: %+v, %v", are, err)
	}
}

// Many take at once, and as many as there are permits get one.
func TestTakePermit_AtOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 16, 50} {
		p := newPermits(t, n)
		var all sync.WaitGroup
		taken := make([]bool, 3*n)
		for i := range taken {
			all.Go(func() {
				id := job.ID(fmt.Sprint("job", i))
				_, taken[i], _ = p.s.TakePermit(context.Background(), p.is, account, id, 1, noon)
			})
		}
		all.Wait()
		count := 0
		for _, is := range taken {
			if is {
				count++
			}
		}
		if count > n || count < n-n/4 { // several may chase the last ones
			t.Errorf("%d of %d have a permit", count, n)
		}
	}
}
