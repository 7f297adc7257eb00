package submit

import (
	"context"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// Run makes the run that read describes, without its id, unless an earlier request with the key has made one. answer
// returns what is kept with the key.
func (s *Submitter) Run(
	ctx context.Context, r Request, read func(now time.Time) (runs.Request, error),
	answer func(runs.Request, time.Time) []byte,
) (k run.Key, replayed bool, err error) {
	now := s.now()
	var found run.Run
	earlier, err := s.once(ctx, r, now, func(id job.ID) (err error) {
		found, err = s.Store.Run(ctx, run.Key{Tenant: r.Who.Tenant, ID: id})
		return err
	}, func(with keyWrite) (taken bool, err error) {
		n, err := read(now)
		if err != nil {
			return false, err
		}
		id, err := s.newID(now)
		if err != nil {
			return false, err
		}
		k = run.Key{Tenant: r.Who.Tenant, ID: id}
		n.Key = k
		if with != nil {
			n.With = []item.Write{with(id, false, answer(n, now))}
		}
		_, created, err := s.Runs.Create(ctx, n)
		if created && err != nil { // the run exists, and its wake-up continues it
			s.warn(ctx, k, "a new run waits for its wake-up", err)
			err = nil
		}
		return with != nil && fault.KindOf(err) == fault.NotFound, err
	})
	if err != nil || earlier.JobID == "" {
		return k, false, err
	}
	if found.Shown() == run.Building { // the process that made it may have ended before it brought it on
		if err := s.Runs.Reconcile(ctx, found.Key); err != nil {
			s.warn(ctx, found.Key, "a repeated run waits for its wake-up", err)
		}
	}
	return found.Key, true, nil
}

func (s *Submitter) warn(ctx context.Context, k run.Key, what string, err error) {
	s.Log.WarnContext(ctx, what, telemetry.Tenant, k.Tenant, telemetry.RunID, k.ID, telemetry.Err, err)
}
