package submit

import (
	"context"
	"strings"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

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
		if d.Row.Unique.Key != "" {
			return s.writeUnique(ctx, r, &made, d, with, answer)
		}
		return s.write(ctx, made, d, with, answer)
	})
	switch {
	case err != nil:
		return Job{}, err
	case earlier.JobID != "" && earlier.JobID != made.Row.ID: // an equal id is our own, whose answer was lost
		// The process that accepted the job may have ended before it sent the firing. The client repeats its request
		// because it does not know; it must not wait for the sweeper.
		made = Job{Row: found.Row, At: now, Replayed: true, Held: earlier.Held}
		if made.firing, err = s.Accept.Unfired(ctx, made.Row.Key); err != nil {
			return Job{}, err
		}
	case made.Held:
		return made, nil
	case made.Row.Status.Final(): // the jobs that it comes after have decided already
		s.Meter.Count(telemetry.JobsSettled, 1,
			telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(made.Row.Status))})
	}
	s.evaluate(ctx, made.Row)
	return made, nil
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
		if !j.Replayed && !j.Held {
			added++
		}
	}
	s.Accept.FireNow(ctx, firings...)
	if added > 0 {
		s.Meter.Count(telemetry.JobsAccepted, int64(added))
	}
}
