package release

import (
	"context"
	"slices"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// slot lets one job of a run, or one item of a mapped node, be open at a time.
type slot struct {
	bounded bool   // false: there is no bound, and nothing is to be taken
	node    string // the mapped node; "" for a slot of the run
	no      int    // from 0
	from    job.ID // the job that had it and has ended; "" for none
}

func (s slot) take(k run.Key, row job.Row) item.Write {
	return k.TakeSlot(s.node, s.no, s.from, row.ID)
}

// slot finds a free slot of the run (node "") or of a mapped node; most 0 says that there is no bound.
func (r *Releaser) slot(ctx context.Context, f *facts, node string, most int) (slot, bool, error) {
	if most == 0 {
		return slot{}, true, nil
	}
	holders, err := r.Store.Slots(ctx, f.run.Key, node, most)
	if err != nil {
		return slot{}, false, err
	}
	var keys []job.Key
	var taken []int
	for no := range most {
		h, ok := holders[no]
		if !ok {
			return slot{bounded: true, node: node, no: no}, true, nil
		}
		keys, taken = append(keys, job.Key{Tenant: f.run.Tenant, ID: h.Job}), append(taken, no)
	}
	rows, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return slot{}, false, err
	}
	for n, row := range rows {
		if row.Status.Final() {
			return slot{bounded: true, node: node, no: taken[n], from: keys[n].ID}, true, nil
		}
	}
	return slot{}, false, nil
}

// runSlot finds a free slot of the run for a node. If there is none, the node joins the run's line; the caller then
// calls recheckLine, because a slot may have become free in between.
func (r *Releaser) runSlot(ctx context.Context, f *facts, name string) (slot, bool, error) {
	if f.graph.MaxConcurrency == 0 {
		return slot{}, true, nil
	}
	if err := r.findSlot(ctx, f); err != nil {
		return slot{}, false, err
	}
	if len(f.free) > 0 {
		s := f.free[0]
		f.free = f.free[1:]
		return s, true, nil
	}
	f.lined = true
	no, _ := slices.BinarySearch(f.graph.Names(), name)
	return slot{}, false, r.Store.Put(ctx, f.run.Key.JoinLine(no, f.run.Generation(name)))
}

// findSlot looks for a free slot of the run if none is known. Once it has found none it looks no more.
func (r *Releaser) findSlot(ctx context.Context, f *facts) error {
	if len(f.free) > 0 || f.full {
		return nil
	}
	s, free, err := r.slot(ctx, f, "", f.graph.MaxConcurrency)
	if free && err == nil {
		f.free = append(f.free, s)
	}
	f.full = !free
	return err
}

// giveBack returns slots of the run that were not needed.
func (f *facts) giveBack(slots ...slot) {
	for _, s := range slots {
		if s.bounded && s.node == "" {
			f.free = append(f.free, s)
		}
	}
}

// freedBy notes that x has ended: its slot is free if nobody has taken it since.
func (f *facts) freedBy(x job.Row) {
	if x.Slot > 0 && f.graph.MaxConcurrency > 0 {
		f.free = append(f.free, slot{bounded: true, no: int(x.Slot) - 1, from: x.ID})
	}
}

// moveUp releases the nodes that wait in the run's line while slots are free, in the order of levels and names. It
// returns the rows that it has ended.
func (r *Releaser) moveUp(ctx context.Context, f *facts) (ended []job.Row, err error) {
	if f.graph.MaxConcurrency == 0 || f.run.Stop != run.NoStop || f.run.Paused || f.run.Act != nil {
		return nil, nil
	}
	names := f.graph.Names()
	waiting, err := r.Store.Line(ctx, f.run.Key, len(names))
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	for _, name := range slices.Concat(f.graph.Levels()...) {
		no, _ := slices.BinarySearch(names, name)
		generation, waits := waiting[no]
		if !waits {
			continue
		}
		if err := r.findSlot(ctx, f); err != nil || len(f.free) == 0 {
			return ended, err
		}
		if generation == f.run.Generation(name) {
			f.lined = false
			more, err := r.judge(ctx, f, name, job.Row{})
			if ended = append(ended, more...); err != nil {
				return ended, err
			}
			if f.lined { // some of its items still wait
				return ended, nil
			}
		}
		if err := r.Store.Put(ctx, f.run.Key.LeaveLine(no, generation)); err != nil && !refused(err) {
			return ended, err
		}
	}
	return ended, nil
}

// recheckLine calls moveUp if nodes have joined the line: a slot may have become free just before that.
func (r *Releaser) recheckLine(ctx context.Context, f *facts) ([]job.Row, error) {
	if !f.lined {
		return nil, nil
	}
	f.full, f.lined = false, false
	return r.moveUp(ctx, f)
}
