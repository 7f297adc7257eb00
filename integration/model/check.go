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

// naive is the contract's table, written once more, one sentence after the other.
func naive(rule dag.Rule, policy dag.Policy, parents []dag.End) found {
	n := map[dag.End]int{}
	for _, p := range parents {
		n[p]++
	}
	all := len(parents)
	if n[dag.NotEnded] > 0 {
		return nothing
	}
	ok, failed := n[dag.Succeeded], n[dag.Failed]
	runs := true
	switch rule {
	case dag.AllSucceeded:
		if policy == dag.Continue {
			ok, failed = ok+failed, 0
		}
		runs = ok == all
	case dag.AllFailed:
		runs = failed == all
	case dag.OneSucceeded:
		runs = ok > 0
	case dag.OneFailed:
		runs = failed > 0
	case dag.NoneFailed:
		runs = failed == 0
	case dag.NoneFailedOneSucceeded:
		runs = failed == 0 && ok > 0
	}
	switch {
	case runs || all == 0:
		return toRelease
	case rule == dag.AllFailed || rule == dag.OneFailed || failed == 0:
		return toSkip
	case policy == dag.Hold:
		return toHold
	}
	return toCancel
}

// due is what the rule of x says of the rows that count now.
func (m *model) due(s *state, x uint8) found {
	var parents []dag.End
	for _, p := range m.Config.Parents[x] {
		parents = append(parents, s.rows[p][s.gen[p]].end())
	}
	return naive(m.Rules[x], m.Policy, parents)
}

// checkStart looks at a start before it happens.
func (m *model) checkStart(s *state, x, g int) {
	older := row{}
	if g > 0 {
		older = s.rows[x][g-1]
	}
	switch {
	case s.status.final():
		m.violated("node %d starts in a run that is over", x)
	case s.stop != NoAct:
		m.violated("node %d starts in a run that is stopped", x)
	case s.paused:
		m.violated("node %d starts in a run that is paused", x)
	case uint8(g) != s.gen[x]:
		m.violated("node %d starts in generation %d, and %d counts", x, g+1, s.gen[x]+1)
	case s.ran&(1<<(x*maxGens+g)) != 0:
		m.violated("node %d starts twice in generation %d", x, g+1)
	case older.st == running:
		m.violated("node %d starts in generation %d beside the older one", x, g+1)
	case older.st == succeeded && !m.ordered(RetryFrom):
		m.violated("node %d starts again, and it had succeeded", x)
	case s.hand[x] != NoAct:
		m.violated("node %d starts, and an operator had ended it", x)
	case !s.rows[x][g].has(kept) && m.due(s, uint8(x)) != toRelease:
		m.violated("node %d starts before its rule", x)
	}
}

func (m *model) ordered(a Act) bool {
	for _, o := range slices.Concat(m.Orders, m.Rivals) {
		if o.Act == a {
			return true
		}
	}
	return false
}

// checkPut looks at what was judged of a node before it is written.
func (m *model) checkPut(s *state, x, g uint8, f found) {
	if g != s.gen[x] {
		return // nobody asks for it any more
	}
	if due := m.due(s, x); f != toForce && f != due {
		m.violated("node %d is written as %d, and its rule says %d", x, f, due)
	}
}

// checkFailure looks at the failure that is about to stop the run.
func (m *model) checkFailure(s *state, x, g uint8) {
	if g != s.gen[x] || !s.rows[x][g].st.failed() {
		m.violated("the run is stopped for a failure of node %d that counts no more", x)
	}
}

// checkEnd looks at the end of the run before it is written.
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

// checkMove looks at what one step may never do.
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
		m.violated("two nodes of a limited run are on their way")
	}
}

// checkRest looks at a state in which nothing happens any more by itself.
func (m *model) checkRest(s *state) {
	allFinal, open := true, false
	for x := range m.n {
		allFinal = allFinal && s.rows[x][s.gen[x]].st.final()
		for g := range maxGens {
			open = open || s.rows[x][g].st.open()
		}
	}
	switch {
	case !s.status.final() && allFinal:
		m.violated("all nodes have ended, and the run has not")
	case !s.status.final() && s.paused && s.act.Act == NoAct && s.stop == NoAct:
		return
	case s.status == held && m.Policy == dag.Hold && s.act.Act == NoAct && s.stop == NoAct:
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

// checkOver looks at a run that has ended.
func (m *model) checkOver(s *state) {
	stops := m.Policy == dag.CancelRun || m.ordered(Cancel) || m.ordered(Expire)
	for x := range uint8(m.n) {
		r := s.rows[x][s.gen[x]]
		if r.has(kept) || r.has(forced) {
			continue
		}
		due := m.due(s, x)
		switch {
		case r.st == cancelled && s.ran&(1<<(int(x)*maxGens+int(s.gen[x]))) != 0: // it heeded a stop
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

// checkAnswer looks whether what was answered 200 holds at the end.
func (m *model) checkAnswer(s *state, o Order) {
	if len(m.Rivals) > 0 { // the other may have undone it
		return
	}
	switch {
	case o.Act == Cancel && s.status != runCancelled:
		m.violated("the run was cancelled and did not end so")
	case o.Act == Expire && s.status != runFailed:
		m.violated("the run expired and did not end so")
	case o.Act.byHand() && !s.rows[o.Node][s.gen[o.Node]].has(forced):
		m.violated("node %d was ended by hand, and nobody sees it", o.Node)
	}
}
