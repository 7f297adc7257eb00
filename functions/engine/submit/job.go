package submit

import (
	"context"
	"strings"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Job is a job that was accepted, by this request or by an earlier one with its key.
type Job struct {
	Row      job.Row
	Contents job.Contents // of this request; the zero Contents in a replay
	At       time.Time    // at which the request was read
	Replayed bool         // an earlier request made it, and the row is as it is now

	firing *job.Firing // nil: it is not due now, or was fired before
}

// Job accepts the job that read makes, its contents first and its row second, unless an earlier request with the key
// has made one. answer returns what is kept with the key. The job is fired by Fire.
func (s *Submitter) Job(
	ctx context.Context, r Request, read func(now time.Time) (*accept.Draft, error),
	answer func(job.Row, time.Time) ([]byte, error),
) (Job, error) {
	now := s.now()
	var made, found Job
	earlier, err := s.once(ctx, r, now, func(id job.ID) (err error) {
		found.Row, err = s.Store.Row(ctx, job.Key{Tenant: r.Who.Tenant, ID: id})
		return err
	}, func(with keyWrite) (taken bool, err error) {
		d, err := read(now)
		if err != nil {
			return false, err
		}
		if made, err = s.prepare(r, d, now); err != nil {
			return false, err
		}
		return s.write(ctx, made, d, with, answer)
	})
	switch {
	case err != nil:
		return Job{}, err
	case earlier != "" && earlier != made.Row.ID: // an equal id is our own, whose answer was lost before a retry
		// The process that accepted the job may have ended before it sent the firing. The client repeats its request
		// because it does not know; it must not wait for the sweeper.
		made = Job{Row: found.Row, At: now, Replayed: true}
		if made.firing, err = s.Accept.Unfired(ctx, made.Row.Key); err != nil {
			return Job{}, err
		}
	case made.Row.Status.Final(): // the jobs that it comes after have decided already
		s.Meter.Count(telemetry.JobsSettled, 1,
			telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(made.Row.Status))})
	}
	s.evaluate(ctx, made.Row)
	return made, nil
}

// prepare gives a draft its id and its first wake-up.
func (s *Submitter) prepare(r Request, d *accept.Draft, now time.Time) (Job, error) {
	id, err := s.newID(now)
	if err != nil {
		return Job{}, err
	}
	j := Job{Row: d.Row, Contents: d.Contents(r.Who.Subject), At: now}
	j.Row.ID, j.Row.Shard = id, horizon.ShardOf(string(id), s.Shards)
	var due bool
	if d.After == nil {
		due = job.Route(&j.Row, now)
	} else {
		j.Row, due = d.After.Admit(j.Row, s.now()) // a parent may have ended since now
	}
	j.Row.Hold(j.Contents)
	if due {
		j.firing = new(j.Row.Firing())
	}
	return j, nil
}

// write writes a job so that it cannot be lost; with a key, row and key are one transaction. taken says that another
// request has the key.
func (s *Submitter) write(
	ctx context.Context, j Job, d *accept.Draft, with keyWrite, answer func(job.Row, time.Time) ([]byte, error),
) (taken bool, err error) {
	if err := s.Store.KeepContents(ctx, j.Row, j.Contents); err != nil {
		return false, err
	}
	if j.Row.Status == job.Blocked {
		// A parent that ends before the row is written finds no row; evaluate notices that.
		for _, id := range d.After.Waits() {
			if _, err := s.Store.Follow(ctx, job.Key{Tenant: j.Row.Tenant, ID: id}, j.Row.Key, j.At); err != nil {
				return false, err
			}
		}
	}
	s.Accept.LogLiterals(ctx, j.Row, j.Contents)
	if with == nil {
		return false, s.Accept.Put(ctx, accept.Job{Row: j.Row, Unique: true})
	}
	kept, err := answer(j.Row, j.At)
	if err != nil {
		return false, err
	}
	err = s.Accept.Put(ctx, accept.Job{Row: j.Row, With: []item.Write{with(j.Row.ID, kept)}})
	return store.Refused(err) != nil, err
}

// evaluate decides about a job that was accepted as BLOCKED, because its parents may have ended before they knew of it.
// If this fails, the job's wake-up decides.
func (s *Submitter) evaluate(ctx context.Context, r job.Row) {
	if r.Status != job.Blocked {
		return
	}
	if err := s.Runs.EvaluateAfter(ctx, r.Key); err != nil {
		s.Log.WarnContext(ctx, "a job after others was not evaluated; its wake-up does it",
			telemetry.Tenant, r.Tenant, telemetry.JobID, r.ID, telemetry.Err, err.Error())
	}
}

// Fire sends the firings of those jobs that are due now, and counts those that are new.
func (s *Submitter) Fire(ctx context.Context, jobs ...Job) {
	var firings []job.Firing
	added := 0
	for _, j := range jobs {
		if j.firing != nil {
			firings = append(firings, *j.firing)
		}
		if !j.Replayed {
			added++
		}
	}
	s.Accept.FireNow(ctx, firings...)
	if added > 0 {
		s.Meter.Count(telemetry.JobsAccepted, int64(added))
	}
}
