package release

import (
	"context"

	"punctual/functions/engine/decide"
	"punctual/shared/job"
)

// Ended is called for each job that has become final; it is a decide.OnFinal. No job that can be
// accepted today has children, so there is nothing to release.
func Ended(context.Context, *decide.Decider, job.Row) error { return nil }
