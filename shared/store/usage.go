package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/usage"
)

// Usage implements UsageReader.
func (s *Store) Usage(
	ctx context.Context, t tenant.ID, by usage.By, first, last time.Time, each func(value string, u usage.Use),
) error {
	q := item.Query{Table: contract.Tasks, PK: usage.Partition(t, by), From: usage.DayKey(first),
		To: usage.DayKey(last.AddDate(0, 0, 1))}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, i := range page.Items {
			for value, u := range usage.Values(i) {
				each(value, u)
			}
		}
		if page.Cursor == "" {
			return nil
		}
		q.Cursor = page.Cursor
	}
}
