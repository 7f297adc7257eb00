package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSorted_AgreesWithASortedSlice compares sorted with a plain sorted slice.
func TestSorted_AgreesWithASortedSlice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		dice := rand.New(rand.NewPCG(seed, 0))
		s := sorted[int]{compare: cmp.Compare[int]}
		var plain []int
		spread := 1 << (4 + 2*seed) // from dense to sparse
		for range 20_000 {
			v := dice.IntN(spread)
			at, there := slices.BinarySearch(plain, v)
			if dice.IntN(3) > 0 {
				s.put(v)
				if !there {
					plain = slices.Insert(plain, at, v)
				}
				continue
			}
			if s.remove(v) != there {
				t.Fatalf("seed %d: removing %d did not say %v", seed, v, there)
			}
			if there {
				plain = slices.Delete(plain, at, at+1)
			}
		}
		if s.n != len(plain) {
			t.Fatalf("seed %d: it holds %d, want %d", seed, s.n, len(plain))
		}
		for range 50 {
			from, to := dice.IntN(spread+2)-1, dice.IntN(spread+2)-1
			below, above := func(v int) bool { return v < from }, func(v int) bool { return v >= to }
			var want, up, down []int
			for _, v := range plain {
				if !below(v) && !above(v) {
					want = append(want, v)
				}
			}
			s.ascend(below, func(v int) bool {
				if !above(v) {
					up = append(up, v)
				}
				return !above(v)
			})
			s.descend(above, func(v int) bool {
				if !below(v) {
					down = append(down, v)
				}
				return !below(v)
			})
			slices.Reverse(down)
			if !slices.Equal(up, want) || !slices.Equal(down, want) {
				t.Fatalf("seed %d: from %d to %d it gives %v and %v, want %v", seed, from, to, up, down, want)
			}
		}
	}
}
