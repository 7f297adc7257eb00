package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/runs/permit"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// errPermitLost says that another writer has got the permit meanwhile. The row was not put.
var errPermitLost = errors.New("the permit was taken meanwhile")

// runPermit is a place of the run for a node: the one that was put by for it, or another.
func (r *Controller) runPermit(ctx context.Context, f *facts, name string) (permit.Permit, bool, error) {
	f.mu.Lock()
	p, is := f.reserved[name]
	delete(f.reserved, name)
	f.mu.Unlock()
	if is {
		return p, true, nil
	}
	return f.permits.Acquire(ctx, "", f.graph.MaxConcurrency)
}

// accept puts the row and the contents of a job that is to run, and sends its firing if it is due. If its payload does
// not fit its task, the job ends as DEAD. items is the number of items if the job is one of a mapped node. put says
// that the job is open and holds the places; a row that is there already is no error. Places that the job does not hold
// are given back; if one of them was taken meanwhile, the error is errPermitLost.
func (r *Controller) accept(
	ctx context.Context, f *facts, row job.Row, payload json.RawMessage, items int, now time.Time,
	permits ...permit.Permit,
) (ended []job.Row, put bool, err error) {
	lost := false
	defer func() {
		if !put && !lost {
			f.permits.GiveBack(permits...)
		}
	}()
	n := f.graph.Nodes[row.Node]
	task, err := r.task(ctx, f, n.Task)
	if fault.KindOf(err) == fault.NotFound { // deleted since the run was made
		ended, err = r.putEnded(ctx, f, row, job.Dead, job.Reason{
			Code: job.CodeUnknownTask, Message: fmt.Sprintf("task %q was deleted before the node was released", n.Task),
		}, now)
		return ended, false, err
	}
	if err != nil {
		return nil, false, err
	}
	why, err := r.violation(ctx, row, task, payload, items)
	if err != nil {
		return nil, false, err
	}
	if why.Code != "" {
		ended, err = r.putEnded(ctx, f, row, job.Dead, why, now)
		return ended, false, err
	}
	if row, err = r.ofTask(row, task, n); err != nil {
		return nil, false, err
	}
	row.DefinedSecrets = strings.Join(executor.DefinedSecrets(row.Executor, n.Payload), " ")
	if f.run.DueAt.After(now) && f.run.Stop == run.NoStop {
		row.DueAt = f.run.DueAt
	}
	send := job.Route(&row, now)
	row, links, err := r.replacing(ctx, f, row, now)
	if err != nil {
		return nil, false, err
	}
	c := job.Contents{Payload: payload}
	if c.Labels, err = r.labels(ctx, f, row.Node); err != nil {
		return nil, false, err
	}
	j := accept.Job{Row: row, With: links, Keep: func(ctx context.Context, row job.Row) error {
		return r.Store.KeepContents(ctx, row, c)
	}}
	j.Row.Hold(c)
	for _, p := range permits {
		if !p.Limited() {
			continue
		}
		if p.OfRun() {
			j.Row.Permit = int64(p.No()) + 1
		} else {
			j.Row.NodePermit = int64(p.No()) + 1
		}
		j.With = append(j.With, p.Write(row.ID, r.Clock.Now()))
	}
	for try := range tries {
		if err = r.Jobs.Put(ctx, j); err == nil || !r.passes(ctx, err, row.ID, try) {
			break
		}
	}
	put = err == nil
	if refused(err) {
		olds := store.Refused(err).Olds
		old, taken := olds[0]
		switch {
		case taken && !maps.Equal(old, j.Row.Item()): // another call has put it
			return nil, false, nil
		case taken: // so has our own first try, whose answer was lost; the firing is still to be sent
		case permitLost(f, olds, 1+len(links), permits):
			lost = true
			return nil, false, errPermitLost
		default: // the dead job has changed: everything is read once more
			return nil, false, err
		}
	} else if err != nil {
		return nil, false, err
	}
	r.Meter.Count(telemetry.NodesReleased, 1)
	if send {
		r.Jobs.Fire(ctx, "now", row.Firing())
	}
	return nil, put, nil
}

// permitLost says whether the write of a place was refused, which are those from number first on. The places that were
// not are given back.
func permitLost(f *facts, olds map[int]item.Item, first int, permits []permit.Permit) (lost bool) {
	at := first
	for _, p := range permits {
		if !p.Limited() {
			continue
		}
		_, refused := olds[at]
		lost = lost || refused
		at++
	}
	if !lost {
		return false
	}
	at = first
	for _, p := range permits {
		if !p.Limited() {
			continue
		}
		if _, refused := olds[at]; refused {
			f.permits.Lose(p)
		} else {
			f.permits.GiveBack(p)
		}
		at++
	}
	return true
}
