package release

import (
	"context"
	"time"

	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// Judge says what becomes of a node's job that would come to step, to be fired or to expire. What its
// run has gone on without is stopped; what its run holds back is put off, and brought on by the act that
// lets the run go on. It is a decide.Judge, but for the Decider.
func (r *Releaser) Judge(ctx context.Context, row job.Row, step job.Step, now time.Time) (is job.Step, done bool, err error) {
	if row.RunID == "" {
		return step, false, nil
	}
	of, err := r.Store.Run(ctx, run.Of(row))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return job.StepFinishStop, true, r.Jobs.Stop(ctx, row, job.Reason{Code: job.CodeCancelled, Message: "its run is forgotten"}, now)
	case err != nil:
		return step, false, err
	case of.MayStart(row, now) == "":
		return step, false, nil
	case of.Superseded(row):
		why := job.Reason{Code: of.Stop.Reason()}
		if why.Code == "" {
			why = superseded
		}
		return job.StepFinishStop, true, r.Jobs.Stop(ctx, row, why, now)
	}
	after, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
	return job.StepNothing, true, r.Store.PutRow(ctx, after, write)
}

// superseded is why a job ends that belongs to an older generation of its node.
var superseded = job.Reason{Code: job.CodeCancelled, Message: "a newer generation of the node counts"}

// refire sends the firings of what waits in a run that goes on again: a worker may have given them up
// while the run was paused, or under an act. One too many is refused at its claim.
func (r *Releaser) refire(ctx context.Context, is run.Run, g *dag.Graph) error {
	if is.Stop != run.NoStop || is.Paused || is.Act != nil || is.Status.Final() {
		return nil
	}
	f := &facts{run: is, graph: g, ended: map[string]job.Row{}}
	rows, err := r.rows(ctx, f, g.Names()...)
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	for _, row := range rows {
		waiting := []job.Row{row}
		if row.IsMapped() && !row.Status.Final() {
			if waiting, err = r.items(ctx, f, row); err != nil {
				return err
			}
		}
		for _, w := range waiting {
			if w.Status == job.Scheduled && !w.Parked && w.Stop == job.NoStop && !w.DueAt.After(now) {
				r.Jobs.Fire(ctx, "parked", w.Firing())
			}
		}
	}
	return nil
}

// warn notes what was left to the run's wake-up.
func (r *Releaser) warn(ctx context.Context, k run.Key, what string, err error) {
	r.Log.WarnContext(ctx, what, telemetry.Tenant, k.Tenant, telemetry.RunID, k.ID, telemetry.Err, err.Error())
}
