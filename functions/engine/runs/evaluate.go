package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/text"
)

// evaluate releases or ends a node if its parents decide so. by is the job whose end is the cause, the zero Row when
// the whole run is derived. It returns the rows that it has ended.
func (r *Controller) evaluate(ctx context.Context, f *facts, name string, by job.Row) ([]job.Row, error) {
	if by.IsItem() && by.Node == name && by.Generation == f.run.Generation(name) {
		return r.itemEnded(ctx, f, name)
	}
	ofParent := by.Status != "" && !by.IsItem() && slices.Contains(f.graph.Parents(name), by.Node) &&
		by.Generation == f.run.Generation(by.Node)
	if ofParent {
		if need := f.graph.JoinNeeds(f.run, name); need > 0 {
			n, err := r.Store.Count(ctx, f.run.Key, f.run.JoinRef(name, f.run.Generation(name)), 1, r.Clock.Now())
			if err != nil || n < int64(need) {
				return nil, err
			}
		}
	}
	if f.run.Operation != nil {
		return nil, nil
	}
	rows, err := r.rows(ctx, f, append([]string{name}, f.graph.Parents(name)...)...)
	if err != nil {
		return nil, err
	}
	own, there := rows[name]
	switch {
	case there && own.IsMapped() && own.Status == job.Blocked:
		return r.mapped(ctx, f, own)
	case there:
		f.unpark(own)
		return nil, nil
	}
	if override := f.run.Nodes[name]; override.Override != job.NotForced {
		return r.force(ctx, f, name)
	}
	older, err := r.openOlder(ctx, f, []string{name})
	if err != nil || slices.ContainsFunc(older[name], job.Row.Unfinished) {
		return nil, err // the end of the older job evaluates the node
	}
	switch v, why := f.graph.EvaluateNode(name, states(rows)); v {
	case dag.Held:
		f.mu.Lock()
		f.holds = true
		f.mu.Unlock()
	case dag.Cancel:
		return r.end(ctx, f, name, job.Cancelled, job.Reason{Code: why})
	case dag.Skip:
		return r.end(ctx, f, name, job.Skipped, job.Reason{Code: why})
	case dag.Run:
		if f.run.Paused {
			return nil, nil
		}
		if waits, err := r.awaitsRead(ctx, f, name); err != nil || waits {
			return nil, err
		}
		return r.release(ctx, f, name)
	}
	return nil, nil
}

// awaitsRead says that an ancestor which the node's expressions name has not ended. Its end evaluates the node.
func (r *Controller) awaitsRead(ctx context.Context, f *facts, name string) (bool, error) {
	rows, err := r.rows(ctx, f, f.graph.Reads(name)...)
	if err != nil {
		return false, err
	}
	return f.graph.AwaitsRead(name, states(rows)) != "", nil
}

// olderAtOnce is how many generations are read at a time to find the newest that has a row.
const olderAtOnce = 4

// newestOlder reads the newest row of a node, or of an item of it, in the generations before one; found is false if
// none has a row.
func (r *Controller) newestOlder(
	ctx context.Context, f *facts, name string, generation, no int64,
) (row job.Row, found bool, err error) {
	for g := generation - 1; g > 0; {
		var keys []job.Key
		for ; g > 0 && len(keys) < olderAtOnce; g-- {
			keys = append(keys, f.run.Key.Job(name, g, no))
		}
		rows, err := r.Store.Nodes(ctx, keys)
		if err != nil {
			return row, false, err
		}
		if at := slices.IndexFunc(rows, func(o job.Row) bool { return o.Status != "" }); at >= 0 {
			return rows[at], true, nil
		}
	}
	return row, false, nil
}

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
		NodeRef: job.NodeRef{RunID: string(f.run.ID), Node: name, Generation: generation, ItemNo: no},
		WakeUp:  job.WakeUp{Shard: horizon.ShardOf(string(k.ID), r.Shards)},
	}
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
	if n.Retry == nil {
		return row, nil
	}
	var err error
	row.Retry, err = r.RetryOf(t.Retry, n.Retry)
	return row, err
}

// labels are the tags of a node's job: those of the run and its dag, overridden by the node's own.
func (r *Controller) labels(ctx context.Context, f *facts, node string) (l job.Labels, err error) {
	f.mu.Lock()
	tags := f.tags
	f.mu.Unlock()
	if tags == nil && f.run.Tagged {
		body, err := r.Store.RunContent(ctx, f.run.Key, run.TagsContent)
		if err != nil {
			return l, err
		}
		if err := json.Unmarshal([]byte(body), &tags); err != nil {
			return l, fault.New(fault.Undecodable, err, "reading the tags of run %s", f.run.ID)
		}
		f.mu.Lock()
		f.tags = tags
		f.mu.Unlock()
	}
	own := f.graph.Nodes[node].Tags
	if len(own)+len(tags) == 0 {
		return l, nil
	}
	l.Tags = string(text.MustJSON(merged(tags, own)))
	return l, nil
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

// failed ends a node as DEAD if err is that of its expression, and returns any other error.
func (r *Controller) failed(ctx context.Context, f *facts, name string, err error) ([]job.Row, error) {
	wrong := new(dag.ExpressionError)
	if !errors.As(err, &wrong) {
		return nil, err
	}
	return r.end(ctx, f, name, job.Dead, reasonOf(wrong))
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

// release makes the job of a node whose rule is met, or skips the node if its when is false.
func (r *Controller) release(ctx context.Context, f *facts, name string) ([]job.Row, error) {
	now := r.Clock.Now()
	see, err := r.sight(ctx, f, name)
	if err != nil {
		return nil, err
	}
	switch yes, err := f.graph.When(ctx, name, see); {
	case err != nil:
		return r.failed(ctx, f, name, err)
	case !yes:
		return r.end(ctx, f, name, job.Skipped, job.Reason{Code: dag.ReasonWhenFalse})
	}
	if f.graph.Nodes[name].ForEach != "" {
		return r.open(ctx, f, name, see)
	}
	payload, err := f.graph.Payload(ctx, name, see)
	if err != nil {
		return r.failed(ctx, f, name, err)
	}
	if admitted, ended, err := r.weigh(ctx, f, name, 1, len(payload)); err != nil || !admitted {
		return ended, err
	}
	for {
		at, found, err := r.runPermit(ctx, f, name)
		if err != nil {
			return nil, err
		}
		if !found {
			f.addWaiter(name)
			return nil, nil
		}
		ended, _, err := r.accept(ctx, f, r.blank(f, name, 0, now), payload, 0, now, at)
		if !errors.Is(err, errPermitLost) {
			return ended, err
		}
	}
}

// accept puts the row and the contents of a job that is to run, and sends its firing if it is due. If its payload does
// not fit its task, the job ends as DEAD. items is the number of items if the job is one of a mapped node. put says
// that the job is open and holds the places; a row that is there already is no error. Places that the job does not hold
// are given back; if one of them was taken meanwhile, the error is errPermitLost.
func (r *Controller) accept(
	ctx context.Context, f *facts, row job.Row, payload json.RawMessage, items int, now time.Time, permits ...permit,
) (ended []job.Row, put bool, err error) {
	lost := false
	defer func() {
		if !put && !lost {
			f.giveBack(permits...)
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
	if f.run.DueAt.After(now) {
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
		if p.of == nil {
			continue
		}
		if p.of.owner == "" {
			j.Row.Permit = int64(p.bucket.No) + 1
		} else {
			j.Row.NodePermit = int64(p.bucket.No) + 1
		}
		j.With = append(j.With, p.write(row.ID, r.Clock.Now()))
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
func permitLost(f *facts, olds map[int]item.Item, first int, permits []permit) (lost bool) {
	at := first
	for _, p := range permits {
		if p.of == nil {
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
		if p.of == nil {
			continue
		}
		if _, refused := olds[at]; refused {
			f.lose(p)
		} else {
			f.giveBack(p)
		}
		at++
	}
	return true
}

// task reads a task, once in a call.
func (r *Controller) task(ctx context.Context, f *facts, name string) (job.Task, error) {
	f.mu.Lock()
	task, read := f.tasks[name]
	f.mu.Unlock()
	if read {
		return task, nil
	}
	task, err := r.Store.Task(ctx, f.run.Tenant, name)
	if err == nil {
		f.mu.Lock()
		f.tasks[name] = task
		f.mu.Unlock()
	}
	return task, err
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

// sight is what the node's expressions see.
func (r *Controller) sight(ctx context.Context, f *facts, name string) (dag.Facts, error) {
	return r.sightOf(ctx, f, f.graph.Needs(name), f.graph.ResultsRead(name), f.run.Job)
}

// sightOf is what expressions see that name these nodes, and read the results of some; row is where the row of each is.
func (r *Controller) sightOf(
	ctx context.Context, f *facts, needs, reads []string, row func(node string) job.Key,
) (dag.Facts, error) {
	see := dag.Facts{Nodes: map[string]dag.NodeFacts{}, Run: dag.RunFacts{
		ID: string(f.run.ID), Dag: f.run.Dag, Version: f.run.DagVersion, NominalAt: stamp(f.run.NominalAt),
		CreatedAt: stamp(f.run.CreatedAt),
	}}
	params, err := r.Store.Params(ctx, f.run)
	if err != nil {
		return see, err
	}
	if params != "" {
		if see.Params, err = dag.DecodeResult(json.RawMessage(params)); err != nil {
			return see, err
		}
	}
	left := maxResultsSeen
	rows, err := r.rowsAt(ctx, f, needs, row)
	if err != nil {
		return see, err
	}
	for i, n := range needs {
		row := rows[i]
		facts := dag.NodeFacts{Status: string(row.Status), Attempt: row.Attempt, Forced: row.Forced != job.NotForced}
		switch {
		case (row.Status == job.Succeeded || row.IsMapped()) && slices.Contains(reads, n):
			// A mapped node has results even if some of its items failed.
			most := min(left, contract.MaxResultsRead)
			facts.Result, facts.Size, err = r.result(ctx, f, row, most)
			if wrong := new(dag.ResultError); errors.As(err, &wrong) {
				facts.Unusable = wrong
			} else if err != nil {
				return see, err
			}
			left -= facts.Size
		case row.Status == job.Skipped && row.Reason.Code == dag.ReasonEmpty && f.graph.Nodes[n].ForEach != "":
			facts.Result = []any{} // it had no items, so it has no results
		}
		see.Nodes[n] = facts
	}
	return see, nil
}

// maxResultsSeen bounds the results that all expressions of one node read, in bytes: they are in memory together.
const maxResultsSeen = 4 * contract.MaxResultsRead

// result reads the result of a node, and its size as JSON. That of a mapped node is the list of its items' results. A
// partial result, or one of more than most bytes, is a *dag.ResultError.
func (r *Controller) result(ctx context.Context, f *facts, row job.Row, most int) (value any, size int, err error) {
	if !row.IsMapped() {
		return r.resultOf(ctx, row, most)
	}
	read := func(ctx context.Context) (results, error) { return r.itemsResults(ctx, f, row) }
	var all results
	if row.Status.Final() {
		all, err = r.lists.Get(ctx, row.Key, read)
	} else {
		all, err = read(ctx)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case all.wrong != nil:
		return nil, 0, all.wrong
	case all.size > most:
		return nil, 0, tooMuch(row)
	}
	return all.list, all.size, nil
}

// results are those of a mapped node's items, or why they cannot be read.
type results struct {
	list  any // from dag.ResultList
	size  int
	wrong *dag.ResultError
}

// itemsResults reads the results of a mapped node's items.
func (r *Controller) itemsResults(ctx context.Context, f *facts, row job.Row) (results, error) {
	items, err := r.items(ctx, f, row)
	if err != nil {
		return results{}, err
	}
	list, size := make([]any, len(items)), 0
	for i, it := range items {
		if it.Status != job.Succeeded {
			continue
		}
		value, n, err := r.resultOf(ctx, it, contract.MaxResultsRead-size)
		if wrong := new(dag.ResultError); errors.As(err, &wrong) {
			return results{wrong: wrong}, nil
		}
		if err != nil {
			return results{}, err
		}
		list[i], size = value, size+n
	}
	return results{list: dag.ResultList(list), size: size}, nil
}

// resultOf is result for a node or an item that is one job.
func (r *Controller) resultOf(ctx context.Context, row job.Row, most int) (value any, size int, err error) {
	if row.Partial != job.Whole {
		why := row.Partial.Reason()
		return nil, 0, &dag.ResultError{Code: why.Code, Message: nodeName(row) + ": " + why.Message}
	}
	raw, err := r.Store.Result(ctx, row)
	if err != nil {
		return nil, 0, err
	}
	if len(raw) > most {
		return nil, 0, tooMuch(row)
	}
	if row.Executor == executor.HTTP {
		value, err = dag.DecodeAnswer(json.RawMessage(raw))
	} else {
		value, err = dag.DecodeResult(json.RawMessage(raw))
	}
	return value, len(raw), err
}

// tooMuch says that the expressions read more than they may together with that result.
func tooMuch(row job.Row) *dag.ResultError {
	return &dag.ResultError{Code: job.CodeResultTooLarge, Message: fmt.Sprintf(
		"%s: with its result the expressions read more than %d MiB of results together", nodeName(row),
		contract.MaxResultsRead>>20)}
}

// nodeName names a node, or an item of a mapped one by its index.
func nodeName(row job.Row) string {
	if row.IsItem() {
		return fmt.Sprintf("node %s, item %d", row.Node, row.ItemNo-1)
	}
	return "node " + row.Node
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
