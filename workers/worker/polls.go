package worker

import (
	"sync"
	"time"
)

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
