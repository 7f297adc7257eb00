package process

import (
	"log/slog"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// Base is what every part of a process is made with. The parts of one process share it. A part that reads no due index
// ignores Shards.
type Base struct {
	Clock clock.Clock      // nil: the system's
	Log   *slog.Logger     // nil: silent
	Meter *telemetry.Meter // nil drops everything
	// Shards is the number of shards of the due index in this deployment; an earlier one may have had more. 0:
	// contract.DefaultShards.
	Shards int
	// Announced says that events are sent to webhooks.
	Announced bool
}

// WithDefaults returns b with a default for each value that it lacks. A nil Meter stays nil, as its methods do nothing
// then.
func (b Base) WithDefaults() Base {
	if b.Clock == nil {
		b.Clock = clock.System{}
	}
	if b.Log == nil {
		b.Log = telemetry.Silent()
	}
	if b.Shards == 0 {
		b.Shards = contract.DefaultShards
	}
	return b
}
