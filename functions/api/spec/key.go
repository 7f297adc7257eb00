package spec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Replay looks up what an idempotency key names, and reads it; false if it names nothing. What was deleted
// frees its key: gone is its id then, whose key a new job or run may take. A key of another body is a problem.
func (s *Core) Replay(
	ctx context.Context, t tenant.ID, key, bodyHash string, now time.Time, read func(job.ID) error,
) (ok bool, gone job.ID, err error) {
	seen, ok, err := s.Store.Remembered(ctx, t, key, now)
	if err != nil || !ok {
		return false, "", err
	}
	err = read(seen.JobID)
	absent := rest.IsNotFound(err) || fault.KindOf(err) == fault.NotFound
	if absent {
		if gone, err = s.freed(ctx, t, seen.JobID); gone != "" || err != nil {
			return false, gone, err
		}
	}
	if err == nil && seen.BodyHash != bodyHash {
		err = rest.NewProblem(CodeKeyReused, "this key was used for another body less than %s ago",
			text.InUnits(contract.IdempotencyKept, time.Hour, " hours"))
	}
	return err == nil && !absent, "", err
}

// freed returns the id if there is neither such a job nor such a run any more; "" if there is.
func (s *Core) freed(ctx context.Context, t tenant.ID, id job.ID) (job.ID, error) {
	if _, err := s.Store.Row(ctx, job.Key{Tenant: t, ID: id}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	if _, err := s.Store.Run(ctx, run.Key{Tenant: t, ID: id}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	return id, nil
}

// KeyAllowed describes an idempotency key, for the "allowed" of an error.
var KeyAllowed = fmt.Sprintf("1 to %d printable ASCII characters", contract.MaxIdempotencyKey)

// readKey reads the Idempotency-Key header; "" is none.
func readKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", rest.OneViolation("Idempotency-Key", rest.CodeDuplicateField, "",
			"the header Idempotency-Key is given more than once")
	case !ValidKey(strings.TrimSpace(values[0])):
		return "", rest.OneViolation("Idempotency-Key", rest.CodeInvalidValue, KeyAllowed,
			"the Idempotency-Key is not one")
	}
	return strings.TrimSpace(values[0]), nil
}

// ValidKey reports whether a text can be an idempotency key.
func ValidKey(key string) bool {
	bad := func(c rune) bool { return c < ' ' || c > '~' }
	return len(key) >= 1 && len(key) <= contract.MaxIdempotencyKey && !slices.ContainsFunc([]rune(key), bad)
}
