package stagetest

import (
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
)

// Calls chooses calls of the in-memory implementations.
type Calls func(memory.Call) bool

// Every is the calls of one operation, such as memory.QueueSend.
func Every(op string) Calls { return func(c memory.Call) bool { return c.Op == op } }

// Named is the calls of a named write.
func Named(write string) Calls { return func(c memory.Call) bool { return c.Name == write } }

// Writes is the calls that make a named write by itself, in no transaction.
func Writes(name string) Calls { return To(memory.TableWrite, name) }

// To is the calls of one operation on what has that name: a queue, a timer, a blob or a function.
func To(op, name string) Calls {
	return func(c memory.Call) bool { return c.Op == op && c.Name == name }
}

// On is the calls of one operation on an item.
func On(op string, ref item.Ref) Calls {
	return func(c memory.Call) bool { return c.Op == op && c.Ref == ref }
}

// Queries is the calls that read a page of a partition.
func Queries(pk string) Calls {
	return func(c memory.Call) bool { return c.Op == memory.TableQuery && c.Ref.PK == pk }
}

// Fault makes the chosen calls go wrong in that way, in place of what Fault and the verbs below did before.
func (s *Bench) Fault(chosen Calls, f memory.Fault) {
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		if chosen(c) {
			return f
		}
		return memory.Fault{}
	})
}

// FaultFirst is Fault of the first n of the chosen calls only.
func (s *Bench) FaultFirst(n int64, chosen Calls, f memory.Fault) {
	var met atomic.Int64 // calls may come together
	s.Fault(func(c memory.Call) bool { return chosen(c) && met.Add(1) <= n }, f)
}

// Slow makes every call take that long.
func (s *Bench) Slow(each time.Duration) {
	s.Fault(func(memory.Call) bool { return true }, memory.Fault{Wait: each})
}

// FailEntries makes those entries, by their index, of the next batch that is sent fail.
func (s *Bench) FailEntries(kinds map[int]fault.Kind) {
	s.FaultFirst(1, Every(memory.QueueSend), memory.Fault{Entries: kinds})
}

// Fail makes the chosen calls fail, without effect.
func (s *Bench) Fail(chosen Calls) { s.Fault(chosen, memory.Fault{Fail: fault.Unavailable}) }

// Before does something once, before the next of the chosen calls; its caller knows nothing of it yet.
func (s *Bench) Before(chosen Calls, do func()) {
	s.Once(chosen, func() memory.Fault {
		do()
		return memory.Fault{}
	})
}

// Once is Before of a call that then goes wrong as do says.
func (s *Bench) Once(chosen Calls, do func() memory.Fault) {
	var done atomic.Bool // do may well make such a call itself
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		if chosen(c) && done.CompareAndSwap(false, true) {
			return do()
		}
		return memory.Fault{}
	})
}

// Each does something before each of the chosen calls, which then succeeds.
func (s *Bench) Each(chosen Calls, do func(memory.Call)) {
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		if chosen(c) {
			do(c)
		}
		return memory.Fault{}
	})
}

// Count counts the chosen calls from now on.
func (s *Bench) Count(chosen Calls) func() int {
	var n atomic.Int64
	s.Each(chosen, func(memory.Call) { n.Add(1) })
	return func() int { return int(n.Load()) }
}

// DieAt lets the first n calls be and fails everything after; the first that fails may have taken
// effect all the same. asked counts the calls.
func (s *Bench) DieAt(n int, lost bool) (asked *int) {
	asked = new(int)
	var mu sync.Mutex // calls may come together
	s.World.SetFaults(func(memory.Call) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
		*asked++
		switch {
		case *asked <= n:
			return memory.Fault{}
		case *asked == n+1 && lost:
			return memory.Fault{Lost: true}
		}
		return memory.Fault{Fail: fault.Unavailable}
	})
	return asked
}

// Crashes prepares job 0, 1, 2 … and acts on it, crashing one call later each time, until the operation
// gets through; after each crash, recovered checks what becomes of the job. What the operation uses may
// remember nothing of the crash: recovered begins with a new process.
func (s *Bench) Crashes(lost bool, prepare func(n int), operation func() error, recovered func(n int)) {
	s.Helper()
	for n := range 50 {
		prepare(n)
		asked := s.DieAt(n, lost)
		err := operation()
		s.World.SetFaults(nil)
		if *asked <= n {
			if n < 2 || err != nil {
				s.Errorf("%d points of crash, then %v", n, err)
			}
			return
		}
		recovered(n)
	}
	s.Error("it never gets through")
}

// Twice makes the next write of that name happen twice, as an SDK does that never saw the first
// answer; what the second is answered is the first one's own effect.
func (s *Bench) Twice(write string) {
	var done atomic.Bool
	s.Fault(func(c memory.Call) bool {
		return Writes(write)(c) && done.CompareAndSwap(false, true)
	}, memory.Fault{Twice: true})
	s.Cleanup(func() {
		if !done.Load() {
			s.Errorf("nothing was written by the name of %s", write)
		}
	})
}
