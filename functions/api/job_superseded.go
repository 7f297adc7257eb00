package api

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// A schedule makes its jobs up to contract.Horizon ahead. When it is deleted, or edited so that a time is gone, the
// jobs of that time that have not started will not run. They are shown as SKIPPED at once and cannot be changed,
// although their rows become SKIPPED only when they are due.

// mayBeSuperseded reports whether the schedule decides if this job still runs.
func mayBeSuperseded(r job.Row) bool {
	return r.ScheduleID != "" && r.Status == job.Scheduled && r.Attempt == 1 && r.Stop == job.NoStop
}

// superseded returns the row as it will end, if the schedule no longer has the job's time and no worker runs it. It is
// false if the job will run.
func superseded(r job.Row, c job.Claim, of *schedule.Schedule, now time.Time) (job.Row, bool) {
	if of == nil || !mayBeSuperseded(r) || c.Live(r.Attempt, now) || job.HasStarted(r, c) {
		return r, false
	}
	switch of.StandingOf(r, false) {
	case schedule.IsDeleted, schedule.Passed:
	default:
		return r, false
	}
	r.Status, r.Reason, r.FinishedAt = job.Skipped, of.SkipReason(r), of.UpdatedAt
	if of.Deleted() {
		r.FinishedAt = of.DeletedAt
	}
	return r, true
}

// schedulesAtOnce is how many schedules of a page are read at the same time.
const schedulesAtOnce = 16

// schedulesOf reads the schedules of these rows, each once. A schedule that is absent or cannot be read is left out;
// its jobs run.
func (s *stage) schedulesOf(ctx context.Context, rows []job.Row) (map[schedule.Key]*schedule.Schedule, error) {
	found := map[schedule.Key]*schedule.Schedule{}
	for _, r := range rows {
		if mayBeSuperseded(r) {
			found[schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID}] = nil
		}
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(schedulesAtOnce)
	for _, k := range slices.Collect(maps.Keys(found)) {
		g.Go(func() error {
			read, err := s.Store.Schedule(ctx, k)
			switch fault.KindOf(err) {
			case fault.NotFound, fault.Undecodable:
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			found[k] = &read
			return err
		})
	}
	return found, g.Wait()
}

// changeable returns a problem for a job that is superseded, nil for any other.
func (s *stage) changeable(ctx context.Context, row job.Row, now time.Time) error {
	if !mayBeSuperseded(row) {
		return nil
	}
	of, err := s.schedulesOf(ctx, []job.Row{row})
	if err != nil {
		return err
	}
	claim, err := s.Store.Claim(ctx, row.Key)
	if err != nil {
		return err
	}
	ended, is := superseded(row, claim, of[schedule.Key{Tenant: row.Tenant, Name: row.ScheduleID}], now)
	if !is {
		return nil
	}
	return wire.NewProblem(spec.CodeAlreadyFinished, "the job is %s: %s", ended.Status, ended.Reason.Message)
}
