package ratelimit

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// waitSlack is how long after its wait a request's slot is free, if the request did not give it back.
const waitSlack = 2 * time.Second

// Await polls until read is done, as long as wait. A request that waits holds an invocation of the function, so each
// tenant has a bounded number of them. Beyond it, or when the slots cannot be read, Await returns at once, and
// waited is false.
func (l *Limiter) Await(
	ctx context.Context, t tenant.ID, wait time.Duration, read func() (done bool, err error),
) (waited bool, err error) {
	if l.Waiting == 0 {
		return true, poll(ctx, wait, read)
	}
	now := l.now()
	slot, ok, err := l.Store.TakeWaiting(ctx, t, l.Waiting, now.Add(wait+waitSlack), now)
	if err != nil {
		l.Log.WarnContext(ctx, "a request was answered without waiting", telemetry.Tenant, t, telemetry.Err,
			err.Error())
	}
	if err != nil || !ok {
		return false, nil
	}
	defer func() {
		// the client may have left
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveTimeout)
		defer cancel()
		if err := l.Store.GiveWaiting(ctx, slot); err != nil {
			l.Log.WarnContext(ctx, "a slot of a waiting request was not given back", telemetry.Tenant, t,
				telemetry.Err, err.Error())
		}
	}()
	return true, poll(ctx, wait, read)
}

// giveTimeout bounds giving a slot back, because the client still waits for the answer.
const giveTimeout = time.Second

// How often a waiting request reads the row: soon at first, then less and less often. Each pause is half as long again
// as the one before, so that an end is seen after at most a third of the time that it took.
const (
	firstRead = 10 * time.Millisecond
	lastRead  = 500 * time.Millisecond
)

// poll calls read until it is done or fails, the time is up, or the client has left. It calls read once more at the
// end of the time.
func poll(ctx context.Context, wait time.Duration, read func() (done bool, err error)) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	next := time.NewTimer(firstRead)
	defer next.Stop()
	for pause := firstRead; ; pause = min(pause+pause/2, lastRead) {
		next.Reset(pause)
		over := false
		select {
		case <-ctx.Done():
			return fault.New(fault.Unavailable, ctx.Err(), "waiting for an end")
		case <-deadline.C:
			over = true
		case <-next.C:
		}
		if done, err := read(); done || over || err != nil {
			return err
		}
	}
}
