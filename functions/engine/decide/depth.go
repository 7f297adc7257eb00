package decide

import (
	"context"
	"time"
)

// DeepQueue is how many visible firings make a queue so deep that one which nobody has started
// yet is more likely waiting in it than lost.
const DeepQueue = 1000

// depthAge: SQS's own numbers are no younger.
const (
	depthAge  = 30 * time.Second
	maxDepths = 1000
)

const (
	// sentOften is after how many wake-ups a firing that nobody has taken was sent so often that it is
	// not lost as long as the queue holds some. Lost that often it would stay so, so it is sent all
	// the same once in a while: at one wake-up of sentAnyway, which are most of an hour apart.
	sentOften  = 3
	sentAnyway = 8
	someQueued = 20
)

// deepFor is beyond how many visible firings a queue counts as deep for a job that was found
// waiting that often.
func deepFor(postponed int64) int {
	if postponed >= sentOften && postponed%sentAnyway != 0 {
		return someQueued
	}
	return DeepQueue
}

// visible says about how many visible firings a queue holds.
func (d *Decider) visible(ctx context.Context, queue string) (int, error) {
	return d.depths.Get(ctx, queue, func(ctx context.Context) (int, error) {
		depth, err := d.Queue.Depth(ctx, queue)
		return depth.Visible, err
	})
}
