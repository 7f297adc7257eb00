package runs

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
)

// Verdict is what a run says of a node's job that is about to be fired or to expire. Its caller does it.
type Verdict struct {
	Step job.Step
	Why  job.Reason // of job.StepFinishStop
}

// Reconciled is the step of a job whose run must be reconciled first: an operation still lacks its second write, or the
// run has expired and is not stopped yet.
const Reconciled job.Step = "reconcile"

// Admit says what the run of a node's job wants, before the job is fired or expires. A job whose run is stopped or has
// ended, or whose generation is no longer the current one, ends; one whose run is paused is parked.
func (r *Controller) Admit(ctx context.Context, row job.Row, step job.Step, now time.Time) (Verdict, error) {
	of, err := r.Store.Run(ctx, run.Of(row))
	switch {
	case fault.KindOf(err) == fault.NotFound: // only a run that has ended is forgotten
		return Verdict{job.StepFinishStop, job.Reason{Code: run.ReasonCancelled}}, nil
	case err != nil:
		return Verdict{Step: step}, err
	case of.MayStart(row, now) == "":
		return Verdict{Step: step}, nil
	case of.Superseded(row):
		return Verdict{job.StepFinishStop, supersededBy(of, row)}, nil
	case of.Operation != nil || of.Expired(now):
		return Verdict{Step: Reconciled}, nil
	case step == job.StepExpire: // no pause holds up a deadline
		return Verdict{Step: step}, nil
	}
	return Verdict{Step: job.StepPark}, nil
}

// Paused says whether the run of a node's job is paused, as the table has it now.
func (r *Controller) Paused(ctx context.Context, row job.Row, now time.Time) (bool, error) {
	of, err := r.Store.Run(ctx, run.Of(row))
	return err == nil && of.Paused && of.MayStart(row, now) != "", err
}

// supersededBy is the reason with which a job ends that its run does not let start any more.
func supersededBy(of run.Run, row job.Row) job.Reason {
	if row.Generation != of.Generation(row.Node) {
		return newerCounts
	}
	if code := of.Stop.Reason(); code != "" {
		return job.Reason{Code: code}
	}
	return job.Reason{Code: run.ReasonCancelled, Message: "the run is over"}
}
