package scan

import (
	"context"
	"log/slog"

	"punctual/shared/telemetry"
)

// Recognizer distinguishes a restored table from the original.
type Recognizer interface {
	// Recognize lists the tables that were restored and that no operator has released since.
	Recognize(ctx context.Context) ([]string, error)
}

// Held lists the restored tables that hold a pass back. It logs them and counts them in a metric, which an alarm
// watches.
func Held(ctx context.Context, tables Recognizer, log *slog.Logger, meter *telemetry.Meter) ([]string, error) {
	held, err := tables.Recognize(ctx)
	if err != nil {
		return nil, err
	}
	// Not in each pass: a metric is billed by the hours in which it is written.
	if len(held) > 0 || meter.Total(telemetry.TablesHeld) > 0 {
		meter.Gauge(telemetry.TablesHeld, float64(len(held)))
	}
	if len(held) > 0 {
		log.WarnContext(ctx, "skipped the pass: a table was restored, and no operator has confirmed it", "tables", held)
	}
	return held, nil
}
