package decide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
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
}

// Settle settles an attempt by the outcome on its claim: it writes the contents, then the row, then sends the firing
// or the dead letter, then calls OnFinal. The report only says that there is an outcome; everything else is read from
// the claim. A report that the claim does not confirm is a fault.Undecodable.
func (d *Decider) Settle(ctx context.Context, k job.Key, attempt, token int64, by Arrival) error {
	var is *job.Decision // nil: the attempt has ended already
	var ended job.Outcome
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
		return nil
	case fault.KindOf(err) == fault.NotFound:
		d.Log.InfoContext(ctx, "report of a deleted job was dropped",
			telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID, telemetry.Attempt, attempt)
		return nil
	case err != nil:
		return fmt.Errorf("settling attempt %d of job %s: %w", attempt, k.ID, err)
	case is == nil:
		return d.settledBefore(ctx, *row, attempt, ended, by.Repeated)
	}
	return d.follow(ctx, is, by.Late)
}

// errNewer says that there is a newer attempt, so this one was settled before.
var errNewer = errors.New("the attempt was settled before")

// follow sends what the written decision calls for. If it fails, the report is redelivered, and settledBefore sends
// the rest.
func (d *Decider) follow(ctx context.Context, is *job.Decision, late bool) error {
	row := &is.After
	switch {
	case row.Status == job.Dead:
		d.Log.InfoContext(ctx, "job died", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID,
			telemetry.Attempt, row.Attempt, "code", row.Reason.Code)
		return errors.Join(d.SendDeadLetter(ctx, *row), d.announce(ctx, *row))
	case row.Status.Final() && late && row.RunID != "":
		d.settled(*row)
		return d.AnnounceLater(ctx, *row, 0)
	case row.Status.Final():
		return d.announce(ctx, *row)
	}
	d.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: row.Waiting})
	if is.Send {
		return d.fire(ctx, *row, "now")
	}
	return nil
}

// AnnounceLater notifies the children of a node in an invocation of its own, after the reports that already wait: it
// sends a message that has the job re-evaluated after that time, in whole seconds, and the row's pending effects then
// name the children.
func (d *Decider) AnnounceLater(ctx context.Context, row job.Row, after time.Duration) error {
	err := d.Queue.Send(ctx, contract.ReportQueue,
		message.Outgoing{Group: string(row.Tenant), Delay: after, Body: message.Encode(message.Report{
			V: message.V, Kind: message.Reevaluate, Tenant: string(row.Tenant), JobID: string(row.ID),
			Version: row.Version,
			Attempt: row.Attempt,
		})})
	if err != nil {
		return fmt.Errorf("putting off the children of job %s: %w", row.ID, err)
	}
	return nil
}

// settledBefore handles a report whose attempt was settled before. It writes nothing; it only sends what the process
// that wrote the row may not have sent.
func (d *Decider) settledBefore(ctx context.Context, row job.Row, attempt int64, o job.Outcome, repeated bool) error {
	now := d.Clock.Now()
	switch {
	case row.Status == job.Scheduled && row.Attempt > attempt && row.Stop == job.NoStop &&
		!row.Near && !row.Parked && horizon.LaneOf(now, row.DueAt) == horizon.Now:
		return d.fire(ctx, row, "now") // a second firing is refused at its claim
	case row.Status == job.Dead && row.Attempt == attempt && row.PendingEffects.DeadLetter() && repeated:
		if err := d.SendDeadLetter(ctx, row); err != nil {
			return err
		}
		return d.ended(ctx, row)
	case row.Status.Final() && row.Attempt == attempt && repeated:
		return d.ended(ctx, row)
	}
	d.Log.InfoContext(ctx, "report changed nothing", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID,
		telemetry.Attempt, attempt, "outcome", string(o.Kind), "status", string(row.Status), "row_attempt", row.Attempt)
	return nil
}
