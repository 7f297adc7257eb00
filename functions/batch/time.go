package batch

import (
	"context"
	"time"
)

// TimeLeft says whether at least that much time is left until the context's deadline; without
// one there always is. Passes stop by it while they can still write down how far they came.
func TimeLeft(ctx context.Context, atLeast time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) >= atLeast)
}
