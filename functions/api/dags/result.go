package dags

import (
	"bytes"
	"context"
	"encoding/json"

	"golang.org/x/sync/errgroup"

	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
)

// inItems is result_in of a node whose result is larger than what one answer shows.
const inItems = "items"

// resultsAtOnce is how many results of items are read at the same time.
const resultsAtOnce = 16

// mappedResult adds the result of a mapped node that has ended, as expressions see it: the list of the results of its
// items, with null for an item that did not succeed.
func (s *Handler) mappedResult(ctx context.Context, items []job.Row, v *runNodeDetail) error {
	for _, item := range items {
		if item.Status == job.Succeeded && item.Partial != job.Whole {
			v.Partial = spec.Partial(item)
			return nil
		}
	}
	size, results := len("[]")+len(items), make([][]byte, len(items))
	for from := 0; from < len(items); from += resultsAtOnce {
		until := min(from+resultsAtOnce, len(items))
		switch err := s.itemResults(ctx, items[from:until], results[from:until]); {
		case fault.KindOf(err) == fault.NotFound: // the run is being forgotten at this moment
			return nil
		case err != nil:
			return err
		}
		for _, result := range results[from:until] {
			size += len(result)
		}
		if size > contract.MaxResult {
			v.ResultIn = inItems
			return nil
		}
	}
	v.Result = json.RawMessage("[" + string(bytes.Join(results, []byte(","))) + "]")
	return nil
}

// itemResults reads the results of a few items.
func (s *Handler) itemResults(ctx context.Context, items []job.Row, into [][]byte) error {
	g, ctx := errgroup.WithContext(ctx)
	for n, item := range items {
		into[n] = []byte("null")
		if item.Status != job.Succeeded {
			continue
		}
		g.Go(func() error {
			result, err := s.Store.Result(ctx, item)
			if result != "" {
				into[n] = []byte(result)
			}
			return err
		})
	}
	return g.Wait()
}
