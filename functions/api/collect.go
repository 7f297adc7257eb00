package api

import (
	"context"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// collected remembers when this process last asked for a go through the dead letters.
type collected struct {
	mu sync.Mutex
	at time.Time
}

// lately says that what is asked for now is part of the go that was asked for before; else it notes
// that one is asked for now.
func (c *collected) lately(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := now.Sub(c.at); age >= 0 && age < contract.LettersCollectedAfter/2 {
		return true
	}
	c.at = now
	return false
}

// collect has the letters taken out of the dead-letter queue whose jobs are dead no more. The letters
// of this request are among those: the go begins a while from now. If that cannot be asked for, the
// letters stay until the next one is, or for their 14 days.
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
