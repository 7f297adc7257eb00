package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

// Point is one call of one process, named so that the same run names it alike.
type Point struct {
	Stage string // api, stream, status …, or worker
	Op    string // table.write, queue.send …
	What  string // the write's name, or the queue's
	N     int    // the how-manieth with all this, over all processes of that stage; from 1
}

func (p Point) String() string { return fmt.Sprintf("%s/%s/%s/%d", p.Stage, p.Op, p.What, p.N) }

// Fault is what becomes of a call.
type Fault string

// The faults. A process that crashed never gets an answer again, and nothing it asks for happens.
const (
	None        Fault = ""
	Fail        Fault = "fail"         // no effect, and an error that says so
	Lost        Fault = "lost"         // takes effect; the answer is an error
	Twice       Fault = "twice"        // takes effect twice: an SDK's retry, or a duplicate
	Hang        Fault = "hang"         // no effect, and the error comes only after a while
	Slow        Fault = "slow"         // takes effect after a while
	Late        Fault = "late"         // an error at once, and takes effect after a while all the same
	Freeze      Fault = "freeze"       // the process stands still for a while, and then goes on as if nothing were
	FreezeAfter Fault = "freeze after" // the same with the answer in hand: the call has taken effect
	CrashBefore Fault = "crash before" // the process stops dead, and the call has no effect
	CrashAfter  Fault = "crash after"  // the call takes effect, and the process stops dead
)

// Plan says what becomes of a call; after is how long Hang, Slow, Late and the freezes take.
type Plan func(Point) (f Fault, after time.Duration)

// Kind plans nothing.
func Kind(Point) (Fault, time.Duration) { return None, 0 }

// At plans one fault at one point, which takes that long.
func At(at Point, f Fault, after time.Duration) Plan {
	return func(p Point) (Fault, time.Duration) {
		if p == at {
			return f, after
		}
		return None, 0
	}
}

// both plans what the first does, and otherwise what the second does, if there is one.
func both(first, second Plan) Plan {
	if second == nil {
		return first
	}
	return func(p Point) (Fault, time.Duration) {
		if f, after := first(p); f != None {
			return f, after
		}
		return second(p)
	}
}

// Boring says that a call changes nothing and tells nothing that another would not: the passes'
// own bookkeeping. It may fail, but no story is told about it.
func (p Point) Boring() bool {
	switch p.Op {
	case "table.query", "table.stream", "queue.depth":
		return true
	}
	return strings.HasPrefix(p.What, "watermark.") || p.What == "setting.shards" || p.What == "system"
}

// Weather is how often things go wrong, each in a thousand calls.
type Weather struct {
	Fail, Lost, Twice, Hang, Slow, Late, Freeze, Crash int
}

// Storm plans by a seed: the same seed treats the same point alike.
func Storm(seed uint64, w Weather) Plan {
	return func(p Point) (Fault, time.Duration) {
		h := fnv.New64a()
		h.Write([]byte(p.String())) // never fails
		dice := rand.New(rand.NewPCG(seed, h.Sum64()))
		after := time.Duration(dice.IntN(9_000)) * time.Millisecond
		n := dice.IntN(1000)
		for _, of := range []struct {
			share int
			f     Fault
		}{{w.Fail, Fail}, {w.Lost, Lost}, {w.Twice, Twice}, {w.Hang, Hang}, {w.Slow, Slow}, {w.Late, Late}} {
			if n < of.share {
				return of.f, after
			}
			n -= of.share
		}
		if p.Stage == Source || p.Boring() {
			return None, 0
		}
		if n < w.Freeze {
			if dice.IntN(2) == 0 {
				return FreezeAfter, 8 * after
			}
			return Freeze, 8 * after
		}
		if n -= w.Freeze; n < w.Crash {
			if dice.IntN(2) == 0 {
				return CrashBefore, 0
			}
			return CrashAfter, 0
		}
		return None, 0
	}
}
