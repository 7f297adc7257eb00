package scan

import (
	"context"
	"log/slog"

	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Held lists the restored tables that hold a pass back. It logs them and counts them in a metric, which an alarm
// watches.
func Held(ctx context.Context, tables store.Recognizer, log *slog.Logger, meter *telemetry.Meter) ([]string, error) {
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
