package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// hashed is a number that those facts always give.
func hashed(seed uint64, facts ...string) uint64 {
	h := fnv.New64a()
	for _, f := range facts {
		h.Write([]byte(f)) // never fails
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64()
}

// dice are numbers that depend on the seed and the purpose alone.
func dice(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hashed(seed, purpose)))
}

// entropy makes job ids of a seed. With twins, two that are made in the same millisecond are alike:
// the world has one job of each made by each of two tenants then.
type entropy struct {
	seed  uint64
	twins bool

	mu sync.Mutex // readers take it for no longer than it takes
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
	if e.twins {
		n /= len(tenants)
	}
	e.n++
	d := dice(e.seed, fmt.Sprintf("id %d of %d", n, e.ms))
	for i := range p {
		p[i] = byte(d.Uint32())
	}
	return len(p), nil
}
