package jobs

import (
	"context"
	"iter"
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

type listJobsInput struct {
	rest.Paging
	State         string `query:"status" doc:"Filter: status"`
	Task          string `query:"task"`
	Schedule      string `query:"schedule"`
	CreatedAfter  string `query:"created_after" format:"date-time" doc:"Filter: earliest created_at"`
	CreatedBefore string `query:"created_before" format:"date-time" doc:"Filter: time before which created_at lies"`
}

// jobFilter selects jobs.
type jobFilter struct {
	status   job.Status // "" is any
	task     string
	schedule string
	from, to job.ID // from ≤ id < to, "" is open: where such jobs can be in the list
	// after ≤ created_at < before; the zero time is open
	after, before time.Time
}

// rowMay reports whether a job with this row can pass. Its claim may still decide between SCHEDULED, QUEUED and
// RUNNING.
func (f jobFilter) rowMay(r job.Row) bool {
	switch {
	case f.task != "" && r.Task != f.task, f.schedule != "" && r.Schedule() != f.schedule:
		return false
	case r.CreatedAt.Before(f.after), !f.before.IsZero() && !r.CreatedAt.Before(f.before):
		return false
	case f.status == "":
		return true
	case f.status == job.Scheduled || f.status == job.Queued || f.status == job.Running:
		return r.Status.Open()
	}
	return r.Status == f.status || f.status == job.Skipped && spec.MayBeSuperseded(r)
}

func (s *Handler) listJobs(
	ctx context.Context, who tenant.Identity, in *listJobsInput, after string, limit int,
) (found rest.Found[spec.JobView], err error) {
	f, err := readFilter(in, s.Now())
	if err == nil {
		found.Next, err = s.listed(ctx, who.Tenant, f, after, limit, &found.Items)
	}
	return found, err
}

// listed fills a page that begins after a position, and returns where the next one begins; "" is the end.
func (s *Handler) listed(
	ctx context.Context, t tenant.ID, f jobFilter, position string, limit int, items *[]spec.JobView,
) (next string, err error) {
	before := f.to
	if position != "" && (before == "" || job.ID(position) < before) {
		before = job.ID(position)
	}
	if f.status == job.Dead {
		return s.dead(ctx, t, f, before, position, limit, items)
	}
	began := s.Clock.Now()
	if f.task != "" && f.status != job.Running {
		return s.ofTask(ctx, t, f, before, limit, began, items)
	}
	last, end, err := s.newest(ctx, t, f, before, limit, began, items)
	switch {
	case err != nil || end:
		return "", err
	case f.status == job.Running && len(*items) < limit:
		keys, err := s.waking(ctx, t)
		if err != nil {
			return "", err
		}
		return s.among(ctx, t, f, keys, last, limit, items)
	}
	return string(last), nil
}

// ofTask fills a page with the jobs of a task. It reads only the stretches in which the task has jobs.
func (s *Handler) ofTask(
	ctx context.Context, t tenant.ID, f jobFilter, before job.ID, limit int, began time.Time, items *[]spec.JobView,
) (next string, err error) {
	var below time.Time
	if before != "" {
		below = before.At()
	}
	for where, err := range s.Store.Stretches(ctx, t, f.task, below) {
		if err != nil {
			return "", err
		}
		part, from, to := f, job.NewID(where.From, [10]byte{}), job.NewID(where.To, [10]byte{})
		part.from = max(f.from, from)
		if before != "" {
			to = min(to, before)
		}
		if to <= part.from { // all later stretches are older
			if to <= f.from {
				return "", nil
			}
			continue
		}
		last, end, err := s.look(ctx, t, part, s.Store.NewestOfTask(ctx, t, f.task, where.Parts, part.from, to),
			limit, began, items)
		switch {
		case err != nil:
			return "", err
		case !end:
			return string(last), nil
		case s.Clock.Now().Sub(began) >= contract.MaxListRead:
			return string(from), nil
		}
	}
	return "", nil
}

// newest fills a page. It returns the last id that it read, and whether that was the end of the list. It shows rows in
// lots, so that many claims are one read.
func (s *Handler) newest(
	ctx context.Context, t tenant.ID, f jobFilter, before job.ID, limit int, began time.Time, items *[]spec.JobView,
) (last job.ID, end bool, err error) {
	return s.look(ctx, t, f, s.Store.Newest(ctx, t, f.from, before, limit), limit, began, items)
}

// look is newest for the given rows.
func (s *Handler) look(
	ctx context.Context, t tenant.ID, f jobFilter, rows iter.Seq2[job.Row, error], limit int, began time.Time,
	items *[]spec.JobView,
) (last job.ID, end bool, err error) {
	read := 0
	enoughRead := func() bool {
		if f.status == job.Running { // the due index knows the other running jobs
			return read >= spec.MaxRead
		}
		return s.Clock.Now().Sub(began) >= contract.MaxListRead
	}
	var lot []job.Row
	full := false
	show := func() error {
		views, err := s.ShowAll(ctx, t, lot)
		if err != nil {
			return err
		}
		for _, v := range views {
			if f.status != "" && v.Status != f.status {
				continue
			}
			if *items = append(*items, v); len(*items) == limit {
				last, full = v.JobID, true
				break
			}
		}
		lot = lot[:0]
		return nil
	}
	enough := func() int {
		if f.status == "" {
			return limit - len(*items)
		}
		return store.ReadAtOnce // not many of them may have that status
	}
	for r, err := range rows {
		if err != nil && fault.KindOf(err) != fault.Undecodable {
			return last, false, err
		}
		read++
		last = r.ID
		if err != nil { // the others are still listed
			s.UnreadableRow(ctx, r.Key, err)
		} else if f.rowMay(r) {
			lot = append(lot, r)
		}
		over := enoughRead()
		if len(lot) >= enough() || over {
			if err := show(); err != nil {
				return last, false, err
			}
			if full || over {
				return last, false, nil
			}
		}
	}
	err = show()
	return last, !full, err
}

// madeAhead is how long before its nominal time a schedule's job may be made. Its id has the nominal time.
const madeAhead = contract.Horizon + 2*time.Minute

// readFilter reads the filter of a list of jobs. The list is in the order of ids and ends at now. Jobs that a schedule
// has made ahead are listed only with that schedule as the filter.
func readFilter(in *listJobsInput, now time.Time) (jobFilter, error) {
	f := jobFilter{status: job.Status(in.State), task: in.Task, schedule: in.Schedule}
	var wrong fault.Violations
	rest.FilterWord(&wrong, "status", in.State, rest.WordsOf(job.Statuses))
	rest.FilterName(&wrong, "task", in.Task)
	rest.FilterName(&wrong, "schedule", in.Schedule)
	after, before := rest.ReadRange(&wrong, "created_after", in.CreatedAfter, "created_before", in.CreatedBefore)
	f.after, f.before = after, before
	if !after.IsZero() {
		f.from = job.NewID(after, [10]byte{})
	}
	end := now.Add(time.Millisecond)
	if f.schedule != "" {
		end = time.Time{}
	}
	if ahead := before.Add(madeAhead); !before.IsZero() && (end.IsZero() || ahead.Before(end)) {
		end = ahead
	}
	if !end.IsZero() {
		f.to = job.NewID(end, [10]byte{})
	}
	return f, wrong.Err()
}

type attemptView struct {
	Attempt         int64        `json:"attempt" doc:"Number of the attempt, from 1"`
	Worker          string       `json:"worker,omitempty" doc:"Name of the worker that ran the attempt"`
	StartedAt       rest.Instant `json:"started_at,omitzero" doc:"Start of the attempt; absent if it never started"`
	FinishedAt      rest.Instant `json:"finished_at,omitzero" doc:"End of the attempt; absent if it never started"`
	StartLatenessMS *int64       `json:"start_lateness_ms,omitempty" doc:"Milliseconds from the later of due time and acceptance to the start; absent if the attempt never started"`
	Outcome         string       `json:"outcome" enum:"succeeded,failed,snoozed,lost" doc:"Outcome of the attempt. lost: the worker ended, and the attempt was started once more; its times are the earliest possible start and the latest possible end."`
	Error           *job.Reason  `json:"error,omitempty" doc:"Error with which the attempt failed"`
}

func viewAttempt(a job.Attempt) attemptView {
	v := attemptView{Attempt: a.Attempt, Worker: a.Worker, Outcome: a.Outcome, Error: a.Error}
	if !a.StartedAt.IsZero() {
		v.StartedAt, v.FinishedAt, v.StartLatenessMS = rest.At(a.StartedAt),
			rest.At(a.FinishedAt), &a.LatenessMS
	}
	return v
}

type attemptsInput struct {
	ByID
	rest.Paging
}

func (s *Handler) listAttempts(
	ctx context.Context, _ tenant.Identity, in *attemptsInput, after string, limit int,
) (found rest.Found[attemptView], err error) {
	r, err := s.row(ctx, in.Key)
	if err != nil {
		return found, err
	}
	attempts, more, err := s.Store.Attempts(ctx, r, rest.CursorNumber(after), limit)
	return rest.FoundRows(attempts, more, viewAttempt, func(a job.Attempt) string {
		return strconv.Itoa(int(a.Position()))
	}), err
}
