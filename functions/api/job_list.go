package api

import (
	"context"
	"iter"
	"strconv"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// maxRead is how many rows a page of dead letters or of running jobs reads at most.
const maxRead = 2000

type listJobsInput struct {
	wire.Paging
	State         string `query:"status" doc:"One status"`
	Task          string `query:"task"`
	Schedule      string `query:"schedule"`
	CreatedAfter  string `query:"created_after" format:"date-time" doc:"Only jobs with a created_at from this time on"`
	CreatedBefore string `query:"created_before" format:"date-time" doc:"Only jobs with a created_at before this time"`
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
	return r.Status == f.status || f.status == job.Skipped && mayBeSuperseded(r)
}

func (s *stage) listJobs(ctx context.Context, who tenant.Identity, in *listJobsInput) (*page[JobView], error) {
	limit, err := in.PageSize()
	if err != nil {
		return nil, err
	}
	f, err := readFilter(in, s.now())
	if err != nil {
		return nil, err
	}
	l := wire.NewList(who.Tenant, "jobs", in.State, in.Task, in.Schedule, in.CreatedAfter, in.CreatedBefore)
	position, err := l.Position(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &page[JobView]{Body: wire.Page[JobView]{Items: []JobView{}}}
	next, err := s.listed(ctx, who.Tenant, f, position, limit, &out.Body.Items)
	out.Body.NextCursor = l.Cursor(next)
	return out, err
}

// listed fills a page that begins after a position, and returns where the next one begins; "" is the end.
func (s *stage) listed(
	ctx context.Context, t tenant.ID, f jobFilter, position string, limit int, items *[]JobView,
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
func (s *stage) ofTask(
	ctx context.Context, t tenant.ID, f jobFilter, before job.ID, limit int, began time.Time, items *[]JobView,
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
func (s *stage) newest(
	ctx context.Context, t tenant.ID, f jobFilter, before job.ID, limit int, began time.Time, items *[]JobView,
) (last job.ID, end bool, err error) {
	return s.look(ctx, t, f, s.Store.Newest(ctx, t, f.from, before, limit), limit, began, items)
}

// look is newest for the given rows.
func (s *stage) look(
	ctx context.Context, t tenant.ID, f jobFilter, rows iter.Seq2[job.Row, error], limit int, began time.Time,
	items *[]JobView,
) (last job.ID, end bool, err error) {
	read := 0
	enoughRead := func() bool {
		if f.status == job.Running { // the due index knows the other running jobs
			return read >= maxRead
		}
		return s.Clock.Now().Sub(began) >= contract.MaxListRead
	}
	var lot []job.Row
	full := false
	show := func() error {
		views, err := s.showAll(ctx, t, lot)
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
			s.unreadableRow(ctx, r.Key, err)
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
	var wrong fault.Mistakes
	filterWord(&wrong, "status", in.State, wordsOf(job.Statuses))
	filterName(&wrong, "task", in.Task)
	filterName(&wrong, "schedule", in.Schedule)
	after, before := readRange(&wrong, "created_after", in.CreatedAfter, "created_before", in.CreatedBefore)
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

// readRange reads the two ends of a half-open range; the zero time is an open end.
func readRange(wrong *fault.Mistakes, afterName, after, beforeName, before string) (from, to time.Time) {
	read := func(name, s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		t, ok := wire.ParseInstant(s)
		if !ok {
			*wrong = append(*wrong,
				fault.Field{Pointer: name, Code: wire.CodeInvalidValue,
					Detail:  "this is not a time with a zone: " + calendar.WhyNoInstant(s),
					Allowed: wire.InstantAllowed + " (in a URL + is written %2B)"})
			return time.Time{}
		}
		if epoch := time.Unix(0, 0).UTC(); t.Before(epoch) {
			return epoch // nothing is older, and an id holds no such time
		}
		return t
	}
	from, to = read(afterName, after), read(beforeName, before)
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		*wrong = append(*wrong, fault.Field{Pointer: beforeName, Code: wire.CodeConflictingFields,
			Detail: beforeName + " lies before " + afterName})
	}
	return from, to
}

type attemptView struct {
	Attempt         int64        `json:"attempt"`
	Worker          string       `json:"worker,omitempty"`
	StartedAt       wire.Instant `json:"started_at,omitzero" doc:"Absent when it never started"`
	FinishedAt      wire.Instant `json:"finished_at,omitzero"`
	StartLatenessMS *int64       `json:"start_lateness_ms,omitempty" doc:"Absent when it never started"`
	Outcome         string       `json:"outcome" enum:"succeeded,failed,snoozed,lost" doc:"lost: its worker ended, and the attempt was started again; its times are the earliest start and the latest end that can be"`
	Error           *job.Reason  `json:"error,omitempty"`
}

func viewAttempts(attempts []job.Attempt) []attemptView {
	views := make([]attemptView, len(attempts))
	for i, a := range attempts {
		views[i] = attemptView{Attempt: a.Attempt, Worker: a.Worker, Outcome: a.Outcome, Error: a.Error}
		if !a.StartedAt.IsZero() {
			views[i].StartedAt, views[i].FinishedAt, views[i].StartLatenessMS = wire.Instant{Time: a.StartedAt},
				wire.Instant{Time: a.FinishedAt}, &a.LatenessMS
		}
	}
	return views
}

type attemptsInput struct {
	ID string `path:"id"`
	wire.Paging
}

func (s *stage) listAttempts(ctx context.Context, who tenant.Identity, in *attemptsInput) (*page[attemptView], error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	l := wire.NewList(who.Tenant, "attempts", in.ID)
	limit, position, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	r, err := s.row(ctx, k)
	if err != nil {
		return nil, err
	}
	attempts, more, err := s.Store.Attempts(ctx, r, number(position), limit)
	if err != nil {
		return nil, err
	}
	out := &page[attemptView]{Body: wire.Page[attemptView]{Items: viewAttempts(attempts)}}
	if more {
		out.Body.NextCursor = l.Cursor(strconv.Itoa(int(attempts[len(attempts)-1].Place())))
	}
	return out, nil
}
