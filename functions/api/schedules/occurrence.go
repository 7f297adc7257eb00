package schedules

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// occurrenceView shows the outcome of a nominal time, or of several in a row.
type occurrenceView struct {
	NominalAt       rest.Instant `json:"nominal_at" doc:"Nominal time; the first of several, or the time of the request for a manual run"`
	DueAt           rest.Instant `json:"due_at,omitzero" doc:"Time at which the job is due"`
	Outcome         string       `json:"outcome" enum:"ran,pending,skipped,missed,superseded" doc:"Outcome of the nominal time; pending means that it has not ended"`
	Reason          string       `json:"reason,omitempty" doc:"Reason code. If the time did not run or is held: overlap, paused, excluded, missing_hour, outage, start_within, catch_up_cap, edited, deleted, max_runs or cancelled. If its run failed: the code of the error."`
	Why             string       `json:"why,omitempty" doc:"Reason in words"`
	Manual          bool         `json:"manual,omitempty" doc:"Whether the run was requested, and belongs to no time of the calendar"`
	JobID           job.ID       `json:"job_id,omitempty" doc:"Identifier of the job"`
	RunID           job.ID       `json:"run_id,omitempty" doc:"Identifier of the run of a dag, once it has begun. From then on outcome is ran, and status is the status of the run."`
	Status          string       `json:"status,omitempty" doc:"Status of the job or of the run"`
	StartLatenessMS *int64       `json:"start_lateness_ms,omitempty" doc:"Time from due_at, or from acceptance if that was later, to the start, in milliseconds"`
	Until           rest.Instant `json:"until,omitzero" doc:"Last of several nominal times"`
	Count           int          `json:"count,omitempty" doc:"Number of nominal times, if there are several; absent, although until is given, if they were too many to count"`

	row *job.Row // of its job; nil for an entry of the ledger
}

type occurrencesInput struct {
	rest.Named
	rest.Paging
	Outcome string `query:"outcome" doc:"Outcome of the occurrences to list; default: any"`
	After   string `query:"after" format:"date-time" doc:"Earliest nominal time to list; an item for several times that reaches beyond it is included"`
	Before  string `query:"before" format:"date-time" doc:"Nominal time before which occurrences are listed"`
}

// Outcomes are the values by which occurrences are filtered.
var Outcomes = []string{schedule.Ran, schedule.Pending, schedule.Skipped, schedule.Missed, schedule.Superseded}

func (s *Handler) listOccurrences(
	ctx context.Context, who tenant.Identity, in *occurrencesInput, after string, limit int,
) (page rest.Found[occurrenceView], err error) {
	var wrong fault.Violations
	rest.FilterWord(&wrong, "outcome", in.Outcome, Outcomes)
	f := occurrenceFilter{outcome: in.Outcome, limit: limit}
	f.after, f.before = rest.ReadRange(&wrong, "after", in.After, "before", in.Before)
	switch {
	case len(wrong) > 0:
		return page, wrong
	case !rest.IsName(in.Name):
		return page, errNoSchedule()
	}
	of, err := s.Store.Schedule(ctx, schedule.Key{Tenant: who.Tenant, Name: in.Name})
	if err != nil {
		return page, rest.Absent(err, "schedule")
	}
	read := s.occurrences
	if f.outcome == schedule.Pending {
		read = s.pendingOccurrences
	} else if f.before.IsZero() {
		f.before = s.Now().Add(time.Millisecond) // the coming ones are listed with outcome=pending
	}
	page.Items, page.Next, err = read(ctx, of, f, after)
	return page, err
}

type occurrenceFilter struct {
	outcome       string    // "" is any
	after, before time.Time // after ≤ nominal < before; zero is open
	limit         int
	timesOnly     bool // leaves manual runs out
}

// fact is one record about a nominal time: its job, or an entry of the ledger.
type fact struct {
	at    time.Time
	job   *job.Row
	claim job.Claim // of the job, where it decides whether the job has started
	entry *schedule.Entry
}

func (t fact) manual() bool { return t.job != nil && t.job.ManualOf != "" }

// A position in the list is a nominal time, and how many of its facts the pages before have read.
func writePosition(at time.Time, n int) string {
	return strconv.FormatInt(at.UnixMilli(), 10) + "#" + strconv.Itoa(n)
}

func readPosition(position string) (at time.Time, n int64, ok bool) {
	millis, count, ok := strings.Cut(position, "#")
	return time.UnixMilli(rest.CursorNumber(millis)).UTC(), rest.CursorNumber(count), ok
}

// occurrences reads one page, newest first. next is the position of the next page, "" at the end.
func (s *Handler) occurrences(
	ctx context.Context, of schedule.Schedule, f occurrenceFilter, position string,
) (items []occurrenceView, next string, err error) {
	before, seen := f.before, int64(0)
	if at, n, ok := readPosition(position); ok {
		before, seen = at.Add(time.Millisecond), n // include that time: it may have more facts
	}
	over := !f.after.IsZero() && !before.IsZero() && !before.After(f.after) // only stretches that began before are left
	jobs := s.jobsAhead(of.Key, f.after, before, f.limit, false)
	entries := s.entriesAhead(of, f.after, before, f.limit)
	jobs.done, entries.done = over, over
	for read := 0; ; {
		group, err := together(ctx, jobs, entries)
		if err != nil {
			return items, "", err
		}
		if len(group) == 0 {
			items, err = s.upToDate(ctx, of.Tenant, items, f.outcome)
			return items, "", err
		}
		for n, t := range group {
			if int64(n) < seen {
				continue
			}
			if read++; read > spec.MaxRead || len(items) == f.limit {
				items, err = s.upToDate(ctx, of.Tenant, items, f.outcome)
				return items, writePosition(t.at, n), err
			}
			if f.timesOnly && t.manual() {
				continue
			}
			if v := viewOccurrence(of, t); f.outcome == "" || v.Outcome == f.outcome {
				items = append(items, v)
			}
		}
		seen = 0
	}
}

// PendingBefore is with how many jobs before now the list of pending occurrences begins by default. Some of them may
// still run, wait for a retry or be held.
const PendingBefore = 500

// pendingOccurrences reads one page of what has not ended, the earliest first. next is as in occurrences.
func (s *Handler) pendingOccurrences(
	ctx context.Context, of schedule.Schedule, f occurrenceFilter, position string,
) (items []occurrenceView, next string, err error) {
	after, skip := f.after, int64(0)
	if after.IsZero() && position == "" {
		found, _, err := s.Store.JobsOf(ctx, of.Key, time.Time{}, s.Now(), true, PendingBefore, "")
		if err != nil {
			return nil, "", err
		}
		if len(found) > 0 {
			after = found[len(found)-1].NominalAt
		}
	}
	if at, n, ok := readPosition(position); ok {
		after, skip = at, n
	}
	jobs := s.jobsAhead(of.Key, after, f.before, f.limit, true)
	at, same := time.Time{}, int64(0) // the time of this row, and how many of its rows were read
	for read := 0; ; read++ {
		row, err := jobs.peek(ctx)
		if err != nil {
			return items, "", err
		}
		if row == nil {
			return items, "", s.withClaims(ctx, of.Tenant, items)
		}
		if !row.OccurredAt().Equal(at) {
			at, same = row.OccurredAt(), 0
		}
		if read >= spec.MaxRead || len(items) == f.limit {
			return items, writePosition(at, int(same)), s.withClaims(ctx, of.Tenant, items)
		}
		same++
		v := viewOccurrence(of, fact{at: at, job: &row.Row, claim: row.claim})
		if v.Outcome == schedule.Pending && (!at.Equal(after) || same > skip) {
			items = append(items, v)
		}
		jobs.take()
	}
}

// together takes all facts about the newest time that is left. Their order never changes: the job, or else the newest
// entry about this time alone; then stretches that begin here; then manual runs of this very time.
func together(ctx context.Context, jobs *ahead[claimedRow], entries *ahead[schedule.Entry]) ([]fact, error) {
	row, err := jobs.peek(ctx)
	if err != nil {
		return nil, err
	}
	entry, err := entries.peek(ctx)
	if err != nil || row == nil && entry == nil {
		return nil, err
	}
	var at time.Time
	if row != nil && (entry == nil || !row.OccurredAt().Before(entry.From)) {
		at = row.OccurredAt()
	} else {
		at = entry.From
	}
	var group, stretches, manual []fact
	for row != nil && row.OccurredAt().Equal(at) {
		if t := (fact{at: at, job: &row.Row, claim: row.claim}); t.manual() {
			manual = append(manual, t)
		} else {
			group = append(group, t)
		}
		jobs.take()
		if row, err = jobs.peek(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(manual, func(a, b fact) int { return strings.Compare(string(a.job.ID), string(b.job.ID)) })
	var alone *schedule.Entry
	for entry != nil && entry.From.Equal(at) {
		if entry.Count == 1 {
			if alone == nil || entry.Epoch > alone.Epoch {
				alone = entry
			}
		} else {
			stretches = append(stretches, fact{at: at, entry: entry})
		}
		entries.take()
		if entry, err = entries.peek(ctx); err != nil {
			return nil, err
		}
	}
	if alone != nil && len(group) == 0 {
		group = append(group, fact{at: at, entry: alone})
	}
	return slices.Concat(group, stretches, manual), nil
}

func viewOccurrence(of schedule.Schedule, t fact) occurrenceView {
	if e := t.entry; e != nil {
		v := occurrenceView{NominalAt: rest.At(e.From), Outcome: e.Outcome, Reason: e.Reason, Why: e.Why}
		if e.Count != 1 {
			v.Until, v.Count = rest.At(e.To), e.Count
		}
		return v
	}
	r := *t.job
	v := occurrenceView{NominalAt: rest.At(r.OccurredAt()), Manual: t.manual(),
		DueAt: rest.At(r.DueAt), JobID: r.ID, Status: string(r.Status), row: t.job}
	if r.StartsRun() {
		v.JobID = ""
		if !r.StartedAt.IsZero() {
			v.RunID, v.Status = r.ID, string(runStatus(r))
		}
	}
	v.Outcome, v.Reason, v.Why = schedule.OfJob(r)
	if !r.StartedAt.IsZero() {
		v.StartLatenessMS = new(r.LatenessMS)
	}
	if v.Outcome == schedule.Pending {
		v.Outcome, v.Reason, v.Why = schedule.PendingOf(of, r, t.claim)
	}
	if v.Outcome != schedule.Pending && r.Status == job.Scheduled {
		v.Status = string(job.Skipped) // it will not run, and its row says so once it is due
	}
	return v
}

// withClaims shows the occurrences as RUNNING whose jobs a worker runs: their rows hear of that only after a while.
func (s *Handler) withClaims(ctx context.Context, t tenant.ID, items []occurrenceView) error {
	now := s.Now()
	var keys []job.Key
	for _, v := range items {
		if v.row != nil && !v.row.StartsRun() && job.StartsSoon(*v.row, now) {
			keys = append(keys, v.row.Key)
		}
	}
	claims, _, err := s.Claims(ctx, t, keys)
	if err != nil {
		return err
	}
	for n := range items {
		v := &items[n]
		if v.row == nil {
			continue
		}
		c, read := claims[v.row.ID]
		if read && job.ReadStatus(*v.row, c, now) == job.Running { // it started, whatever its schedule has become since
			v.Status, v.Outcome, v.Reason, v.Why = string(job.Running), schedule.Pending, "", ""
		}
	}
	return nil
}

// upToDate gives occurrences what their rows do not know yet of their jobs and runs, and leaves out those that
// then have another outcome; "" is any.
func (s *Handler) upToDate(
	ctx context.Context, t tenant.ID, items []occurrenceView, outcome string,
) ([]occurrenceView, error) {
	if err := s.withClaims(ctx, t, items); err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(v occurrenceView) bool { return outcome != "" && v.Outcome != outcome })
	return items, s.withRuns(ctx, t, items)
}

// runStatus returns the status of a run as far as its row knows.
func runStatus(r job.Row) run.Status {
	switch r.Status {
	case job.Succeeded:
		return run.Succeeded
	case job.Cancelled:
		return run.Cancelled
	case job.Dead:
		return run.Failed
	}
	return run.Running
}

// withRuns gives occurrences the current status of their runs. A forgotten run keeps the status that its row knows.
func (s *Handler) withRuns(ctx context.Context, t tenant.ID, items []occurrenceView) error {
	var keys []run.Key
	var of []int
	for n, v := range items {
		if v.RunID != "" {
			keys, of = append(keys, run.Key{Tenant: t, ID: v.RunID}), append(of, n)
		}
	}
	found, err := s.Store.RunsNamed(ctx, keys)
	for n, is := range found {
		v := &items[of[n]]
		if now := string(is.Shown()); is.Status != "" && now != v.Status {
			v.Status, v.Reason, v.Why = now, "", "" // it was retried: why it ended before says nothing of it any more
		}
	}
	return err
}

// ahead reads rows page by page, before they are taken one by one.
type ahead[T any] struct {
	read func(ctx context.Context, cursor string) (found []T, next string, err error)
	// last reads what comes after all pages; nil: nothing does.
	last   func(ctx context.Context) ([]T, error)
	rows   []T
	cursor string
	done   bool // there are no more pages
}

// peek returns the next row without taking it, nil at the end.
func (a *ahead[T]) peek(ctx context.Context) (_ *T, err error) {
	for len(a.rows) == 0 && !a.done {
		if a.rows, a.cursor, err = a.read(ctx, a.cursor); err != nil {
			return nil, err
		}
		a.done = a.cursor == ""
	}
	if len(a.rows) == 0 && a.last != nil {
		if a.rows, err = a.last(ctx); err != nil {
			return nil, err
		}
		a.last = nil
	}
	if len(a.rows) == 0 {
		return nil, nil
	}
	return &a.rows[0], nil
}

func (a *ahead[T]) take() { a.rows = a.rows[1:] }

// claimedRow is the row of a job, with its claim if it may have started without its row saying so.
type claimedRow struct {
	job.Row
	claim job.Claim
}

// jobsAhead reads a schedule's jobs from the newest to the oldest, or the other way.
func (s *Handler) jobsAhead(of schedule.Key, after, before time.Time, page int, forward bool) *ahead[claimedRow] {
	return &ahead[claimedRow]{read: func(ctx context.Context, cursor string) ([]claimedRow, string, error) {
		found, next, err := s.Store.JobsOf(ctx, of, after, before, !forward, min(page+1, store.ReadAtOnce), cursor)
		if err != nil {
			return nil, "", err
		}
		keys := make([]job.Key, len(found))
		for i, f := range found {
			keys[i] = f.Key
		}
		rows, there, err := s.Store.Rows(ctx, keys)
		if err != nil {
			return nil, "", err
		}
		var all []claimedRow
		var due []job.Key
		for i, r := range rows {
			if !there[i] {
				continue
			}
			all = append(all, claimedRow{Row: r})
			if job.MayBeSuperseded(r) && !r.DueAt.After(s.Now()) {
				due = append(due, r.Key)
			}
		}
		claims, _, err := s.Claims(ctx, of.Tenant, due)
		for i := range all {
			all[i].claim = claims[all[i].ID]
		}
		return all, next, err
	}}
}

// reaching is how many entries before the beginning are read to find stretches that reach over it. Entries overlap only
// between epochs.
const reaching = 4

// entriesAhead reads a schedule's ledger from the newest to the oldest, beginning with entries that are not yet in it
// and are newer than all that it has.
func (s *Handler) entriesAhead(of schedule.Schedule, after, before time.Time, page int) *ahead[schedule.Entry] {
	a := &ahead[schedule.Entry]{read: func(ctx context.Context, cursor string) ([]schedule.Entry, string, error) {
		return s.Store.Recorded(ctx, of.Key, after, before, true, min(page+1, store.ReadAtOnce), cursor)
	}}
	for _, e := range slices.Backward(of.LeftOut(s.Now())) {
		if (before.IsZero() || e.From.Before(before)) && !e.To.Before(after) {
			a.rows = append(a.rows, e)
		}
	}
	if !after.IsZero() {
		a.last = func(ctx context.Context) ([]schedule.Entry, error) {
			until := after
			if !before.IsZero() && before.Before(until) {
				until = before
			}
			found, _, err := s.Store.Recorded(ctx, of.Key, time.Time{}, until, true, reaching, "")
			return slices.DeleteFunc(found, func(e schedule.Entry) bool { return e.To.Before(after) }), err
		}
	}
	return a
}
