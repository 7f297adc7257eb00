package api

import (
	"context"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// collected remembers when this process last asked for a collection of dead letters.
type collected struct {
	mu sync.Mutex
	at time.Time
}

// lately reports whether a collection that was asked for before covers a request made now. If not, it records now as
// the time of a new one.
func (c *collected) lately(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := now.Sub(c.at); age >= 0 && age < contract.LettersCollectedAfter/2 {
		return true
	}
	c.at = now
	return false
}

// collect asks for the removal of dead letters whose jobs are no longer dead. The collection begins after a delay, so
// it covers the jobs of this request. If the message cannot be sent, the letters stay until the next collection, or
// until the queue drops them after contract.DeadLetterKept.
func (s *stage) collect(ctx context.Context) {
	if s.collected.lately(s.now()) {
		return
	}
	err := s.Queues.Send(ctx, contract.RedriveQueue, message.Outgoing{
		Body:  message.Encode(message.Collect{V: message.V, Collect: true}),
		Delay: contract.LettersCollectedAfter,
	})
	if err != nil {
		s.Log.WarnContext(ctx, "dead letters were left in their queue", telemetry.Err, err.Error())
	}
}
