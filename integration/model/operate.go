package model

// begin starts the next order.
func (m *model) begin(s *state, k int) move {
	o := m.orders(k)[s.ops[k].next]
	v := move{what: "begins " + names[o.Operation], who: operators[k], node: int8(o.Node), free: true}
	if o.Operation < RetryFrom {
		v.node = -1
	}
	switch o.Operation {
	case Cancel, Expire:
		ok := (!s.status.final() || m.Broken == StopIgnoresFinal) && s.stop == NoOperation
		m.answer(s, k, ok)
		if !ok {
			return v
		}
		s.stop, s.operation, s.wake = o.Operation, Order{}, true
		s.epoch++
	case Pause:
		ok := !s.status.final() && s.stop == NoOperation && !s.paused
		m.answer(s, k, ok)
		if ok {
			s.paused = true
			s.epoch++
		}
	case Resume:
		ok := !s.status.final() && s.paused
		m.answer(s, k, ok)
		if ok {
			s.paused, s.wake = false, m.Broken != ResumeWakesNoProcess
			s.epoch++
		}
	default:
		s.ops[k].seen, s.ops[k].pc = s.run, readNode
		if !m.Fine && len(m.Rivals) == 0 {
			m.firstWrite(s, k, o)
		}
	}
	return v
}

var names = [...]string{
	"", "cancel", "expire", "pause", "resume", "retry", "retry from", "retry of", "skip of", "skip with children of",
	"complete of",
}

// answer ends the request.
func (m *model) answer(s *state, k int, ok bool) {
	op := &s.ops[k]
	done := op.done
	if ok {
		done = m.orders(k)[op.next]
	}
	*op = operator{next: op.next + 1, done: done}
}

// request is the next step of a request that takes several.
func (m *model) request(s *state, k int) move {
	op := &s.ops[k]
	o := m.orders(k)[op.next]
	v := move{who: operators[k], node: -1}
	switch op.pc {
	case readNode:
		v.what = "does its first write"
		m.firstWrite(s, k, o)
	case readOperation:
		op.seen = s.run
		if s.operation != o {
			v.what = "finds that somebody has finished its act"
			m.answer(s, k, false)
			return v
		}
		var ok bool
		op.bump, ok = m.decide(s, &op.seen)
		op.pc = writeOperation
		if !ok {
			op.bump = 0
		}
		v.what = "reads for its act"
	case writeOperation:
		some := op.bump != 0
		switch {
		case m.finishOperation(s, &op.seen, op.bump, some):
			v.what = "finishes its act"
			m.answer(s, k, some)
		default:
			v.what = "is refused: finish its act"
			op.pc, op.bump = readOperation, 0
		}
	}
	return v
}

// firstWrite writes the operation into the run, or ends the node at once if it has not failed.
func (m *model) firstWrite(s *state, k int, o Order) {
	seen := &s.ops[k].seen
	stopping := seen.stop != NoOperation && !seen.status.final()
	same := s.epoch == seen.epoch
	if seen.operation.Operation != NoOperation || stopping {
		m.answer(s, k, false)
		return
	}
	if o.Operation.isOverride() {
		r := &s.rows[o.Node][seen.gen[o.Node]]
		switch {
		case r.st.failed():
		case r.st != absent && r.st != waiting && m.Broken != OverrideIgnoresRunning,
			r.st.final(), seen.status.final(), !same && m.Broken != OverrideIgnoresEpoch:
			m.answer(s, k, false)
			return
		default: // one transaction: row, fence, run
			if seen.gen[o.Node] != s.gen[o.Node] {
				m.violated("node %d is ended by hand in an older generation", o.Node)
			}
			*r = forcedRow(o.Operation)
			s.epoch++
			s.wake, s.holds = true, false
			if s.status == held {
				s.status = going
			}
			m.answer(s, k, true)
			return
		}
	}
	if !same {
		m.answer(s, k, false)
		return
	}
	if m.Broken == OperationInOneWrite { // it decides while nodes still start
		seen.operation, s.ops[k].pc = o, writeOperation
		s.ops[k].bump, _ = m.decide(s, seen)
		return
	}
	s.operation, s.wake = o, true
	s.epoch++
	s.ops[k].pc, s.ops[k].seen = readOperation, run{}
}

// decide says which nodes begin a new generation by the operation on the run; ok is false if there are none.
func (m *model) decide(s *state, r *run) (bump uint8, ok bool) {
	o := r.operation
	at := func(x uint8) row { return s.rows[x][r.gen[x]] }
	isDownstream := func(x uint8) bool {
		st := at(x)
		blocked := st.st == absent && (r.override[x] == NoOperation || m.Broken == OverrideIsForgotten) &&
			m.Broken != BlockedKeepTheirGeneration
		return m.parents[x]&bump != 0 && (blocked || st.st == cancelled || st.st == skipped && !st.has(forced))
	}
	switch o.Operation {
	case Retry:
		for x := range uint8(m.n) {
			if at(x).st.failed() || isDownstream(x) || m.Broken == RetryOfAll && at(x).st.final() {
				bump |= 1 << x
			}
		}
	case RetryFrom:
		bump = m.below[o.Node]
	default:
		if !at(o.Node).st.failed() {
			return 0, false
		}
		stopped := func(x uint8) bool { return r.stop == stopFail && at(x).st == cancelled }
		bump = 1 << o.Node
		for x := range uint8(m.n) {
			if isDownstream(x) || !stopped(o.Node) && stopped(x) {
				bump |= 1 << x
			}
		}
	}
	return bump, bump != 0
}

// finishOperation is the second write of an operation: it writes the new generations, or withdraws the operation.
func (m *model) finishOperation(s *state, seen *run, bump uint8, ok bool) bool {
	o := seen.operation
	switch same := s.epoch == seen.epoch && s.operation == o; {
	case same, s.epoch == seen.epoch && m.Broken == OperationInOneWrite, m.Broken == OperationIsFinishedTwice:
	default:
		return false
	}
	s.operation = Order{}
	s.epoch++
	if !ok {
		return true
	}
	for x := range uint8(m.n) {
		if !has(bump, x) {
			if r := &s.rows[x][s.gen[x]]; m.parents[x]&bump != 0 && r.st != absent {
				r.flags |= kept
			}
			continue
		}
		s.gen[x]++
		s.since[x], s.override[x] = s.epoch, NoOperation
	}
	if o.Operation.isOverride() {
		s.override[o.Node] = o.Operation
	}
	s.stop, s.wake = NoOperation, m.Broken != OperationWakesNoProcess
	s.paused = s.paused && !s.status.final()
	s.status, s.holds = going, false
	return true
}
