package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/dag"
	"punctual/shared/event"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// newerCounts is the reason with which a job of an older generation ends.
var newerCounts = job.Reason{Code: job.CodeCancelled, Message: "a newer generation of the node counts"}

// clearPending notes on x that its children were evaluated.
func (r *Controller) clearPending(ctx context.Context, x job.Row) error {
	_, _, err := r.rewrite(ctx, x, func(x job.Row) bool { return x.PendingEffects.Children() }, job.NotifyDone)
	return err
}

func (r *Controller) noteHolds(ctx context.Context, f *facts) error {
	if !f.holds || f.run.Holds {
		return nil
	}
	after, write := f.run.NoteHolds()
	if err := r.Store.WriteRun(ctx, after, write); err != nil {
		return err
	}
	f.run = after
	return nil
}

// endAfter ends the run if the cause may have been its last node: if all children of it have ended, and the counter of
// the last nodes says so.
func (r *Controller) endAfter(ctx context.Context, f *facts) error {
	if f.run.Holds {
		return r.endRun(ctx, f)
	}
	children := f.graph.Children(f.cause.Node)
	below, err := r.rows(ctx, f, children...)
	if err != nil {
		return err
	}
	for _, c := range children {
		if !below[c].Status.Final() {
			return nil
		}
	}
	if era, need := f.graph.EndNeeds(f.run); need > 0 {
		n, err := r.Store.Count(ctx, f.run.Key, f.run.EndRef(era), 1, r.Clock.Now())
		if err != nil || n < int64(need) {
			return err
		}
	}
	return r.endRun(ctx, f)
}

// endRun ends or holds the run if its rows say so.
func (r *Controller) endRun(ctx context.Context, f *facts) error {
	if f.run.Operation != nil || f.run.Status.Final() {
		return nil
	}
	rows, err := r.rows(ctx, f, f.graph.Names()...)
	if err != nil {
		return err
	}
	is := states(rows)
	for name, n := range f.run.Nodes { // an operator has ended it, and its row is not put yet
		if _, there := rows[name]; !there && n.Override != job.NotForced {
			is[name] = dag.NodeState{Status: job.Scheduled}
		}
	}
	s := f.graph.Outcome(is, f.run.Stop)
	if s == run.Running || s == f.run.Status {
		return nil
	}
	if s.Final() {
		if err := r.passOverAll(ctx, f); err != nil {
			return err
		}
	}
	var why *job.Reason
	if r.Webhooks != nil && r.Webhooks.Asked(ctx, f.run.Tenant, event.OfStatus(s)) {
		why = whyEnded(f, s, rows)
	}
	after, write := f.run.End(s, why, r.Clock.Now())
	if err := r.Store.WriteRun(ctx, after, write); err != nil {
		return err
	}
	f.run = after
	if after.Status.Final() {
		r.Meter.Count(telemetry.RunsEnded, 1,
			telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(after.Status))})
		r.Meter.Observe(telemetry.RunTook, after.FinishedAt.Sub(after.DueAt))
		r.keepEvents(ctx, after)
	}
	f.over(false)
	return nil
}

// whyEnded is why a run comes to a status: what its view shows.
func whyEnded(f *facts, s run.Status, rows map[string]job.Row) *job.Reason {
	var failed, cancelled []string
	for _, name := range f.graph.Names() {
		switch row := rows[name]; {
		case row.Status == job.Dead || row.Status == job.Expired:
			failed = append(failed, name)
		case row.Status == job.Cancelled && row.Reason.Code != dag.ReasonParentFailed:
			cancelled = append(cancelled, name)
		}
	}
	why := f.run.Reason
	if by := dag.FailedBy(failed, cancelled); by != nil && why.Code == "" && (s == run.Failed || s == run.Held) {
		why = *by
	}
	return &why
}

// passOver puts the job of a generation that one operation has begun and another has passed over while the node was
// BLOCKED: after a redrive the dead job names it.
func (r *Controller) passOver(ctx context.Context, f *facts, name string, generation int64) ([]job.Row, error) {
	now := r.Clock.Now()
	return r.putEnded(ctx, f, r.blankIn(f, name, generation, 0, now), job.Cancelled, newerCounts, now)
}

// passOverAll does so for all generations that have no row, before the run ends.
func (r *Controller) passOverAll(ctx context.Context, f *facts) error {
	names := f.graph.Names()
	all, err := r.openOlder(ctx, f, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		for n, row := range slices.Backward(all[name]) {
			generation := f.run.Floor(name) + int64(n)
			if generation == 1 || row.Status != "" {
				continue
			}
			ended, err := r.passOver(ctx, f, name, generation)
			if err != nil {
				return err
			}
			f.end(ended)
		}
	}
	return nil
}

// over leaves to the caller to notify the schedule of a run that has ended, to announce its events, and then to call
// Notified.
func (f *facts) over(repeated bool) {
	if f.run.Unfinished() && f.run.Operation == nil {
		f.todo.Over = append(f.todo.Over, effect.Over{Run: f.run, Repeated: repeated})
	}
}

// Notified clears the wake-up of a run whose schedule was notified of its end and whose events were announced: after a
// crash in between, the wake-up repeats both.
func (r *Controller) Notified(ctx context.Context, is run.Run) error {
	after, write := is.NotifyDone()
	return r.Store.WriteRun(ctx, after, write)
}

// eventsTime is the time that one call spends on keeping the events of a run. How many there are is up to those who
// operate on it.
const eventsTime = time.Second

// keepEvents has the events of a run that goes on for days live as long as the run. Those of a shorter one do anyway.
// What it does not come to is left to the next reconcile.
func (r *Controller) keepEvents(ctx context.Context, is run.Run) {
	now := r.Clock.Now()
	if now.Sub(is.CreatedAt) < 24*time.Hour && !is.DueAt.After(now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eventsTime)
	defer cancel()
	if err := r.Store.KeepEvents(ctx, is.Key, is.EventsKept(now)); err != nil {
		r.warn(ctx, is.Key, "the events of a run may be forgotten before it", err)
	}
}

// rest sets the run's next wake-up, unless another process has acted since it was read. A run that has ended gets none.
func (r *Controller) rest(ctx context.Context, f *facts, at time.Time) error {
	if f.run.Status.Final() {
		if f.run.WakeAt.IsZero() || f.run.Unfinished() {
			return nil
		}
		at = time.Time{}
	}
	after, write := f.run.Rest(at)
	return r.Store.WriteRun(ctx, after, write)
}
