package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/stats"
)

// Stats implements StatsReader.
func (s *Store) Stats(
	ctx context.Context, of stats.Series, r stats.Range, each func(time.Time, stats.Counts),
) error {
	q := item.Query{Table: contract.Tasks, PK: stats.Partition(of), From: stats.SpanKey(r.From),
		To: stats.SpanKey(r.End().Add(stats.SpanOf))}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, i := range page.Items {
			minutes, err := stats.Minutes(i)
			if err != nil {
				return err
			}
			for minute, c := range minutes {
				each(minute, c)
			}
		}
		if page.Cursor == "" {
			return nil
		}
		q.Cursor = page.Cursor
	}
}
