package memory

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// streamKept is how long DynamoDB keeps a record.
const streamKept = 24 * time.Hour

// stream is the log of all writes to tables that have one, in the order of writes of each item.
type stream struct {
	lag func(ref item.Ref, n int64) time.Duration

	mu      sync.Mutex
	records []record // oldest first
	first   int64    // the number of records[0]
	added   chan struct{}
}

type record struct {
	at, shown time.Time
	old, next item.Item
}

func (s *stream) init(lag func(item.Ref, int64) time.Duration) {
	s.lag, s.first, s.added = lag, 1, make(chan struct{})
}

func (s *stream) add(now time.Time, ref item.Ref, n int64, old, next item.Item) {
	r := record{at: now, shown: now, old: old, next: next}
	if s.lag != nil {
		r.shown = now.Add(s.lag(ref, n))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(now)
	s.records = append(s.records, r)
	close(s.added)
	s.added = make(chan struct{})
}

// trim forgets what is older than a day.
func (s *stream) trim(now time.Time) {
	n := sort.Search(len(s.records), func(i int) bool { return now.Sub(s.records[i].at) <= streamKept })
	if n == 0 {
		return
	}
	clear(s.records[:n])
	s.records = s.records[n:]
	s.first += int64(n)
}

// Stream reads up to max records after the one numbered so ("" for the oldest kept), waiting
// until there is one or the wait is over; none is no error. Reading the same place again
// gives the same records again. Records are kept for 24 h.
func (t *Table) Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error) {
	c := Call{Op: TableStream, Name: after, Size: max}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	var last int64
	if after != "" {
		if last, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, fault.New(fault.Invalid, nil, "reading the stream after %q: no such place", after)
		}
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changes, later, added := t.stream.read(t.world.now(), last, max)
		if len(changes) > 0 || wait <= 0 {
			if f.Twice {
				changes = append(changes, changes...)
			}
			return changes, f.after(c)
		}
		var ripe <-chan time.Time
		var timer *time.Timer
		if later > 0 {
			timer = time.NewTimer(later)
			ripe = timer.C
		}
		done := false
		select {
		case <-added:
		case <-ripe:
		case <-over.C:
			done = true
		case <-t.world.closed:
			done = true
		case <-ctx.Done():
			err, done = fault.New(fault.Unavailable, ctx.Err(), "reading the stream"), true
		}
		if timer != nil {
			timer.Stop()
		}
		if done {
			return nil, err
		}
	}
}

// read returns the records after last that show by now, or how long until the next one does
// (0 if there is none), and what is closed when one is added.
func (s *stream) read(now time.Time, last int64, max int) ([]item.Change, time.Duration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(now)
	var changes []item.Change
	for i := int(last + 1 - min(s.first, last+1)); i < len(s.records) && len(changes) < max; i++ {
		r := s.records[i]
		if r.shown.After(now) {
			if len(changes) == 0 {
				return nil, r.shown.Sub(now), s.added
			}
			break
		}
		changes = append(changes, item.Change{Seq: fmt.Sprintf("%021d", s.first+int64(i)), Old: r.old.Clone(), New: r.next.Clone()})
	}
	return changes, 0, s.added
}
