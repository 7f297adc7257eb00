package runs

import (
	"context"
	"encoding/json"
	"errors"

	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// generationsRead are the current generations of the nodes that the expressions of a node name.
func (f *facts) generationsRead(name string) map[string]int64 {
	generations := map[string]int64{}
	for _, n := range f.graph.PayloadNeeds(name) {
		if g := f.run.Generation(n); g > 1 {
			generations[n] = g
		}
	}
	return generations
}

// keepMadeFrom stores what the items are made from, before the row, and returns the row that refers to it. The name
// says what is stored, so that of two writers of the row neither replaces what the other one stored.
func (r *Controller) keepMadeFrom(ctx context.Context, row job.Row, from madeFrom) (job.Row, error) {
	c := job.Contents{Payload: text.MustJSON(from)}
	row.SetPayload(job.PayloadStorage(&row, c.Payload))
	return row, r.Store.KeepContents(ctx, row, c)
}

func (r *Controller) readMadeFrom(ctx context.Context, own job.Row) (from madeFrom, err error) {
	body, err := r.Store.Payload(ctx, own)
	if err != nil {
		return from, err
	}
	if err := json.Unmarshal(body, &from); err != nil || int64(len(from.List)) != own.Items {
		return from, fault.New(fault.Undecodable, err, "reading the list of node %q of run %s", own.Node, own.RunID)
	}
	return from, nil
}

// madeFrom reads what the items of a mapped node are made from, and what their payloads see. For a row that was
// written before the list was stored, both are evaluated anew.
func (r *Controller) madeFrom(ctx context.Context, f *facts, own job.Row) (from madeFrom, see dag.Facts, err error) {
	if own.PayloadSize == 0 {
		if see, err = r.sight(ctx, f, own.Node); err != nil {
			return from, see, err
		}
		from.List, err = f.graph.Items(ctx, own.Node, see)
		return from, see, err
	}
	if from, err = r.readMadeFrom(ctx, own); err != nil {
		return from, see, err
	}
	see, err = r.sightOf(ctx, f, f.graph.PayloadNeeds(own.Node), f.graph.ResultsRead(own.Node), func(n string) job.Key {
		return f.run.Key.Job(n, max(from.Generations[n], 1), 0)
	})
	return from, see, err
}

// errListChanged is why an item fails of a node whose list was not stored and has changed since.
var errListChanged = errors.New("the list of for_each has changed since the node was released")
