package jobs

import (
	"cmp"
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
	return r.Status == f.status || f.status == job.Skipped && job.MayBeSuperseded(r)
}

func (s *Handler) listJobs(
	ctx context.Context, who tenant.Identity, in *listJobsInput, after string, limit int,
) (found rest.Found[spec.JobView], err error) {
	f, err := readFilter(in, s.Now())
	if err != nil {
		return found, err
	}
	p := &search{Handler: s, jobFilter: f, tenant: who.Tenant, limit: limit, began: s.Clock.Now()}
	found.Next, err = p.fill(ctx, after)
	found.Items = p.items
	return found, err
}

// search fills one page of a list of jobs.
type search struct {
	*Handler
	jobFilter
	tenant tenant.ID
	limit  int
	began  time.Time
	items  []spec.JobView
}

// fill fills the page that begins after a position, and returns where the next one begins; "" is the end.
func (p *search) fill(ctx context.Context, position string) (next string, err error) {
	before := p.to
	if position != "" && (before == "" || job.ID(position) < before) {
		before = job.ID(position)
	}
	switch {
	case p.status == job.Dead:
		return p.dead(ctx, before, position)
	case p.task != "" && p.status != job.Running:
		return p.ofTask(ctx, before)
	}
	last, end, err := p.read(ctx, p.Store.Newest(ctx, p.tenant, p.from, before, p.limit))
	switch {
	case err != nil || end:
		return "", err
	case p.status == job.Running && len(p.items) < p.limit:
		keys, err := p.waking(ctx)
		if err != nil {
			return "", err
		}
		return p.among(ctx, keys, last)
	}
	return string(last), nil
}

// ofTask fills the page with the jobs of a task. It reads only the stretches in which the task has jobs.
func (p *search) ofTask(ctx context.Context, before job.ID) (next string, err error) {
	var below time.Time
	if before != "" {
		below = before.At()
	}
	for where, err := range p.Store.Stretches(ctx, p.tenant, p.task, below) {
		if err != nil {
			return "", err
		}
		from, to := job.NewID(where.From, [10]byte{}), job.NewID(where.To, [10]byte{})
		if before != "" {
			to = min(to, before)
		}
		if to <= max(p.from, from) { // all later stretches are older
			if to <= p.from {
				return "", nil
			}
			continue
		}
		last, end, err := p.read(ctx,
			p.Store.NewestOfTask(ctx, p.tenant, p.task, where.Parts, max(p.from, from), to))
		switch {
		case err != nil:
			return "", err
		case !end:
			return string(last), nil
		case p.late():
			return string(from), nil
		}
	}
	return "", nil
}

// late reports whether the request has read for so long that its page ends.
func (p *search) late() bool { return p.Clock.Now().Sub(p.began) >= contract.MaxListRead }

// show adds the jobs of these rows that are shown with the status of the filter. It returns the last one once the page
// is full, else "".
func (p *search) show(ctx context.Context, rows []job.Row) (last job.ID, err error) {
	views, err := p.ShowAll(ctx, p.tenant, rows)
	for _, v := range views {
		if p.status != "" && v.Status != p.status {
			continue
		}
		if p.items = append(p.items, v); len(p.items) == p.limit {
			return v.JobID, err
		}
	}
	return "", err
}

// read fills the page with jobs of these rows. It returns the last id that it read, and whether that was the end. It
// shows rows in lots, so that many claims are one read.
func (p *search) read(ctx context.Context, rows iter.Seq2[job.Row, error]) (last job.ID, end bool, err error) {
	read := 0
	var lot []job.Row
	for r, err := range rows {
		if err != nil && fault.KindOf(err) != fault.Undecodable {
			return last, false, err
		}
		read++
		last = r.ID
		if err != nil { // the others are still listed
			p.UnreadableRow(ctx, r.Key, err)
		} else if p.rowMay(r) {
			lot = append(lot, r)
		}
		enough := p.late()
		if p.status == job.Running { // the due index knows the other running jobs
			enough = read >= spec.MaxRead
		}
		most := store.ReadAtOnce // not many of them may have the status
		if p.status == "" {
			most = p.limit - len(p.items)
		}
		if len(lot) < most && !enough {
			continue
		}
		full, err := p.show(ctx, lot)
		if err != nil || full != "" || enough {
			return cmp.Or(full, last), false, err
		}
		lot = lot[:0]
	}
	full, err := p.show(ctx, lot)
	return cmp.Or(full, last), full == "", err
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
