package memory

import (
	"slices"
	"sort"
)

// chunkSize bounds how many values one insert moves.
const chunkSize = 128

// sorted keeps values in order, in a list of short sorted runs: an insert into a hundred thousand
// values moves a few kilobytes at most.
type sorted[T any] struct {
	compare func(a, b T) int
	chunks  [][]T // none is empty
	n       int
}

// sortedOf takes over values, of which no two compare equal.
func sortedOf[T any](compare func(a, b T) int, values []T) *sorted[T] {
	slices.SortFunc(values, compare)
	s := &sorted[T]{compare: compare, n: len(values)}
	for run := range slices.Chunk(values, chunkSize) { // each with a capacity of its own
		s.chunks = append(s.chunks, run)
	}
	return s
}

// find returns the position of the first value that is not below v.
func (s *sorted[T]) find(v T) (chunk, at int) {
	chunk = sort.Search(len(s.chunks), func(c int) bool {
		run := s.chunks[c]
		return s.compare(run[len(run)-1], v) >= 0
	})
	if chunk == len(s.chunks) {
		return chunk, 0
	}
	run := s.chunks[chunk]
	return chunk, sort.Search(len(run), func(i int) bool { return s.compare(run[i], v) >= 0 })
}

// put adds v, or replaces the value that compares equal.
func (s *sorted[T]) put(v T) {
	c, at := s.find(v)
	if c == len(s.chunks) {
		if c == 0 {
			s.chunks = append(s.chunks, []T{v})
			s.n = 1
			return
		}
		c--
		at = len(s.chunks[c])
	}
	run := s.chunks[c]
	if at < len(run) && s.compare(run[at], v) == 0 {
		run[at] = v
		return
	}
	var zero T
	run = append(run, zero)
	copy(run[at+1:], run[at:])
	run[at] = v
	s.chunks[c] = run
	s.n++
	if len(run) <= chunkSize {
		return
	}
	cut := len(run) / 2
	if c == len(s.chunks)-1 && at == len(run)-1 {
		cut = len(run) - 1 // values mostly arrive in order: leave the full run full
	}
	right := append(make([]T, 0, len(run)-cut), run[cut:]...)
	clear(run[cut:])
	s.chunks[c] = run[:cut]
	s.chunks = append(s.chunks, nil)
	copy(s.chunks[c+2:], s.chunks[c+1:])
	s.chunks[c+1] = right
}

// remove removes the value that compares equal to v, if there is one.
func (s *sorted[T]) remove(v T) bool {
	c, at := s.find(v)
	if c == len(s.chunks) || s.compare(s.chunks[c][at], v) != 0 {
		return false
	}
	run := s.chunks[c]
	copy(run[at:], run[at+1:])
	var zero T
	run[len(run)-1] = zero
	s.chunks[c] = run[:len(run)-1]
	s.n--
	if len(s.chunks[c]) == 0 {
		s.chunks = append(s.chunks[:c], s.chunks[c+1:]...)
	}
	return true
}

// ascend calls visit with each value for which below is false, in order, until it returns false.
// below must be true for a prefix of the values only.
func (s *sorted[T]) ascend(below func(T) bool, visit func(T) bool) {
	c := sort.Search(len(s.chunks), func(c int) bool {
		run := s.chunks[c]
		return !below(run[len(run)-1])
	})
	for first := true; c < len(s.chunks); c++ {
		run, i := s.chunks[c], 0
		if first {
			i = sort.Search(len(run), func(i int) bool { return !below(run[i]) })
			first = false
		}
		for ; i < len(run); i++ {
			if !visit(run[i]) {
				return
			}
		}
	}
}

// descend calls visit with each value for which above is false, from the end, until it returns
// false. above must be true for a suffix of the values only.
func (s *sorted[T]) descend(above func(T) bool, visit func(T) bool) {
	c := sort.Search(len(s.chunks), func(c int) bool {
		run := s.chunks[c]
		return above(run[len(run)-1])
	})
	c = min(c, len(s.chunks)-1)
	for first := true; c >= 0; c-- {
		run := s.chunks[c]
		i := len(run) - 1
		if first {
			i = sort.Search(len(run), func(i int) bool { return above(run[i]) }) - 1
			first = false
		}
		for ; i >= 0; i-- {
			if !visit(run[i]) {
				return
			}
		}
	}
}
