package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// hashed returns a number derived from the facts.
func hashed(seed uint64, facts ...string) uint64 {
	h := fnv.New64a()
	for _, f := range facts {
		h.Write([]byte(f)) // never fails
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64()
}

// dice returns random numbers that depend only on the seed and the purpose.
func dice(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hashed(seed, purpose)))
}

// entropy is the randomness of job ids. With in-memory implementations, the first two ids of a millisecond are equal:
// one for each of two tenants.
type entropy struct {
	seed    uint64
	sameIDs bool

	mu sync.Mutex // held briefly
	ms int64
	n  int // reads in that millisecond
}

func (e *entropy) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now().UnixMilli(); now != e.ms {
		e.ms, e.n = now, 0
	}
	n := e.n
	if e.sameIDs {
		n /= len(tenants)
	}
	e.n++
	d := dice(e.seed, fmt.Sprintf("id %d of %d", n, e.ms))
	for i := range p {
		p[i] = byte(d.Uint32())
	}
	return len(p), nil
}
