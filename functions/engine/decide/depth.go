package decide

import (
	"context"
)

// DeepQueue is the number of visible firings beyond which a queue counts as deep: a firing that no worker has
// started then more likely waits in the queue than is lost.
const DeepQueue = 1000

const (
	// sentOften is the number of postponed wake-ups from which on a queue counts as deep with someQueued
	// firings: one sent that often is hardly lost. In case it is, it is sent at every sentAnyway-th wake-up
	// all the same; wake-ups are then most of an hour apart.
	sentOften  = 3
	sentAnyway = 8
	someQueued = 20
)

// deepFor is the number of visible firings beyond which a queue counts as deep for a job that was postponed that
// often.
func deepFor(postponed int64) int {
	if postponed >= sentOften && postponed%sentAnyway != 0 {
		return someQueued
	}
	return DeepQueue
}

// visible says how many visible firings a queue holds, approximately.
func (d *Decider) visible(ctx context.Context, queue string) (int, error) {
	return d.depths.Get(ctx, queue, func(ctx context.Context) (int, error) {
		depth, err := d.Queue.Depth(ctx, queue)
		return depth.Visible, err
	})
}
