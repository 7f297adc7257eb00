package edit

import (
	"context"
	"fmt"

	"punctual/functions/engine/accept"
	"punctual/shared/fault"
	"punctual/shared/job"
)

// Redrive brings a DEAD job back as a new job, corrected by correct unless that is nil, and returns the id of that. If
// it was redriven before, with whatever corrections, the error is a *State, and the id is the one of that time.
func (e *Editor) Redrive(ctx context.Context, k job.Key, correct accept.Correct) (job.ID, error) {
	by, already, err := e.Decisions.Redrive(ctx, k, correct)
	switch {
	case already:
		detail := fmt.Sprintf("the job was redriven before, as %s", by)
		return by, &State{Code: WrongState, Detail: detail, RedrivenBy: by}
	case fault.KindOf(err) == fault.Refused:
		return "", e.notDead(ctx, k)
	case err == nil && !e.Gathers:
		e.Collect(ctx)
	}
	return by, err
}

// notDead returns why a job cannot be redriven.
func (e *Editor) notDead(ctx context.Context, k job.Key) error {
	row, err := e.Read.Store.Row(ctx, k)
	switch {
	case err != nil:
		return err
	case row.StartsRun():
		return absent(k)
	case !row.Status.Final():
		return state(NotFinished, "only a DEAD job is redriven; this one has not ended")
	}
	return state(WrongState, "only a DEAD job is redriven; this one is %s", row.Status)
}
