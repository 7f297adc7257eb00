package amend

import (
	"context"

	"punctual/functions/engine/accept"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// Started is what RunNow has made.
type Started struct {
	Row   job.Row // of the job; or of a run, with the run's id
	Begun bool    // the run has begun
}

// NoRun is the error of a request for a run that cannot be made.
type NoRun struct{ Why string }

func (e *NoRun) Error() string { return "no run can be made: " + e.Why }

// NowRequest asks for a run of a schedule in addition to its times.
type NowRequest struct {
	Key  schedule.Key
	Obey bool   // the overlap policy applies: the job, or the row of the run, may wait for an earlier run or be SKIPPED
	By   string // subject that asks
	// Correct returns what the run has in place of the schedule's payload, which is given; of a dag they are params.
	// Nil: that of the schedule.
	Correct  func(of schedule.Schedule, payload []byte) ([]byte, error)
	Literals []string // pointers of strings in it that By declared to be no secrets
}

// RunNow makes a job or a run of a schedule in addition to its times. The schedule stays as it is.
func (e *Editor) RunNow(ctx context.Context, q NowRequest) (Started, error) {
	found, contents, err := store.ScheduleWithContents(ctx, e.Store, func() (schedule.Schedule, error) {
		return e.existing(ctx, q.Key)
	})
	if err != nil {
		return Started{}, err
	}
	if q.Correct != nil {
		if contents.Payload, err = q.Correct(found, contents.Payload); err != nil {
			return Started{}, err
		}
		found.SetPayload(contents.Payload) // of this copy: the row says where the job's own payload is kept
		contents.Literals = accept.LiteralsBy(q.By, q.Literals)
	}
	random, err := e.Entropy.Next()
	if err != nil {
		return Started{}, err
	}
	now := e.Read.Now()
	r, send := found.RunNow(job.NewID(now, random), q.Obey, e.Engine.Recur.Shards, now)
	if err := e.Store.KeepContents(ctx, r, contents); err != nil {
		return Started{}, err
	}
	e.Engine.Accept.LogLiterals(ctx, r, contents)
	if err := e.Engine.Accept.Put(ctx, accept.Job{Row: r, OwnID: true}); err != nil {
		return Started{}, err
	}
	if r.StartsRun() {
		return e.beginNow(ctx, r)
	}
	if schedule.Obeys(r) {
		r = e.decideNow(ctx, r)
	} else if send {
		e.Engine.Accept.FireNow(ctx, r.Firing())
	}
	return Started{Row: r}, nil
}

// decideNow decides at once about a job that obeys the overlap policy, and returns it as it then is. If that fails, the
// job is fired, and its worker asks for the decision.
func (e *Editor) decideNow(ctx context.Context, r job.Row) job.Row {
	if _, err := e.Engine.Reevaluate(ctx, r.Key, r.Version, r.Attempt); err != nil {
		e.Engine.Accept.FireNow(ctx, r.Firing())
		return r
	}
	if is, err := e.Store.Row(ctx, r.Key); err == nil {
		return is
	}
	return r
}

// beginNow begins the run of a row that was just written. If it fails, the row's wake-up begins it. A run that has
// begun is the answer whatever failed afterwards, such as what follows its end.
func (e *Editor) beginNow(ctx context.Context, r job.Row) (Started, error) {
	_, failed := e.Engine.Reevaluate(ctx, r.Key, r.Version, r.Attempt)
	if failed != nil {
		e.Engine.Accept.FireNow(ctx, r.Firing())
	}
	_, err := e.Store.Run(ctx, run.Key{Tenant: r.Tenant, ID: r.ID})
	if fault.KindOf(err) != fault.NotFound {
		return Started{Row: r, Begun: true}, err
	}
	if failed != nil {
		return Started{}, failed
	}
	is, err := e.Store.Row(ctx, r.Key)
	switch {
	case err != nil:
		return Started{}, err
	case schedule.Obeys(r) && (is.QueuedBehind || is.Reason.Code == job.CodeOverlap):
		return Started{Row: is}, nil
	case is.Status.Final():
		return Started{}, &NoRun{is.Reason.Message}
	}
	return Started{}, fault.New(fault.Unavailable, nil, "beginning run %s: it is %s", r.ID, is.Status)
}
