package scan

import (
	"context"
	"time"
)

// TimeLeft says whether at least that much time is left until the context's deadline, and whether its Share is not
// used up. A context with neither always has time left. Passes ask it so that they end while there is time to write
// watermarks.
func TimeLeft(ctx context.Context, atLeast time.Duration) bool {
	deadline, ok := ctx.Deadline()
	end, shared := ctx.Value(shareEnd{}).(time.Time)
	return ctx.Err() == nil && (!ok || time.Until(deadline) >= atLeast) && (!shared || time.Now().Before(end))
}

type shareEnd struct{}

// Share returns a context for one kind of work that may use a part of the time that is left until keep before the
// deadline. Work that has begun is not cut off: only TimeLeft knows of the share. Without a deadline there is nothing
// to share.
func Share(ctx context.Context, part float64, keep time.Duration) context.Context {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx
	}
	end = end.Add(-keep)
	if outer, shared := ctx.Value(shareEnd{}).(time.Time); shared && outer.Before(end) {
		end = outer
	}
	left := max(0, time.Until(end))
	return context.WithValue(ctx, shareEnd{}, time.Now().Add(time.Duration(part*float64(left))))
}
