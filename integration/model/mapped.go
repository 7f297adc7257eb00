package model

// items is how many a mapped node of the search has.
const items = 2

// mapped is a mapped node whose parents have ended: its row, its items, and two releasers, which put them and close the
// node.
type mapped struct {
	row     status // waiting means BLOCKED with the number of items
	item    [items]row
	counted uint8
	stop    bool // the run is stopped
	started [items]bool
	procs   [2]maker
	wake    bool
	crashes uint8
	sweeps  bool // the run's wake-up comes by itself
	counts  bool // items are counted before they are read
	broken  Broken
	bad     bool
}

// maker is a releaser that puts the row and its items, or handles the end of an item.
type maker struct {
	pc   makerPC
	item uint8
	stop bool // as read
}

type makerPC uint8

const (
	makerIdle makerPC = iota
	makeRow
	makeItem
	countItem
	readItems
	closeDone   // all items succeeded
	closeFailed // an item failed
	clearItem   // clear the item's pending effects
	makeRest
)

// The conditions of mapped nodes that can be left out.
const (
	ItemOverwrites         Broken = "an item is put whether it is there or not"
	CloseByCounter         Broken = "a mapped node ends by its counter and not by its items' rows"
	StopForgetsItems       Broken = "a stop leaves missing items without rows"
	ClearItemBeforeClosing Broken = "an item's pending effects are cleared before its node is closed"
)

func (m mapped) wrong(rests bool) string {
	all, failed := true, false
	for _, i := range m.item {
		all = all && i.st.final()
		failed = failed || i.st.failed()
	}
	switch {
	case m.bad:
		return "an item starts twice, or in a run that is stopped"
	case m.row.final() && !all:
		return "the node ends before its items"
	case m.row.final() && failed != m.row.failed():
		return "the node ends in the wrong way"
	case rests && !m.row.final():
		return "the node is stuck"
	}
	return ""
}

func (m mapped) follow(each func(string, bool, mapped)) {
	busy := false
	for k, p := range m.procs {
		if p.pc == makerIdle {
			continue
		}
		busy = true
		to := m
		to.step(&to.procs[k])
		each("a releaser goes on", false, to)
		if m.crashes > 0 {
			to := m
			to.procs[k] = maker{}
			to.crashes--
			each("a releaser crashes", true, to)
		}
	}
	if !m.stop {
		to := m
		to.stop, to.wake = true, true
		each("the run is stopped", true, to)
	}
	for i, r := range m.item {
		set := func(what string, st status) {
			to := m
			to.item[i] = row{st, r.flags | pending}
			each(what, false, to)
			busy = true
		}
		switch r.st {
		case waiting:
			if m.stop {
				set("a worker gives up an item", cancelled)
				continue
			}
			to := m
			to.item[i].st = running
			to.bad = m.started[i]
			to.started[i] = true
			each("an item starts", false, to)
			busy = true
		case running:
			set("an item succeeds", succeeded)
			set("an item fails", dead)
		}
		if r.st.final() && r.has(pending) {
			busy = true
			if k := m.free(); k >= 0 && !m.handled(uint8(i)) {
				to := m
				to.procs[k] = maker{pc: readItems, item: uint8(i)}
				if m.counts {
					to.procs[k].pc = countItem
				}
				if m.broken == ClearItemBeforeClosing {
					to.item[i].flags &^= pending
				}
				each("a releaser handles the end of an item", false, to)
			}
		}
	}
	if k := m.free(); m.wake {
		busy = true
		if k >= 0 {
			to := m
			to.procs[k] = maker{pc: makeRow, stop: m.stop, item: items}
			each("a releaser derives the run", false, to)
		}
	}
	if !busy && m.sweeps && !m.row.final() {
		to := m
		to.wake = true
		each("the run wakes up", false, to)
	}
}

func (m *mapped) free() int {
	for k, p := range m.procs {
		if p.pc == makerIdle {
			return k
		}
	}
	return -1
}

// handled says whether a releaser handles the end of item i just now.
func (m *mapped) handled(i uint8) bool {
	for _, p := range m.procs {
		if p.pc != makerIdle && p.item == i && p.pc >= countItem {
			return true
		}
	}
	return false
}

func (m *mapped) step(p *maker) {
	switch p.pc {
	case makeRow:
		switch {
		case m.row == absent && p.stop:
			for i := range m.item { // nothing was released, so no item ever will be
				if m.item[i].st == absent {
					m.item[i].st = cancelled
				}
			}
			m.row = cancelled
		case m.row == absent:
			m.row = waiting
		}
		p.pc, p.item = makeItem, 0
	case makeItem:
		i := &m.item[p.item]
		switch {
		case i.st == absent && p.stop && m.broken != StopForgetsItems, i.st == waiting && p.stop:
			*i = row{cancelled, pending}
		case (i.st == absent || m.broken == ItemOverwrites) && !p.stop && !m.row.final():
			*i = row{st: waiting}
		}
		if p.item++; p.item == items {
			p.pc = readItems
		}
	case countItem:
		m.counted = min(m.counted+1, items)
		p.pc = clearItem
		if m.counted == items {
			p.pc = readItems
			if m.broken == CloseByCounter {
				p.pc = closeDone
			}
		}
	case readItems:
		all, failed := true, false
		for _, i := range m.item {
			all = all && i.st.final()
			failed = failed || i.st.failed()
		}
		switch {
		case all && failed:
			p.pc = closeFailed
		case all:
			p.pc = closeDone
		default:
			p.pc = p.done()
		}
	case closeDone, closeFailed:
		if m.row == waiting {
			m.row = map[makerPC]status{closeDone: succeeded, closeFailed: dead}[p.pc]
		}
		p.pc = p.done()
	case clearItem:
		m.item[p.item].flags &^= pending
		*p = maker{}
	case makeRest:
		if m.stop == p.stop {
			m.wake = false
		}
		*p = maker{}
	}
}

// done is the last step of a releaser: of one that has put the items, or of one that handles the end of an item.
func (p *maker) done() makerPC {
	if p.item == items {
		return makeRest
	}
	return clearItem
}
