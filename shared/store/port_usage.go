package store

import (
	"context"
	"time"

	"punctual/shared/tenant"
	"punctual/shared/usage"
)

// UsageReader reads what jobs used.
type UsageReader interface {
	// Usage calls each with the use of every value on the days from the first to the last, in any order. It may be
	// called several times for a value. What was added a moment ago may be missing.
	Usage(
		ctx context.Context, t tenant.ID, by usage.By, first, last time.Time, each func(value string, u usage.Use),
	) error
}
