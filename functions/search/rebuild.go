package search

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Rebuild makes the index from the jobs table, page by page, also while the stage follows the table: an entry of an
// older row never replaces a later one.
type Rebuild struct {
	Stage *Stage
	Jobs  store.Scanner
	Rate  int           // items a second of the jobs table that are read at most; 0: any
	Time  time.Duration // for which a call goes on; 0: until all is read
}

// Progress is how far a rebuild is. What a call answers is given to the next one.
type Progress struct {
	Cursor  string `json:"cursor,omitempty"` // where the next call goes on; "": at the beginning
	Indexed int    `json:"indexed"`          // jobs whose entries were written so far
	Done    bool   `json:"done"`             // the whole table was read
}

// pageItems is how many items of the jobs table are read at a time.
const pageItems = store.ReadAtOnce

// Handle goes on with a rebuild. After an error, the call is repeated with the same progress.
func (r *Rebuild) Handle(ctx context.Context, p Progress) (Progress, error) {
	began := r.Stage.Clock.Now()
	for pages := 1; ; pages++ {
		page, err := r.Jobs.Scan(ctx, contract.Jobs, p.Cursor, pageItems)
		if err != nil {
			return p, err
		}
		n, err := r.Stage.index(ctx, page.Items)
		if err != nil {
			return p, err
		}
		p.Cursor, p.Indexed, p.Done = page.Cursor, p.Indexed+n, page.Cursor == ""
		now := r.Stage.Clock.Now()
		if p.Done || r.Time > 0 && now.Sub(began) >= r.Time {
			return p, nil
		}
		if r.Rate > 0 {
			next := began.Add(time.Duration(pages) * pageItems * time.Second / time.Duration(r.Rate))
			select {
			case <-ctx.Done():
				return p, ctx.Err()
			case <-time.After(next.Sub(now)):
			}
		}
	}
}

// index writes the entries of all jobs that these items of the jobs table are of, and returns how many there were. A
// row that cannot be read is reported and left out.
func (s *Stage) index(ctx context.Context, items []item.Item) (n int, err error) {
	now := s.Clock.Now()
	var rows []job.Row
	for _, i := range items {
		if !isRow(i) {
			continue
		}
		r, err := job.ParseRow(i)
		if err != nil {
			s.Log.ErrorContext(ctx, "a row could not be indexed", "keys", i.Str(contract.AttrPK)+" "+
				i.Str(contract.AttrJobID), telemetry.Err, err)
			continue
		}
		if e := search.EntryOf(r, "", ""); search.Listed(r) && (e.ExpiresAt.IsZero() || e.ExpiresAt.After(now)) {
			rows = append(rows, r)
		}
	}
	entries, err := s.entries(ctx, rows)
	if err != nil {
		return 0, err
	}
	updates := make([]search.Update, len(entries))
	for n, e := range entries {
		updates[n] = search.Update{Entry: e}
	}
	for _, err := range s.Index.PutEntries(ctx, updates) {
		if err != nil {
			return 0, err
		}
	}
	return len(updates), s.removeGone(ctx, entries)
}

// removeGone removes the entries of dead jobs whose rows were deleted since they were read: causes of death are counted
// by the index alone. A row that is deleted later than this is removed by its change.
func (s *Stage) removeGone(ctx context.Context, entries []search.Entry) error {
	var dead []search.Entry
	var keys []job.Key
	for _, e := range entries {
		if !e.DeadAt.IsZero() {
			dead, keys = append(dead, e), append(keys, e.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	_, there, err := s.Store.Rows(ctx, keys)
	if err != nil {
		return err
	}
	for n, is := range there {
		if !is {
			if err := s.Index.RemoveEntry(ctx, dead[n]); err != nil {
				return err
			}
		}
	}
	return nil
}
