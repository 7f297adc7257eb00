package runs

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/scan"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

const (
	// evaluatedAtOnce is how many followers of a job are evaluated at the same time.
	evaluatedAtOnce = 16
	// pageTime is the longest that evaluating a hundred of them takes. With less time left, the rest stays a
	// pending effect.
	pageTime = 5 * time.Second
)

// notifyFollowers evaluates the single jobs that come after x, which has ended. After a crash x still has its pending
// effects.
func (r *Controller) notifyFollowers(ctx context.Context, x job.Row, todo *effect.List) error {
	if !x.Followed || !x.PendingEffects.Children() {
		return nil
	}
	for {
		children, err := r.Store.Followers(ctx, x.Key)
		if err != nil || len(children) == 0 {
			return err
		}
		if !scan.TimeLeft(ctx, pageTime) {
			return fault.New(fault.Unavailable, nil, "no time is left for %d jobs or more", len(children))
		}
		ended, firings, err := r.evaluateFollowers(ctx, x.Key, children)
		todo.End(ended...)
		if len(firings) > 0 {
			r.Jobs.Fire(ctx, "now", firings...)
		}
		if err != nil {
			return err
		}
	}
}

// evaluateFollowers evaluates the followers of parent, and removes each from parent's list.
func (r *Controller) evaluateFollowers(
	ctx context.Context, parent job.Key, children []job.Key,
) (ended []job.Row, firings []job.Firing, err error) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(cmp.Or(r.AtOnce, evaluatedAtOnce))
	for _, child := range children {
		g.Go(func() error {
			after, send, err := r.evaluateAfter(ctx, child)
			if err == nil {
				mu.Lock()
				if send {
					firings = append(firings, after.Firing())
				}
				if after.Status.Final() {
					ended = append(ended, after)
				}
				mu.Unlock()
			}
			switch fault.KindOf(err) {
			case fault.Undecodable: // the others do not wait for it; its own wake-up quarantines it
				r.Log.WarnContext(ctx, "a job that waits for another could not be evaluated",
					telemetry.Tenant, child.Tenant, telemetry.JobID, child.ID, telemetry.Err, err.Error())
			default:
				if err != nil {
					return err
				}
			}
			return r.Store.Unfollow(ctx, parent, child)
		})
	}
	err = g.Wait()
	return ended, firings, err
}

// EvaluateAfter releases or ends a single job that comes after others, if enough of them have ended for its rule. If
// not, the job stays BLOCKED.
func (r *Controller) EvaluateAfter(ctx context.Context, k job.Key) (todo effect.List, err error) {
	after, send, err := r.evaluateAfter(ctx, k)
	if err != nil {
		return todo, err
	}
	if send {
		r.Jobs.Fire(ctx, "now", after.Firing())
	}
	if after.Status.Final() {
		todo.End(after)
	}
	return todo, nil
}

// evaluateAfter is EvaluateAfter, but sends no firing and evaluates no followers. after is the zero Row if nothing was
// written. send says that the firing is to be sent.
func (r *Controller) evaluateAfter(ctx context.Context, k job.Key) (after job.Row, send bool, err error) {
	for range tries {
		rows, err := r.Store.Nodes(ctx, []job.Key{k})
		if err != nil {
			return job.Row{}, false, err
		}
		is, err := r.parentsOf(ctx, rows[0])
		if err != nil || is == nil {
			return job.Row{}, false, err
		}
		after, send, err := r.decideAfter(ctx, rows[0], *is)
		if !refused(err) {
			return after, send, err
		}
	}
	return job.Row{}, false, fault.New(fault.Conflict, nil, "judging job %s: it changed %d times meanwhile", k.ID,
		tries)
}

// parentsOf reads how the jobs ended that a BLOCKED one comes after; nil for any other job.
func (r *Controller) parentsOf(ctx context.Context, row job.Row) (*dag.After, error) {
	if row.Status != job.Blocked {
		return nil, nil
	}
	is, ok, err := dag.AfterOf(row)
	if err != nil || !ok {
		return nil, err
	}
	ids := is.Waits()
	keys := make([]job.Key, len(ids))
	for i, id := range ids {
		keys[i] = job.Key{Tenant: row.Tenant, ID: id}
	}
	rows, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, p := range rows {
		if p.Status == "" { // it is forgotten, and nothing says how it ended: it counts as failed
			rows[i] = job.Row{Key: keys[i], Status: job.Cancelled}
		}
	}
	is = is.Learn(rows...)
	return &is, nil
}

// decideAfter releases or ends a BLOCKED job as its parents decide. It writes nothing while they do not.
func (r *Controller) decideAfter(ctx context.Context, row job.Row, is dag.After) (after job.Row, send bool, err error) {
	now := r.Clock.Now()
	switch v, why := is.Evaluate(); v {
	case dag.Run:
		after, write, send := job.Release(row, is.Due(now), is.Encode(), now)
		return after, send, r.Store.PutRow(ctx, after, write)
	case dag.Cancel, dag.Skip:
		after, write := job.EndBlocked(row, v.Status(), why, is.Encode(), now)
		return after, false, r.Store.PutRow(ctx, after, write)
	}
	return job.Row{}, false, nil
}

// EvaluateBlocked evaluates a BLOCKED job at its own wake-up, in case the process that ended its parents crashed before
// evaluating it.
func (r *Controller) EvaluateBlocked(ctx context.Context, row job.Row, now time.Time) (todo effect.List, err error) {
	is, err := r.parentsOf(ctx, row)
	if err != nil {
		return todo, err
	}
	if is == nil {
		return todo, fault.New(fault.Undecodable, nil, "reading what BLOCKED job %s waits for: nothing", row.ID)
	}
	after, send, err := r.decideAfter(ctx, row, *is)
	switch {
	case err != nil:
		return todo, err
	case send:
		r.Jobs.Fire(ctx, "swept", after.Firing())
	case after.Status == "":
		after, write := job.KeepBlocked(row, is.Encode(), now)
		return todo, r.Store.PutRow(ctx, after, write)
	case after.Status.Final():
		todo.End(after)
	}
	return todo, nil
}
