package batch

import (
	"context"
	"io"
	"time"

	"punctual/shared/telemetry"
)

// Metered makes a stage's handler write its metrics to w, a Lambda's standard output, at the end of each invocation:
// between invocations the process may be frozen for hours.
func Metered[E, R any](
	handle func(context.Context, E) (R, error), meter *telemetry.Meter, w io.Writer,
) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		// the work is done even if its metrics cannot be written
		defer func() { _ = meter.Flush(w, time.Now()) }()
		return handle(ctx, event)
	}
}
