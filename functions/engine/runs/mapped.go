package runs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/engine/runs/permit"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// open puts the row of a mapped node, and then those of its items.
func (r *Controller) open(ctx context.Context, f *facts, name string, d decision) ([]job.Row, error) {
	list := d.list
	bytes, err := r.payloadBytes(ctx, f, name, d.see, list)
	if err != nil {
		return nil, err
	}
	switch admitted, why, err := r.weigh(ctx, f, name, len(list), bytes); {
	case err != nil:
		return nil, err
	case why.Code != "":
		return r.end(ctx, f, name, job.Dead, why)
	case !admitted:
		return nil, nil
	}
	row, err := r.filled(ctx, f, r.blank(f, name, 0, r.Clock.Now()))
	if err != nil {
		return nil, err
	}
	row.Items = int64(len(list))
	counted, err := r.counted(ctx, f, row)
	if err != nil {
		return nil, err
	}
	from := madeFrom{List: list, Generations: f.generationsRead(name)}
	if row, err = r.keepMadeFrom(ctx, row, from); err != nil {
		return nil, err
	}
	row, links, err := r.replacing(ctx, f, row, row.CreatedAt)
	if err != nil {
		return nil, err
	}
	row, write := job.AcceptMapped(row)
	more := row.Items - counted
	count := f.run.CountItems(more, int64(dag.MaxJobs-f.graph.Plain())-more, r.Clock.Now())
	err = r.Store.Commit(ctx, append([]item.Write{write, count}, links...)...)
	if refused(err) {
		olds := store.Refused(err).Olds
		_, taken := olds[0]
		if _, full := olds[1]; !taken && !full { // the dead job has changed: everything is read once more
			return nil, err
		}
		if !taken { // only the count was refused
			return r.end(ctx, f, name, job.Dead, job.Reason{
				Code:    dag.ReasonExpressionFailed,
				Message: fmt.Sprintf("the run would have more than %d jobs", dag.MaxJobs),
			})
		}
		rows, err := r.rows(ctx, f, name)
		if err != nil || rows[name].Status != job.Blocked {
			return nil, err
		}
		return r.mapped(ctx, f, rows[name])
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.work[name] = &work{from: from, see: d.see}
	f.mu.Unlock()
	if !r.bounded(f, name) {
		return r.putItems(ctx, f, row, numbers(1, row.Items), nil)
	}
	_, ended, err := r.more(ctx, f, row, nil, len(list))
	return ended, err
}

// bounded says that items of a node need places.
func (r *Controller) bounded(f *facts, name string) bool {
	return f.graph.Nodes[name].MaxParallel > 0 || f.graph.MaxConcurrency > 0
}

// numbers lists the numbers from first up to and including last.
func numbers(first, last int64) (list []int64) {
	for no := first; no <= last; no++ {
		list = append(list, no)
	}
	return list
}

// counted returns how many items of an earlier generation of a mapped node are counted among the run's. Those of the
// newest take their place: a run may be retried as often as one likes.
func (r *Controller) counted(ctx context.Context, f *facts, own job.Row) (int64, error) {
	if is := f.run.Nodes[own.Node]; is.Floor > 0 || own.Generation == 1 {
		return is.Items, nil
	}
	for g := own.Generation - 1; g > 0; g-- { // the run was retried before it held the number
		rows, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(own.Node, g, 0)})
		if err != nil {
			return 0, err
		}
		if rows[0].IsMapped() {
			return rows[0].Items, nil
		}
	}
	return 0, nil
}

// mapped puts the missing items of a mapped node that has its row, as far as there are places, or ends the node once
// all items have ended.
func (r *Controller) mapped(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	items, err := r.items(ctx, f, own)
	if err != nil {
		return nil, err
	}
	var missing []int64
	for i, it := range items {
		if it.Status == "" {
			missing = append(missing, int64(i)+1)
		} else {
			f.unpark(it)
		}
	}
	if len(missing) > 0 {
		return r.refill(ctx, f, own, missing)
	}
	return r.closeItems(ctx, f, own, items)
}

// refill puts missing items, if the run may release anything.
func (r *Controller) refill(ctx context.Context, f *facts, own job.Row, missing []int64) ([]job.Row, error) {
	if !f.mayRelease(own.Node, r.Clock.Now()) {
		return nil, nil
	}
	if !r.bounded(f, own.Node) {
		return r.putItems(ctx, f, own, missing, nil)
	}
	given, err := r.Store.Counted(ctx, f.run.Key.NextRef(own.Node, own.Generation))
	if err != nil {
		return nil, err
	}
	// Numbers up to given are of other calls, which may have failed; the others are still to be given out.
	missing = slices.DeleteFunc(missing, func(no int64) bool { return no > given })
	_, ended, err := r.more(ctx, f, own, missing, int(own.Items))
	return ended, err
}

// itemEnded puts the next item of a mapped node after one of them has ended, or ends the node.
func (r *Controller) itemEnded(ctx context.Context, f *facts, name string) (ended []job.Row, err error) {
	rows, err := r.rows(ctx, f, name)
	own := rows[name]
	if err != nil || !own.IsMapped() || own.Status != job.Blocked {
		return nil, err
	}
	// The end is counted before the next item is put. After a crash in between it counts twice, so that the count
	// reaches the number of items although one of them may have no row: then a process checks for it.
	all, err := r.allItems(ctx, f, own)
	if err != nil {
		return nil, err
	}
	if f.graph.Nodes[name].MaxParallel > 0 && f.mayRelease(name, r.Clock.Now()) {
		if _, ended, err = r.more(ctx, f, own, nil, 1); err != nil {
			return ended, err
		}
	}
	if !all {
		return ended, nil
	}
	more, err := r.mapped(ctx, f, own)
	return append(ended, more...), err
}

// allItems counts the end of an item, and says whether it may be the last of its node.
func (r *Controller) allItems(ctx context.Context, f *facts, own job.Row) (bool, error) {
	if own.Items < dag.CountFrom {
		return true, nil
	}
	n, err := r.Store.Count(ctx, f.run.Key, f.run.JoinRef("items#"+own.Node, own.Generation), 1, r.Clock.Now())
	return n >= own.Items, err
}

// closeOlder ends the mapped node of an earlier generation after the last of its items has ended, which is the cause:
// a newer generation waits for the node, and a run is not forgotten before it.
func (r *Controller) closeOlder(ctx context.Context, f *facts) ([]job.Row, error) {
	item := f.cause
	rows, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(item.Node, item.Generation, 0)})
	if err != nil || !rows[0].IsMapped() || !rows[0].Unfinished() {
		return nil, err
	}
	if all, err := r.allItems(ctx, f, rows[0]); err != nil || !all {
		return nil, err
	}
	return r.closeMapped(ctx, f, rows[0])
}

// itemsThere is how many items have a row. Items are put in order, so the others have none yet, unless another process
// is putting them just now.
func (r *Controller) itemsThere(ctx context.Context, f *facts, own job.Row) (int64, error) {
	const probes = 10
	from, to := int64(0), own.Items
	for from < to {
		step := (to-from)/(probes+1) + 1
		var at []int64
		var keys []job.Key
		for no := from + step; no <= to; no += step {
			at, keys = append(at, no), append(keys, f.run.Key.Job(own.Node, own.Generation, no))
		}
		rows, err := r.Store.Nodes(ctx, keys)
		if err != nil {
			return 0, err
		}
		for n, row := range rows {
			if row.Status == "" {
				to = at[n] - 1
				break
			}
			from = at[n]
		}
	}
	return from, nil
}

// closeMapped ends a mapped node once all of its items have ended.
func (r *Controller) closeMapped(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	items, err := r.items(ctx, f, own)
	if err != nil {
		return nil, err
	}
	return r.closeItems(ctx, f, own, items)
}

// closeItems is closeMapped by the rows of its items.
func (r *Controller) closeItems(ctx context.Context, f *facts, own job.Row, items []job.Row) ([]job.Row, error) {
	s, why, ended := endOfItems(items, f.graph.Nodes[own.Node].MaxFailed, f.run.Stop)
	if !ended {
		return nil, nil
	}
	// The row may change meanwhile: a job may begin to come after the node, or another process may close it.
	after, wrote, err := r.rewrite(ctx, own, func(own job.Row) bool { return own.Status == job.Blocked },
		func(own job.Row, now time.Time) (job.Row, item.Write) { return job.CloseMapped(own, s, why, now) })
	if !wrote {
		return nil, err
	}
	return []job.Row{after}, nil
}

// endOfItems returns how a mapped node ends by its items; ended is false while one of them has not ended. An item that
// the stop of the run has cancelled ends the node as the stop does, however many items may fail: a retry of the run
// runs it.
func endOfItems(items []job.Row, most dag.MaxFailed, stop run.Stop) (s job.Status, why job.Reason, ended bool) {
	failed := 0
	for i, it := range items {
		switch {
		case !it.Status.Final():
			return "", job.Reason{}, false
		case dag.EndOf(it.Status) != dag.Failed:
			continue
		case stop != run.NoStop && it.Status == job.Cancelled && it.Reason.Code == stop.Reason():
			s, why = job.Cancelled, it.Reason
		case s == "": // the first that failed says why
			s, why = job.Dead,
				job.Reason{Code: it.Reason.Code, Message: job.Cut(fmt.Sprintf("item %d: %s", i,
					cmp.Or(it.Reason.Message, string(it.Status))), contract.MaxErrorMessage)}
		}
		failed++
	}
	if s == job.Cancelled || !most.Allows(failed, len(items)) {
		return s, why, true
	}
	return job.Succeeded, job.Reason{}, true
}

// workOf reads what the items of a mapped node are made from, once in a call.
func (r *Controller) workOf(ctx context.Context, f *facts, own job.Row) (*work, error) {
	f.mu.Lock()
	w := f.work[own.Node]
	f.mu.Unlock()
	if w == nil {
		w = &work{}
		var err error
		if w.from, w.see, err = r.madeFrom(ctx, f, own); err != nil {
			return nil, err
		}
	}
	w.changed = int64(len(w.from.List)) != own.Items
	if !w.read {
		if err := r.readBefore(ctx, f, own, w); err != nil {
			return nil, err
		}
		w.read = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work[own.Node] = w
	return w, nil
}

// readBefore reads whether items of the generation before are carried over, and what they were made from.
func (r *Controller) readBefore(ctx context.Context, f *facts, own job.Row, w *work) error {
	is := f.run.Nodes[own.Node]
	if own.Generation <= 1 || is.Whole || w.changed {
		return nil
	}
	for _, p := range f.graph.Parents(own.Node) {
		if f.run.Since(p) >= is.Since { // the list may have changed with the parent
			return nil
		}
	}
	older, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(own.Node, own.Generation-1, 0)})
	if err != nil || older[0].Items != own.Items {
		return err
	}
	w.like = true
	if older[0].PayloadSize > 0 {
		w.was, err = r.readMadeFrom(ctx, older[0])
	}
	return err
}

// lack says why no further item of a mapped node was put.
type lack int

const (
	itemPut      lack = iota // as many were put as were asked for
	noItemLeft               // each item has a row, or its number was given to another call
	noNodePermit             // the node has max_parallel items that are open
	noRunPermit              // the run has max_concurrency jobs that are open
)

// permitsAtOnce bounds how many places one call takes before it puts the items for them.
const permitsAtOnce = 256

// pair is the places of one item.
type pair struct{ ofNode, ofRun permit.Permit }

// more puts up to most items of a mapped node that need places: first those numbers, then the next ones that no call
// was given. A number is given to one call only, so that ends which come together do not meet at the same item. If the
// run has no place, the node joins its line. A call that cannot put an item whose number it was given has the run
// derived.
func (r *Controller) more(
	ctx context.Context, f *facts, own job.Row, given []int64, most int,
) (why lack, ended []job.Row, err error) {
	defer func() {
		switch {
		case err != nil:
			err = r.orReconcile(ctx, f, err)
		case why == noRunPermit: // the process that takes the node out of the line puts what is missing
			f.addWaiter(own.Node)
		case len(given) > 0 && why == noNodePermit:
			err = r.Jobs.ReconcileLater(ctx, f.run.Key)
		}
	}()
	for most > 0 {
		pairs, why, err := r.pairs(ctx, f, own.Node, min(most, permitsAtOnce))
		if err != nil || len(pairs) == 0 {
			return why, ended, err
		}
		if wanted := len(pairs) - len(given); wanted > 0 {
			next, err := r.nextNumbers(ctx, f, own, wanted)
			if err != nil {
				f.giveBackPairs(pairs)
				return why, ended, err
			}
			given = append(given, next...)
		}
		n := min(len(given), len(pairs))
		f.giveBackPairs(pairs[n:])
		if n == 0 {
			return noItemLeft, ended, nil
		}
		lot := given[:n]
		given = given[n:]
		put, more, lost, err := r.putPairs(ctx, f, own, lot, pairs[:n])
		given = append(lost, given...)
		most -= put
		if ended = append(ended, more...); err != nil {
			return why, ended, err
		}
	}
	return itemPut, ended, nil
}

// pairs finds places for up to most items.
func (r *Controller) pairs(ctx context.Context, f *facts, node string, most int) (found []pair, why lack, err error) {
	for range most {
		ofNode, ok, err := f.permits.Acquire(ctx, node, f.graph.Nodes[node].MaxParallel)
		if err != nil || !ok {
			return found, noNodePermit, err
		}
		ofRun, ok, err := f.permits.Acquire(ctx, "", f.graph.MaxConcurrency)
		if err != nil || !ok {
			f.permits.GiveBack(ofNode)
			return found, noRunPermit, err
		}
		found = append(found, pair{ofNode, ofRun})
	}
	return found, itemPut, nil
}

func (f *facts) giveBackPairs(pairs []pair) {
	for _, p := range pairs {
		f.permits.GiveBack(p.ofNode, p.ofRun)
	}
}

// nextNumbers returns up to n numbers of items that no call was given, none if there are no more.
func (r *Controller) nextNumbers(ctx context.Context, f *facts, own job.Row, n int) ([]int64, error) {
	ref := f.run.Key.NextRef(own.Node, own.Generation)
	if !f.run.InBuckets { // items were put before numbers were given out
		there, err := r.itemsThere(ctx, f, own)
		if err != nil {
			return nil, err
		}
		if err := r.Store.Put(ctx, f.run.Key.BeginCount(ref, there, r.Clock.Now())); err != nil && !refused(err) {
			return nil, err
		}
	}
	last, err := r.Store.Count(ctx, f.run.Key, ref, int64(n), r.Clock.Now())
	if err != nil {
		return nil, err
	}
	return numbers(last-int64(n)+1, min(last, own.Items)), nil
}

// putPairs puts items with their places. put is how many have a row and a place now; lost are those whose place another
// call has got.
func (r *Controller) putPairs(
	ctx context.Context, f *facts, own job.Row, nos []int64, pairs []pair,
) (put int, ended []job.Row, lost []int64, err error) {
	w, err := r.workOf(ctx, f, own)
	if err != nil {
		f.giveBackPairs(pairs)
		return 0, nil, nil, err
	}
	before, err := r.itemsBefore(ctx, f, own, w, nos)
	if err != nil {
		f.giveBackPairs(pairs)
		return 0, nil, nil, err
	}
	err = r.each(ctx, len(nos), func(i int) error {
		f.busy <- struct{}{}
		defer func() { <-f.busy }()
		more, is, err := r.putItem(ctx, f, own, w, nos[i], before[i], pairs[i].ofRun, pairs[i].ofNode)
		f.mu.Lock()
		defer f.mu.Unlock()
		ended = append(ended, more...)
		if is {
			put++
		}
		if errors.Is(err, errPermitLost) {
			lost, err = append(lost, nos[i]), nil
		}
		return err
	})
	slices.Sort(lost)
	return put, ended, lost, err
}

// putItems puts items that need no places.
func (r *Controller) putItems(
	ctx context.Context, f *facts, own job.Row, nos []int64, ended []job.Row,
) ([]job.Row, error) {
	_, more, _, err := r.putPairs(ctx, f, own, nos, make([]pair, len(nos)))
	return append(ended, more...), err
}

// putItem puts one item. put says that it is open and holds the places now; if not, they were given back. One of the
// same list that succeeded in the generation before is carried over.
func (r *Controller) putItem(
	ctx context.Context, f *facts, own job.Row, w *work, no int64, before job.Row, permits ...permit.Permit,
) (ended []job.Row, put bool, err error) {
	now := r.Clock.Now()
	row, i := r.blank(f, own.Node, no, now), int(no)-1
	switch {
	case w.changed:
		f.permits.GiveBack(permits...)
		ended, err = r.failedItem(ctx, f, row, errListChanged)
		return ended, false, err
	case before.Status == job.Succeeded:
		f.permits.GiveBack(permits...)
		ended, err = r.carry(ctx, f, before, row)
		return ended, false, err
	}
	see := w.see
	see.Index, see.Items = i, len(w.from.List)
	if see.Item, err = dag.DecodeResult(w.from.List[i]); err != nil {
		f.permits.GiveBack(permits...)
		return nil, false, err
	}
	payload, err := f.graph.Payload(ctx, own.Node, see)
	if err == nil {
		row.Limits, _, err = f.graph.Limits(ctx, own.Node, see)
	}
	if err != nil {
		f.permits.GiveBack(permits...)
		ended, err = r.failedItem(ctx, f, row, err)
		return ended, false, err
	}
	return r.accept(ctx, f, row, payload, len(w.from.List), now, permits...)
}

// itemsBefore reads the items of those numbers in the generation before, if those that succeeded are carried over; the
// zero Row is of an item that is not. One whose value in the list has changed is none of them.
func (r *Controller) itemsBefore(ctx context.Context, f *facts, own job.Row, w *work, nos []int64) ([]job.Row, error) {
	before := make([]job.Row, len(nos))
	if !w.like {
		return before, nil
	}
	keys := make([]job.Key, len(nos))
	for i, no := range nos {
		keys[i] = f.run.Key.Job(own.Node, own.Generation-1, no)
	}
	rows, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, no := range nos {
		if len(w.was.List) == 0 || bytes.Equal(w.was.List[no-1], w.from.List[no-1]) {
			before[i] = rows[i]
		}
	}
	return before, nil
}

// replaceItems puts the jobs that dead items of the generation before the cause name as those that replace them, where
// the cause, a mapped node that has ended, has no such item. It returns the rows that it has ended.
func (r *Controller) replaceItems(ctx context.Context, f *facts) (ended []job.Row, err error) {
	x := f.cause
	if x.Generation == 1 || x.IsItem() || f.graph.Nodes[x.Node].ForEach == "" {
		return nil, nil
	}
	older, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(x.Node, x.Generation-1, 0)})
	if err != nil || older[0].Items <= x.Items {
		return nil, err
	}
	items, err := r.items(ctx, f, older[0])
	if err != nil {
		return nil, err
	}
	for _, it := range items[x.Items:] {
		if it.RedrivenBy == "" {
			continue
		}
		more, err := r.replaceItem(ctx, f, x, it.ItemNo)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// replaceItem puts the job of an item that a node which has ended does not have.
func (r *Controller) replaceItem(ctx context.Context, f *facts, x job.Row, no int64) ([]job.Row, error) {
	s, why := job.Skipped, x.Reason
	switch {
	case x.IsMapped() || why.Code == "":
		why = job.Reason{Code: dag.ReasonEmpty, Message: "the list has no such item any more"}
	case dag.EndOf(x.Status) == dag.Failed:
		s = job.Cancelled
	}
	now := r.Clock.Now()
	return r.putEnded(ctx, f, r.blankIn(f, x.Node, x.Generation, no, now), s, why, now)
}

// carry puts an item that succeeded in the generation before, with its result.
func (r *Controller) carry(ctx context.Context, f *facts, from, to job.Row) ([]job.Row, error) {
	to.StartedAt = from.StartedAt
	with, err := r.Store.CopyResult(ctx, from, &to)
	if err != nil {
		return nil, err
	}
	return r.putEnded(ctx, f, to, job.Succeeded, job.Reason{}, r.Clock.Now(), with...)
}

func (r *Controller) failedItem(ctx context.Context, f *facts, row job.Row, err error) ([]job.Row, error) {
	if ctx.Err() != nil {
		return nil, err // the call has ended, and its next repetition goes on here
	}
	why := job.Reason{Code: dag.ReasonExpressionFailed, Message: job.Cut(err.Error(), contract.MaxErrorMessage)}
	if wrong := new(dag.ExpressionError); errors.As(err, &wrong) {
		why = reasonOf(wrong)
	}
	return r.putEnded(ctx, f, row, job.Dead, why, r.Clock.Now())
}

// orReconcile asks for the run to be reconciled in another invocation, after an error between taking the number of an
// item and putting its row. It returns the error.
func (r *Controller) orReconcile(ctx context.Context, f *facts, err error) error {
	if err == nil {
		return nil
	}
	if later := r.Jobs.ReconcileLater(ctx, f.run.Key); later != nil {
		r.warn(ctx, f.run.Key, "a node that waits for a place is left to the run's wake-up", later)
	}
	return err
}
