package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/submit"
	"punctual/shared/contract"
	"punctual/shared/text"
)

// SubmitProblem turns an error about the keys of a request for a job into a problem.
func SubmitProblem(err error) error {
	var held *accept.NotUnique
	if errors.As(err, &held) {
		return notUnique(held)
	}
	return KeyProblem(err)
}

func notUnique(err *accept.NotUnique) error {
	p := rest.NewProblem(CodeNotUnique, "%s", err.Error())
	p.JobID = string(err.Holder)
	return p
}

// KeyProblem turns submit.ErrKeyReused into a problem.
func KeyProblem(err error) error {
	if errors.Is(err, submit.ErrKeyReused) {
		return rest.NewProblem(CodeKeyReused, "this key was used for another body less than %s ago",
			text.InUnits(contract.IdempotencyKept, time.Hour, " hours"))
	}
	return err
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
