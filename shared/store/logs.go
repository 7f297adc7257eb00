package store

import (
	"context"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
)

const (
	// startsRead is how many starts of an attempt one read of its log shows. There are rarely two.
	startsRead = 8
	// pagesFirst is how many pages of a start are asked for first. Most logs have one, in the attempt's item.
	pagesFirst = 4
	// attemptsKept is of how many attempts of a job the logs are kept longer or emptied together with the job.
	attemptsKept = 10 * contract.MaxAttempts
)

// AttemptLog implements LogReader.
func (s *Store) AttemptLog(
	ctx context.Context, k job.Key, attempt, from int64,
) (text string, next int64, err error) {
	first, err := s.table.GetMany(ctx, []item.Ref{job.LogRef(k, attempt)})
	if err != nil {
		return "", from, fmt.Errorf("reading the log of job %s: %w", k.ID, err)
	}
	var parts []job.LogPart
	for _, p := range job.LogStarts(k, attempt, first[0]) {
		if p.Start < job.FirstStart(from) || len(parts) == startsRead {
			continue
		}
		err := s.logPages(ctx, p.LogStart, func(_ item.Ref, i item.Item) {
			p.Pages = append(p.Pages, job.ParseLogPage(i))
		})
		if err != nil {
			return "", from, err
		}
		parts = append(parts, p)
	}
	text, next = job.JoinLog(parts, from)
	return text, next, nil
}

// logPages reads the pages of a start that have items of their own. Their slots are numbered without a gap.
func (s *Store) logPages(ctx context.Context, start job.LogStart, each func(item.Ref, item.Item)) error {
	for slot, count := 0, pagesFirst; ; slot, count = slot+count, ReadAtOnce {
		refs := make([]item.Ref, count)
		for n := range refs {
			refs[n] = start.PageRef(slot + n)
		}
		found, err := s.table.GetMany(ctx, refs)
		if err != nil {
			return fmt.Errorf("reading the log of job %s: %w", start.ID, err)
		}
		for n, i := range found {
			if i == nil {
				return nil
			}
			each(refs[n], i)
		}
	}
}

// eachLogItem calls each with every item of the logs of a job's attempts.
func (s *Store) eachLogItem(ctx context.Context, k job.Key, attempts int64, each func(item.Ref, item.Item)) error {
	attempts = min(attempts, attemptsKept)
	for from := int64(1); from <= attempts; from += ReadAtOnce {
		var refs []item.Ref
		for n := from; n <= min(attempts, from+ReadAtOnce-1); n++ {
			refs = append(refs, job.LogRef(k, n))
		}
		found, err := s.table.GetMany(ctx, refs)
		if err != nil {
			return fmt.Errorf("reading the logs of job %s: %w", k.ID, err)
		}
		for n, i := range found {
			if i == nil {
				continue
			}
			each(refs[n], i)
			for _, p := range job.LogStarts(k, from+int64(n), i) {
				if err := s.logPages(ctx, p.LogStart, each); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keepLogs lets the logs of a job live until then.
func (s *Store) keepLogs(ctx context.Context, k job.Key, until time.Time) ([]item.Write, error) {
	claim, err := s.Claim(ctx, k)
	if fault.KindOf(err) == fault.Undecodable { // it names no attempt
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var writes []item.Write
	err = s.eachLogItem(ctx, k, claim.Attempt, func(ref item.Ref, i item.Item) {
		if i.Int(contract.AttrExpiresAt) < until.Unix() {
			writes = append(writes, job.KeepLog(ref, until))
		}
	})
	return writes, err
}

// forgetLogs empties the logs of a job. They are not deleted, because no process may delete from the table of claims.
func (s *Store) forgetLogs(ctx context.Context, r job.Row) (errs []error) {
	now := s.clock.Now()
	err := s.eachLogItem(ctx, r.Key, r.Attempt, func(ref item.Ref, _ item.Item) {
		if err := s.Put(ctx, job.EmptyLog(ref, now)); err != nil && Refused(err) == nil {
			errs = append(errs, err)
		}
	})
	return append(errs, err)
}
