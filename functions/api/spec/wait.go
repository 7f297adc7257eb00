package spec

import (
	"context"
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/span"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// readWait reads the parameter wait; "" is no wait.
func readWait(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := span.Parse(s)
	if err != nil {
		return 0, rest.OneViolation("wait", rest.CodeInvalidValue, span.Allowed, "%s", err.Error())
	}
	if d > contract.MaxWait {
		return 0, rest.OneViolation("wait", rest.CodeOutOfRange, "at most "+span.Format(contract.MaxWait),
			"%s is too long to wait", span.Format(d))
	}
	return d, nil
}

// waitSlack is how long after its wait a request's slot is free, if the request did not give it back.
const waitSlack = 2 * time.Second

// Await polls until look is done, as long as wait. A request that waits holds an invocation of the function, so each
// tenant has a bounded number of them. Beyond it, or when the slots cannot be read, await returns at once, with the
// value of Retry-After.
func (s *Core) Await(
	ctx context.Context, t tenant.ID, wait time.Duration, read func() (done bool, err error),
) (retryAfter string, err error) {
	if s.Waiting == 0 {
		return "", poll(ctx, wait, read)
	}
	now := s.Now()
	slot, ok, err := s.Store.TakeWaiting(ctx, t, s.Waiting, now.Add(wait+waitSlack), now)
	if err != nil {
		s.Log.WarnContext(ctx, "a request was answered without waiting", telemetry.Tenant, t, telemetry.Err,
			err.Error())
	}
	if err != nil || !ok {
		return strconv.Itoa(int(contract.WaitingRetryAfter / time.Second)), nil
	}
	defer func() {
		// the client may have left
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveTimeout)
		defer cancel()
		if err := s.Store.GiveWaiting(ctx, slot); err != nil {
			s.Log.WarnContext(ctx, "a slot of a waiting request was not given back", telemetry.Tenant, t,
				telemetry.Err, err.Error())
		}
	}()
	return "", poll(ctx, wait, read)
}

// giveTimeout bounds giving a slot back, because the client still waits for the answer.
const giveTimeout = time.Second

// How often a waiting request reads the row: soon at first, then less and less often. Each pause is half as long again
// as the one before, so that an end is seen after at most a third of the time that it took.
const (
	firstRead = 10 * time.Millisecond
	lastRead  = 500 * time.Millisecond
)

// poll calls look until it is done or fails, the time is up, or the client has left. It calls look once more at the
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
