package model

import "punctual/shared/dag"

// The bounds of a search.
const (
	maxNodes  = 4
	maxGens   = 3
	maxEpochs = 10
)

// status is the status of a node's row. QUEUED counts as waiting.
type status uint8

const (
	absent status = iota // no row: the node is BLOCKED
	waiting
	running // claimed by a worker that was allowed to start: its claim is live
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
	pending flags = 1 << iota // its children are still to be evaluated
	stop                      // its worker is asked to stop
	forced                    // an operator skipped or completed it
	lets                      // skipped, and children run as if it had succeeded
	kept                      // for checks only: it was there when a parent began a new generation
)

func (f flags) has(one flags) bool { return f&one != 0 }

// end is how the row ended, as its children see it.
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

// Operation is what an operator asks for.
type Operation uint8

// The acts. Expire is none of an operator: the run's expire_after has passed.
const (
	NoOperation Operation = iota
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

// stopFail is the stop of a run that a failed node ends.
const stopFail = Retry

// isOverride says whether the operation ends a node for an operator.
func (a Operation) isOverride() bool { return a >= SkipNode }

// Order is an operation, and the node if it is about one.
type Order struct {
	Operation Operation
	Node      uint8
}

// run is the run item.
type run struct {
	status    runStatus
	stop      Operation // Cancel, Expire or stopFail
	paused    bool
	holds     bool  // a node is held: after every end the run may have to become HELD
	epoch     uint8 // grows with every operation
	operation Order // after its first write and before its second: no node starts or is released meanwhile
	gen       [maxNodes]uint8
	since     [maxNodes]uint8     // the epoch in which the node's generation began
	override  [maxNodes]Operation // how an operator ended the node's generation
}

// process is a releaser: its next step and what it remembers. The zero process is idle.
type process struct {
	pc         pc
	propagates bool // it evaluates the children of node and gen; otherwise it reconciles the run
	holds      bool // it has seen a node that is held
	node       uint8
	gen        uint8
	at         uint8 // the node that it evaluates
	found      found // its verdict
	slot       uint8 // who has the slot, as it was read
	bump       uint8 // set of nodes that begin a new generation
	seen       run
}

// state is the table, all actors, and the number of crashes and repetitions that may still happen.
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
	ran     uint16 // for checks only: which generations have started
}

// operator carries out orders, one after the other.
type operator struct {
	pc   pc
	next uint8 // its next order
	bump uint8
	done Order // the newest order that was answered 200
	seen run
}

// pc is the next step of a process or an operator.
type pc uint8

const (
	idle pc = iota
	readRun
	readOperation  // the facts for the second write of an operation
	writeOperation // the second write of an operation
	failRun        // stop a run whose node failed
	stopNode       // end one node of a stopped run
	oldNode        // end jobs of older generations of one node
	countJoin      // count an end at a child's join
	readNode       // evaluate one node
	putNode        // write the verdict
	noteHeld       // the run has a node that is held
	built          // the run is no longer BUILDING
	readBelow      // have all children of the node ended?
	readTwice      // the run was paused or had an operation: has that ended by now?
	countEnd
	readEnd // evaluate the run
	fillGaps
	writeEnd
	rest         // put the wake-up off
	clearPending // the children were evaluated
)

// found is the verdict about a node or the run.
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

// olderOpen says that a generation of node x before g has a row that has not ended.
func (s *state) olderOpen(x, g uint8) bool {
	for _, r := range s.rows[x][:g] {
		if r.st.open() {
			return true
		}
	}
	return false
}
