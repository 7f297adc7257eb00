package model

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Found is the result of a search.
type Found struct {
	States    int
	Violation string   // "" for none
	Trace     []string // the steps that lead to it, in order
	Cut       bool     // the search stopped at its bound
}

func (f Found) String() string {
	return fmt.Sprintf("%s\n  %s", f.Violation, strings.Join(f.Trace, "\n  "))
}

// visit is how the search came to a state.
type visit struct {
	from int32
	by   move
}

type search struct {
	*model
	at     map[uint64]int32 // by hash: the newest state that has it
	older  []int32          // of each state: the one before it with the same hash, -1 for none
	states []state
	came   []visit
}

// Search visits every reachable state, nearest first, up to most states. Then it checks for each that the run comes to
// rest from there by itself.
func Search(c Config, most int) Found {
	s := &search{model: newModel(c), at: map[uint64]int32{}}
	s.add(s.start(), visit{from: -1})
	for i := 0; i < len(s.states) && s.bad == ""; i++ {
		if i >= most {
			return Found{States: i, Cut: true}
		}
		from := s.states[i]
		s.next(&from, func(by move, to *state) {
			if s.bad == "" {
				s.checkMove(&from, to)
			}
			added := s.add(*to, visit{int32(i), by})
			if s.bad != "" && added >= 0 {
				s.came = append(s.came[:added], visit{int32(i), by})
			}
		})
		if s.bad != "" {
			return Found{States: len(s.states), Violation: s.bad, Trace: s.trace(i)}
		}
	}
	if at := s.settleAll(); s.bad != "" {
		return Found{States: len(s.states), Violation: s.bad, Trace: s.trace(at)}
	}
	return Found{States: len(s.states)}
}

// add notes a state and returns its number, or -1 if it was visited before.
func (s *search) add(to state, by visit) int {
	if s.procsSwapped(&to) {
		to.procs[0], to.procs[1] = to.procs[1], to.procs[0]
	}
	if _, ok := s.find(&to); ok {
		return -1
	}
	h := maphash.Comparable(seed, to)
	older, ok := s.at[h]
	if !ok {
		older = -1
	}
	s.at[h] = int32(len(s.states))
	s.older = append(s.older, older)
	s.states = append(s.states, to)
	s.came = append(s.came, by)
	return len(s.states) - 1
}

var seed = maphash.MakeSeed()

// find returns the number of a state, and whether it was visited.
func (s *search) find(to *state) (int32, bool) {
	i, ok := s.at[maphash.Comparable(seed, *to)]
	if !ok {
		return 0, false
	}
	for i >= 0 && s.states[i] != *to {
		i = s.older[i]
	}
	return i, i >= 0
}

// procsSwapped says whether the two releasers have to be swapped. States that differ only in which is which are one.
func (s *search) procsSwapped(to *state) bool {
	a, b := &to.procs[0], &to.procs[1]
	key := func(p *process) uint64 {
		k := uint64(p.pc)<<48 | uint64(p.node)<<40 | uint64(p.gen)<<32 | uint64(p.at)<<24 | uint64(p.found)<<16 |
			uint64(p.seen.epoch)<<8 | uint64(p.bump)<<4
		if p.propagates {
			k |= 1
		}
		return k
	}
	return s.Releasers > 1 && key(a) < key(b)
}

func (s *search) trace(i int) []string {
	var steps []string
	for ; s.came[i].from >= 0; i = int(s.came[i].from) {
		steps = append([]string{s.came[i].by.String()}, steps...)
	}
	return steps
}

// settleAll follows from each state the steps that happen by themselves, and checks the state in which they end.
func (s *search) settleAll() (at int) {
	rests := make([]bool, len(s.states))
	var path []int32
	for i := range s.states {
		path = path[:0]
		for j := int32(i); !rests[j]; {
			if len(path) > 5_000 {
				s.violated("the run never comes to rest")
				return i
			}
			path = append(path, j)
			to, ok := s.onward(&s.states[j])
			if !ok {
				if s.checkRest(&s.states[j]); s.bad != "" {
					return int(j)
				}
				break
			}
			j = to
		}
		for _, j := range path {
			rests[j] = true
		}
	}
	return 0
}

// onward is the next state without an operation, a crash or a repetition; false if there is none. A wake-up is followed
// to its end, and counts only if it has changed something.
func (s *search) onward(from *state) (int32, bool) {
	to, by, ok := s.first(from)
	if !ok {
		return 0, false
	}
	if by.what != "wakes up" {
		return to, true
	}
	for s.states[to].procs[0].pc != idle || s.states[to].procs[1].pc != idle {
		if to, _, ok = s.first(&s.states[to]); !ok {
			panic("a releaser does not go on")
		}
	}
	return to, s.states[to] != *from
}

func (s *search) first(from *state) (to int32, by move, ok bool) {
	s.next(from, func(v move, next *state) {
		if ok || v.free {
			return
		}
		if s.procsSwapped(next) {
			next.procs[0], next.procs[1] = next.procs[1], next.procs[0]
		}
		to, ok = s.find(next)
		by = v
		if !ok {
			panic("a state was not visited")
		}
	})
	return to, by, ok
}
