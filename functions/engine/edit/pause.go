package edit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
)

// pausable are the states in which a job can be paused and resumed.
var pausable = []string{string(job.Blocked), string(job.Scheduled), string(job.Queued)}

// Pause holds a job back that no attempt is running, until it is resumed. Its deadlines go on. A job that is paused
// stays as it is, by whom and why it was paused included.
func (e *Editor) Pause(ctx context.Context, k job.Key, reason, by string) (job.Row, error) {
	var paused bool
	after, err := e.whilePausable(ctx, k, func(row job.Row, claim job.Claim, now time.Time) ([]item.Write, error) {
		paused = !row.IsPaused()
		if !paused {
			return nil, nil
		}
		if err := e.Store.NoteOpen(ctx, row); err != nil {
			return nil, err
		}
		after, write := job.PauseRow(row, claim, job.OwnPause{Reason: reason, By: by, Since: now}, now)
		if row.Status == job.Blocked {
			return []item.Write{write}, nil
		}
		return []item.Write{write, job.Fence(row, claim, after.DueAt, now)}, nil
	})
	if err == nil && paused {
		e.Decisions.Paused(ctx, after)
	}
	return after, err
}

// Resume lets a paused job go on. One that is not paused stays as it is.
func (e *Editor) Resume(ctx context.Context, k job.Key) (job.Row, error) {
	var send bool
	after, err := e.whilePausable(ctx, k, func(row job.Row, claim job.Claim, now time.Time) ([]item.Write, error) {
		if !row.IsPaused() {
			send = job.MayBeResumedUnfired(row, claim, now)
			return nil, nil
		}
		_, write, fire := job.ResumeRow(row, now)
		send = fire
		return []item.Write{write}, nil
	})
	if err == nil && send {
		e.Accept.FireNow(ctx, after.Firing())
	}
	return after, err
}

// whilePausable is update for a job that can be paused and resumed. Any other is refused as one in the wrong state. A
// worker may hold the claim of a paused job for a moment, with an old firing; it starts nothing.
func (e *Editor) whilePausable(
	ctx context.Context, k job.Key, decide func(job.Row, job.Claim, time.Time) ([]item.Write, error),
) (job.Row, error) {
	return e.update(ctx, k, func(row job.Row) ([]item.Write, error) {
		now := e.Read.Now()
		claim, err := e.Store.Claim(ctx, k)
		if err != nil {
			return nil, err
		}
		asked := claim
		if row.IsPaused() {
			asked = job.Claim{}
		}
		err = editable(row, asked, now)
		if err == nil {
			err = e.Changeable(ctx, row, now)
		}
		if err != nil {
			return nil, notPausable(err)
		}
		return decide(row, claim, now)
	})
}

// notPausable is the error about a state as pause and resume give it: with one code, and the states that allow them.
func notPausable(err error) error {
	var e *State
	if !errors.As(err, &e) {
		return err
	}
	return &State{Code: WrongState, Detail: fmt.Sprintf("%s; only a job that waits is paused or resumed", e.Detail),
		Allowed: slices.Clone(pausable)}
}
