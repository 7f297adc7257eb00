package store

import (
	"context"

	"punctual/shared/item"
)

// byName reads a page of a partition in the order of its names, beginning after a name. limit and read are as for
// upTo.
func byName[T any](
	ctx context.Context, t Table, table, partition, after string, limit int, read func(item.Item) (T, bool),
) (list []T, more bool, err error) {
	q := item.Query{Table: table, PK: partition, Limit: limit + 1, Consistent: true}
	if after != "" {
		q.From = after + "\x00" // the first name that can follow
	}
	return upTo(ctx, t, q, limit, read)
}

// upTo reads a query up to limit values, at least 1; more says that there are others. What read refuses is left out.
func upTo[T any](
	ctx context.Context, t Table, q item.Query, limit int, read func(item.Item) (T, bool),
) (list []T, more bool, err error) {
	for {
		page, err := t.Query(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, i := range page.Items {
			v, ok := read(i)
			switch {
			case !ok:
				continue
			case len(list) == limit:
				return list, true, nil
			}
			list = append(list, v)
		}
		if page.Cursor == "" {
			return list, false, nil
		}
		q.Cursor = page.Cursor
	}
}
