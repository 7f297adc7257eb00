package store

import (
	"context"
	"time"

	"punctual/shared/stats"
)

// StatsReader reads the counts of what became of jobs.
type StatsReader interface {
	// Stats calls each with every minute of the range that has counts, in any order. It may be called twice for a
	// minute. What was added a moment ago may be missing.
	Stats(ctx context.Context, s stats.Series, r stats.Range, each func(time.Time, stats.Counts)) error
}
