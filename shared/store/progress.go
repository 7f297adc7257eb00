package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// Slowest implements MarkReader.
func (s *Store) Slowest(ctx context.Context, w Watermark) (at time.Time, shards int, err error) {
	q := item.Query{Table: contract.Tasks, PK: system(string(w), "").PK, Consistent: true}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return time.Time{}, 0, err
		}
		for _, i := range page.Items {
			if t := parseMark(i).Whole(); shards == 0 || t.Before(at) {
				at = t
			}
			shards++
		}
		if page.Cursor == "" {
			return at, shards, nil
		}
		q.Cursor = page.Cursor
	}
}
