package show

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Outcomes are the values by which occurrences are filtered.
var Outcomes = []string{schedule.Ran, schedule.Pending, schedule.Skipped, schedule.Missed, schedule.Superseded}

// Occurrence is the outcome of a nominal time, or of several in a row.
type Occurrence struct {
	NominalAt, DueAt     time.Time
	Outcome, Reason, Why string
	Manual               bool   // it was requested, and belongs to no time of the calendar
	Backfill             job.ID // operation that made its job; "" for none
	JobID, RunID         job.ID
	Status               string    // of the job or of the run
	LatenessMS           *int64    // nil: it has not started
	Until                time.Time // last of several nominal times
	Count                int       // of several; 0 with an Until: too many to count

	row *job.Row // of its job; nil for an entry of the ledger
}

// OccurrenceFilter selects occurrences of a schedule.
type OccurrenceFilter struct {
	Outcome       string    // "" is any
	After, Before time.Time // After ≤ nominal < Before; zero is open
	Limit         int
	TimesOnly     bool // leaves manual runs out
}

// fact is one record about a nominal time: its job, or an entry of the ledger.
type fact struct {
	at    time.Time
	job   *job.Row
	claim job.Claim // of the job, where it decides whether the job has started
	entry *schedule.Entry
	// replaced says that the job did not run, and that of a backfill of the same time did, or is to.
	replaced bool
}

// ran says that the job of a time ran, or has not ended.
func (t fact) ran() bool {
	outcome, _, _ := schedule.OfJob(*t.job)
	return outcome == schedule.Ran || outcome == schedule.Pending
}

func (t fact) manual() bool { return t.job != nil && t.job.Manual() }

// A position in the list is a nominal time, and how many of its facts the pages before have read.
func writePosition(at time.Time, n int) string {
	return strconv.FormatInt(at.UnixMilli(), 10) + "#" + strconv.Itoa(n)
}

func readPosition(position string) (at time.Time, n int64, ok bool) {
	millis, count, ok := strings.Cut(position, "#")
	return time.UnixMilli(number(millis)).UTC(), number(count), ok
}

// Occurrences reads one page, newest first. next is the position of the next page, "" at the end.
func (s *Reader) Occurrences(
	ctx context.Context, of schedule.Schedule, f OccurrenceFilter, position string,
) (items []Occurrence, next string, err error) {
	before, seen := f.Before, int64(0)
	if at, n, ok := readPosition(position); ok {
		before, seen = at.Add(time.Millisecond), n // include that time: it may have more facts
	}
	over := !f.After.IsZero() && !before.IsZero() && !before.After(f.After) // only stretches that began before are left
	jobs := s.jobsAhead(of.Key, f.After, before, f.Limit, false)
	entries := s.entriesAhead(of, f.After, before, f.Limit)
	jobs.done, entries.done = over, over
	for read := 0; ; {
		group, err := together(ctx, jobs, entries)
		if err != nil {
			return items, "", err
		}
		if len(group) == 0 {
			items, err = s.upToDate(ctx, of.Tenant, items, f.Outcome)
			return items, "", err
		}
		for n, t := range group {
			if int64(n) < seen {
				continue
			}
			if read++; read > MaxRead || len(items) == f.Limit {
				items, err = s.upToDate(ctx, of.Tenant, items, f.Outcome)
				return items, writePosition(t.at, n), err
			}
			if f.TimesOnly && t.manual() || t.replaced {
				continue
			}
			if v := occurrenceOf(of, t); f.Outcome == "" || v.Outcome == f.Outcome {
				items = append(items, v)
			}
		}
		seen = 0
	}
}

// PendingBefore is with how many jobs before now the list of pending occurrences begins by default. Some of them may
// still run, wait for a retry or be held.
const PendingBefore = 500

// PendingOccurrences reads one page of what has not ended, the earliest first. next is as in Occurrences.
func (s *Reader) PendingOccurrences(
	ctx context.Context, of schedule.Schedule, f OccurrenceFilter, position string,
) (items []Occurrence, next string, err error) {
	after, skip := f.After, int64(0)
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
	jobs := s.jobsAhead(of.Key, after, f.Before, f.Limit, true)
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
		if read >= MaxRead || len(items) == f.Limit {
			return items, writePosition(at, int(same)), s.withClaims(ctx, of.Tenant, items)
		}
		same++
		v := occurrenceOf(of, fact{at: at, job: &row.Row, claim: row.claim})
		if v.Outcome == schedule.Pending && (!at.Equal(after) || same > skip) {
			items = append(items, v)
		}
		jobs.take()
	}
}

// together takes all facts about the newest time that is left. Their order never changes: the job, or else the newest
// entry about this time alone (a time that was backfilled has the jobs of that, too); then stretches that begin here;
// then manual runs of this very time.
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
	if slices.ContainsFunc(group, fact.ran) {
		for n := range group {
			group[n].replaced = !group[n].ran()
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

func occurrenceOf(of schedule.Schedule, t fact) Occurrence {
	if e := t.entry; e != nil {
		v := Occurrence{NominalAt: e.From, Outcome: e.Outcome, Reason: e.Reason, Why: e.Why}
		if e.Count != 1 {
			v.Until, v.Count = e.To, e.Count
		}
		return v
	}
	r := *t.job
	v := Occurrence{NominalAt: r.OccurredAt(), Manual: t.manual(),
		Backfill: r.Backfill, DueAt: r.DueAt, JobID: r.ID, Status: string(r.Status), row: t.job}
	if r.StartsRun() {
		v.JobID = ""
		if !r.StartedAt.IsZero() {
			v.RunID, v.Status = r.ID, string(runStatus(r))
		}
	}
	v.Outcome, v.Reason, v.Why = schedule.OfJob(r)
	if !r.StartedAt.IsZero() {
		v.LatenessMS = new(r.LatenessMS)
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
func (s *Reader) withClaims(ctx context.Context, t tenant.ID, items []Occurrence) error {
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
func (s *Reader) upToDate(
	ctx context.Context, t tenant.ID, items []Occurrence, outcome string,
) ([]Occurrence, error) {
	if err := s.withClaims(ctx, t, items); err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(v Occurrence) bool { return outcome != "" && v.Outcome != outcome })
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
func (s *Reader) withRuns(ctx context.Context, t tenant.ID, items []Occurrence) error {
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
func (s *Reader) jobsAhead(of schedule.Key, after, before time.Time, page int, forward bool) *ahead[claimedRow] {
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
func (s *Reader) entriesAhead(of schedule.Schedule, after, before time.Time, page int) *ahead[schedule.Entry] {
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

// InFlightRead is how many of a schedule's newest jobs are read to find the running ones.
const InFlightRead = store.ReadAtOnce

// InFlight returns the ids of a schedule's newest jobs that a worker has, and of its runs that have not ended. Jobs of
// the coming half hour exist already; they are left out, because they may be more than are read.
func (s *Reader) InFlight(ctx context.Context, k schedule.Key) ([]job.ID, error) {
	now := s.Now()
	begun := now.Add(contract.HoldUntil + time.Millisecond)
	found, _, err := s.Store.JobsOf(ctx, k, time.Time{}, begun, true, InFlightRead, "")
	if err != nil {
		return nil, err
	}
	var keys []job.Key
	for _, f := range found {
		if !f.Manual { // a pause of the schedule does not apply to it
			keys = append(keys, f.Key)
		}
	}
	rows, there, err := s.Store.Rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	ids := []job.ID{}
	var near []job.Row
	for i, r := range rows {
		switch {
		case !there[i]:
		case r.StartsRun():
			if r.Status == job.Blocked { // its run has not ended
				ids = append(ids, r.ID)
			}
		case job.StartsSoon(r, now):
			near = append(near, r)
		}
	}
	shown, err := s.Listed(ctx, k.Tenant, near)
	for _, v := range shown {
		if v.Shown() == job.Running {
			ids = append(ids, v.ID)
		}
	}
	return ids, err
}

// Selected lists a tenant's schedules that a condition selects. Unreadable schedules are reported and left out.
func (s *Reader) Selected(
	ctx context.Context, t tenant.ID, condition func(schedule.Schedule) bool,
) (selected []schedule.Schedule, names []string, err error) {
	for f, err := range s.allSchedules(ctx, t) {
		switch {
		case err != nil:
			return nil, nil, err
		case f.Err != nil:
			s.UnreadableSchedule(ctx, f)
		case condition(f.Schedule):
			selected, names = append(selected, f.Schedule), append(names, f.Name)
		}
	}
	return selected, names, nil
}

// allSchedules iterates over a tenant's schedules, also those that cannot be read.
func (s *Reader) allSchedules(ctx context.Context, t tenant.ID) iter.Seq2[store.FoundSchedule, error] {
	return func(yield func(store.FoundSchedule, error) bool) {
		for after, more := "", true; more; {
			var found []store.FoundSchedule
			var err error
			if found, more, err = s.Store.Schedules(ctx, t, after, contract.ListMax); err != nil {
				yield(store.FoundSchedule{}, err)
				return
			}
			for _, f := range found {
				if after = f.Name; !yield(f, nil) {
					return
				}
			}
		}
	}
}

// UnreadableSchedule reports a schedule that cannot be read.
func (s *Reader) UnreadableSchedule(ctx context.Context, f store.FoundSchedule) {
	s.Log.ErrorContext(ctx, "a schedule could not be read", telemetry.Tenant, f.Tenant, "schedule", f.Name,
		telemetry.Err, f.Err)
	s.Meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: string(fault.Undecodable)})
}
