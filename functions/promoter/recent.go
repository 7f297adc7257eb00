package promoter

import "sync"

// recent remembers the names of timers armed lately, so that reading a slice again does not
// cost a call to Scheduler for each of its jobs. Forgetting is harmless: arming again is
// success. It holds at most two generations.
type recent struct {
	mu       sync.Mutex
	new, old map[string]struct{}
}

const generation = 100_000

func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, isNew := r.new[name]
	_, isOld := r.old[name]
	return isNew || isOld
}

func (r *recent) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil || len(r.new) >= generation {
		r.new, r.old = make(map[string]struct{}), r.new
	}
	r.new[name] = struct{}{}
}
