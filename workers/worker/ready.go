package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
)

// readyKey is of a row that is never there; asking for it shows that the table answers.
var readyKey = job.Key{Tenant: "punctual-ready", ID: "00000000000000000000000000"}

// polls remembers what became of the last receive from each queue.
type polls struct {
	mu       sync.Mutex
	answered map[string]bool      // pools of which a queue has answered
	failing  map[string]error     // by queue, whose last receive failed
	asked    map[string]time.Time // by queue: when the receive began that has not ended
}

func newPolls() *polls {
	return &polls{answered: map[string]bool{}, failing: map[string]error{}, asked: map[string]time.Time{}}
}

// begin records that a receive began.
func (p *polls) begin(s *source, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[s.queue] = now
}

// note records how a receive ended. It reports whether it was the first answer of the pool.
func (p *polls) note(s *source, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, s.queue)
	if err != nil {
		p.failing[s.queue] = err
		return false
	}
	delete(p.failing, s.queue)
	first := !p.answered[s.pool]
	p.answered[s.pool] = true
	return first
}

// answerWithin is how long a receive may take: the longest poll and some time for the answer.
const answerWithin = time.Minute

// receives reports whether a pool's queues answer: one has, none failed its last receive, and none has kept one
// waiting for too long. A pool whose slots are all taken receives nothing and counts as it did before.
func (p *polls) receives(sources []*source, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range sources {
		began, waits := p.asked[s.queue]
		if p.failing[s.queue] != nil || !p.answered[s.pool] || waits && now.Sub(began) > answerWithin {
			return false
		}
	}
	return true
}

// Ready returns nil when the worker takes work: a queue of each of its pools has answered, none
// failed its last receive, and the table answers now. A worker whose slots are all taken stays
// ready; one that drains is not.
func (w *Worker) Ready(ctx context.Context) error {
	select {
	case <-w.draining:
		return errors.New("it is draining")
	default:
	}
	w.polls.mu.Lock()
	var failed error
	for queue, err := range w.polls.failing {
		failed = fmt.Errorf("receiving from %s: %w", queue, err)
	}
	for _, pool := range w.opts.Pools {
		if failed == nil && !w.polls.answered[pool] {
			failed = fmt.Errorf("no queue of the pool %s has answered yet", pool)
		}
	}
	w.polls.mu.Unlock()
	if failed != nil {
		return failed
	}
	if _, err := w.store.Row(ctx, readyKey); err != nil && fault.KindOf(err) != fault.NotFound {
		return fmt.Errorf("reading the table: %w", err)
	}
	return nil
}
