package recur

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

const (
	// jobsAtOnce bounds the jobs of one schedule that are made together.
	jobsAtOnce = 8
	// tries bounds how often one job is decided again because it changed meanwhile.
	tries = 8
)

// claimAgain is when a job whose claim is live is tried again: its worker may be about to let
// it go, because its epoch is over.
var claimAgain = []time.Duration{200 * time.Millisecond, time.Second}

// maker makes the jobs of one step.
type maker struct {
	*Recurrer
	s        schedule.Schedule
	contents func() (job.Contents, error) // of each job, read once

	mu    sync.Mutex
	fire  []job.Firing
	did   *Promoted
	first error
}

// makeAll makes or adopts the job of each occurrence. All are tried; the first error is
// returned, and the schedule must not move on then.
func (r *Recurrer) makeAll(ctx context.Context, s schedule.Schedule, list []calendar.Occurrence, now time.Time, did *Promoted) error {
	if len(list) == 0 {
		return nil
	}
	m := &maker{Recurrer: r, s: s, did: did, contents: sync.OnceValues(func() (job.Contents, error) { return r.Store.ScheduleContents(ctx, s) })}
	var g errgroup.Group
	g.SetLimit(jobsAtOnce)
	for _, o := range list {
		g.Go(func() error {
			if err := fault.Guard(func() error { return m.one(ctx, o, now) }); err != nil {
				m.failed(fmt.Errorf("making the job of %s: %w", o.NominalAt.Format(time.RFC3339), err))
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in m
	for _, err := range r.armer.FireAll(ctx, "schedule", m.fire, r.Clock.Now()) {
		if err != nil { // the jobs are written: the due index brings them back
			r.Log.WarnContext(ctx, "a firing was not sent; the sweeper will send it", telemetry.Tenant, s.Tenant, "schedule", s.Name, telemetry.Err, err.Error())
		}
	}
	return m.first
}

func (m *maker) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		m.first = err
	}
}

// done counts a job that was written, and sends its firing if nobody else will.
func (m *maker) done(row job.Row, send, adopted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome := "made"
	if adopted {
		outcome = "adopted"
		m.did.Adopted++
	} else {
		m.did.Made++
		m.Meter.Count(telemetry.JobsAccepted, 1)
	}
	m.Meter.Count(telemetry.Promoted, 1, telemetry.Dim{Key: "outcome", Value: outcome})
	if send {
		m.fire = append(m.fire, row.Firing())
	}
}

// one puts the job of an occurrence, or adopts what stands there.
func (m *maker) one(ctx context.Context, o calendar.Occurrence, now time.Time) error {
	row, send := m.s.Job(o, m.Shards, now)
	old, err := m.put(ctx, row, send, !o.NominalAt.After(m.s.Fresh))
	for n := 0; n < tries; n++ {
		switch {
		case fault.KindOf(err) == fault.Undecodable: // the row is set aside where it is met; the schedule goes on
			m.Log.ErrorContext(ctx, "a job in the way cannot be read", telemetry.Tenant, m.s.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
			return nil
		case err != nil:
			return err
		case old == nil:
			return nil
		}
		var again bool
		if old, again, err = m.adopt(ctx, *old, row, now); again && n < len(claimAgain) {
			if err := wait(ctx, claimAgain[n]); err != nil {
				return err
			}
		} else if again {
			return fault.New(fault.Conflict, nil, "adopting job %s, which a worker holds", row.ID)
		}
	}
	return fault.New(fault.Conflict, nil, "adopting job %s: it changed %d times meanwhile", row.ID, tries)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put puts a new row and returns the one that stands in its way, nil for none. A time that
// only an older epoch can have made a job of is not made anew.
func (m *maker) put(ctx context.Context, row job.Row, send, only bool) (*job.Row, error) {
	if only {
		old, err := m.Store.Row(ctx, row.Key)
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil
		}
		return &old, err
	}
	if err := m.beside(ctx, row); err != nil {
		return nil, err
	}
	err := m.Store.Accept(ctx, row)
	refused := store.Refused(err)
	if refused == nil {
		if err == nil {
			m.done(row, send, false)
		}
		return nil, err
	}
	old, err := store.OldRow(refused, 0, row.Key)
	if fault.KindOf(err) == fault.NotFound { // forgotten: it ran
		return nil, nil
	}
	return &old, err
}

// beside keeps what lies beside a row that is about to be written.
func (m *maker) beside(ctx context.Context, row job.Row) error {
	contents, err := m.contents()
	if err != nil {
		return fmt.Errorf("reading what the jobs hold: %w", err)
	}
	return m.Store.KeepContents(ctx, row, contents)
}

// adopt makes a job of an older epoch one of this epoch. What has started, ended, or is of
// this epoch already stays as it is. It returns the row to decide about again, nil for none;
// again says that a worker holds it.
func (m *maker) adopt(ctx context.Context, old, row job.Row, now time.Time) (changed *job.Row, again bool, err error) {
	if old.Status != job.Scheduled || old.Attempt != 1 || old.Stop != job.NoStop {
		return nil, false, nil
	}
	if old.Epoch >= m.s.Epoch {
		if !old.Near && !old.Parked && old.Epoch == m.s.Epoch && horizon.LaneOf(now, old.DueAt) == horizon.Now {
			m.mu.Lock()
			m.fire = append(m.fire, old.Firing()) // whoever wrote it may not have got to send it; a second firing is refused at its claim
			m.mu.Unlock()
		}
		return nil, false, nil
	}
	after, w, send := job.Adopt(old, row, now)
	if err := m.beside(ctx, after); err != nil {
		return nil, false, err
	}
	err = m.Store.Commit(ctx, w, job.Fence(old.Key, 1, after.DueAt, now))
	refused := store.Refused(err)
	if refused == nil {
		if err == nil {
			m.done(after, send, true)
		}
		return nil, false, err
	}
	if _, isRow := refused.Olds[0]; isRow {
		row, err := store.OldRow(refused, 0, old.Key)
		if fault.KindOf(err) == fault.NotFound {
			return nil, false, nil
		}
		return &row, false, err
	}
	return &old, true, nil
}
