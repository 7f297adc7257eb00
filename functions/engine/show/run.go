package show

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// maxListedRuns is how many entries of the list one request reads at most.
const maxListedRuns = 2_000

// A page of runs with very many nodes ends early, because it reads the rows of all nodes.
const (
	listedRows     = 10_000 // rows after which a page ends
	runsReadAtOnce = 16     // runs that are read at the same time
)

// Run is a run as it is shown, with its params and tags.
type Run struct {
	*dag.Snapshot
	Params   json.RawMessage // merged; {} for none
	Tags     map[string]string
	Position string // in the list
}

// Run reads a run with all that is shown of it.
func (s *Reader) Run(ctx context.Context, k run.Key) (Run, error) {
	f, err := s.Snapshot(ctx, k)
	if err != nil {
		return Run{}, err
	}
	return s.withContents(ctx, Run{Snapshot: f})
}

// RunFilter selects runs among those of a list. Zero values select any.
type RunFilter struct {
	Status                        string // with which a run is shown
	Tags                          map[string]string
	FinishedAfter, FinishedBefore time.Time // FinishedAfter ≤ finished_at < FinishedBefore
}

// rowMay reports whether a run can pass, by what its row alone says.
func (f RunFilter) rowMay(is run.Run) bool {
	switch {
	case len(f.Tags) > 0 && !is.Tagged, !mayBe(is, f.Status):
		return false
	case f.FinishedAfter.IsZero() && f.FinishedBefore.IsZero():
		return true
	}
	return !is.FinishedAt.IsZero() && !is.FinishedAt.Before(f.FinishedAfter) &&
		(f.FinishedBefore.IsZero() || is.FinishedAt.Before(f.FinishedBefore))
}

// matches reports whether a run passes.
func (f RunFilter) matches(r Run) bool {
	for name, value := range f.Tags {
		if has, ok := r.Tags[name]; !ok || has != value {
			return false
		}
	}
	return f.Status == "" || string(r.Shown(r.States())) == f.Status
}

// RunList reads one page of the runs that pass a filter. next is the position of the next page, "" at the end.
func (s *Reader) RunList(
	ctx context.Context, t tenant.ID, q store.RunQuery, f RunFilter, limit int,
) (page []Run, next string, err error) {
	rows := 0
	for range maxListedRuns / store.ReadAtOnce {
		found, next, err := s.Store.Runs(ctx, t, q)
		if err != nil {
			return nil, "", err
		}
		found = slices.DeleteFunc(found, func(r store.ListedRun) bool { return !f.rowMay(r.Run) })
		for len(found) > 0 && len(page) < limit && rows < listedRows {
			lot := found[:min(len(found), limit-len(page), runsReadAtOnce)]
			found = found[len(lot):]
			shown, read, err := s.listedRuns(ctx, lot)
			if err != nil {
				return nil, "", err
			}
			rows += read
			for _, r := range shown {
				if r.Snapshot != nil && f.matches(r) {
					page = append(page, r)
				}
			}
			q.Below = lot[len(lot)-1].Position
		}
		if len(found) == 0 {
			q.Below = next
		}
		if q.Below == "" || len(page) == limit || rows >= listedRows {
			break
		}
	}
	return page, q.Below, nil
}

// mayBe reports whether a run may be shown with that status; "" is any.
func mayBe(is run.Run, status string) bool {
	shown := string(is.Shown())
	return status == "" || shown == status || status == string(run.Held) && shown == string(run.Running) && is.Holds
}

// listedRuns reads runs; a run that was just forgotten has no Snapshot. rows is how many rows it read.
func (s *Reader) listedRuns(ctx context.Context, runs []store.ListedRun) (shown []Run, rows int, err error) {
	shown = make([]Run, len(runs))
	var all errgroup.Group
	for n, r := range runs {
		all.Go(func() error {
			f, err := s.Snapshot(ctx, r.Key)
			if fault.KindOf(err) == fault.NotFound {
				return nil
			}
			if err != nil {
				return err
			}
			shown[n], err = s.withContents(ctx, Run{Snapshot: f, Position: r.Position})
			return err
		})
	}
	err = all.Wait()
	for _, r := range shown {
		if r.Snapshot == nil {
			continue
		}
		rows += len(r.Graph.Names())
		for _, items := range r.Items {
			rows += len(items)
		}
	}
	return shown, rows, err
}

// Snapshot reads a run and its nodes.
func (s *Reader) Snapshot(ctx context.Context, k run.Key) (*dag.Snapshot, error) {
	is, g, rows, err := s.Nodes(ctx, k)
	if err != nil {
		return nil, err
	}
	f := &dag.Snapshot{Run: is, Graph: g, Rows: rows, Items: map[string][]job.Row{}, Now: s.Now()}
	var soon []job.Key
	note := func(r job.Row) {
		if !r.IsMapped() && job.StartsSoon(r, f.Now) {
			soon = append(soon, r.Key)
		}
	}
	for name, row := range rows {
		note(row)
		if !row.IsMapped() {
			continue
		}
		keys := make([]job.Key, row.Items)
		for i := range keys {
			keys[i] = is.Key.Job(name, row.Generation, int64(i)+1)
		}
		if f.Items[name], err = s.Store.Nodes(ctx, keys); err != nil {
			return nil, err
		}
		for i, item := range f.Items[name] {
			if item.Status == "" && row.Status.Final() { // the node was cancelled before the item began
				f.Items[name][i].Status = job.Cancelled
			}
			note(item)
		}
	}
	f.Claims, f.Pauses, err = s.Claims(ctx, k.Tenant, soon)
	return f, err
}

func (s *Reader) withContents(ctx context.Context, r Run) (Run, error) {
	params, err := s.Store.Params(ctx, r.Snapshot.Run)
	if err != nil {
		return r, err
	}
	r.Params = json.RawMessage(cmp.Or(params, "{}"))
	if !r.Snapshot.Run.Tagged {
		return r, nil
	}
	tags, err := s.Store.RunContent(ctx, r.Snapshot.Run.Key, run.TagsContent)
	if fault.KindOf(err) == fault.NotFound { // it is being forgotten at this moment
		return r, nil
	}
	if err == nil {
		_ = json.Unmarshal([]byte(tags), &r.Tags) // we wrote it
	}
	return r, err
}

// resultsAtOnce is how many results of items are read at the same time.
const resultsAtOnce = 16

// ResultOfItems reads the result of a mapped node that has ended, as expressions see it: the list of the results of its
// items, with null for an item that did not succeed. There is none if the use of one of them fails, which partial says,
// or while the run is being forgotten; nor if it is too large.
func (s *Reader) ResultOfItems(
	ctx context.Context, items []job.Row,
) (result json.RawMessage, partial job.Partial, tooLarge bool, err error) {
	for _, item := range items {
		if item.Status == job.Succeeded && item.Partial != job.Whole {
			return nil, item.Partial, false, nil
		}
	}
	size, results := len("[]")+len(items), make([][]byte, len(items))
	for from := 0; from < len(items); from += resultsAtOnce {
		until := min(from+resultsAtOnce, len(items))
		switch err := s.itemResults(ctx, items[from:until], results[from:until]); {
		case fault.KindOf(err) == fault.NotFound: // the run is being forgotten at this moment
			return nil, job.Whole, false, nil
		case err != nil:
			return nil, job.Whole, false, err
		}
		for n, result := range results[from:until] {
			if result == nil {
				results[from+n] = []byte("null")
			}
			size += len(results[from+n])
		}
		if size > contract.MaxResult {
			return nil, job.Whole, true, nil
		}
	}
	return json.RawMessage("[" + string(bytes.Join(results, []byte(","))) + "]"), job.Whole, false, nil
}

// mostOfPage is how many bytes of results one page of items reads, so that the whole answer has less than 1 MB with
// the result of the node and one more of an item.
const mostOfPage = 512 << 10

// ItemResults reads the results of the first of these items, at least of one if there is any, until they have many
// bytes together. An item without a result has nil.
func (s *Reader) ItemResults(ctx context.Context, items []job.Row) (results []json.RawMessage, err error) {
	size := 0
	for lot := range slices.Chunk(items, resultsAtOnce) {
		read := make([][]byte, len(lot))
		if err := s.itemResults(ctx, lot, read); err != nil && fault.KindOf(err) != fault.NotFound { // being forgotten
			return nil, err
		}
		for _, result := range read {
			if size += len(result); size > mostOfPage && len(results) > 0 {
				return results, nil
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// itemResults reads the results of a few items; nil is none.
func (s *Reader) itemResults(ctx context.Context, items []job.Row, into [][]byte) error {
	g, ctx := errgroup.WithContext(ctx)
	for n, item := range items {
		if item.Status != job.Succeeded {
			continue
		}
		g.Go(func() error {
			result, err := s.Store.Result(ctx, item)
			if result != "" {
				into[n] = []byte(result)
			}
			return err
		})
	}
	return g.Wait()
}
