package backfill

import (
	"context"

	"punctual/shared/operation"
	"punctual/shared/schedule"
)

// Count says how many times of a backfill are left out, and of how many that is known: all of them unless the context
// ended first. It writes nothing.
func (b *Backfiller) Count(
	ctx context.Context, s schedule.Schedule, o operation.Operation,
) (matched, skipped int, all bool, err error) {
	cal, err := s.Calendar()
	if err != nil {
		return 0, 0, false, err
	}
	for {
		times, end := o.Next(cal, timesAtOnce)
		chosen, err := b.choose(ctx, s.Key, times, o.Repeat)
		if ctx.Err() != nil {
			return matched, skipped, false, nil
		}
		if err != nil {
			return matched, skipped, false, err
		}
		for n, c := range chosen {
			o.Cursor = times[n]
			matched++
			if c.leftOut {
				skipped++
			}
		}
		if end {
			return matched, skipped, true, nil
		}
	}
}
