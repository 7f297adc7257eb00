package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// open puts the row of a mapped node, and then those of its items.
func (r *Releaser) open(ctx context.Context, f *facts, name string, see dag.Facts) ([]job.Row, error) {
	list, err := f.graph.Items(ctx, name, see)
	if err != nil {
		return r.failed(ctx, f, name, err)
	}
	if len(list) == 0 {
		return r.end(ctx, f, name, job.Skipped, job.Reason{Code: dag.ReasonEmpty})
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
	row, links, err := r.inPlaceOf(ctx, f, row, row.CreatedAt)
	if err != nil {
		return nil, err
	}
	row, write := job.AcceptMapped(row)
	more := row.Items - counted
	count := f.run.CountItems(more, int64(dag.MaxJobs-f.graph.Plain())-more)
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
		items, err := r.items(ctx, f, rows[name])
		if err != nil {
			return nil, err
		}
		return r.refill(ctx, f, rows[name], items)
	}
	if err != nil {
		return nil, err
	}
	return r.fill(ctx, f, row, from, see, make([]job.Row, len(list)))
}

// counted returns how many items of an earlier generation of a mapped node are counted among the run's. Those of the
// newest take their place: a run may be retried as often as one likes.
func (r *Releaser) counted(ctx context.Context, f *facts, own job.Row) (int64, error) {
	older, err := r.older(ctx, f, own.Node, own.Generation, 0)
	if at := slices.IndexFunc(older, job.Row.IsMapped); at >= 0 {
		return older[at].Items, err
	}
	return 0, err
}

// mapped puts the missing items of a mapped node that has its row, and ends the node once all items have ended.
func (r *Releaser) mapped(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	items, err := r.items(ctx, f, own)
	if err != nil {
		return nil, err
	}
	ended, err := r.refill(ctx, f, own, items)
	if err != nil {
		return ended, err
	}
	more, err := r.closeMapped(ctx, f, own)
	return append(ended, more...), err
}

// itemEnded puts the next items of a mapped node after one of them has ended, or ends the node.
func (r *Releaser) itemEnded(ctx context.Context, f *facts, name string) (ended []job.Row, err error) {
	rows, err := r.rows(ctx, f, name)
	own := rows[name]
	if err != nil || !own.IsMapped() || own.Status != job.Blocked {
		return nil, err
	}
	if f.graph.Nodes[name].MaxParallel > 0 {
		there, err := r.itemsThere(ctx, f, own)
		if err == nil && there < own.Items {
			ended, err = r.refill(ctx, f, own, make([]job.Row, own.Items)[there:])
		}
		if err != nil {
			return ended, err
		}
	}
	if all, err := r.allItems(ctx, f, own); err != nil || !all {
		return ended, err
	}
	more, err := r.closeMapped(ctx, f, own)
	return append(ended, more...), err
}

// allItems counts the end of an item, and says whether it may be the last of its node.
func (r *Releaser) allItems(ctx context.Context, f *facts, own job.Row) (bool, error) {
	if own.Items < dag.CountFrom {
		return true, nil
	}
	n, err := r.Store.Count(ctx, f.run.Key, f.run.JoinRef("items#"+own.Node, own.Generation))
	return n >= own.Items, err
}

// closeOlder ends the mapped node of an earlier generation after the last of its items has ended: a newer generation
// waits for it, and a run is not forgotten before it.
func (r *Releaser) closeOlder(ctx context.Context, f *facts, item job.Row) ([]job.Row, error) {
	rows, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(item.Node, item.Generation, 0)})
	if err != nil || !rows[0].IsMapped() || !rows[0].Unfinished() {
		return nil, err
	}
	if all, err := r.allItems(ctx, f, rows[0]); err != nil || !all {
		return nil, err
	}
	return r.closeMapped(ctx, f, rows[0])
}

// itemsThere is how many items have a row. Items are put in order, so the others have none yet, unless somebody is
// putting them just now.
func (r *Releaser) itemsThere(ctx context.Context, f *facts, own job.Row) (int64, error) {
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

// refill puts missing items, if the run may release anything. items are the rows of the last items of the list; a zero
// Row is a missing one.
func (r *Releaser) refill(ctx context.Context, f *facts, own job.Row, items []job.Row) ([]job.Row, error) {
	if f.run.Stop != run.NoStop || f.run.Paused || f.run.Act != nil {
		return nil, nil
	}
	from, see, err := r.madeFrom(ctx, f, own)
	if err != nil {
		return nil, err
	}
	return r.fill(ctx, f, own, from, see, items)
}

// items reads the rows of a mapped node's items, in order.
func (r *Releaser) items(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	keys := make([]job.Key, own.Items)
	for i := range keys {
		keys[i] = f.run.Key.Job(own.Node, own.Generation, int64(i)+1)
	}
	return r.Store.Nodes(ctx, keys)
}

// closeMapped ends a mapped node once all of its items have ended.
func (r *Releaser) closeMapped(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	items, err := r.items(ctx, f, own)
	if err != nil {
		return nil, err
	}
	s, why := job.Succeeded, job.Reason{}
	stop := f.run.Stop.Reason()
	for i, it := range items {
		switch {
		case !it.Status.Final():
			return nil, nil
		case dag.EndOf(it.Status) != dag.Failed:
		case stop != "" && it.Status == job.Cancelled && it.Reason.Code == stop:
			s, why = job.Cancelled, it.Reason
		case s == job.Succeeded: // the first that failed says why
			s, why = job.Dead,
				job.Reason{Code: it.Reason.Code, Message: job.Cut(fmt.Sprintf("item %d: %s", i,
					cmp.Or(it.Reason.Message, string(it.Status))), contract.MaxErrorMessage)}
		}
	}
	// The row may change meanwhile: a job may begin to come after the node, or somebody else may close it.
	after, wrote, err := r.rewrite(ctx, own, func(own job.Row) bool { return own.Status == job.Blocked },
		func(own job.Row, now time.Time) (job.Row, item.Write) { return job.CloseMapped(own, s, why, now) })
	if !wrote {
		return nil, err
	}
	return []job.Row{after}, nil
}

// fill puts missing items while slots are free. items are the rows of the last items of the list; a zero Row is a
// missing one. Items of the same list that succeeded in the generation before are carried over.
func (r *Releaser) fill(
	ctx context.Context, f *facts, own job.Row, from madeFrom, see dag.Facts, items []job.Row,
) (ended []job.Row, err error) {
	list := from.List
	if int64(len(list)) != own.Items {
		return r.failMissing(ctx, f, own, items)
	}
	before, err := r.itemsBefore(ctx, f, own, from)
	if err != nil {
		return nil, err
	}
	most := f.graph.Nodes[own.Node].MaxParallel
	for n, it := range items {
		i := len(list) - len(items) + n
		if it.Status != "" {
			if err := r.unpark(ctx, f, it); err != nil {
				return ended, err
			}
			continue
		}
		now := r.Clock.Now()
		row := r.blank(f, own.Node, int64(i)+1, now)
		if i < len(before) && before[i].Status == job.Succeeded {
			more, err := r.carry(ctx, f, before[i], row)
			if ended = append(ended, more...); err != nil {
				return ended, err
			}
			continue
		}
		ofNode, free, err := r.slot(ctx, f, own.Node, most)
		if err != nil || !free {
			return ended, err
		}
		ofRun, free, err := r.runSlot(ctx, f, own.Node)
		if err != nil || !free {
			return ended, err
		}
		see.Item, see.Index = nil, i
		if see.Item, err = dag.DecodeResult(list[i]); err != nil {
			return ended, err
		}
		payload, err := f.graph.Payload(ctx, own.Node, see)
		if err != nil {
			f.giveBack(ofRun)
			more, err := r.failedItem(ctx, f, row, err)
			if ended = append(ended, more...); err != nil {
				return ended, err
			}
			continue
		}
		more, err := r.accept(ctx, f, row, payload, len(list), now, ofRun, ofNode)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// itemsBefore reads the items of the generation before, if those that succeeded are carried over; nil if not. An item
// whose value in the list has changed is the zero Row.
func (r *Releaser) itemsBefore(ctx context.Context, f *facts, own job.Row, from madeFrom) ([]job.Row, error) {
	is := f.run.Nodes[own.Node]
	if own.Generation <= 1 || is.Whole {
		return nil, nil
	}
	for _, p := range f.graph.Parents(own.Node) {
		if f.run.Since(p) >= is.Since { // the list may have changed with the parent
			return nil, nil
		}
	}
	older, err := r.Store.Nodes(ctx, []job.Key{f.run.Key.Job(own.Node, own.Generation-1, 0)})
	if err != nil || older[0].Items != own.Items {
		return nil, err
	}
	items, err := r.items(ctx, f, older[0])
	if err != nil || older[0].PayloadSize == 0 {
		return items, err
	}
	was, err := r.readMadeFrom(ctx, older[0])
	if err != nil {
		return nil, err
	}
	for i := range items {
		if !bytes.Equal(was.List[i], from.List[i]) {
			items[i] = job.Row{}
		}
	}
	return items, nil
}

// replaceItems puts the jobs that dead items of the generation before x name as those that take their place, where x,
// which has ended, has no such item. It returns the rows that it has ended.
func (r *Releaser) replaceItems(ctx context.Context, f *facts, x job.Row) (ended []job.Row, err error) {
	if x.Generation == 1 || x.ItemNo > 0 || f.graph.Nodes[x.Node].ForEach == "" {
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
func (r *Releaser) replaceItem(ctx context.Context, f *facts, x job.Row, no int64) ([]job.Row, error) {
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
func (r *Releaser) carry(ctx context.Context, f *facts, from, to job.Row) ([]job.Row, error) {
	result := from.Result
	if from.ResultIn == job.InItem {
		var err error
		if result, err = r.Store.Content(ctx, from.Key, job.ResultContent); err != nil {
			return nil, err
		}
	}
	to.StartedAt = from.StartedAt
	return r.putEnded(ctx, f, to, job.Succeeded, job.Reason{}, r.Clock.Now(), to.SetResult(json.RawMessage(result))...)
}

func (r *Releaser) failedItem(ctx context.Context, f *facts, row job.Row, err error) ([]job.Row, error) {
	return r.putEnded(ctx, f, row, job.Dead, job.Reason{
		Code: dag.ReasonExpressionFailed, Message: job.Cut(err.Error(), contract.MaxErrorMessage),
	}, r.Clock.Now())
}
