package model

import (
	"fmt"
	"slices"

	"punctual/shared/dag"
)

func (m *model) violated(format string, args ...any) {
	if m.bad == "" {
		m.bad = fmt.Sprintf(format, args...)
	}
}

// due is what the rule of x says about the current rows of its parents.
func (m *model) due(s *state, x uint8) found { return m.dues[x][m.code(s, &s.gen, x)] }

// checkStart checks a start before it happens.
func (m *model) checkStart(s *state, x, g int) {
	older := row{} // the newest before it
	runs := false  // one of those before it
	for before := range g {
		older = s.rows[x][before]
		runs = runs || older.st == running
	}
	switch {
	case s.status.final():
		m.violated("node %d starts in a run that is over", x)
	case s.stop != NoOperation:
		m.violated("node %d starts in a run that is stopped", x)
	case s.paused:
		m.violated("node %d starts in a run that is paused", x)
	case uint8(g) != s.gen[x]:
		m.violated("node %d starts in generation %d, and %d counts", x, g+1, s.gen[x]+1)
	case s.ran&(1<<(x*maxGens+g)) != 0:
		m.violated("node %d starts twice in generation %d", x, g+1)
	case runs:
		m.violated("node %d starts in generation %d while an older one runs", x, g+1)
	case older.st == succeeded && !m.ordered(RetryFrom):
		m.violated("node %d starts once more after it has succeeded", x)
	case s.override[x] != NoOperation:
		m.violated("node %d starts after an operator has ended it", x)
	case !s.rows[x][g].has(kept) && m.due(s, uint8(x)) != toRelease:
		m.violated("node %d starts before its rule", x)
	}
}

func (m *model) ordered(a Operation) bool {
	for _, o := range slices.Concat(m.Orders, m.Rivals) {
		if o.Operation == a {
			return true
		}
	}
	return false
}

// checkPut checks the verdict about a node before it is written.
func (m *model) checkPut(s *state, x, g uint8, f found) {
	if g != s.gen[x] {
		return // it is not the current generation
	}
	if due := m.due(s, x); f != toForce && f != due {
		m.violated("node %d is written as %d, and its rule says %d", x, f, due)
	}
}

// checkFailure checks a failure before it stops the run.
func (m *model) checkFailure(s *state, x, g uint8) {
	if g != s.gen[x] || !s.rows[x][g].st.failed() {
		m.violated("the run is stopped for a failure of an older generation of node %d", x)
	}
}

// checkEnd checks the end of the run before it is written.
func (m *model) checkEnd(s *state, f found) {
	failed := false
	for x := range m.n {
		r := s.rows[x][s.gen[x]]
		if !r.st.final() {
			m.violated("the run ends before node %d", x)
		}
		if m.Policy != dag.Continue || m.children[x] == 0 {
			failed = failed || r.st == dead || r.st == cancelled
		}
	}
	want := toSucceed
	switch {
	case s.stop == Cancel:
		want = toEndCancelled
	case s.stop == Expire || s.stop == stopFail || failed:
		want = toFail
	}
	if f != want {
		m.violated("the run ends as %d, and should as %d", f, want)
	}
	if s.status.final() {
		m.violated("the run ends twice")
	}
}

// checkMove checks what no step may do.
func (m *model) checkMove(from, to *state) {
	isOpen := 0
	for x := range m.n {
		for g := range maxGens {
			a, b := from.rows[x][g].st, to.rows[x][g].st
			if a.final() && a != b {
				m.violated("node %d changes after its end in generation %d", x, g+1)
			}
			if a == running && to.rows[x][g].has(forced) {
				m.violated("node %d is ended by hand while it runs", x)
			}
			if b.open() {
				isOpen++
			}
		}
	}
	if m.Limited && isOpen > 1 {
		m.violated("two jobs of a limited run are open")
	}
}

// checkRest checks a state in which nothing more happens by itself.
func (m *model) checkRest(s *state) {
	allFinal, open := true, false
	for x := range m.n {
		allFinal = allFinal && s.rows[x][s.gen[x]].st.final()
		for g := 1; s.status.final() && g < int(s.gen[x]); g++ { // a redrive may have named the job
			if s.rows[x][g].st == absent {
				m.violated("node %d has no row in generation %d, which an act began", x, g+1)
			}
		}
		for g := range maxGens {
			open = open || s.rows[x][g].st.open()
		}
	}
	switch {
	case !s.status.final() && allFinal:
		m.violated("all nodes have ended, and the run has not")
	case !s.status.final() && s.paused && s.operation.Operation == NoOperation && s.stop == NoOperation:
		return
	case s.status == held && m.Policy == dag.Hold && s.operation.Operation == NoOperation && s.stop == NoOperation:
		for x := range uint8(m.n) {
			if s.rows[x][s.gen[x]].st == absent && m.due(s, x) == toHold {
				return
			}
		}
		m.violated("the run is held, and no node is")
	case !s.status.final():
		m.violated("the run is stuck")
	case open:
		m.violated("the run is over, and a job of it waits")
	}
	if m.bad != "" {
		return
	}
	m.checkOver(s)
}

// checkOver checks a run that has ended.
func (m *model) checkOver(s *state) {
	stops := m.Policy == dag.CancelRun || m.ordered(Cancel) || m.ordered(Expire)
	for x := range uint8(m.n) {
		r := s.rows[x][s.gen[x]]
		if r.has(kept) || r.has(forced) {
			continue
		}
		due := m.due(s, x)
		switch {
		case r.st == cancelled && s.ran&(1<<(int(x)*maxGens+int(s.gen[x]))) != 0: // it ran and was stopped
		case r.st == cancelled && (due == toCancel || stops):
		case r.st == skipped && due == toSkip:
		case (r.st == succeeded || r.st == dead) && due == toRelease:
		default:
			m.violated("node %d ended as %d, and its rule says %d", x, r.st, due)
		}
	}
	for k, op := range s.ops {
		if orders := m.orders(k); int(op.next) == len(orders) && len(orders) > 0 && op.done == orders[len(orders)-1] {
			m.checkAnswer(s, op.done)
		}
	}
}

// checkAnswer checks at the end that an operation that was answered 200 has taken effect.
func (m *model) checkAnswer(s *state, o Order) {
	if len(m.Rivals) > 0 { // the other operator may have undone it
		return
	}
	switch {
	case o.Operation == Cancel && s.status != runCancelled:
		m.violated("the run was cancelled and did not end so")
	case o.Operation == Expire && s.status != runFailed:
		m.violated("the run expired and did not end so")
	case o.Operation.isOverride() && !s.rows[o.Node][s.gen[o.Node]].has(forced):
		m.violated("node %d was ended by hand, and nobody sees it", o.Node)
	}
}
