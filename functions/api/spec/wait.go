package spec

import (
	"context"
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/span"
	"punctual/shared/tenant"
)

// ReadWait reads a parameter that says how long a request may wait; "" is no wait.
func ReadWait(name, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := span.Parse(s)
	if err != nil {
		return 0, rest.OneViolation(name, rest.CodeInvalidValue, span.Allowed, "%s", err.Error())
	}
	if d > contract.MaxWait {
		return 0, rest.OneViolation(name, rest.CodeOutOfRange, "at most "+span.Format(contract.MaxWait),
			"%s is too long to wait", span.Format(d))
	}
	return d, nil
}

// Await polls until read is done, as long as wait. Where too many requests of the tenant wait, it returns at once, with
// the value of Retry-After.
func (s *Core) Await(
	ctx context.Context, t tenant.ID, wait time.Duration, read func() (done bool, err error),
) (retryAfter string, err error) {
	if waited, err := s.Limit.Await(ctx, t, wait, read); waited || err != nil {
		return "", err
	}
	return strconv.Itoa(int(contract.WaitingRetryAfter / time.Second)), nil
}
