package accept

import (
	"context"
	"fmt"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// tries bounds how often one call decides anew because somebody changed the job meanwhile.
const tries = 8

// Redrive brings a DEAD job back as a new one and says by which id. already tells that it had
// been brought back before; then by is the job made at that time. A row that is gone is a
// fault.NotFound, one that is not DEAD a fault.Refused.
//
// The new job's contents come first, then both rows in one transaction, then the firing; a
// firing that could not be sent is no error, for the new row has its wake-up.
func (a *Acceptor) Redrive(ctx context.Context, k job.Key) (by job.ID, already bool, err error) {
	for range tries {
		row, err := a.Jobs.Row(ctx, k)
		switch {
		case err != nil:
			return "", false, fmt.Errorf("redriving job %s: %w", k.ID, err)
		case row.Status != job.Dead:
			return "", false, fault.New(fault.Refused, nil, "redriving job %s, which is %s", k.ID, row.Status)
		case row.RedrivenBy != "":
			return row.RedrivenBy, true, nil
		}
		now := a.Clock.Now()
		next := job.RedriveOf(row, now)
		send := job.Place(&next, now)
		if err := a.Jobs.CopyContents(ctx, row, next); err != nil {
			return "", false, fmt.Errorf("redriving job %s: copying what it holds: %w", k.ID, err)
		}
		_, link := job.Redriven(row, next.ID, now)
		err = a.Jobs.Accept(ctx, next, link)
		if store.Refused(err) != nil {
			continue // buried, redriven or forgotten meanwhile
		}
		if err != nil {
			return "", false, fmt.Errorf("redriving job %s as %s: %w", k.ID, next.ID, err)
		}
		a.Meter.Count(telemetry.Redriven, 1)
		if send {
			if err := a.armer.Fire(ctx, "now", next.Firing(), a.Clock.Now()); err != nil {
				a.Log.WarnContext(ctx, "redriven job waits for the sweeper: its firing was not sent",
					telemetry.Tenant, k.Tenant, telemetry.JobID, next.ID, telemetry.Err, err.Error())
			}
		}
		return next.ID, false, nil
	}
	return "", false, fault.New(fault.Conflict, nil, "redriving job %s: it changed %d times meanwhile", k.ID, tries)
}
