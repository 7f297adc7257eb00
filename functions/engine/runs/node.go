package runs

import (
	"context"
	"encoding/json"
	"errors"

	"punctual/shared/job"
)

// bringOnNodes is bringOnNode for several nodes at the same time, and notes their ends.
func (r *Controller) bringOnNodes(ctx context.Context, f *facts, names []string) (ended []job.Row, err error) {
	err = r.each(ctx, len(names), func(i int) error {
		more, err := r.bringOnNode(ctx, f, names[i])
		f.mu.Lock()
		defer f.mu.Unlock()
		ended = append(ended, more...)
		f.noteEnded(more)
		return err
	})
	return ended, err
}

// bringOnNode evaluates a node, and does what becomes of it. It returns the rows that it has ended.
func (r *Controller) bringOnNode(ctx context.Context, f *facts, name string) ([]job.Row, error) {
	d, err := r.evaluate(ctx, f, name)
	if err != nil {
		return nil, err
	}
	switch d.do {
	case toHold:
		f.mu.Lock()
		f.holds = true
		f.mu.Unlock()
	case toUnpark:
		f.unpark(d.row)
	case toPutItems:
		return r.mapped(ctx, f, d.row)
	case toOverride:
		return r.force(ctx, f, name)
	case toEnd:
		return r.end(ctx, f, name, d.status, d.why)
	case toOpen:
		return r.open(ctx, f, name, d)
	case toRelease:
		return r.release(ctx, f, name, d.payload, d.limits)
	}
	return nil, nil
}

// release makes the job of a node. A node that finds no permit of the run joins its waiters.
func (r *Controller) release(
	ctx context.Context, f *facts, name string, payload json.RawMessage, limits job.Limits,
) (ended []job.Row, err error) {
	switch admitted, why, err := r.weigh(ctx, f, name, 1, len(payload)); {
	case err != nil:
		return nil, err
	case why.Code != "":
		return r.end(ctx, f, name, job.Dead, why)
	case !admitted:
		return nil, nil
	}
	now := r.Clock.Now()
	for {
		at, found, err := r.runPermit(ctx, f, name)
		if err != nil {
			return nil, err
		}
		if !found {
			f.addWaiter(name)
			return nil, nil
		}
		row := r.blank(f, name, 0, now)
		row.Limits = limits
		ended, _, err := r.accept(ctx, f, row, payload, 0, now, at)
		if !errors.Is(err, errPermitLost) {
			return ended, err
		}
	}
}
