package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/job"
)

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
