package show

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Job is a job as it is shown.
type Job struct {
	job.Row // as it will end, if its schedule no longer has its time
	Claim   job.Claim
	Paused  bool // a pause, or its schedule's, seems to hold it
	Ahead   int  // jobs that wait before it for the same key of a limit of work, MaxWaiters at most
	Labels  job.Labels
	At      time.Time // when it was read
}

// Shown returns the status of the job.
func (j Job) Shown() job.Status { return job.ReadStatus(j.Row, j.Claim, j.At) }

// Job reads what is shown with a row.
func (s *Reader) Job(ctx context.Context, r job.Row) (Job, error) {
	shown, err := s.jobs(ctx, r.Tenant, []job.Row{r})
	if err != nil {
		return Job{}, err
	}
	return shown[0], nil
}

// Listed is Job for the rows of a page, with the labels of those that have a description.
func (s *Reader) Listed(ctx context.Context, t tenant.ID, rows []job.Row) ([]Job, error) {
	shown, err := s.jobs(ctx, t, rows)
	if err != nil {
		return nil, err
	}
	var described []job.Row
	var at []int
	for n, r := range rows {
		if r.Described {
			described, at = append(described, r), append(at, n)
		}
	}
	labels, err := s.Store.LabelsOf(ctx, described...)
	for n, l := range labels {
		shown[at[n]].Labels = l
	}
	return shown, err
}

// jobs reads claims and pauses only if a worker may have one of the jobs.
func (s *Reader) jobs(ctx context.Context, t tenant.ID, rows []job.Row) ([]Job, error) {
	now := s.Now()
	var keys []job.Key
	for _, r := range rows {
		if job.StartsSoon(r, now) {
			keys = append(keys, r.Key)
		}
	}
	claims, pauses, err := s.Claims(ctx, t, keys)
	if err != nil {
		return nil, err
	}
	of, err := s.schedulesOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	ahead, err := s.ahead(ctx, rows)
	if err != nil {
		return nil, err
	}
	shown := make([]Job, len(rows))
	for n, r := range rows {
		_, paused := pauses.HoldRow(r, now)
		rule := of[schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID}]
		claim := claims[r.ID]
		r, _ = schedule.EndOf(r, claim, rule, now)
		paused = paused ||
			rule != nil && !r.DueAt.After(now) && rule.ValidityOf(r, job.HasStarted(r, claim)) == schedule.IsPaused
		shown[n] = Job{Row: r, Claim: claim, Paused: paused, Ahead: ahead[r.ID], At: now}
	}
	return shown, nil
}

// Claims reads the claims of jobs, by id, and the tenant's pauses. Without keys it reads nothing.
func (s *Reader) Claims(
	ctx context.Context, t tenant.ID, keys []job.Key,
) (claims map[job.ID]job.Claim, pauses job.Pauses, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	claims = make(map[job.ID]job.Claim, len(keys))
	for lot := range slices.Chunk(keys, store.ReadAtOnce) {
		found, err := s.Store.Claims(ctx, lot)
		if err != nil {
			return nil, nil, err
		}
		for i, c := range found {
			claims[lot[i].ID] = c
		}
	}
	pauses, err = s.Store.Pauses(ctx, t)
	return claims, pauses, err
}

// Contents reads the result and the payload of a job, except a payload in a blob. What is gone is nil, because the job
// may be forgotten at this moment.
func (s *Reader) Contents(ctx context.Context, r job.Row) (result, payload json.RawMessage, err error) {
	body, err := s.Store.Result(ctx, r)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, nil, err
	}
	if r.PayloadIn != job.InBlob && !r.IsMapped() {
		if payload, err = s.Store.Payload(ctx, r); err != nil && fault.KindOf(err) != fault.NotFound {
			return nil, nil, err
		}
	}
	return json.RawMessage(body), payload, nil
}

// A schedule makes its jobs up to contract.Horizon ahead. When it is deleted, or edited so that a time is gone, the
// jobs of that time that have not started will not run. They are shown as SKIPPED at once and cannot be changed,
// although their rows become SKIPPED only when they are due.

// schedulesAtOnce is how many schedules of a page are read at the same time.
const schedulesAtOnce = 16

// schedulesOf reads the schedules of these rows, each once. A schedule that is absent or cannot be read is left out;
// its jobs run.
func (s *Reader) schedulesOf(ctx context.Context, rows []job.Row) (map[schedule.Key]*schedule.Schedule, error) {
	found := map[schedule.Key]*schedule.Schedule{}
	for _, r := range rows {
		if job.MayBeSuperseded(r) {
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

// Superseded returns the row as it will end; false if the job will run.
func (s *Reader) Superseded(ctx context.Context, row job.Row, now time.Time) (ended job.Row, is bool, err error) {
	if !job.MayBeSuperseded(row) {
		return row, false, nil
	}
	of, err := s.schedulesOf(ctx, []job.Row{row})
	if err != nil {
		return row, false, err
	}
	claim, err := s.Store.Claim(ctx, row.Key)
	if err != nil {
		return row, false, err
	}
	ended, is = schedule.EndOf(row, claim, of[schedule.Key{Tenant: row.Tenant, Name: row.ScheduleID}], now)
	return ended, is, nil
}

// Rows reads up to store.ReadAtOnce rows. A row that cannot be read is reported and left out, so the others are still
// listed.
func (s *Reader) Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error) {
	rows, there, err = s.Store.Rows(ctx, keys)
	if fault.KindOf(err) != fault.Undecodable {
		return rows, there, err
	}
	rows, there = make([]job.Row, len(keys)), make([]bool, len(keys))
	for i, k := range keys {
		switch rows[i], err = s.Store.Row(ctx, k); fault.KindOf(err) {
		case fault.NotFound:
		case fault.Undecodable:
			s.unreadable(ctx, k, err)
		default:
			if err != nil {
				return nil, nil, err
			}
			there[i] = true
		}
	}
	return rows, there, nil
}

// unreadable reports a row that cannot be read.
func (s *Reader) unreadable(ctx context.Context, k job.Key, err error) {
	s.Log.ErrorContext(ctx, "a row could not be read", telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID,
		telemetry.Err, err)
	s.Meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: string(fault.Undecodable)})
}
