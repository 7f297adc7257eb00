package model

import (
	"fmt"
	"math/bits"

	"punctual/shared/dag"
	"punctual/shared/dag/dagtest"
)

// Config is one small world: a graph, and what may happen to its run.
type Config struct {
	Parents   [][]uint8 // of each node; parents have lower numbers
	Rules     []dag.Rule
	Policy    dag.Policy
	Steady    uint8   // set of nodes that never fail
	Limited   bool    // max_concurrency is 1
	Joins     bool    // ends are counted at joins of two and more, and at the end of a run with two last nodes
	Orders    []Order // each may happen at any time after the one before, or never
	Rivals    []Order // of a second operator
	Releasers int     // at most 2
	Crashes   int     // of a releaser, or of an operator's request
	Repeats   int     // reports and wake-ups that arrive once too often
	Fine      bool    // every read is a step of its own; otherwise all reads up to the next write are one step
	NoSweeps  bool    // the run's wake-up comes only when an operation has set it
	Broken    Broken
}

// Broken names a condition that is left out, to show that the search finds the violation.
type Broken string

// model is a Config with what its graph implies. Sets of nodes are bits.
type model struct {
	Config
	n        int
	parents  [maxNodes]uint8
	children [maxNodes]uint8
	below    [maxNodes]uint8 // the node and all below it
	sinks    uint8
	verdicts [maxNodes][64]found // by code: what dag.Evaluate says
	dues     [maxNodes][64]found // by code: what dagtest.Evaluate says
	bad      string              // what was violated
	to       state               // the next state is made here
}

var ends = [4]dag.End{dag.NotEnded, dag.Succeeded, dag.Failed, dag.Skipped}

func newModel(c Config) *model {
	m := &model{Config: c, n: len(c.Parents)}
	for x, parents := range c.Parents {
		for _, p := range parents {
			m.parents[x] |= 1 << p
			m.children[p] |= 1 << x
		}
	}
	for x := m.n - 1; x >= 0; x-- {
		m.below[x] = 1 << x
		for y := range m.n {
			if m.children[x]&(1<<y) != 0 {
				m.below[x] |= m.below[y]
			}
		}
		if m.children[x] == 0 {
			m.sinks |= 1 << x
		}
		for code := range 64 {
			var parents []dag.End
			for i, rest := 0, code; i < len(c.Parents[x]); i, rest = i+1, rest/4 {
				parents = append(parents, ends[rest%4])
			}
			v, _ := dag.Evaluate(c.Rules[x], c.Policy, parents)
			due, _ := dagtest.Evaluate(c.Rules[x], c.Policy, parents)
			m.verdicts[x][code], m.dues[x][code] = founds[v], founds[due]
		}
	}
	return m
}

var founds = map[dag.Verdict]found{
	dag.Wait: nothing, dag.Run: toRelease, dag.Cancel: toCancel, dag.Skip: toSkip, dag.Held: toHold,
}

func (m *model) start() state {
	s := state{wake: true, crashes: uint8(m.Crashes), repeats: uint8(m.Repeats)}
	return s
}

// evaluate is the verdict about node x by the rows of its parents in those generations.
func (m *model) evaluate(s *state, gen *[maxNodes]uint8, x uint8) found {
	return m.verdicts[x][m.code(s, gen, x)]
}

// code numbers how the parents of node x have ended in those generations.
func (m *model) code(s *state, gen *[maxNodes]uint8, x uint8) (code int) {
	scale := 1
	for _, p := range m.Config.Parents[x] {
		switch s.rows[p][gen[p]].end() {
		case dag.Succeeded:
			code += scale
		case dag.Failed:
			code += 2 * scale
		case dag.Skipped:
			code += 3 * scale
		}
		scale *= 4
	}
	return code
}

// move is one atomic step.
type move struct {
	what      string
	who       int8 // the releaser, -1: the worker, -2 and -3: the operators
	node, gen int8
	free      bool // it may never happen: an operation, a crash, a repetition
}

func (v move) String() string {
	who := [...]string{"rival", "operator", "worker", "releaser 0", "releaser 1"}[v.who+3]
	if v.node < 0 {
		return fmt.Sprintf("%s: %s", who, v.what)
	}
	return fmt.Sprintf("%s: %s node %d generation %d", who, v.what, v.node, v.gen+1)
}

// copy returns a copy of the state that may be changed. The next call overwrites it.
func (m *model) copy(s *state) *state {
	m.to = *s
	return &m.to
}

// next calls each with every state that may follow.
func (m *model) next(s *state, each func(move, *state)) {
	busy := false
	for i := range m.Releasers {
		p := s.procs[i]
		if p.pc == idle {
			continue
		}
		busy = true
		to := m.copy(s)
		v := m.step(to, i)
		each(v, to)
		if s.crashes > 0 {
			to := m.copy(s)
			to.procs[i] = process{}
			to.crashes--
			each(move{what: "crashes", who: int8(i), node: -1, free: true}, to)
		}
	}
	for k := range s.ops {
		if s.ops[k].pc == idle {
			continue
		}
		busy = true
		to := m.copy(s)
		v := m.request(to, k)
		each(v, to)
		if s.crashes > 0 {
			to := m.copy(s)
			to.ops[k] = operator{next: s.ops[k].next + 1}
			to.crashes--
			each(move{what: "crashes", who: operators[k], node: -1, free: true}, to)
		}
	}
	busy = m.pick(s, each) || busy
	busy = m.work(s, each) || busy
	for k := range s.ops {
		if s.ops[k].pc == idle && int(s.ops[k].next) < len(m.orders(k)) {
			to := m.copy(s)
			v := m.begin(to, k)
			each(v, to)
		}
	}
	if !busy && !m.NoSweeps && !s.status.final() {
		to := m.copy(s)
		m.take(to, 0, process{pc: readRun})
		each(move{what: "wakes up", who: 0, node: -1}, to)
	}
}

// operators is who acts, by number.
var operators = [...]int8{-2, -3}

func (m *model) orders(k int) []Order {
	if k == 1 {
		return m.Rivals
	}
	return m.Orders
}

// pick gives an idle releaser something to do.
func (m *model) pick(s *state, each func(move, *state)) (any bool) {
	i := 0
	for i < m.Releasers && s.procs[i].pc != idle {
		i++
	}
	free := i < m.Releasers
	other := s.procs[1-i%2]
	for x := range m.n {
		for g := range maxGens {
			r := s.rows[x][g]
			if !r.st.final() {
				continue
			}
			known := other.pc != idle && other.propagates && int(other.node) == x && int(other.gen) == g
			if r.has(pending) && !(m.Policy == dag.CancelRun && s.operation.Operation != NoOperation) {
				any = true
				if free && !known {
					to := m.copy(s)
					m.take(to, i, process{pc: readRun, propagates: true, node: uint8(x), gen: uint8(g)})
					each(move{what: "takes up the end of", who: int8(i), node: int8(x), gen: int8(g)}, to)
					continue
				}
			}
			if free && s.repeats > 0 {
				to := m.copy(s)
				to.repeats--
				m.take(to, i, process{pc: readRun, propagates: true, node: uint8(x), gen: uint8(g)})
				each(move{what: "takes up twice the end of", who: int8(i), node: int8(x), gen: int8(g), free: true}, to)
			}
		}
	}
	if s.wake {
		any = true
		if free && !(other.pc != idle && !other.propagates) {
			to := m.copy(s)
			m.take(to, i, process{pc: readRun})
			each(move{what: "derives the run", who: int8(i), node: -1}, to)
		} else if free && s.repeats > 0 {
			to := m.copy(s)
			to.repeats--
			m.take(to, i, process{pc: readRun})
			each(move{what: "derives the run, too", who: int8(i), node: -1, free: true}, to)
		}
	}
	return any
}

// take sets what a releaser does next.
func (m *model) take(s *state, i int, p process) {
	s.procs[i] = p
	if !m.Fine {
		m.step(s, i)
	}
}

// work lets workers start and end jobs, as the protocol of jobs says.
func (m *model) work(s *state, each func(move, *state)) (any bool) {
	for x := range m.n {
		for g := range maxGens {
			r := s.rows[x][g]
			v := move{who: -1, node: int8(x), gen: int8(g)}
			set := func(what string, st status) {
				to := m.copy(s)
				to.rows[x][g] = row{st, r.flags | pending}
				v.what = what
				each(v, to)
				any = true
			}
			switch r.st {
			case waiting:
				if m.mayStart(s, x, g) {
					m.checkStart(s, x, g)
					to := m.copy(s)
					to.rows[x][g].st = running
					to.ran |= 1 << (x*maxGens + g)
					v.what = "starts"
					each(v, to)
					any = true
				} else if uint8(g) != s.gen[x] {
					set("gives up a superseded", cancelled)
				}
			case running:
				set("succeeds at", succeeded)
				if r.has(stop) {
					set("stops at", cancelled)
				} else if !has(m.Steady, uint8(x)) {
					set("fails at", dead)
				}
			}
		}
	}
	return any
}

// mayStart is what a worker checks on the run after it has claimed the attempt.
func (m *model) mayStart(s *state, x, g int) bool {
	return !s.status.final() &&
		(s.stop == NoOperation || m.Broken == StartIgnoresStop) &&
		(!s.paused || m.Broken == StartIgnoresPause) &&
		(s.operation.Operation == NoOperation || m.Broken == StartIgnoresOperation) &&
		(uint8(g) == s.gen[x] || m.Broken == StartIgnoresGeneration)
}

func has(set uint8, x uint8) bool { return set&(1<<x) != 0 }

func count(set uint8) uint8 { return uint8(bits.OnesCount8(set)) }
