package recur

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/accept"
	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// jobsAtOnce bounds the jobs of one schedule that are made together.
const jobsAtOnce = 8

// claimWaits are the waits before another try to adopt a job whose claim is live: its worker may be about to let it
// go, because its epoch has ended.
var claimWaits = []time.Duration{200 * time.Millisecond, time.Second}

// maker makes the jobs of one step.
type maker struct {
	*Recurrer
	s        schedule.Schedule
	contents job.Contents // of each job

	mu    sync.Mutex
	fire  []job.Firing
	did   *Promoted
	first error
}

// makeAll makes or adopts the job of each occurrence. It tries all of them and returns the first error; the schedule
// must not move on then.
func (r *Recurrer) makeAll(ctx context.Context, s schedule.Schedule, list []calendar.Occurrence, now time.Time,
	did *Promoted) error {
	if len(list) == 0 {
		return nil
	}
	contents, err := r.Store.ScheduleContents(ctx, s)
	if err != nil {
		return fmt.Errorf("reading the contents of the jobs: %w", err)
	}
	m := &maker{Recurrer: r, s: s, did: did, contents: contents}
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
	r.accept.Fire(ctx, "schedule", m.fire...)
	return m.first
}

func (m *maker) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		m.first = err
	}
}

// done counts a job that was written, and collects its firing if send is set.
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

// one puts the job of an occurrence, or adopts the job that is there already.
func (m *maker) one(ctx context.Context, o calendar.Occurrence, now time.Time) error {
	row, send := m.s.Job(o, m.Shards, now)
	if o.NominalAt.After(m.s.AdoptThrough) { // up to AdoptThrough, only an older epoch has made jobs
		put, err := m.put(ctx, row, send)
		if put || err != nil {
			return err
		}
	}
	waits := claimWaits
	var failed error // of the adoption
	_, err := m.Store.Update(ctx, row.Key, func(old job.Row) ([]item.Write, error) {
		var held bool
		if held, failed = m.adopt(ctx, old, row, now); !held {
			return nil, failed // adopt has written already
		}
		if len(waits) == 0 {
			failed = fault.New(fault.Conflict, nil, "adopting job %s, which a worker holds", row.ID)
		} else if err := wait(ctx, waits[0]); err != nil {
			failed = err
		} else {
			waits = waits[1:]
		}
		return nil, failed
	})
	if failed != nil && store.Refused(failed) == nil {
		return failed
	}
	switch fault.KindOf(err) {
	case fault.NotFound: // there never was a job, or it has run and is forgotten
		return nil
	case fault.Undecodable: // the sweeper sets the row aside; the schedule goes on
		m.Log.ErrorContext(ctx, "an existing job of a nominal time could not be read",
			telemetry.Tenant, m.s.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		return nil
	}
	return err
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

// put puts a new row. It returns false if there is a row already.
func (m *maker) put(ctx context.Context, row job.Row, send bool) (bool, error) {
	err := m.accept.Put(ctx, accept.Job{Row: row, With: labelsOf(row, m.contents),
		Keep: func(ctx context.Context, row job.Row) error { return m.keep(ctx, row, m.contents) }})
	if store.Refused(err) != nil {
		return false, nil
	}
	if err == nil {
		m.done(row, send, false)
	}
	return err == nil, err
}

// keep writes a job's payload, before the row is written. Its name differs between templates, so that a promotion by
// an older template does not replace the payload of a newer one.
func (m *maker) keep(ctx context.Context, row job.Row, contents job.Contents) error {
	return m.Store.KeepContents(ctx, row, job.Contents{Payload: contents.Payload})
}

// labelsOf is what is written of a job's labels in the transaction of its row: they have one name in all templates.
func labelsOf(row job.Row, contents job.Contents) []item.Write {
	if contents.Labels == (job.Labels{}) {
		return nil
	}
	return []item.Write{row.PutLabels(contents.Labels)}
}

// adopt makes a job of an older epoch one of this epoch. A job that has started, has ended, or is of this epoch
// already stays as it is. held says that a worker holds the job: its claim refused the fence.
func (m *maker) adopt(ctx context.Context, old, row job.Row, now time.Time) (held bool, err error) {
	if old.Status != job.Scheduled || old.Attempt != 1 || old.Stop != job.NoStop {
		return false, nil
	}
	if m.s.KeepsWaiting(old) {
		return false, nil // it was due before the change, and keeps its own template and rule
	}
	if old.Epoch >= m.s.Epoch {
		if !old.Near && !old.Parked && !old.IsPaused() && old.Epoch == m.s.Epoch &&
			horizon.LaneOf(now, old.DueAt) == horizon.Now {
			m.mu.Lock()
			// the process that wrote the row may have crashed before sending; a second firing is refused at its claim
			m.fire = append(m.fire, old.Firing())
			m.mu.Unlock()
		}
		return false, nil
	}
	after, w, send := job.Adopt(old, row, now)
	if err := m.keep(ctx, after, m.contents); err != nil {
		return false, err
	}
	var claim job.Claim // before it is due no process can have started it
	if !old.DueAt.After(now) {
		if claim, err = m.Store.Claim(ctx, old.Key); err != nil {
			return false, err
		}
		if job.HasStarted(old, claim) {
			return false, nil
		}
	}
	writes := append([]item.Write{w, job.Fence(old, claim, after.DueAt, now)}, labelsOf(after, m.contents)...)
	err = m.Store.Commit(ctx, writes...)
	if err == nil {
		m.done(after, send, true)
	}
	refused := store.Refused(err)
	if refused == nil {
		return false, err
	}
	_, rowToo := refused.Olds[0]
	return !rowToo, err
}
