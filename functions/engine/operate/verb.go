package operate

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/edit"
	"punctual/functions/engine/runs"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/run"
)

// row is a job or a run as it was read.
type row struct {
	there      bool
	unreadable bool
	version    int64 // of a job; the epoch of a run. From 1, and every action that counts on it lets it grow
	job        job.Row
	run        run.Run
	isRun      bool
}

func (r row) ended() bool {
	if r.isRun {
		return r.run.Status.Final()
	}
	return r.job.Status.Final()
}

func (r row) succeeded() bool {
	if r.isRun {
		return r.run.Status == run.Succeeded
	}
	return r.job.Status == job.Succeeded
}

// read reads rows, strongly consistently. The row of a run is no job.
func (s *session) read(ctx context.Context, ids []job.ID) ([]row, error) {
	found := make([]row, len(ids))
	if s.is.Action.OnRuns() {
		var all errgroup.Group
		all.SetLimit(rowsAtOnce)
		for i, id := range ids {
			all.Go(func() error {
				is, err := s.Store.Run(ctx, run.Key{Tenant: s.is.Tenant, ID: id})
				found[i] = row{there: err == nil, unreadable: fault.KindOf(err) == fault.Undecodable,
					version: is.Epoch, run: is, isRun: true}
				if found[i].unreadable || fault.KindOf(err) == fault.NotFound {
					return nil
				}
				return err
			})
		}
		return found, all.Wait()
	}
	keys := make([]job.Key, len(ids))
	for i, id := range ids {
		keys[i] = job.Key{Tenant: s.is.Tenant, ID: id}
	}
	rows, err := s.Store.Existing(ctx, keys)
	for i, r := range rows {
		found[i].unreadable = r.Err != nil
		if r.Row != nil && !r.Row.StartsRun() {
			found[i].there, found[i].version, found[i].job = true, r.Row.Version, *r.Row
		}
	}
	return found, err
}

// verb is an action on one row.
type verb struct {
	// may says that the row, as it is when its chunk begins, can be worked on, and is not yet as the action leaves it.
	may func(is operation.Operation, r row) bool
	// once says that a repeat must not do the action a second time: it would start the row a second time, or stop more
	// of it.
	once bool
	// done says of a row that was worked on, or was to be, from that version, that the action was done to it, and which
	// job or run it started.
	done func(is operation.Operation, r row, version int64) (started job.ID, done bool)
	do   func(ctx context.Context, s *session, id job.ID, version int64, at int) (started job.ID, err error)
}

func (s *session) verb() verb { return verbs[s.is.Action] }

func (s *session) key(id job.ID) job.Key { return job.Key{Tenant: s.is.Tenant, ID: id} }

func (s *session) by() runs.By { return runs.By{Who: s.is.By, Reason: s.is.Reason} }

// waiting says that a job has not ended and is not about to.
func waiting(r row) bool { return !r.job.Status.Final() && r.job.Stop == job.NoStop }

// shows is the done of an action whose effect the row shows.
func shows(effect func(is operation.Operation, r row) bool) func(operation.Operation, row, int64) (job.ID, bool) {
	return func(is operation.Operation, r row, _ int64) (job.ID, bool) { return r.job.ID, effect(is, r) }
}

// grew is the done of an action that would start a row a second time: its write lets the version grow.
func grew(_ operation.Operation, r row, version int64) (job.ID, bool) {
	if r.isRun {
		return r.run.ID, !r.there || r.version != version
	}
	return r.job.ID, !r.there || r.version != version
}

func gone(_ operation.Operation, r row) bool { return !r.there && !r.unreadable }

func cancelled(_ operation.Operation, r row) bool {
	return r.there && r.job.Status == job.Cancelled
}

func prioritized(is operation.Operation, r row) bool {
	return r.there && r.job.Priority == is.Bulk.Set.Priority
}

func redriven(_ operation.Operation, r row, _ int64) (job.ID, bool) {
	return r.job.RedrivenBy, r.there && r.job.RedrivenBy != ""
}

func runCancelled(_ operation.Operation, r row, _ int64) (job.ID, bool) {
	return r.run.ID, r.there && (r.run.Status == run.Cancelled || r.run.Stop == run.StopCancel)
}

// verbs are the actions, each by the rules for a single row.
var verbs = map[operation.Action]verb{
	operation.CancelJobs: {
		may:  func(_ operation.Operation, r row) bool { return waiting(r) },
		done: shows(cancelled),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Edit.Cancel(ctx, s.key(id))
			return id, err
		},
	},
	operation.PauseJobs: {
		may:  func(_ operation.Operation, r row) bool { return waiting(r) && !r.job.IsPaused() },
		done: shows(func(_ operation.Operation, r row) bool { return r.there && r.job.IsPaused() }),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Edit.Pause(ctx, s.key(id), s.is.Reason, s.is.By)
			return id, err
		},
	},
	operation.ResumeJobs: {
		may:  func(_ operation.Operation, r row) bool { return waiting(r) && r.job.IsPaused() },
		done: shows(func(_ operation.Operation, r row) bool { return r.there && !r.job.IsPaused() }),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Edit.Resume(ctx, s.key(id))
			return id, err
		},
	},
	operation.RunJobs: {
		may: func(_ operation.Operation, r row) bool {
			return waiting(r) && !r.job.IsPaused() && r.job.Status != job.Blocked
		},
		once: true,
		done: grew,
		do: func(ctx context.Context, s *session, id job.ID, version int64, at int) (job.ID, error) {
			return id, s.atVersion(ctx, id, version, func(version int64) error {
				_, err := s.Edit.RunNow(ctx, s.key(id), version, s.now().Add(s.share(at)))
				return err
			})
		},
	},
	operation.RescheduleJobs: {
		may:  func(_ operation.Operation, r row) bool { return waiting(r) },
		once: true,
		done: grew,
		do: func(ctx context.Context, s *session, id job.ID, version int64, at int) (job.ID, error) {
			notBefore, delay := s.due(at)
			return id, s.atVersion(ctx, id, version, func(version int64) error {
				_, err := s.Edit.Reschedule(ctx, s.key(id), version, notBefore, delay)
				return err
			})
		},
	},
	operation.ReprioritizeJobs: {
		may:  func(is operation.Operation, r row) bool { return waiting(r) && !prioritized(is, r) },
		done: shows(prioritized),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Edit.Reprioritize(ctx, s.key(id), s.is.Bulk.Set.Priority)
			return id, err
		},
	},
	operation.DeleteJobs: {
		may:  func(_ operation.Operation, r row) bool { return r.job.Status.Final() },
		done: shows(gone),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			return id, s.Edit.Forget(ctx, s.key(id), func(job.Row) error { return nil })
		},
	},
	operation.PurgeJobs: {
		may:  func(_ operation.Operation, r row) bool { return r.job.Status == job.Dead },
		done: shows(gone),
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			return id, s.Edit.Purge(ctx, s.key(id))
		},
	},
	operation.RedriveJobs: {
		may: func(_ operation.Operation, r row) bool {
			return r.job.Status == job.Dead && r.job.RedrivenBy == ""
		},
		done: redriven,
		do: func(ctx context.Context, s *session, id job.ID, _ int64, at int) (job.ID, error) {
			return s.Edit.Redrive(ctx, s.key(id), s.correct(ctx, at))
		},
	},
	operation.RetryRuns: {
		may: func(_ operation.Operation, r row) bool {
			return slices.Contains([]run.Status{run.Failed, run.Held, run.Cancelled}, r.run.Status)
		},
		once: true,
		done: grew,
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Runs.Retry(ctx, run.Key{Tenant: s.is.Tenant, ID: id}, "", s.by())
			return id, err
		},
	},
	operation.CancelRuns: {
		may: func(_ operation.Operation, r row) bool {
			return !r.run.Status.Final() && r.run.Stop == run.NoStop
		},
		once: true,
		done: runCancelled,
		do: func(ctx context.Context, s *session, id job.ID, _ int64, _ int) (job.ID, error) {
			_, err := s.Runs.Cancel(ctx, run.Key{Tenant: s.is.Tenant, ID: id}, s.by())
			return id, err
		},
	},
}

// share is how long after now row number at is due, counted from the oldest: the spread is dealt out evenly from when
// the operation began to work on rows.
func (s *session) share(at int) time.Duration {
	if s.is.Bulk.Spread == 0 || s.is.Matched == 0 {
		return 0
	}
	after := time.Duration(float64(s.is.Bulk.Spread) * float64(at) / float64(s.is.Matched))
	return max(0, s.is.Bulk.BegunAt.Add(after).Sub(s.now()))
}

// due is when row number at is due, by what the operation sets: at a time, or after a delay.
func (s *session) due(at int) (notBefore time.Time, delay time.Duration) {
	set := s.is.Bulk.Set
	if !set.RunAt.IsZero() {
		return set.RunAt.Add(s.share(at)), 0
	}
	if set.Delay != nil {
		delay = time.Duration(*set.Delay)
	}
	return time.Time{}, delay + s.share(at)
}

// atVersion does an edit of a job at its version. A job that another caller has changed since is read once more; its
// state decides.
func (s *session) atVersion(ctx context.Context, id job.ID, version int64, edit func(version int64) error) error {
	for range 3 {
		err := edit(version)
		switch {
		case !stale(err):
			return err
		case s.repeats: // the process that worked on it before has done it just now
			return nil
		}
		is, err := s.Store.Row(ctx, s.key(id))
		if err != nil {
			return err
		}
		version = is.Version
	}
	return fault.New(fault.Conflict, nil, "changing job %s, which changes all the time", id)
}

// stale says that another caller has changed a job since its version was read.
func stale(err error) bool {
	var state *edit.State
	return errors.As(err, &state) && state.Code == edit.StaleVersion
}
