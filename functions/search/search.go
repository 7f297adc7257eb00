package search

import (
	"context"
	"fmt"
	"slices"
	"time"

	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/search"
	"punctual/shared/store"
)

// Store is what the stage reads.
type Store interface {
	store.JobReader
	store.ContentReader
	store.RunReader
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store Store
	Index store.SearchWriter // nil: the deployment has none, and changes need nothing
}

// Stage keeps the index up to date. It is safe for concurrent use.
type Stage struct {
	Deps
	dags *cache.Cache[run.Key, string]
}

const (
	dagsKept = 10_000           // runs whose dags are remembered
	dagAge   = 10 * time.Minute // for how long: a run never gets another dag, but it can be forgotten
)

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{
		Deps: d,
		dags: cache.New[run.Key](cache.Options[string]{Age: dagAge, Most: dagsKept, Now: d.Clock.Now}),
	}
}

// Changes brings the index up to date with changes of the jobs table, and returns one error for each. Of several
// changes of one job only the last is written; the earlier ones have its error.
func (s *Stage) Changes(ctx context.Context, changes []item.Change) []error {
	errs := make([]error, len(changes))
	if s.Index == nil {
		return errs
	}
	last := map[job.Key]int{} // which change of a job counts
	var of []work
	for i, c := range changes {
		w, err := evaluate(c)
		if errs[i] = err; err != nil || w == nil {
			continue
		}
		if earlier, is := last[w.row.Key]; is {
			w.also = append(slices.Clone(of[earlier].also), of[earlier].change)
			w.found = w.found && of[earlier].found
			if !of[earlier].died.IsZero() {
				w.died = of[earlier].died
			}
			of[earlier].dropped = true
		}
		w.change = i
		last[w.row.Key] = len(of)
		of = append(of, *w)
	}
	s.write(ctx, of, errs)
	return errs
}

// work is what a change calls for.
type work struct {
	row     job.Row   // as it is; of one that is gone, as it was
	found   bool      // it had an entry that is found by the same values
	died    time.Time // when it had died before; zero: it was not DEAD
	gone    bool
	change  int   // its index
	also    []int // earlier changes of the job
	dropped bool  // a later change counts
}

// evaluate returns what a change calls for; nil for nothing.
func evaluate(c item.Change) (*work, error) {
	if !isRow(c.New) && !isRow(c.Old) {
		return nil, nil // contents of a job, or what is left of one
	}
	if !isRow(c.New) {
		was, err := job.ParseRow(c.Old)
		if err != nil || !search.Listed(was) {
			return nil, err
		}
		return &work{row: was, gone: true}, nil
	}
	is, err := job.ParseRow(c.New)
	if err != nil || !search.Listed(is) {
		return nil, err
	}
	w := &work{row: is}
	if was, err := job.ParseRow(c.Old); err == nil {
		if alike(was, is) {
			return nil, nil
		}
		w.found, w.died = was.Version == is.Version && was.Task == is.Task, was.DeadAt
	}
	return w, nil
}

// isRow says that an item is the row of a job.
func isRow(i item.Item) bool { return i != nil && i.Int(contract.AttrSchema) != 0 && !job.IsGone(i) }

// alike says that nothing changed that can be searched for.
func alike(was, is job.Row) bool {
	a, b := search.EntryOf(was, "", ""), search.EntryOf(is, "", "")
	return was.Version == is.Version && a.Stage == b.Stage && a.Status == b.Status && a.Code == b.Code &&
		a.DueAt.Equal(b.DueAt) && a.FinishedAt.Equal(b.FinishedAt) && a.DeadAt.Equal(b.DeadAt) &&
		a.ExpiresAt.Equal(b.ExpiresAt)
}

// write does what changes call for, and notes the error of each.
func (s *Stage) write(ctx context.Context, list []work, errs []error) {
	note := func(w work, err error) {
		for _, i := range append(w.also, w.change) {
			errs[i] = err
		}
	}
	var rows []job.Row
	var of []work
	for _, w := range list {
		switch {
		case w.dropped:
		case w.gone:
			note(w, s.Index.RemoveEntry(ctx, search.EntryOf(w.row, "", "")))
		default:
			rows, of = append(rows, w.row), append(of, w)
		}
	}
	entries, err := s.entries(ctx, rows)
	if err != nil {
		for _, w := range of {
			note(w, err)
		}
		return
	}
	updates := make([]search.Update, len(entries))
	for n, e := range entries {
		updates[n] = search.Update{Entry: e, Found: of[n].found, DeadBefore: of[n].died}
	}
	for n, err := range s.Index.PutEntries(ctx, updates) {
		note(of[n], err)
	}
}

// entries returns the entries of rows, with what is not in the rows.
func (s *Stage) entries(ctx context.Context, rows []job.Row) ([]search.Entry, error) {
	labels, err := s.Store.LabelsOf(ctx, rows...)
	if err != nil {
		return nil, fmt.Errorf("reading the labels of %d jobs: %w", len(rows), err)
	}
	entries := make([]search.Entry, len(rows))
	for n, r := range rows {
		dag := ""
		if r.InRun() {
			if dag, err = s.dagOf(ctx, run.Of(r)); err != nil {
				return nil, err
			}
		}
		entries[n] = search.EntryOf(r, labels[n].Tags, dag)
	}
	return entries, nil
}

// dagOf returns the name of the dag of a run, "" for none.
func (s *Stage) dagOf(ctx context.Context, k run.Key) (string, error) {
	return s.dags.Get(ctx, k, func(ctx context.Context) (string, error) {
		is, err := s.Store.Run(ctx, k)
		if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Undecodable { // or just being forgotten
			return "", nil
		}
		return is.Dag, err
	})
}
