package operate

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/runs"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/telemetry"
)

// idle says that no chunk was begun or counted since, and that the operation goes on.
func (s *session) idle(is operation.Operation) bool {
	return !is.Status.Over() && is.Status != operation.Paused && len(is.Bulk.Chunk) == 0 &&
		is.Bulk.Worked == s.is.Bulk.Worked && is.Bulk.Phase == s.is.Bulk.Phase
}

// begin begins a chunk: it notes the versions of its rows, 0 for those that are left out, and works on the others.
func (s *session) begin(ctx context.Context) error {
	n := s.is.ChunkSize()
	ids, err := s.rowsFrom(ctx, s.is.Bulk.Worked, n)
	if fault.KindOf(err) == fault.NotFound { // the pages have expired
		return s.change(ctx, s.idle, func(next *operation.Operation) {
			next.Abort(job.Reason{Code: operation.CodeExpired,
				Message: "the operation took longer than its list of rows is kept"}, s.now())
		})
	}
	if err != nil {
		return err
	}
	found, err := s.read(ctx, ids)
	if err != nil {
		return err
	}
	versions := make([]int64, n)
	for i, f := range found {
		if f.there && s.verb().may(s.is, f) {
			versions[i] = f.version
		}
	}
	begun := false
	err = s.change(ctx, s.idle, func(next *operation.Operation) {
		next.Begin(versions, s.now())
		begun = true
	})
	if err != nil || !begun || len(s.is.Bulk.Chunk) == 0 {
		return err
	}
	return s.work(ctx, found, false)
}

// rowsFrom returns the ids of the next n rows, from the oldest on. They are on one page.
func (s *session) rowsFrom(ctx context.Context, from, n int) (ids []job.ID, err error) {
	page, index := s.is.Slot(from)
	if s.page != page {
		if s.ids, err = s.Store.OperationPage(ctx, s.is.Key, page); err != nil {
			return nil, err
		}
		s.page = page
	}
	for i := range n {
		if index-i < 0 || index-i >= len(s.ids) {
			return nil, fault.New(fault.Undecodable, nil, "reading the rows of operation %s", s.is.ID)
		}
		ids = append(ids, s.ids[index-i])
	}
	return ids, nil
}

// work works on the rows of the chunk that was begun, which are given as they were found, and counts what became of
// them. repeat says that another process may have worked on some of them; then they are read here.
func (s *session) work(ctx context.Context, found []row, repeat bool) error {
	chunk, from := s.is.Bulk.Chunk, s.is.Bulk.Worked
	ids, err := s.rowsFrom(ctx, from, len(chunk))
	if err != nil {
		return err
	}
	if s.repeats = repeat; repeat {
		if found, err = s.read(ctx, ids); err != nil {
			return err
		}
	}
	outcomes := make([]operation.Outcome, len(ids))
	var all errgroup.Group
	all.SetLimit(rowsAtOnce)
	var nodes []int
	for i, id := range ids {
		if chunk[i] == 0 {
			continue
		}
		if repeat && s.verb().once {
			if started, done := s.verb().done(s.is, found[i], chunk[i]); done {
				outcomes[i] = operation.Outcome{Done: true, Started: started}
				continue
			}
		}
		if found[i].job.InRun() { // those of one run would be in each other's way
			nodes = append(nodes, i)
			continue
		}
		all.Go(func() (err error) {
			outcomes[i], err = s.one(ctx, id, found[i], chunk[i], from+i)
			return err
		})
	}
	all.Go(func() (err error) {
		for _, i := range nodes {
			if outcomes[i], err = s.one(ctx, ids[i], found[i], chunk[i], from+i); err != nil {
				return err
			}
		}
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	return s.change(ctx, func(is operation.Operation) bool {
		return is.Bulk.Worked == from && len(is.Bulk.Chunk) == len(chunk)
	}, func(next *operation.Operation) { next.Settle(outcomes, s.now()) })
}

// one does the action to one row, which is given as it was found. In a repeat the action is repeated, because the
// process before may have crashed between two of its writes; a row that does not allow it, and shows that it was done,
// counts as done. The error is one after which the chunk is tried once more.
func (s *session) one(
	ctx context.Context, id job.ID, found row, version int64, at int,
) (out operation.Outcome, err error) {
	out, err = s.try(ctx, id, version, at)
	if err == nil && s.repeats && !out.Done && out.Failed == nil {
		out.Started, out.Done = s.verb().done(s.is, found, version)
	}
	return out, err
}

// try does the action to one row.
func (s *session) try(ctx context.Context, id job.ID, version int64, at int) (operation.Outcome, error) {
	started, err := s.verb().do(ctx, s, id, version, at)
	var state *edit.State
	var wrong *runs.WrongState
	var notUnique *accept.NotUnique
	var invalid fault.Violations
	failed := operation.Error{JobID: id}
	switch {
	case err == nil:
		return operation.Outcome{Done: true, Started: started}, nil
	case errors.As(err, &state), errors.As(err, &wrong), fault.KindOf(err) == fault.NotFound:
		return operation.Outcome{}, nil
	case errors.As(err, &notUnique):
		failed.Code, failed.Detail = "not_unique", notUnique.Error()
	case errors.As(err, &invalid) && len(invalid) > 0:
		failed.Code, failed.Detail = invalid[0].Code, invalid[0].Detail
	case fault.Retryable(err) && s.is.Bulk.Tries < maxTries:
		return operation.Outcome{}, err
	default:
		failed.Code, failed.Detail = "internal", "the row could not be changed; the log says why"
		s.Log.ErrorContext(ctx, "an operation could not change a row", telemetry.Tenant, s.is.Tenant,
			telemetry.JobID, id, "operation", s.is.ID, telemetry.Err, err.Error())
	}
	return operation.Outcome{Failed: &failed}, nil
}

// watch looks at which of the canary have ended.
func (s *session) watch(ctx context.Context) (wait time.Duration, err error) {
	open := s.is.Bulk.Canary.Open
	found, err := s.read(ctx, open)
	if err != nil {
		return 0, err
	}
	ended := map[job.ID]bool{}
	for i, f := range found {
		switch {
		case !f.there: // the job of a node may come later; one that was deleted counts as failed in the end
		case f.ended():
			ended[open[i]] = f.succeeded()
		}
	}
	err = s.change(ctx, s.idle, func(next *operation.Operation) { next.Watch(ended, s.now()) })
	if err != nil || s.is.Bulk.Phase != operation.InCanary {
		return 0, err
	}
	return min(watched, max(s.is.Bulk.Canary.Until.Sub(s.now()), 0)), nil
}
