package worker

import (
	"container/heap"
	"sync"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/job"
)

const (
	// slotPatience is how long a message that is due waits here for a slot before others get it.
	slotPatience = time.Second
	// receiveMost is SQS's limit of one receive.
	receiveMost = 10
)

// firing is one message in hand. There may be very many: it holds ids, and no body.
type firing struct {
	source   *source
	receipt  string
	receives int
	received time.Time // monotonic

	key     job.Key
	version int64
	attempt int64
	due     time.Time
	node    bool // of a run; known once it has run

	at       time.Time // when the intake tries it next
	deadline time.Time // when it is given back if there is no slot
	nonce    string    // names this receive; made at the first claim
	asked    time.Time // monotonic: before the first claim under the nonce that may still hold; zero: none does
	waits    int       // times that it met a live claim
	laters   int       // times that its task was at its limit
	asks     int       // times that it was retried because a claim got no answer
}

// source is one firing queue.
type source struct {
	queue  string
	pool   string
	rank   int     // of its priority; 0 is critical
	intake *intake // of its pool

	asked int  // what the receive under way has asked for
	busy  bool // its last receive brought something, or there was none yet
}

// intake holds the messages of one pool, by time until they are nearly due, then by priority until
// they get a slot. It knows how many more may come.
type intake struct {
	clock   clock.Clock
	slots   int
	reserve int
	hold    int
	sources []*source // in strict order

	mu        sync.Mutex
	space     *sync.Cond    // pollers wait for it
	kick      chan struct{} // wakes admit
	held      byTime
	ready     byPriority
	readyAt   []int // how many are ready, by rank
	busy      int   // slots taken
	busyLower int   // of these by others than critical jobs
	runs      int   // of these by attempts that have started: they ask the table for nothing but heartbeats
	closed    bool
	shutUntil time.Time // no polling before: the table was out of reach
	failures  int       // times in a row
}

func newIntake(pool string, o Options, c clock.Clock) *intake {
	in := &intake{
		clock: c, slots: o.Slots, reserve: o.Reserve, hold: o.Hold,
		kick: make(chan struct{}, 1), readyAt: make([]int, len(contract.Priorities)),
	}
	in.space = sync.NewCond(&in.mu)
	for rank, priority := range contract.Priorities {
		in.sources = append(in.sources, &source{
			queue: contract.FiringQueue(pool, priority), pool: pool, rank: rank, intake: in, busy: true,
		})
	}
	return in
}

// ask waits until messages of s may be received and returns how many; 0 when the worker drains.
func (in *intake) ask(s *source) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	for !in.closed {
		if n := in.spaceFor(s); n > 0 {
			s.asked = n
			return n
		}
		in.space.Wait()
	}
	return 0
}

// spaceFor is how many messages s may receive now. The lock is held.
func (in *intake) spaceFor(s *source) int {
	if in.shut() {
		return 0
	}
	if in.failures > 0 && in.busy-in.runs+len(in.held)+len(in.ready) > 0 {
		return 0 // what is here tries whether the table answers; no more is needed for that
	}
	free := in.slotsFor(s.rank)
	for rank := 0; rank <= s.rank; rank++ {
		free -= in.readyAt[rank] // they are before us
	}
	for _, other := range in.sources {
		if other != s && other.rank == s.rank && other.busy { // an idle one most likely gets nothing
			free -= other.asked
		}
	}
	n := min(receiveMost, free, in.holdFor(s))
	if !s.busy || in.failures > 0 {
		n = min(n, 1) // where there was nothing, or no table to work with, one is enough to see
	}
	return n
}

// slotsFor is how many more slots messages of a rank may take now: those that are free, less what
// higher queues may bring. These have an answer in no time while they are busy, see poll, and it
// is they, not what came in early of a lower one, who get the slot that becomes free meanwhile:
// that is what makes priority strict. The lock is held.
func (in *intake) slotsFor(rank int) int {
	free := in.slots - in.busy
	if rank > 0 {
		free = min(free, in.slots-in.reserve-in.busyLower)
	}
	if in.shut() {
		return free
	}
	for _, other := range in.sources {
		if other.rank < rank && other.busy && (other.asked > 0 || in.holdFor(other) > 0) {
			free -= receiveMost
		}
	}
	return free
}

// holdFor is how many more messages of s may be here. The lock is held.
func (in *intake) holdFor(s *source) int {
	space := in.hold - len(in.held) - len(in.ready)
	if s.rank == 0 {
		space += receiveMost // whatever is held, critical jobs come in
	}
	return space
}

// shut says whether polling pauses. The lock is held.
func (in *intake) shut() bool { return time.Now().Before(in.shutUntil) }

// answered notes what the receive of s brought.
func (in *intake) answered(s *source, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.asked, s.busy = 0, n > 0
	in.space.Broadcast()
	in.wakeAdmit() // slots that were kept for s may be others' now
}

// add takes a message in until its time at. false: the worker drains, and it must be given back.
func (in *intake) add(f *firing, at time.Time) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	f.at = at
	if now := in.clock.Now(); at.After(now) {
		heap.Push(&in.held, f)
	} else {
		in.makeReady(f, now) // at once, or pollers would count its slot as free
	}
	in.wakeAdmit()
	return true
}

// makeReady lets a message wait for a slot. The lock is held.
func (in *intake) makeReady(f *firing, now time.Time) {
	f.deadline = now
	if f.due.After(now) {
		f.deadline = f.due
	}
	f.deadline = f.deadline.Add(slotPatience)
	heap.Push(&in.ready, f)
	in.readyAt[f.source.rank]++
}

// wakeAdmit makes admit check what can start.
func (in *intake) wakeAdmit() {
	select {
	case in.kick <- struct{}{}:
	default:
	}
}

// next returns the messages that got a slot, those that waited for one too long, and when to call
// it next at the latest; the zero time if nothing is held.
func (in *intake) next() (start, late []*firing, nextAt time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.clock.Now()
	for len(in.held) > 0 && !in.held[0].at.After(now) {
		in.makeReady(heap.Pop(&in.held).(*firing), now)
	}
	for len(in.ready) > 0 && in.slotsFor(in.ready[0].source.rank) > 0 {
		f := heap.Pop(&in.ready).(*firing)
		in.readyAt[f.source.rank]--
		in.busy++
		if f.source.rank > 0 {
			in.busyLower++
		}
		start = append(start, f)
	}
	if len(in.held) > 0 {
		nextAt = in.held[0].at
	}
	if len(in.ready) > 0 {
		waiting := in.ready[:0:0]
		for _, f := range in.ready {
			if f.deadline.After(now) {
				waiting = append(waiting, f)
				if nextAt.IsZero() || f.deadline.Before(nextAt) {
					nextAt = f.deadline
				}
			} else {
				in.readyAt[f.source.rank]--
				late = append(late, f)
			}
		}
		if len(late) > 0 {
			in.ready = waiting
			heap.Init(&in.ready)
		}
	}
	if len(start)+len(late) > 0 {
		in.space.Broadcast()
	}
	return start, late, nextAt
}

// release gives a message's slot back.
func (in *intake) release(f *firing) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.busy--
	if f.source.rank > 0 {
		in.busyLower--
	}
	in.space.Broadcast()
	in.wakeAdmit()
}

// running notes that an attempt has started, with 1, or ended, with −1.
func (in *intake) running(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.runs += n
	if in.failures > 0 {
		in.space.Broadcast() // no other firing may be here to try the table
	}
}

// taken is how many slots are taken.
func (in *intake) taken() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.busy
}

// close ends the intake and returns all that it held.
func (in *intake) close() []*firing {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	all := append([]*firing(in.held), in.ready...)
	in.held, in.ready = nil, nil
	clear(in.readyAt)
	in.space.Broadcast()
	return all
}

// The pause between polls while the table is out of reach: from the first, doubled, to the last.
const (
	shutFirst = 500 * time.Millisecond
	shutLast  = 30 * time.Second
)

// unreached stops polling for a while, each time longer: the table is out of reach. Trouble of a key or a tenant is no
// reason, see probes.
func (in *intake) unreached() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut() {
		return // several calls failed at once: that counts once
	}
	d := doubled(shutFirst, in.failures, shutLast)
	in.failures++
	in.shutUntil = time.Now().Add(d)
	time.AfterFunc(d, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.space.Broadcast()
	})
}

// reached notes that the table answered a read, or took a claim, an outcome or a heartbeat.
func (in *intake) reached() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.failures > 0 {
		in.failures, in.shutUntil = 0, time.Time{}
		in.space.Broadcast()
	}
}

// byTime is a heap: the earliest first.
type byTime []*firing

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byTime) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byTime) Push(x any)        { *h = append(*h, x.(*firing)) }
func (h *byTime) Pop() any          { return pop((*[]*firing)(h)) }

// byPriority is a heap: the higher priority first, and of one priority what is due first.
type byPriority []*firing

func (h byPriority) Len() int { return len(h) }
func (h byPriority) Less(i, j int) bool {
	if h[i].source.rank != h[j].source.rank {
		return h[i].source.rank < h[j].source.rank
	}
	return h[i].due.Before(h[j].due)
}
func (h byPriority) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byPriority) Push(x any)   { *h = append(*h, x.(*firing)) }
func (h *byPriority) Pop() any     { return pop((*[]*firing)(h)) }

func pop(h *[]*firing) *firing {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil // or the array would keep it
	*h = old[:len(old)-1]
	return last
}
