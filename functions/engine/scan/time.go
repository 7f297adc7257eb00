package scan

import (
	"context"
	"time"
)

// TimeLeft says whether at least that much time is left until the context's deadline, and
// anything of the Share that it may have; without either there always is. Passes stop by it
// while they can still write down how far they came.
func TimeLeft(ctx context.Context, atLeast time.Duration) bool {
	deadline, ok := ctx.Deadline()
	end, shared := ctx.Value(shareEnd{}).(time.Time)
	return ctx.Err() == nil && (!ok || time.Until(deadline) >= atLeast) && (!shared || time.Now().Before(end))
}

type shareEnd struct{}

// Share gives one kind of work a part of what is left of the time until keep before the deadline,
// so that none takes it all. What it has begun it may finish: only TimeLeft speaks of the share.
// Without a deadline there is nothing to share.
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
