package operate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/functions/engine/show"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/search"
	"punctual/shared/store"
)

const (
	// lot is how many rows one page of a list has.
	lot = store.ReadAtOnce
	// countTime bounds the reads between two writes of an operation that is being counted.
	countTime = 4 * time.Second
)

// behind is how long is waited for an index that does not have everything yet.
const behind = 500 * time.Millisecond

// errBehind says that the index does not have everything yet that happened before the operation was asked for.
var errBehind = errors.New("the index is behind")

// count notes the ids of rows that match, about a page of them. wait is how long nothing is to be done.
func (s *session) count(ctx context.Context) (wait time.Duration, err error) {
	was, until := s.is, s.now().Add(countTime)
	position, end := was.Bulk.Position, false
	var ids []job.ID
	for len(ids) < operation.PageRows && !end && s.now().Before(until) {
		found, next, err := s.matching(ctx, was, position)
		if errors.Is(err, errBehind) {
			wait = behind
			break
		}
		if err != nil {
			return 0, err
		}
		ids, position, end = append(ids, found...), next, next == ""
	}
	if wait > 0 && position == was.Bulk.Position {
		return wait, nil
	}
	return wait, s.note(ctx, was, ids, position, end)
}

// note notes ids of rows that match. The list goes on at position, or is at its end.
func (s *session) note(ctx context.Context, was operation.Operation, ids []job.ID, position string, end bool) error {
	if s.until != was.Matched {
		s.latest, s.until = nil, was.Matched
		if was.Matched%operation.PageRows > 0 {
			var err error
			if s.latest, err = s.Store.OperationPage(ctx, was.Key, was.Matched/operation.PageRows); err != nil {
				return err
			}
		}
	}
	writes, latest := was.Pages(was.Matched, s.latest, ids, s.now())
	err := s.change(ctx, func(is operation.Operation) bool {
		return is.Bulk.Phase == operation.Counting && is.Matched == was.Matched && !is.Status.Over() &&
			is.Bulk.Position == was.Bulk.Position
	}, func(next *operation.Operation) {
		next.Matched += len(ids)
		next.Bulk.Position, next.Bulk.MovedAt, next.Bulk.Tries = position, s.now(), 0
		switch {
		case next.Matched > operation.MaxRows:
			next.Abort(job.Reason{Code: operation.CodeTooMany,
				Message: "more rows match than an operation works on; nothing was done"}, s.now())
		case end:
			next.Counted(s.now())
		}
	}, writes...)
	s.latest, s.until = latest, was.Matched+len(ids)
	if err != nil {
		s.until = -1
	}
	return err
}

// DryRun counts what an operation would work on, and what of the rows that were named it would leave out; ids are those
// names, nil for the filter. all says that the context did not end first. It writes nothing.
func (o *Operator) DryRun(
	ctx context.Context, is operation.Operation, ids []job.ID,
) (matched, skipped int, all bool, err error) {
	s := &session{Operator: o, is: is}
	if ids == nil {
		matched, all, err = s.countAll(ctx)
		return matched, 0, all, err
	}
	for ; len(ids) > 0; ids = ids[min(len(ids), lot):] {
		some := ids[:min(len(ids), lot)]
		found, err := s.read(ctx, some)
		if err != nil {
			return matched, skipped, false, err
		}
		for _, r := range found {
			matched++
			if !r.there || !s.verb().may(is, r) {
				skipped++
			}
		}
	}
	return matched, skipped, true, nil
}

// countAll counts what matches. all says that the context did not end first.
func (s *session) countAll(ctx context.Context) (matched int, all bool, err error) {
	for position := ""; ; {
		found, next, err := s.matching(ctx, s.is, position)
		if errors.Is(err, errBehind) {
			if err = sleep(ctx, behind); err == nil {
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return matched, false, nil
		case err != nil:
			return matched, false, err
		}
		matched += len(found)
		if matched > operation.MaxRows {
			return operation.MaxRows, false, nil
		}
		if position = next; position == "" {
			return matched, true, nil
		}
	}
}

// matching reads the next of the rows that match, newest first, from a position on, "" being the beginning. next is
// where the others begin; "" is the end. What came after the operation was asked for is left out.
func (s *session) matching(
	ctx context.Context, is operation.Operation, position string,
) (ids []job.ID, next string, err error) {
	f := is.Bulk.Filter
	end := is.CreatedAt.Add(time.Millisecond)
	f.CreatedBefore = earlier(f.CreatedBefore, end)
	if Kind(is.Action) == Letters {
		f.DeadBefore = earlier(f.DeadBefore, end)
	}
	switch {
	case is.Action.OnRuns():
		return s.matchingRuns(ctx, is, f, position)
	case s.Read.Search != nil, !Listed(is.Action, is.Bulk.Filter):
		// The lists are slower: that of a task is read from up to 32 partitions for each page.
		return s.indexed(ctx, is, f, position)
	case Kind(is.Action) == Letters:
		return s.matchingLetters(ctx, is, f, position)
	}
	page, next, err := s.Read.List(ctx, is.Tenant, show.Filter{Status: f.Status, Task: f.Task, Schedule: f.Schedule,
		After: f.CreatedAfter, Before: f.CreatedBefore}, position, lot)
	return s.among(is, rowsOf(page)), next, err
}

// earlier returns the earlier of two ends of a range; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func rowsOf(page []show.Job) []job.Row {
	rows := make([]job.Row, len(page))
	for n, j := range page {
		rows[n] = j.Row
	}
	return rows
}

// among returns the ids of the jobs that the action can change. One that has ended since the operation was asked for is
// left out: it had another status then. So are deliveries of webhooks, unless the filter names their task.
func (s *session) among(is operation.Operation, rows []job.Row) (ids []job.ID) {
	for _, r := range rows {
		delivers := r.Task == search.WebhookTask && is.Bulk.Filter.Task != search.WebhookTask
		if !delivers && !r.FinishedAt.After(is.CreatedAt) &&
			s.verb().may(is, row{there: true, version: r.Version, job: r}) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// What an operation can be about.
const (
	Jobs    = "jobs"
	Letters = "dead letters"
	Runs    = "runs"
)

// listed are the fields of filters by which rows are found without the index; a tag is "tags".
var listed = map[string]map[string]bool{
	Jobs:    {"status": true, "task": true, "schedule": true, "created_after": true, "created_before": true},
	Letters: {"status": true, "task": true, "dead_after": true, "dead_before": true},
	Runs: {"status": true, "dag": true, "schedule": true, "tags": true, "created_after": true, "created_before": true,
		"finished_after": true, "finished_before": true},
}

// Kind names what an action is about.
func Kind(a operation.Action) string {
	switch {
	case a.OnRuns():
		return Runs
	case a == operation.RedriveJobs || a == operation.PurgeJobs:
		return Letters
	}
	return Jobs
}

// Listed says that what the filter of an action matches is found without the index.
func Listed(a operation.Action, f search.Filter) bool {
	for _, name := range f.Names() {
		if strings.HasPrefix(name, "tag.") {
			name = "tags"
		}
		if !listed[Kind(a)][name] {
			return false
		}
	}
	return true
}

// Takes says that a filter of an action can be used. The index is one of jobs.
func (o *Operator) Takes(a operation.Action, f search.Filter) bool {
	return Listed(a, f) || o.Read.Search != nil && !a.OnRuns()
}

// ListedBy returns the names of the fields by which what an action is about is found without the index.
func ListedBy(a operation.Action) []string { return slices.Sorted(maps.Keys(listed[Kind(a)])) }

func (s *session) matchingLetters(
	ctx context.Context, is operation.Operation, f search.Filter, position string,
) (ids []job.ID, next string, err error) {
	rows, next, err := s.Read.DeadLetters(ctx, is.Tenant, show.LetterFilter{Task: f.Task, After: f.DeadAfter,
		Before: f.DeadBefore, Waiting: is.Action == operation.RedriveJobs}, position, lot)
	return s.among(is, rows), next, err
}

func (s *session) matchingRuns(
	ctx context.Context, is operation.Operation, f search.Filter, position string,
) (ids []job.ID, next string, err error) {
	page, next, err := s.Read.RunList(ctx, is.Tenant,
		store.RunQuery{From: f.CreatedAfter, Before: f.CreatedBefore, Dag: f.DAG, Schedule: f.Schedule,
			Below: position},
		show.RunFilter{Status: string(f.Status), Tags: f.Tags, FinishedAfter: f.FinishedAfter,
			FinishedBefore: f.FinishedBefore}, lot)
	for _, r := range page {
		if !r.Run.FinishedAt.After(is.CreatedAt) &&
			s.verb().may(is, row{there: true, version: r.Run.Epoch, run: r.Run, isRun: true}) {
			ids = append(ids, r.Run.ID)
		}
	}
	return ids, next, err
}

// indexed reads the next of the rows that match from the index.
func (s *session) indexed(
	ctx context.Context, is operation.Operation, f search.Filter, position string,
) (ids []job.ID, next string, err error) {
	var rows []job.Row
	var asOf time.Time
	switch {
	case s.Read.Search == nil: // the deployment has given it up
		return nil, "", fault.New(fault.Unavailable, nil, "the index of jobs, which the filter of the operation needs")
	case Kind(is.Action) == Letters:
		rows, next, asOf, err = s.Read.FindLetters(ctx, is.Tenant, f, position, lot)
	default:
		var found show.Found
		found, err = s.Read.Find(ctx, is.Tenant, search.Query{Filter: f, Position: position, Limit: lot})
		rows, next, asOf = rowsOf(found.Jobs), found.Next, found.AsOf
	}
	if err == nil && asOf.Before(is.CreatedAt) {
		return nil, position, errBehind
	}
	return s.among(is, rows), next, err
}
