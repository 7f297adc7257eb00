package edit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/show"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what an Editor reads and writes.
type Store interface {
	store.Jobs
	store.ClaimReader
	store.ContentWriter
	store.RunReader
	store.RunWriter
	store.Writes
}

// Decisions carries out what has consequences beyond the row of a job.
type Decisions interface {
	// Cancel asks a job to end as cancelled, unless may returns an error for its row, and returns it as it then is.
	Cancel(ctx context.Context, k job.Key, may func(job.Row, time.Time) error) (job.Row, error)
	// Paused does what follows the pause of a job; row is as it then is.
	Paused(ctx context.Context, row job.Row)
	// Redrive brings a DEAD job back as a new one, corrected by correct unless that is nil; already says that it was
	// redriven before, as by. A job in another state is a fault.Refused.
	Redrive(ctx context.Context, k job.Key, correct accept.Correct) (by job.ID, already bool, err error)
}

// Editor changes, cancels, redrives and forgets jobs on request. An absent or forgotten job is a fault.NotFound, and
// one whose state does not allow the change a *State.
type Editor struct {
	Store     Store
	Read      *show.Reader
	Accept    *accept.Acceptor
	Decisions Decisions
	Queue     message.Sender
	Log       *slog.Logger
	// Gathers says that the caller asks by Collect for the removal of dead letters, once for many jobs; false: each
	// redrive and each forgotten job does.
	Gathers bool

	collected collected
}

// Code says which state of a job or a run does not allow a change.
type Code string

// The codes.
const (
	AlreadyFinished Code = "already_finished"
	AlreadyStarted  Code = "already_started"
	NotFinished     Code = "not_finished"
	WrongState      Code = "wrong_state"
	StaleVersion    Code = "stale_version"
)

// State is the error of a change that the state does not allow.
type State struct {
	Code       Code
	Detail     string   // in words for a user
	RedrivenBy job.ID   // of a redrive: the job that repeats this one already; "" for none
	Allowed    []string // states that allow the change; nil: the detail says it
}

func (e *State) Error() string { return e.Detail }

func state(code Code, detail string, args ...any) error {
	return &State{Code: code, Detail: fmt.Sprintf(detail, args...)}
}

// Change holds the new values of an edit.
type Change struct {
	job.Edit
	Parents  string // the new parents of a BLOCKED job, with its time; Edit.DueAt is nil then
	Text     []byte // Payload's text
	Literals []string
	By       string
	With     []item.Write // of the same transaction; its Else ends the edit
}

// update is Store.Update; the row of a schedule's run is not a job.
func (e *Editor) update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error) {
	return e.Store.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		if row.StartsRun() {
			return nil, absent(k)
		}
		return decide(row)
	})
}

func absent(k job.Key) error { return fault.New(fault.NotFound, nil, "reading job %s", k.ID) }

// Edit changes a job that no attempt is running: row, fence and payload in one transaction. version 0 is any. ask is
// called for each row that is read, because the change depends on it.
func (e *Editor) Edit(ctx context.Context, k job.Key, version int64,
	ask func(job.Row, time.Time) (Change, error)) (job.Row, error) {
	return e.edit(ctx, k, version, func(row job.Row, _ job.Claim, now time.Time) (Change, error) {
		return ask(row, now)
	})
}

// edit is Edit with the job's claim.
func (e *Editor) edit(ctx context.Context, k job.Key, version int64,
	ask func(job.Row, job.Claim, time.Time) (Change, error)) (job.Row, error) {
	var row job.Row
	var c Change
	var contents job.Contents
	var send bool
	after, err := e.update(ctx, k, func(found job.Row) ([]item.Write, error) {
		row = found
		if version != 0 && row.Version != version {
			return nil, state(StaleVersion, "the job is at version %d, not %d", row.Version, version)
		}
		now := e.Read.Now()
		claim, err := e.Store.Claim(ctx, k)
		if err != nil {
			return nil, err
		}
		if err := editable(row, claim, now); err != nil {
			return nil, err
		}
		if err := e.Changeable(ctx, row, now); err != nil {
			return nil, err
		}
		if c, err = ask(row, claim, now); err != nil {
			return nil, err
		}
		var after job.Row
		var writes []item.Write
		after, writes, send = changed(row, claim, c, now)
		// The blob's name has the version in it. If the transaction is refused, it is never read.
		if c.Payload != nil && c.Payload.In == job.InBlob {
			if err := e.Store.PutPayload(ctx, after, c.Text); err != nil {
				return nil, fmt.Errorf("keeping the payload of job %s: %w", k.ID, err)
			}
		}
		if c.Labels != nil {
			writes = append(writes, after.PutLabels(*c.Labels))
		}
		contents = job.Contents{Payload: c.Text, Literals: accept.LiteralsBy(c.By, c.Literals)}
		return append(writes, after.PutContents(contents)...), nil
	})
	if err != nil {
		return job.Row{}, err
	}
	e.Accept.LogLiterals(ctx, after, contents)
	if c.Payload != nil {
		// No attempt can read it any more. If the delete fails, its time to live ends it.
		if err := e.Store.ForgetPayload(ctx, row); err != nil {
			e.Log.WarnContext(ctx, "a payload that was replaced is left", telemetry.Tenant, k.Tenant, telemetry.JobID,
				k.ID, telemetry.Err, err)
		}
	}
	if send {
		e.Accept.FireNow(ctx, after.Firing())
	}
	return after, nil
}

// changed returns the row after a change, and the writes of row and claim. send says whether its firing is to be sent.
func changed(row job.Row, claim job.Claim, c Change, now time.Time) (after job.Row, writes []item.Write, send bool) {
	writes = []item.Write{{}}
	if row.Status == job.Blocked {
		after, writes[0] = job.EditBlocked(row, c.Edit, c.Parents)
	} else {
		after, writes[0], send = job.Reschedule(row, c.Edit, now)
		writes = append(writes, job.Fence(row, claim, after.DueAt, now))
	}
	if w, needed := job.KeepKey(after, claim, now); needed {
		writes = append(writes, w)
	}
	return after, append(writes, c.With...), send
}

// editable returns why a job cannot be edited, nil if it can.
func editable(row job.Row, claim job.Claim, now time.Time) error {
	switch {
	case row.Status.Final():
		return state(AlreadyFinished, "the job is %s", row.Status)
	case row.Status == job.Blocked && row.Parents == "":
		return state(WrongState, "the node waits for its items, and is no job of its own")
	case row.Stop != job.NoStop:
		return state(WrongState, "the job is about to become %s", row.Stop.Final())
	case row.Status == job.Running || claim.Live(row.Attempt, now):
		return state(AlreadyStarted, "attempt %d is under way", row.Attempt)
	}
	return nil
}

// Changeable returns an error for a job that is superseded, nil for any other.
func (e *Editor) Changeable(ctx context.Context, row job.Row, now time.Time) error {
	ended, is, err := e.Read.Superseded(ctx, row, now)
	if err != nil || !is {
		return err
	}
	return state(AlreadyFinished, "the job is %s: %s", ended.Status, ended.Reason.Message)
}
