package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

// blank is the row of a node, or of item no of a mapped one, before its task is known.
func (r *Controller) blank(f *facts, name string, no int64, now time.Time) job.Row {
	return r.blankIn(f, name, f.run.Generation(name), no, now)
}

func (r *Controller) blankIn(f *facts, name string, generation, no int64, now time.Time) job.Row {
	n := f.graph.Nodes[name]
	k := f.run.Key.Job(name, generation, no)
	return job.Row{
		Key: k, Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now, NominalAt: f.run.NominalAt,
		Settings: job.Settings{
			Task: n.Task, Pool: n.Pool, Priority: cmp.Or(n.Priority, f.run.Priority, f.graph.Priority),
			Timeout: n.Timeout, StartWithin: n.StartWithin,
		},
		NodeRef: job.NodeRef{RunID: string(f.run.ID), Node: name, Generation: generation, ItemNo: no,
			Always: n.RunIf == dag.Always},
		WakeUp: job.WakeUp{Shard: horizon.ShardOf(string(k.ID), r.Shards)},
	}
}

// filled completes a blank row from its task, for a node that no worker runs.
func (r *Controller) filled(ctx context.Context, f *facts, row job.Row) (job.Row, error) {
	task, err := r.task(ctx, f, row.Task)
	if fault.KindOf(err) == fault.NotFound {
		task, err = job.Task{Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry}, nil
	}
	if err != nil {
		return row, err
	}
	return r.ofTask(row, task, f.graph.Nodes[row.Node])
}

// ofTask sets on a row what its node leaves to the task.
func (r *Controller) ofTask(row job.Row, t job.Task, n dag.Node) (job.Row, error) {
	row.Executor, row.Retry, row.Keeping = t.Executor, t.Retry, t.Keeping
	if row.Pool == "" {
		row.Pool = cmp.Or(t.Pool, contract.DefaultPool)
	}
	row.Priority = cmp.Or(row.Priority, t.Priority, job.Normal)
	if row.Timeout == 0 {
		row.Timeout = t.Timeout
	}
	if n.Limits == nil && !(n.ForEach != "" && row.ItemNo == 0) { // the row of a mapped node is no job
		row.Limits = t.Limits
	}
	if n.Retry == nil {
		return row, nil
	}
	var err error
	row.Retry, err = r.RetryOf(t.Retry, n.Retry)
	return row, err
}

// label writes the tags of a job that is not to run, and notes on its row that it has some.
func (r *Controller) label(ctx context.Context, f *facts, row job.Row) (job.Row, error) {
	l, err := r.labels(ctx, f, row.Node)
	if err != nil || l == (job.Labels{}) {
		return row, err
	}
	row.Labelled = l.Labelled()
	return row, r.Store.KeepContents(ctx, row, job.Contents{Labels: l})
}

// replacing notes on a row which dead job it replaces, that of the generation before, as a redrive does: so the
// handler's key stays the same. links is the write that notes the same on the dead job. Both go in one transaction, so
// that no crash leaves only one of them.
func (r *Controller) replacing(
	ctx context.Context, f *facts, row job.Row, now time.Time,
) (is job.Row, links []item.Write, err error) {
	before, found, err := r.newestOlder(ctx, f, row.Node, row.Generation, row.ItemNo)
	if err != nil || !found {
		return row, nil, err
	}
	switch { // the generation before may have been passed over, and have no row yet
	case before.Status == job.Dead && (before.CreatedAt.IsZero() || before.Generation != row.Generation-1):
		row.RootID = before.HandlerKey() // it is forgotten, or names one between
	case before.IsMapped():
	case before.Status == job.Cancelled && before.StartedAt.IsZero(): // it replaced a dead job and never ran
		row.RootID = before.RootID
	case before.Status == job.Dead:
		row.RedriveOf, row.RootID = before.ID, before.HandlerKey()
		if before.RedrivenBy == "" {
			_, link := job.Redriven(before, row.ID, now)
			links = append(links, link)
		}
	}
	return row, links, nil
}

// putEnded puts the row of a node that ends without having run, in one transaction with its contents. It returns no
// row if another writer has put one.
func (r *Controller) putEnded(
	ctx context.Context, f *facts, row job.Row, s job.Status, why job.Reason, now time.Time, contents ...item.Write,
) ([]job.Row, error) {
	row, err := r.filled(ctx, f, row)
	if err != nil {
		return nil, err
	}
	if row, err = r.label(ctx, f, row); err != nil {
		return nil, err
	}
	row, links, err := r.replacing(ctx, f, row, now)
	if err != nil {
		return nil, err
	}
	after, write := job.AcceptEnded(row, s, why, now)
	if more := slices.Concat(links, contents); len(more) == 0 {
		err = r.Store.PutRow(ctx, after, write)
	} else {
		err = r.Store.Commit(ctx, append([]item.Write{write}, more...)...)
	}
	if refused(err) {
		old, taken := store.Refused(err).Olds[0]
		switch {
		case !taken: // the dead job has changed: everything is read once more
			return nil, err
		case !maps.Equal(old, after.Item()):
			return nil, nil
		}
	} else if err != nil {
		return nil, err
	}
	return []job.Row{after}, nil
}

func (r *Controller) end(ctx context.Context, f *facts, name string, s job.Status, why job.Reason) ([]job.Row, error) {
	now := r.Clock.Now()
	return r.putEnded(ctx, f, r.blank(f, name, 0, now), s, why, now)
}

// reasonOf is why a node or an item is DEAD whose expression failed.
func reasonOf(e *dag.ExpressionError) job.Reason {
	return job.Reason{
		Code:    cmp.Or(e.Code, dag.ReasonExpressionFailed),
		Message: job.Cut(e.Error(), contract.MaxErrorMessage),
	}
}

// force puts the row of a node that an operator has ended.
func (r *Controller) force(ctx context.Context, f *facts, name string) ([]job.Row, error) {
	n, now := f.run.Nodes[name], r.Clock.Now()
	row := r.blank(f, name, 0, now)
	row.Forced = n.Override
	var contents []item.Write
	if n.Override == job.ForcedComplete {
		result, err := r.Store.RunContent(ctx, f.run.Key, resultName(name, n.Generation))
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return nil, err
		}
		contents = row.SetResult(json.RawMessage(result))
	}
	return r.putEnded(ctx, f, row, n.Override.Status(), forcedReason(n.Override, n.Reason), now, contents...)
}

func resultName(node string, generation int64) string {
	return fmt.Sprintf("result#%s#%d", node, generation)
}

func forcedReason(f job.Forced, why string) job.Reason {
	if f == job.ForcedComplete {
		return job.Reason{Code: dag.ReasonCompletedByOperator, Message: why}
	}
	return job.Reason{Code: dag.ReasonSkippedByOperator, Message: why}
}
