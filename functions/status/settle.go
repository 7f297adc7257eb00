package status

import (
	"context"
	"errors"
	"fmt"

	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// tries bounds how often one report is decided again because the row changed meanwhile.
const tries = 8

// settle decides what an ended attempt means and writes it. repeated says that this very
// message was received before, and may have got as far as the row.
func (s *Stage) settle(ctx context.Context, k job.Key, attempt int64, o job.Outcome, repeated bool) error {
	row, err := s.Store.Row(ctx, k)
	for range tries {
		if fault.KindOf(err) == fault.NotFound {
			s.Log.InfoContext(ctx, "report of a forgotten job was dropped", telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID, telemetry.Attempt, attempt)
			return nil
		}
		if err != nil {
			return fmt.Errorf("settling attempt %d of job %s: %w", attempt, k.ID, err)
		}
		d, decided := job.Settle(row, attempt, o, s.Clock.Now())
		if errors.Is(decided, job.ErrTransition) {
			return s.settled(ctx, row, attempt, o, repeated)
		}
		if decided != nil {
			return decided
		}
		refused, failed := s.write(ctx, d)
		if refused != nil {
			row, err = store.OldRow(refused, 0, k)
			continue
		}
		if failed != nil {
			return fmt.Errorf("settling attempt %d of job %s: %w", attempt, k.ID, failed)
		}
		return s.follow(ctx, d)
	}
	return fault.New(fault.Conflict, nil, "settling attempt %d of job %s: it changed %d times meanwhile", attempt, k.ID, tries)
}

// write puts the contents and then the row that refers to them.
func (s *Stage) write(ctx context.Context, d job.Decision) (*item.Refused, error) {
	for _, c := range d.Contents {
		if err := s.Store.Put(ctx, c); err != nil {
			return nil, err
		}
	}
	err := s.Store.PutRow(ctx, d.After, d.Write)
	return store.Refused(err), err
}

// follow sends what the written decision calls for. Failing it, the report comes again and
// meets settled.
func (s *Stage) follow(ctx context.Context, d job.Decision) error {
	row := d.After
	switch {
	case row.Status == job.Dead:
		s.Log.InfoContext(ctx, "job died", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Attempt, row.Attempt, "code", row.Reason.Code)
		return errors.Join(s.waker.SendLetter(ctx, row), s.waker.Announce(ctx, row))
	case row.Status.Final():
		return s.waker.Announce(ctx, row)
	}
	s.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: row.Waiting})
	if d.Send {
		return s.waker.Fire(ctx, row, "now")
	}
	return nil
}

// settled deals with a report whose attempt is over already. It changes nothing; it only sends
// what the writer of the row may not have got to send.
func (s *Stage) settled(ctx context.Context, row job.Row, attempt int64, o job.Outcome, repeated bool) error {
	now := s.Clock.Now()
	switch {
	case row.Status == job.Scheduled && row.Attempt > attempt && row.Stop == job.NoStop &&
		!row.Near && !row.Parked && horizon.LaneOf(now, row.DueAt) == horizon.Now:
		return s.waker.Fire(ctx, row, "now") // a second firing is refused at its claim
	case row.Status == job.Dead && row.Attempt == attempt && row.Owes.Letter() && repeated:
		if err := s.waker.SendLetter(ctx, row); err != nil {
			return err
		}
		return s.waker.Ended(ctx, row)
	case row.Status.Final() && row.Attempt == attempt && repeated:
		return s.waker.Ended(ctx, row)
	}
	s.Log.InfoContext(ctx, "report changed nothing", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID,
		telemetry.Attempt, attempt, "outcome", string(o.Kind), "status", string(row.Status), "row_attempt", row.Attempt)
	return nil
}
