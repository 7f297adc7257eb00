package edit

import (
	"sync"
	"time"

	"punctual/shared/contract"
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
