package model

import "punctual/shared/dag"

// Bounds of what is searched.
const (
	maxNodes  = 4
	maxGens   = 3
	maxEpochs = 10
)

// status is where the row of a node stands, as far as the run cares: QUEUED counts as waiting.
type status uint8

const (
	absent status = iota // no row: the node is BLOCKED
	waiting
	running // claimed by a worker that has asked the run: from here on the claim is live
	succeeded
	dead
	cancelled
	skipped
)

func (s status) open() bool   { return s == waiting || s == running }
func (s status) final() bool  { return s >= succeeded }
func (s status) failed() bool { return s == dead || s == cancelled }

// row is the row of one generation of a node. Once final, its status stays.
type row struct {
	st status
	flags
}

type flags uint8

const (
	owes   flags = 1 << iota // its children are yet to be told
	stop                     // its worker is asked to stop
	forced                   // an operator skipped or completed it
	lets                     // skipped, and children run as if it had succeeded
	kept                     // of the search only: it stood when a parent of it was to run again
)

func (f flags) has(one flags) bool { return f&one != 0 }

// end is how the row ended, for children.
func (r row) end() dag.End {
	switch r.st {
	case succeeded:
		return dag.Succeeded
	case dead, cancelled:
		return dag.Failed
	case skipped:
		if r.has(lets) {
			return dag.Succeeded
		}
		return dag.Skipped
	}
	return dag.NotEnded
}

// runStatus is the stored status of the run.
type runStatus uint8

const (
	building runStatus = iota
	going
	held
	runSucceeded
	runFailed
	runCancelled
)

func (s runStatus) final() bool { return s >= runSucceeded }

// Act is what an operator asks for.
type Act uint8

// The acts. Expire is not an operator's: the run's expire_after has passed.
const (
	NoAct Act = iota
	Cancel
	Expire
	Pause
	Resume
	Retry
	RetryFrom
	RetryNode
	SkipNode  // children run
	SkipBelow // children are skipped
	Complete
)

// stopFail marks a run that a failed node ends.
const stopFail = Retry

// byHand says whether the act ends its node itself.
func (a Act) byHand() bool { return a >= SkipNode }

// Order is one act, of one node if it is about one.
type Order struct {
	Act  Act
	Node uint8
}

// run is the run item.
type run struct {
	status runStatus
	stop   Act // Cancel, Expire or stopFail
	paused bool
	holds  bool  // a node is held: every end may be the one after which nothing goes on
	epoch  uint8 // grows with every act
	act    Order // begun and not done: nothing starts and nothing is released meanwhile
	gen    [maxNodes]uint8
	since  [maxNodes]uint8 // the epoch in which the node's generation began
	hand   [maxNodes]Act   // how an operator ended the node's generation
}

// process is somebody who releases: its place and what it remembers. The zero process is idle.
type process struct {
	pc    pc
	tells bool // it tells the children of node and gen; otherwise it derives the run
	holds bool // it has seen a node that is held
	node  uint8
	gen   uint8
	at    uint8 // the node it is at
	found found // what it has judged
	slot  uint8 // what it has read of the slot
	bump  uint8 // set of nodes that run again
	seen  run
}

// state is everything: the table, those who act, and what may still go wrong.
type state struct {
	run
	wake    bool // the run's wake-up is due
	rows    [maxNodes][maxGens]row
	joined  [maxNodes][maxGens]uint8 // join counters
	closed  [maxEpochs]uint8         // the end's counter, by era
	slot    uint8                    // who holds the only slot of a limited run
	procs   [2]process
	ops     [2]operator
	crashes uint8
	repeats uint8
	ran     uint16 // of the search only: which generations have started
}

// operator carries out the orders, one after the other.
type operator struct {
	pc   pc
	next uint8 // the order it is at
	bump uint8
	done Order // the newest order that was answered 200
	seen run
}

// pc is the place of a process.
type pc uint8

const (
	idle pc = iota
	readRun
	readAct   // the facts by which an act that was begun is decided
	writeAct  // its second write
	failRun   // stop a run whose node failed
	stopNode  // end one node of a stopped run
	oldNode   // end what is left of older generations of one node
	countJoin // count an end at a child's join
	readNode  // judge one node
	putNode   // write what was judged
	noteHeld  // the run has a node that is held
	built     // the run is no longer BUILDING
	readBelow // have all children of the node ended?
	readAgain // the run was paused or an act was begun: does it go on by now?
	countEnd
	readEnd // judge the run
	writeEnd
	rest // put the wake-up off
	pay  // the children are told
)

// found is what was judged of a node or of the run.
type found uint8

const (
	nothing found = iota
	toRelease
	toCancel
	toSkip
	toForce
	toHold
	toSucceed
	toFail
	toEndCancelled
)
