package batch

import (
	"context"
	"io"
	"time"

	"punctual/shared/telemetry"
)

// Metered makes a stage's handler write what it measured to w, a Lambda's standard output,
// at the end of each invocation: between them the process may be frozen for hours.
func Metered[E, R any](
	handle func(context.Context, E) (R, error), meter *telemetry.Meter, w io.Writer,
) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		// metrics that cannot be written are no reason to do the work again
		defer func() { _ = meter.Flush(w, time.Now()) }()
		return handle(ctx, event)
	}
}
