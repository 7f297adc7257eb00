package show

import (
	"context"

	"punctual/shared/job"
)

// AttemptLog reads the log of an attempt of a job from a position on. next is the position after the text; ended says
// that the attempt of the row has ended, so no line follows.
func (s *Reader) AttemptLog(
	ctx context.Context, r job.Row, attempt, from int64,
) (text string, next int64, ended bool, err error) {
	text, next, err = s.Store.AttemptLog(ctx, r.Key, attempt, from)
	return text, next, r.Status.Final() || r.Attempt > attempt, err
}
