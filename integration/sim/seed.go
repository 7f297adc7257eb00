package sim

import (
	"hash/fnv"
	"math/rand/v2"
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

// entropy makes job ids of a seed.
type entropy struct{ *rand.Rand }

func (e entropy) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e.Uint32())
	}
	return len(p), nil
}
