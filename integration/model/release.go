package model

import "punctual/shared/dag"

// targets are the nodes that a process evaluates.
func (m *model) targets(p *process) uint8 {
	switch {
	case !p.propagates || m.Limited:
		return 1<<m.n - 1
	case p.gen != p.seen.gen[p.node]: // the newer generation may have waited for this older one
		return 1 << p.node
	}
	return m.children[p.node]
}

// advance moves to the next node to be evaluated, at or after from.
func (m *model) advance(p *process, from uint8) {
	p.found = nothing
	all := m.targets(p)
	for x := from; int(x) < m.n; x++ {
		if !has(all, x) {
			continue
		}
		p.at, p.pc = x, readNode
		if m.counted(p, x) {
			p.pc = countJoin
		}
		return
	}
	p.at = 0
	switch {
	case p.holds && !p.seen.holds:
		p.pc = noteHeld
	case p.propagates:
		p.pc = readBelow
	default:
		p.pc = built
	}
}

func (m *model) counted(p *process, x uint8) bool {
	return m.Joins && !m.Limited && p.propagates && p.gen == p.seen.gen[p.node] && len(m.Config.Parents[x]) > 1
}

// step is the next step of a releaser that is not idle: one read or one write if the Config is Fine, otherwise all
// reads up to the next write.
func (m *model) step(s *state, i int) move {
	p := &s.procs[i]
	v := move{who: int8(i), node: -1}
	v.what = m.proceed(s, p, &v)
	for !m.Fine && p.pc.reads() {
		m.proceed(s, p, &move{})
	}
	m.forget(p)
	return v
}

// reads says whether the step only reads.
func (p pc) reads() bool {
	switch p {
	case readRun, readOperation, readNode, readBelow, readTwice, readEnd:
		return true
	}
	return false
}

// forget clears what a process does not need any more, so that fewer states differ.
func (m *model) forget(p *process) {
	switch p.pc {
	case idle:
		*p = process{}
	case clearPending, readRun:
		*p = process{pc: p.pc, propagates: p.propagates, node: p.node, gen: p.gen}
	case rest, writeEnd, readTwice:
		*p = process{
			pc: p.pc, propagates: p.propagates, node: p.node, gen: p.gen, found: p.found,
			seen: run{epoch: p.seen.epoch, operation: p.seen.operation, paused: p.seen.paused},
		}
	}
}

func (m *model) proceed(s *state, p *process, v *move) string {
	about := func(x, g uint8) { v.node, v.gen = int8(x), int8(g) }
	switch p.pc {
	case readRun:
		m.readRun(s, p)
		return "reads the run"
	case failRun:
		p.pc = readRun
		if (s.epoch == p.seen.epoch || m.Broken == FailIgnoresEpoch) && !s.status.final() && s.stop == NoOperation &&
			s.operation.Operation == NoOperation {
			m.checkFailure(s, p.node, p.gen)
			s.stop, s.wake = stopFail, true
			s.epoch++
			return "stops the run for a failure of"
		}
		return "is refused: stop the run"
	case readOperation:
		var ok bool
		p.bump, ok = m.decide(s, &p.seen)
		p.found = nothing
		if ok {
			p.found = toForce
		}
		p.pc = writeOperation
		return "reads for the act"
	case writeOperation:
		done := m.finishOperation(s, &p.seen, p.bump, p.found == toForce)
		p.pc, p.bump, p.found = readRun, 0, nothing
		if done {
			return "finishes the act"
		}
		return "is refused: finish the act"
	case stopNode:
		x := p.at
		about(x, p.seen.gen[x])
		for g := range p.seen.gen[x] + 1 {
			r := &s.rows[x][g]
			switch {
			case r.st == running:
				r.flags |= stop
			case r.st == absent && g < p.seen.gen[x] && m.Broken != ReconcileLeavesGaps: // passed over
				*r = row{cancelled, pending}
			case r.st == absent && g == p.seen.gen[x] && p.seen.override[x] != NoOperation: // ended by an operator
				*r = forcedRow(p.seen.override[x])
			case r.st == waiting, r.st == absent && g == p.seen.gen[x] && m.Broken != StopLeavesBlocked:
				*r = row{cancelled, r.flags | pending}
			}
		}
		if p.at++; int(p.at) == m.n {
			p.at, p.pc = 0, readEnd
		}
		return "ends for the run's stop"
	case oldNode:
		x := p.at
		about(x, p.seen.gen[x])
		for g := range p.seen.gen[x] {
			switch r := &s.rows[x][g]; {
			case r.st == running:
				r.flags |= stop
			case r.st == absent && m.Broken != ReconcileLeavesGaps: // passed over
				*r = row{cancelled, pending}
			case r.st == waiting:
				*r = row{cancelled, r.flags | pending}
			}
		}
		if p.at++; int(p.at) == m.n {
			m.advance(p, 0)
		}
		return "ends older generations of"
	case countJoin:
		x := p.at
		about(x, p.seen.gen[x])
		need := m.joinNeeds(&p.seen, x)
		n := &s.joined[x][p.seen.gen[x]]
		*n = min(*n+1, need)
		p.pc = readNode
		if *n < need {
			m.advance(p, x+1)
		}
		return "counts at the join of"
	case readNode:
		x := p.at
		about(x, p.seen.gen[x])
		m.readNode(s, p)
		return "judges"
	case putNode:
		x := p.at
		about(x, p.seen.gen[x])
		return m.putNode(s, p)
	case noteHeld:
		p.pc = readRun
		if s.epoch == p.seen.epoch && s.operation.Operation == NoOperation {
			s.holds = m.Broken != HeldIsNotNoted
			p.seen.holds, p.pc = true, readBelow
			if !p.propagates {
				p.pc = built
			}
			return "notes that a node is held"
		}
		return "is refused: note that a node is held"
	case built:
		if s.status == building {
			s.status = going
		}
		p.pc = readEnd
		return "notes that the run is built"
	case readBelow:
		p.pc = m.after(p)
		all := true
		for x := range uint8(m.n) {
			if has(m.children[p.node], x) && !s.rows[x][p.seen.gen[x]].st.final() {
				all = false
			}
		}
		switch {
		case p.seen.holds:
			p.pc = readEnd
		case all && m.Joins && count(m.sinks) > 1:
			p.pc = countEnd
		case all:
			p.pc = readEnd
		}
		return "checks whether all children have ended:"
	case countEnd:
		era, need := m.endNeeds(&p.seen)
		n := &s.closed[era]
		*n = min(*n+1, need)
		p.pc = readEnd
		if *n < need {
			p.pc = m.after(p)
		}
		return "counts at the end"
	case readTwice:
		p.pc = clearPending
		if s.epoch != p.seen.epoch && m.Broken != CountsDuringAnOperation {
			p.pc = readRun
		}
		return "reads the run once more"
	case readEnd:
		p.found = m.evaluateRun(s, &p.seen)
		p.pc = writeEnd
		switch {
		case p.found == nothing:
			p.pc = m.after(p)
		case p.found != toHold && m.anyGap(s, p):
			p.pc = fillGaps
		}
		return "judges the run"
	case fillGaps:
		for x := range m.n {
			for g := uint8(1); g < p.seen.gen[x]; g++ {
				if r := &s.rows[x][g]; r.st == absent {
					*r = row{cancelled, pending}
				}
			}
		}
		p.pc = writeEnd
		return "puts what acts have passed over"
	case writeEnd:
		f := p.found
		p.found = nothing
		if s.epoch != p.seen.epoch && m.Broken != EndIgnoresEpoch || s.status.final() ||
			s.operation.Operation != NoOperation {
			p.pc = readRun
			return "is refused: end the run"
		}
		p.pc = m.after(p)
		if f == toHold {
			s.status = held
			return "notes that the run is held"
		}
		m.checkEnd(s, f)
		s.status = map[found]runStatus{toSucceed: runSucceeded, toFail: runFailed, toEndCancelled: runCancelled}[f]
		s.wake = false
		return "ends the run"
	case rest:
		if s.epoch == p.seen.epoch || m.Broken == RestIgnoresEpoch {
			s.wake = false
		}
		p.pc = idle
		return "puts the wake-up off"
	case clearPending:
		about(p.node, p.gen)
		if m.Limited && p.hasPermit(s) {
			s.slot, p.pc = 0, readRun // it looks once more for nodes that wait
			return "frees the place of"
		}
		s.rows[p.node][p.gen].flags &^= pending
		p.pc = idle
		return "clears the pending effects of"
	}
	panic("a process has no step")
}

// anyGap says that a generation that was read has no row, and that the process that ends the run puts it.
func (m *model) anyGap(s *state, p *process) bool {
	for x := range m.n {
		for g := uint8(1); g < p.seen.gen[x]; g++ {
			if s.rows[x][g].st == absent {
				return m.Broken != EndLeavesGaps && m.Broken != ReconcileLeavesGaps
			}
		}
	}
	return false
}

func (m *model) after(p *process) pc {
	switch {
	case !p.propagates:
		return rest
	case p.seen.operation.Operation != NoOperation || p.seen.paused: // nodes were left for that, and it may have ended
		return readTwice
	}
	return clearPending
}

func (m *model) readRun(s *state, p *process) {
	p.seen = s.run
	p.at, p.bump, p.holds, p.found = 0, 0, false, nothing
	r := &p.seen
	if !p.propagates {
		switch {
		case r.operation.Operation != NoOperation:
			p.pc = readOperation
		case r.status.final():
			p.pc = rest
		case r.stop != NoOperation:
			p.pc = stopNode
		case r.gen != [maxNodes]uint8{}:
			p.pc = oldNode
		default:
			m.advance(p, 0)
		}
		return
	}
	if m.Broken == ClearBeforeEvaluating {
		s.rows[p.node][p.gen].flags &^= pending
	}
	failed := m.Policy == dag.CancelRun && p.gen == r.gen[p.node] && s.rows[p.node][p.gen].st.failed()
	switch {
	case r.status.final():
		p.pc = clearPending
	case failed && r.operation.Operation != NoOperation:
		if p.hasPermit(s) {
			s.slot = 0
		}
		p.pc = idle // the pending effects stay: the operation decides whether the failure still counts
	case failed && r.stop == NoOperation:
		p.pc = failRun
	case r.stop != NoOperation:
		p.pc = readBelow
	default:
		m.advance(p, 0)
	}
}

// joinNeeds is how many parents must be counted before a join is evaluated: those whose generation began no earlier
// than the child's. The others ended before that, or are counted as well.
func (m *model) joinNeeds(r *run, x uint8) uint8 {
	n := uint8(0)
	for _, p := range m.Config.Parents[x] {
		if r.since[p] >= r.since[x] || m.Broken == JoinWantsAll {
			n++
		}
	}
	return n
}

// endNeeds is the same for the end of the run: the number of last nodes that began with the newest retry.
func (m *model) endNeeds(r *run) (era, n uint8) {
	for x := range m.n {
		era = max(era, r.since[x])
	}
	for x := range uint8(m.n) {
		if has(m.sinks, x) && r.since[x] == era {
			n++
		}
	}
	return era, n
}

// readNode evaluates node p.at.
func (m *model) readNode(s *state, p *process) {
	x := p.at
	g := p.seen.gen[x]
	f := nothing
	switch {
	case p.seen.operation.Operation != NoOperation:
	case s.rows[x][g].st != absent && m.Broken != PutOverwrites:
	case s.rows[x][g].st.final():
	case p.seen.override[x] != NoOperation:
		f = toForce
	case s.olderOpen(x, g) && m.Broken != ReleaseBeforeOlder:
	default:
		f = m.evaluate(s, &p.seen.gen, x)
		if m.Broken == ReleaseBeforeParents && f == nothing {
			f = toRelease
		}
		if m.Broken == JoinIsTruth && m.counted(p, x) && f == nothing {
			f = toRelease
		}
	}
	switch f {
	case toHold:
		p.holds, f = true, nothing
	case toRelease:
		if p.seen.paused {
			f = nothing
		}
		if m.Limited {
			p.slot = s.slot
			n, g, taken := holder(s.slot)
			freed := taken && !p.propagates &&
				s.rows[n][g].st.final() // a run that is derived frees the places of ended jobs
			if taken && !p.hasPermit(s) && !freed && m.Broken != SlotIsNotAsked {
				f = nothing
			}
		}
	}
	if f == nothing {
		m.advance(p, x+1)
		p.slot = 0
		return
	}
	p.found, p.pc = f, putNode
}

// hasPermit says whether the job whose end is propagated still has the slot.
func (p *process) hasPermit(s *state) bool { return p.propagates && s.slot == 1+p.node*maxGens+p.gen }

// holder is the generation that has the slot.
func holder(slot uint8) (x, g uint8, ok bool) {
	if slot == 0 {
		return 0, 0, false
	}
	return (slot - 1) / maxGens, (slot - 1) % maxGens, true
}

// putNode writes the verdict as the row of the node's generation, which must not exist.
func (m *model) putNode(s *state, p *process) string {
	x, f, slot := p.at, p.found, p.slot
	g := p.seen.gen[x]
	p.slot = 0
	r := &s.rows[x][g]
	if r.st != absent && m.Broken != PutOverwrites {
		m.advance(p, x+1)
		return "is refused: put"
	}
	if f == toRelease && m.Limited {
		if s.slot != slot && m.Broken != SlotIsNotAsked {
			p.found, p.pc = nothing, readNode
			return "is refused the slot:"
		}
		s.slot = 1 + x*maxGens + g
	}
	m.checkPut(s, x, g, f)
	switch f {
	case toRelease:
		*r = row{st: waiting}
	case toCancel:
		*r = row{cancelled, pending}
	case toSkip:
		*r = row{skipped, pending}
	case toForce:
		*r = forcedRow(p.seen.override[x])
	}
	m.advance(p, x+1)
	return [...]string{toRelease: "releases", toCancel: "cancels", toSkip: "skips", toForce: "forces"}[f]
}

func forcedRow(a Operation) row {
	switch a {
	case SkipNode:
		return row{skipped, pending | forced | lets}
	case SkipBelow:
		return row{skipped, pending | forced}
	}
	return row{succeeded, pending | forced}
}

// evaluateRun is the verdict about the run by the rows of the generations as they were read.
func (m *model) evaluateRun(s *state, r *run) found {
	if r.operation.Operation != NoOperation || r.status.final() {
		return nothing
	}
	isOpen, moving, failed := false, false, false
	for x := range uint8(m.n) {
		at := s.rows[x][r.gen[x]]
		if at.st.final() {
			if m.Policy != dag.Continue || m.children[x] == 0 {
				failed = failed || at.st.failed()
			}
			continue
		}
		isOpen = true
		if at.st != absent || r.override[x] != NoOperation {
			moving = true
			continue
		}
		if s.olderOpen(x, r.gen[x]) {
			moving = true
			continue
		}
		if v := m.evaluate(s, &r.gen, x); v != toHold && v != nothing {
			moving = true
		}
	}
	switch {
	case isOpen && !moving && r.stop == NoOperation && r.status != held:
		return toHold
	case isOpen && m.Broken != EndBeforeAll:
		return nothing
	case r.stop == Cancel:
		return toEndCancelled
	case r.stop != NoOperation, failed:
		return toFail
	}
	return toSucceed
}
