package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"punctual/shared/memory"
	"punctual/shared/store"
)

// Point is one call of one process. The same run gives it the same name.
type Point struct {
	Stage string // api, stream, status …, or worker
	Op    string // table.write, queue.send …
	What  string // the name of the write, or the queue
	N     int    // counts calls with the same names over all processes of the stage, from 1
}

func (p Point) String() string { return fmt.Sprintf("%s/%s/%s/%d", p.Stage, p.Op, p.What, p.N) }

// Fault is what goes wrong with a call.
type Fault string

// The faults. A crashed process gets no more answers, and its calls have no effect.
const (
	None        Fault = ""
	Fail        Fault = "fail"         // no effect, and an error
	Lost        Fault = "lost"         // takes effect; the answer is an error
	Twice       Fault = "twice"        // takes effect twice, as with an SDK's retry
	Hang        Fault = "hang"         // no effect, and the error comes after a while
	Slow        Fault = "slow"         // takes effect after a while
	Late        Fault = "late"         // an error at once, and takes effect after a while
	Freeze      Fault = "freeze"       // the process freezes before the call, and then goes on
	FreezeAfter Fault = "freeze after" // the process freezes after the call took effect, and then goes on
	CrashBefore Fault = "crash before" // the process crashes, and the call has no effect
	CrashAfter  Fault = "crash after"  // the call takes effect, and the process crashes
)

// Plan chooses the fault of a call; after is the duration of Hang, Slow, Late and the freezes.
type Plan func(Point) (f Fault, after time.Duration)

// Kind is the plan without faults.
func Kind(Point) (Fault, time.Duration) { return None, 0 }

// At plans one fault of that duration at one point.
func At(at Point, f Fault, after time.Duration) Plan {
	return func(p Point) (Fault, time.Duration) {
		if p == at {
			return f, after
		}
		return None, 0
	}
}

// both returns a plan that uses first and, where first plans nothing, second (which may be nil).
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

// Boring reports whether a call is bookkeeping of a pass: it may fail, but no story tries faults at
// it.
func (p Point) Boring() bool {
	switch p.Op {
	case memory.TableQuery, memory.TableStream, memory.QueueDepth:
		return true
	}
	return strings.HasPrefix(p.What, "watermark.") || p.What == store.WriteSettingShards || p.What == "system"
}

// Weather is how often each fault happens, in a thousand calls.
type Weather struct {
	Fail, Lost, Twice, Hang, Slow, Late, Freeze, Crash int
}

// Storm plans random faults: the same seed gives the same fault to the same point.
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
