package accept

import (
	"context"
	"log/slog"

	"punctual/functions/engine/arm"
	"punctual/shared/clock"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

// Jobs is what an Acceptor reads and writes of jobs.
type Jobs interface {
	// Update reads a job's row and lets decide write; where a write of decide's own was refused, it
	// decides anew. An absent or forgotten job is a fault.NotFound.
	Update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error)
	// CopyContents keeps what an old job holds beside its row under a new one's key. It is safe to repeat.
	CopyContents(ctx context.Context, from, to job.Row) error
	// Accept puts a new row in one transaction with other writes. A refusal is an *item.Refused in
	// which the row is write 0.
	Accept(ctx context.Context, r job.Row, beside ...item.Write) error
}

// Deps is what an Acceptor needs. A nil Meter drops metrics.
type Deps struct {
	Jobs  Jobs
	Queue arm.Sender
	Clock clock.Clock
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Acceptor accepts jobs. It is safe for concurrent use.
type Acceptor struct {
	Deps
	armer arm.Armer
}

// New returns an Acceptor.
func New(d Deps) *Acceptor {
	return &Acceptor{Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter}}
}
