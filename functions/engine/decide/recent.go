package decide

import (
	"sync"
	"time"
)

// Recent remembers what was read a moment ago, so that a pass over many jobs does not ask the
// same for each of them. It holds a bounded number of answers.
type Recent[K comparable, V any] struct {
	mu   sync.Mutex
	seen map[K]answer[V]
}

type answer[V any] struct {
	v  V
	at time.Time
}

const maxAnswers = 10_000

// Get returns what was read at most maxAge ago, or reads it. An error is not remembered.
func (r *Recent[K, V]) Get(k K, now time.Time, maxAge time.Duration, read func() (V, error)) (V, error) {
	r.mu.Lock()
	a, ok := r.seen[k]
	r.mu.Unlock()
	if ok && now.Sub(a.at) <= maxAge {
		return a.v, nil
	}
	v, err := read()
	if err != nil {
		return v, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil || len(r.seen) >= maxAnswers {
		r.seen = map[K]answer[V]{}
	}
	r.seen[k] = answer[V]{v, now}
	return v, nil
}

// Drop forgets an answer, so that the next Get reads.
func (r *Recent[K, V]) Drop(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, k)
}
