package worker

import (
	"context"
	"errors"
	"fmt"

	"punctual/shared/fault"
	"punctual/shared/job"
)

// readyKey is of a row that is never there; asking for it shows that the table answers.
var readyKey = job.Key{Tenant: "punctual-ready", ID: "00000000000000000000000000"}

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
