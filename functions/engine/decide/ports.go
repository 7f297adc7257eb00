package decide

import (
	"context"
	"log/slog"

	"punctual/functions/batch"
	"punctual/functions/engine/arm"
	"punctual/shared/clock"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Queue is what a Waker needs of the queues.
type Queue interface {
	arm.Sender
	// Depth says about how much a queue holds.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Inbox is the queues as those need them whom messages bring to work.
type Inbox interface {
	Queue
	batch.Hider
}

// Deps is what a Waker needs. A nil Meter drops metrics.
type Deps struct {
	Store *store.Store
	Queue Queue
	Clock clock.Clock
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Waker brings single jobs on. It is safe for concurrent use.
type Waker struct {
	Deps
	armer     arm.Armer
	pauses    pauses
	schedules schedules
	depths    depths
}

// New returns a Waker.
func New(d Deps) *Waker {
	return &Waker{Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter}}
}
