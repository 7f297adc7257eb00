package decide

import (
	"context"
	"errors"
	"fmt"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/limits"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Began marks a job RUNNING, unless the job or its claim has moved on since. began holds the start time and lateness
// of the attempt.
func (d *Decider) Began(ctx context.Context, k job.Key, version, attempt, token int64, began job.Outcome) error {
	c, err := d.Jobs.Claim(ctx, k)
	if err != nil {
		return fmt.Errorf("reading the claim of job %s: %w", k.ID, err)
	}
	if c.Attempt != attempt || c.Token != token {
		return nil // another worker owns it by now
	}
	err = d.Jobs.Put(ctx, job.MarkRunning(k, version, attempt, began.StartedAt, began.LatenessMS))
	if err != nil && store.Refused(err) == nil {
		return fmt.Errorf("marking job %s running: %w", k.ID, err)
	}
	return nil
}

// Arrival says how a report arrived.
type Arrival struct {
	Repeated bool // it was received before, and the row may be written already
	Late     bool // it waited in a busy queue: reports that still wait are settled before the children are evaluated
	// Freed says that the worker has given back the attempt's permits, and for which of the job's limits others wait.
	Freed []bool
}

// Settle settles an attempt by the outcome on its claim: it writes the contents, then the row, then sends the firing
// and leaves to its caller what follows an end. The report only says that there is an outcome; everything else is read
// from the claim. A report that the claim does not confirm is a fault.Undecodable.
func (d *Decider) Settle(
	ctx context.Context, k job.Key, attempt, token int64, by Arrival,
) (todo effect.List, err error) {
	var is *job.Decision // nil: the attempt has ended already
	var ended job.Outcome
	var freed []limit.Key
	row, err := d.Jobs.UpdateWithClaim(ctx, k, func(row *job.Row, c *job.Claim) ([]item.Write, error) {
		is = nil
		switch {
		case c.Attempt > attempt:
			return nil, errNewer
		case c.Attempt < attempt || c.Token != token || c.Outcome == nil:
			return nil, fault.New(fault.Undecodable, nil,
				"reading a report of attempt %d, token %d of job %s: its claim is of attempt %d, token %d, ended %t",
				attempt, token, k.ID, c.Attempt, c.Token, c.Outcome != nil)
		}
		ended = *c.Outcome
		var err error
		if freed, err = d.freePermits(ctx, row, attempt, ended.Permits, by); err != nil { // before the row is final
			return nil, err
		}
		settled, err := job.Settle(row, attempt, ended, d.Clock.Now())
		if errors.Is(err, job.ErrTransition) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, c := range settled.Contents { // before the row that refers to them
			if err := d.Jobs.Put(ctx, c); err != nil {
				return nil, err
			}
		}
		is = settled
		return []item.Write{settled.Write}, nil
	})
	switch {
	case errors.Is(err, errNewer):
		return todo, nil
	case fault.KindOf(err) == fault.NotFound:
		d.Log.InfoContext(ctx, "report of a deleted job was dropped",
			telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID, telemetry.Attempt, attempt)
		return todo, nil
	case err != nil:
		return todo, fmt.Errorf("settling attempt %d of job %s: %w", attempt, k.ID, err)
	case is == nil:
		todo, err = d.settledBefore(ctx, *row, attempt, ended, by.Repeated)
	default:
		todo, err = d.settled(ctx, is, by.Late)
	}
	todo.Freed = append(todo.Freed, freed...)
	return todo, err
}

// errNewer says that there is a newer attempt, so this one was settled before.
var errNewer = errors.New("the attempt was settled before")

// settled sends what a decision calls for that was just written. If it fails, the report is redelivered, and
// settledBefore sends the rest.
func (d *Decider) settled(ctx context.Context, is *job.Decision, late bool) (todo effect.List, err error) {
	row := &is.After
	if row.Status.Final() {
		if row.Status == job.Dead {
			d.Log.InfoContext(ctx, "job died", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID,
				telemetry.Attempt, row.Attempt, "code", row.Reason.Code)
		}
		end := effect.End{Row: *row, Freed: true, Later: late && row.InRun() && row.Status != job.Dead}
		return effect.List{Ended: []effect.End{end}}, nil
	}
	d.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: row.Waiting})
	if is.Send {
		return todo, d.fire(ctx, *row, "now")
	}
	return todo, nil
}

// settledBefore handles a report whose attempt was settled before. It writes nothing; it only sends what the process
// that wrote the row may not have sent.
func (d *Decider) settledBefore(
	ctx context.Context, row job.Row, attempt int64, o job.Outcome, repeated bool,
) (todo effect.List, err error) {
	now := d.Clock.Now()
	switch {
	case row.Status == job.Scheduled && row.Attempt > attempt && row.Stop == job.NoStop &&
		!row.Near && !row.Parked && !row.IsPaused() && horizon.LaneOf(now, row.DueAt) == horizon.Now:
		return todo, d.fire(ctx, row, "now") // a second firing is refused at its claim
	case row.Status.Final() && row.Attempt == attempt && repeated:
		todo.Ended = []effect.End{{Row: row, Counted: true, Freed: true}}
		return todo, nil
	}
	d.Log.InfoContext(ctx, "report changed nothing", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID,
		telemetry.Attempt, attempt, "outcome", string(o.Kind), "status", string(row.Status), "row_attempt", row.Attempt)
	return todo, nil
}

// freePermits gives back the permits of an attempt that has ended, unless its worker did, and returns the keys that
// jobs wait for.
func (d *Decider) freePermits(
	ctx context.Context, row *job.Row, attempt int64, buckets []int, by Arrival,
) ([]limit.Key, error) {
	switch {
	case row.Limits == "":
		return nil, nil
	case by.Freed != nil:
		return limits.Freed(*row, by.Freed), nil
	}
	return d.Limits.Free(ctx, *row, attempt, buckets)
}
