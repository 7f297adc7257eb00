package stats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/process"
	"punctual/shared/stats"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/usage"
)

const (
	// maxSeries is how many series, or values of what jobs used, a sum has before it is added early.
	maxSeries = 1000
	// writesAtOnce bounds the writes of a flush that are made together.
	writesAtOnce = 16
)

// Store is what the stage reads and writes.
type Store interface {
	store.Writes
	store.ContentReader
	store.RunReader
	store.UsageReader
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store     Store
	UsageTags []string // names of the tags by which it is counted what jobs used, at most usage.MaxTags
}

// Stage counts. It is safe for concurrent use.
type Stage struct {
	Deps
	users   users
	mu      sync.Mutex
	sum     stats.Sum
	use     usage.Sum
	failing bool // the last flush could not add everything
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{Deps: d, users: newUsers(d.Clock.Now)}
}

// Changes counts changes of the jobs table, and returns one error for each, which is nil: no change waits for counts.
func (s *Stage) Changes(ctx context.Context, changes []item.Change) []error {
	s.count(ctx, changes)
	return make([]error, len(changes))
}

// count counts changes. While the table takes no counts and the sum is full, they are dropped.
func (s *Stage) count(ctx context.Context, changes []item.Change) {
	now := s.Clock.Now()
	s.mu.Lock()
	full := max(len(s.sum), s.use.Len()) > maxSeries
	if full && s.failing {
		s.mu.Unlock()
		s.Log.ErrorContext(ctx, "counts are lost", "changes", len(changes))
		return
	}
	for _, c := range changes {
		s.sum.Change(c, now)
	}
	s.mu.Unlock()
	used := s.used(ctx, changes)
	s.mu.Lock()
	s.use.AddSum(used)
	s.mu.Unlock()
	if !full {
		return
	}
	if err := s.Flush(ctx); err != nil {
		s.Log.WarnContext(ctx, "counts will be added later", telemetry.Err, err.Error())
	}
}

// Flush adds what was counted to the table. What cannot be added is kept for the next flush.
func (s *Stage) Flush(ctx context.Context) error {
	err := errors.Join(s.flushCounts(ctx), s.flushUse(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err != nil
	return err
}

func (s *Stage) flushCounts(ctx context.Context) error {
	s.mu.Lock()
	sum := s.sum
	s.sum = nil
	s.mu.Unlock()
	additions := sum.Additions()
	writes := make([]item.Write, len(additions))
	for n, a := range additions {
		writes[n] = a.Write
	}
	failed, first := s.putAll(ctx, writes)
	if len(failed) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range failed {
		minutes, err := additions[n].Minutes()
		first = errors.Join(first, err)
		for minute, c := range minutes {
			s.sum.Add(additions[n].Series, minute, c)
		}
	}
	return fmt.Errorf("adding counts to %d spans: %w", len(failed), first)
}

// putAll does writes, and returns which of them failed, and the error of one.
func (s *Stage) putAll(ctx context.Context, writes []item.Write) (failed []int, first error) {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		tokens = make(chan struct{}, writesAtOnce)
	)
	for n, w := range writes {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			if err := fault.Guard(func() error { return s.Store.Put(ctx, w) }); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed, first = append(failed, n), err
			}
		})
	}
	all.Wait()
	return failed, first
}

// maxState bounds what a call hands to the next one of its window; Lambda takes a megabyte.
const maxState = 256 << 10

// Window counts the changes of one call of a window of an event source, after those of the calls before, and returns
// what the next call is given. The last call of a window adds the counts to the table, and so does one whose state
// would be too large. So a span is written about once in a window by each shard of the stream, at any rate of changes.
func (s *Stage) Window(
	ctx context.Context, state map[string]string, changes []item.Change, last bool,
) (next map[string]string) {
	var sum stats.Sum
	var use usage.Sum
	counts := maps.Clone(state)
	maps.DeleteFunc(counts, func(name, _ string) bool { return usage.IsState(name) })
	if err := errors.Join(sum.AddState(counts), use.AddState(state)); err != nil {
		s.Log.ErrorContext(ctx, "counts are lost", telemetry.Err, err.Error())
	}
	now := s.Clock.Now()
	for _, c := range changes {
		sum.Change(c, now)
	}
	use.AddSum(s.used(ctx, changes))
	next = sum.State()
	use.State(next)
	size := 0
	for name, body := range next {
		size += len(name) + len(body)
	}
	if !last && size <= maxState {
		return next
	}
	s.mu.Lock()
	for series, minutes := range sum {
		for minute, c := range minutes {
			s.sum.Add(series, minute, c)
		}
	}
	s.use.AddSum(use)
	s.mu.Unlock()
	if err := s.Flush(ctx); err != nil {
		s.Log.WarnContext(ctx, "counts will be added later", telemetry.Err, err.Error())
	}
	return nil
}
