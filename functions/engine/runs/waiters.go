package runs

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"punctual/functions/engine/runs/permit"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// recheckWaiters writes down which nodes wait for a place of the run, and then releases those for which there is one.
func (r *Controller) recheckWaiters(ctx context.Context, f *facts) (ended []job.Row, err error) {
	for len(f.joins) > 0 {
		joins := f.joins
		f.joins = map[int]int64{}
		// An end that finds all places of a waiting mapped node taken removes it from the waiters, and relies on the
		// holders to release its next items. An item that has ended does that no more once its node waits.
		for no := range joins {
			if err := f.permits.FreeHeldOf(ctx, f.graph.Names()[no]); err != nil {
				return ended, err
			}
		}
		for _, w := range f.run.Key.AddWaiters(joins, r.Clock.Now()) {
			if err := r.Store.Put(ctx, w); err != nil {
				return ended, err
			}
		}
		for no := range joins {
			if !f.marked[no] {
				continue
			}
			if err := r.removeMark(ctx, f, no); err != nil {
				return ended, err
			}
			delete(f.marked, no)
		}
		f.permits.Forget("")
		more, err := r.moveUp(ctx, f, true)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// choose names the node that is to be released next. The order is that of levels and names; but under a limit of n, n
// jobs may end together, so each end begins at one of the first n: ends that choose the same one delay each other.
func choose(l run.Waiters, order []int, by job.ID, n, round int) (no int, found bool) {
	var waiting []int
	for _, no := range order {
		if l.Waiting[no] > 0 {
			waiting = append(waiting, no)
		}
	}
	if len(waiting) == 0 {
		return 0, false
	}
	width := len(waiting)
	if round == 0 {
		width = min(width, n)
	}
	if by == "" {
		width = 1
	}
	return waiting[int(permit.Hash(string(by)+strconv.Itoa(round)))%width], true
}

// moveUp releases nodes that are queued for a permit of the run while there are permits: the ended job's, and with
// takeFree also free ones. It returns the rows that it has ended.
func (r *Controller) moveUp(ctx context.Context, f *facts, takeFree bool) (ended []job.Row, err error) {
	stopped := f.run.Stop != run.NoStop && !f.graph.HasAlways()
	if f.graph.MaxConcurrency == 0 || stopped || f.run.Paused || f.run.Operation != nil {
		return nil, nil
	}
	names := f.graph.Names()
	waiters, err := r.Store.Waiters(ctx, f.run.Key, len(names))
	if err != nil {
		return nil, err
	}
	for _, no := range slices.Sorted(maps.Keys(waiters.Claimed)) {
		if f.permits.By() == "" || waiters.Claimed[no] != f.mark() {
			continue // of another end, which may be putting its row just now
		}
		more, err := r.releaseClaimed(ctx, f, no)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
	if len(waiters.Waiting) == 0 {
		return ended, nil
	}
	var order []int
	for _, name := range slices.Concat(f.graph.Levels()...) {
		no, _ := slices.BinarySearch(names, name)
		order = append(order, no)
	}
	for round := 0; ; round++ {
		no, found := choose(waiters, order, f.permits.By(), f.graph.MaxConcurrency, round)
		if !found || !takeFree && !f.permits.HoldsOfRun() {
			return ended, nil
		}
		if err := timeLeft(ctx); err != nil {
			return ended, err
		}
		p, found, err := f.permits.Acquire(ctx, "", f.graph.MaxConcurrency)
		if err != nil || !found {
			return ended, err
		}
		f.permits.GiveBack(p)
		more, err := r.admitWaiter(ctx, f, waiters, no)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
}

// admitWaiter takes a node out of the line and releases it, or the next item of a mapped node, which stays in the line
// while there are numbers of its items to be given out. What is known to have left the line is removed from it.
func (r *Controller) admitWaiter(
	ctx context.Context, f *facts, waiters run.Waiters, no int,
) (ended []job.Row, err error) {
	name, generation := f.graph.Names()[no], waiters.Waiting[no]
	if f.graph.Nodes[name].ForEach != "" && generation == f.run.Generation(name) &&
		!f.stopsNode(name, r.Clock.Now()) {
		rows, err := r.rows(ctx, f, name)
		if err != nil {
			return nil, err
		}
		if own := rows[name]; own.IsMapped() && own.Status == job.Blocked {
			why, ended, err := r.more(ctx, f, own, nil, 1)
			if err != nil || why == itemPut || why == noRunPermit {
				return ended, err
			}
			// All numbers are given out, or all places of its own are taken. Just before it leaves the line, another
			// call may have failed to put its item, or have freed a permit: releaseClaimed checks for both.
			more, err := r.claimWaiter(ctx, f, waiters, no)
			return append(ended, more...), err
		}
	}
	return r.claimWaiter(ctx, f, waiters, no)
}

// claimWaiter takes a node out of the line and releases it, unless another call has taken it out.
func (r *Controller) claimWaiter(ctx context.Context, f *facts, waiters run.Waiters, no int) ([]job.Row, error) {
	generation := waiters.Waiting[no]
	if generation > f.run.Generation(f.graph.Names()[no]) { // by the run as it was read, the node has run already
		return nil, fault.New(fault.Conflict, nil, "an operation on run %s came in between", f.run.Key.ID)
	}
	err := r.Store.Put(ctx, f.run.Key.ClaimWaiter(no, generation, f.mark()))
	if refused(err) {
		page := run.WaiterPage(no)
		is := run.ReadWaiterPage(store.Refused(err).Olds[0], page, len(f.graph.Names()))
		for other := range waiters.Waiting {
			if run.WaiterPage(other) == page && (other == no || is.Waiting[other] == 0) {
				delete(waiters.Waiting, other)
			}
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	delete(waiters.Waiting, no)
	return r.releaseClaimed(ctx, f, no)
}

// releaseClaimed releases a node that was taken out of the line, or puts the missing items of a mapped one.
func (r *Controller) releaseClaimed(ctx context.Context, f *facts, no int) (ended []job.Row, err error) {
	name := f.graph.Names()[no]
	f.permits.Forget(name)
	if ended, err = r.bringOnNode(ctx, f, name); err != nil {
		return ended, err // the mark stays, and the end is propagated once more
	}
	f.mu.Lock()
	_, waits := f.joins[no]
	if waits { // until it is among the waiters again, only the mark names it
		f.marked[no] = true
	}
	f.mu.Unlock()
	if waits {
		return ended, nil
	}
	return ended, r.removeMark(ctx, f, no)
}

// removeMark removes the mark of a node, unless another call has claimed the node meanwhile.
func (r *Controller) removeMark(ctx context.Context, f *facts, no int) error {
	err := r.Store.Put(ctx, f.run.Key.RemoveWaiter(no, f.mark()))
	if refused(err) {
		return nil
	}
	return err
}
