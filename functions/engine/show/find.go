package show

import (
	"context"
	"encoding/json"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Found is a page of jobs that the index has found.
type Found struct {
	Jobs []Job
	Next string // position of the next page; "" is the end
	AsOf time.Time
}

// Find reads one page of the jobs that match a query. It reads the row of each that the index knows, and leaves out a
// job that no longer matches. The list ends at now: jobs that a schedule has made ahead are listed only by a filter on
// their schedule, their due time or their id. The index must be there.
func (s *Reader) Find(ctx context.Context, t tenant.ID, q search.Query) (found Found, err error) {
	if q.Schedule == "" && q.IDPrefix == "" && q.DueAfter.IsZero() && q.DueBefore.IsZero() {
		q.Before = job.NewID(s.Now().Add(time.Millisecond), [10]byte{})
	}
	found.Next, found.AsOf, err = s.findRows(ctx, t, q, func(rows []job.Row) (taken int, err error) {
		shown, err := s.Listed(ctx, t, rows)
		for _, v := range shown {
			if q.Status == "" || v.Shown() == q.Status {
				found.Jobs = append(found.Jobs, v)
				taken++
			}
		}
		return taken, err
	})
	return found, err
}

// FindLetters is DeadLetters for a filter that needs the index, which must be there.
func (s *Reader) FindLetters(
	ctx context.Context, t tenant.ID, f search.Filter, position string, limit int,
) (rows []job.Row, next string, asOf time.Time, err error) {
	f.Status = job.Dead
	q := search.Query{Filter: f, Order: search.LastDead, Position: position, Limit: limit}
	next, asOf, err = s.findRows(ctx, t, q, func(found []job.Row) (int, error) {
		rows = append(rows, found...)
		return len(found), nil
	})
	return rows, next, asOf, err
}

// findRows gives the rows that match to take, which says how many of them it has taken, until there are as many as the
// query asks for, no more, or the request has read for long. next is the position after the last one that was read.
func (s *Reader) findRows(
	ctx context.Context, t tenant.ID, q search.Query, take func([]job.Row) (taken int, err error),
) (next string, asOf time.Time, err error) {
	began, limit := s.Clock.Now(), q.Limit
	for read := 0; ; {
		q.Limit = min(limit, store.ReadAtOnce)
		page, err := s.Search.Search(ctx, t, q)
		if err != nil {
			return "", asOf, err
		}
		if asOf.IsZero() {
			asOf = page.AsOf
		}
		rows, err := s.matching(ctx, q.Filter, page.Entries)
		if err != nil {
			return "", asOf, err
		}
		taken, err := take(rows)
		if err != nil {
			return "", asOf, err
		}
		limit -= taken
		read += len(page.Entries)
		if page.Next == "" || limit == 0 || read >= MaxRead || s.Clock.Now().Sub(began) >= contract.MaxListRead {
			return page.Next, asOf, nil
		}
		q.Position = page.Next
	}
}

// matching reads the rows of entries, in their order, and leaves out those that no longer match.
func (s *Reader) matching(ctx context.Context, f search.Filter, entries []search.Entry) ([]job.Row, error) {
	keys := make([]job.Key, len(entries))
	for n, e := range entries {
		keys[n] = e.Key
	}
	rows, there, err := s.Rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	matching := rows[:0]
	for n, r := range rows {
		if !there[n] || !search.Listed(r) {
			continue
		}
		is := search.EntryOf(r, "", entries[n].DAG)
		is.Tags = entries[n].Tags
		if len(f.Tags) > 0 && is.Stage != entries[n].Stage { // an edit may have replaced them
			if is.Tags, err = s.tagsOf(ctx, r); err != nil {
				return nil, err
			}
		}
		if f.Status != "" && f.Status != job.Dead { // how it is shown decides
			is.Status = f.Status
		}
		if f.Matches(is) {
			matching = append(matching, r)
		}
	}
	return matching, nil
}

func (s *Reader) tagsOf(ctx context.Context, r job.Row) (tags map[string]string, err error) {
	labels, err := s.Store.LabelsOf(ctx, r)
	if err == nil && labels[0].Tags != "" {
		err = json.Unmarshal([]byte(labels[0].Tags), &tags)
	}
	return tags, err
}

// Group is a cause of dead jobs, as it is shown.
type Group struct {
	search.GroupCount
	Message string // of the example; "" if it was deleted meanwhile
}

// DeadGroups reads the causes of the dead jobs that died at from or later (zero: all), most frequent first, after the
// first of them.
func (s *Reader) DeadGroups(
	ctx context.Context, t tenant.ID, from time.Time, after, limit int,
) (groups []Group, more bool, asOf time.Time, err error) {
	found, err := s.Search.DeadGroups(ctx, t, from, s.Now())
	if err != nil {
		return nil, false, asOf, err
	}
	all := found.Groups[min(after, len(found.Groups)):]
	all, more = all[:min(limit, len(all))], len(all) > limit
	for first := 0; first < len(all); first += store.ReadAtOnce {
		lot := all[first:min(first+store.ReadAtOnce, len(all))]
		keys := make([]job.Key, len(lot))
		for n, g := range lot {
			keys[n] = job.Key{Tenant: t, ID: g.Example}
		}
		rows, there, err := s.Rows(ctx, keys)
		if err != nil {
			return nil, false, asOf, err
		}
		for n, g := range lot {
			shown := Group{GroupCount: g}
			if there[n] {
				shown.Message = rows[n].Reason.Message
			}
			groups = append(groups, shown)
		}
	}
	return groups, more, found.AsOf, nil
}
