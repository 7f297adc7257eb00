package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// Redrive brings back the dead job of a node: it retries the node. by is the id of the new job, which may not be there
// yet. already says that the node was retried before. A job that is gone is a fault.NotFound, and one whose run cannot
// be retried a fault.Refused.
func (r *Controller) Redrive(
	ctx context.Context, k job.Key,
) (by job.ID, already bool, todo effect.List, err error) {
	rows, err := r.Store.Nodes(ctx, []job.Key{k})
	if err != nil {
		return "", false, todo, err
	}
	row := rows[0]
	if !row.InRun() {
		return "", false, todo, fault.New(fault.NotFound, nil, "reading the node of job %s", k.ID)
	}
	is, err := r.Store.Run(ctx, run.Of(row))
	if err != nil {
		return "", false, todo, err
	}
	if already = is.Generation(row.Node) > row.Generation; !already {
		todo, err = r.RetryNode(ctx, is.Key, row.Node,
			By{Who: "redrive", Reason: fmt.Sprintf("job %s was redriven", k.ID)})
		if wrong := new(WrongState); errors.As(err, &wrong) {
			already, err = r.refusal(ctx, row, wrong)
		}
		if err != nil {
			return "", false, todo, err
		}
	}
	next := is.Key.Job(row.Node, row.Generation+1, row.ItemNo)
	return next.ID, already, todo, r.linkRedriven(ctx, row, next, &todo)
}

// refusal is the error of a redrive that the run did not allow. already says that another process has just retried the
// node; then there is no error.
func (r *Controller) refusal(ctx context.Context, row job.Row, why *WrongState) (already bool, err error) {
	is, err := r.Store.Run(ctx, run.Of(row))
	switch {
	case err != nil:
		return false, err
	case is.Generation(row.Node) > row.Generation:
		return true, nil
	case is.Operation != nil, is.Stop != run.NoStop && !is.Status.Final(): // it may be allowed soon
		return false, fault.New(fault.Conflict, why, "retrying a node of run %s", is.ID)
	}
	return false, fault.New(fault.Refused, why, "retrying a node of run %s", is.ID)
}

// linkRedriven links a dead job to the one that replaces it, so that its dead letter is no longer pending. accept does
// so in one transaction with the new row; but while the run is paused or has no free slot there is no such row. It will
// be put before the run ends, unless it is that of an item, whose node may end without it.
func (r *Controller) linkRedriven(ctx context.Context, row job.Row, by job.Key, todo *effect.List) error {
	if row.IsItem() {
		return r.linkItem(ctx, row, by, todo)
	}
	_, _, err := r.rewrite(ctx, row, unlinked,
		func(row job.Row, now time.Time) (job.Row, item.Write) { return job.Redriven(row, by.ID, now) })
	return err
}

// unlinked says that nothing replaces a dead job yet.
func unlinked(row job.Row) bool {
	return row.Status == job.Dead && row.RedrivenBy == "" && !row.CreatedAt.IsZero()
}

// linkItem is linkRedriven for an item. The node's next row decides: while it has not ended, the process that ends it
// finds the link, which is only written together with a check that it has not; after its end the replacement is put
// here.
func (r *Controller) linkItem(ctx context.Context, row job.Row, by job.Key, todo *effect.List) error {
	own := run.Of(row).Job(row.Node, row.Generation+1, 0)
	for range tries {
		rows, err := r.Store.Nodes(ctx, []job.Key{row.Key, own, by})
		if err != nil {
			return err
		}
		dead, node, next := rows[0], rows[1], rows[2]
		_, link := job.Redriven(dead, by.ID, r.Clock.Now())
		switch {
		case !unlinked(dead):
			return nil
		case next.Status != "":
			err = r.Store.Put(ctx, link)
		case node.Status.Final() && row.ItemNo > node.Items:
			var f *facts
			if f, err = r.read(ctx, run.Of(row), todo); err != nil {
				return err
			}
			var ended []job.Row
			if ended, err = r.replaceItem(ctx, f, node, row.ItemNo); err == nil {
				f.end(ended)
				return nil
			}
		default:
			err = r.Store.Commit(ctx, link, job.CheckNotEnded(own))
		}
		if !refused(err) {
			return err
		}
	}
	return changed(run.Of(row))
}
