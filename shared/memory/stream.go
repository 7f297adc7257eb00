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

// stream holds all writes to the tables that have one; those of one item are in order.
type stream struct {
	lag    func(ref item.Ref, n int64) time.Duration
	replay int

	mu      sync.Mutex
	records []record      // oldest first
	first   int64         // the number of records[0]
	read    int64         // the highest number that was read
	done    int64         // the highest number that a reader has left behind: it is handled
	added   chan struct{} // closed when one is added; nil while no process waits
}

type record struct {
	at, shown time.Time
	old, next item.Item
}

func (s *stream) init(lag func(item.Ref, int64) time.Duration, replay int) {
	if replay == 0 {
		replay = 10_000
	}
	s.lag, s.replay, s.first = lag, replay, 1
}

func (s *stream) add(now time.Time, ref item.Ref, n int64, old, next item.Item) {
	r := record{at: now, shown: now, old: old, next: next}
	if s.lag != nil {
		r.shown = now.Add(s.lag(ref, n))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(now)
	s.push(r)
	if s.added != nil {
		close(s.added)
		s.added = nil
	}
}

func (s *stream) push(r record) { s.records = append(s.records, r) }

// trim drops records older than a day, and records long since read.
func (s *stream) trim(now time.Time) {
	n := 0
	if len(s.records) > 0 && now.Sub(s.records[0].at) > streamKept {
		n = sort.Search(len(s.records), func(i int) bool { return now.Sub(s.records[i].at) <= streamKept })
	}
	n = max(n, int(s.read-s.first+1)-s.replay)
	if n <= 0 {
		return
	}
	clear(s.records[:n])
	s.records = s.records[n:]
	s.first += int64(n)
}

// Stream returns up to max records after the record with number after ("" for the oldest) and waits
// up to wait for one; none is no error. Reading once more from the same record returns the same
// records. Records are kept for 24 h, but of those that were read only the last
// Options.StreamReplay; a record older than that is a fault.NotFound. The caller must not change
// the items.
func (t *Table) Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error) {
	c := Call{Op: TableStream, Name: after, Size: max}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	var last int64
	if after != "" {
		if last, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, fault.New(fault.Invalid, nil, "reading the stream after %q: no such record", after)
		}
		if err := t.leave(last); err != nil {
			return nil, err
		}
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		changes, later, added, err := t.stream.after(t.world.now(), last, max)
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 || wait <= 0 {
			if f.Twice {
				changes = append(changes, changes...)
			}
			if err := f.after(c); err != nil {
				return nil, err
			}
			return changes, nil
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

// leave notes that the records up to number n are handled: who opens the files does not read them again.
func (t *Table) leave(n int64) error {
	if err := t.world.keep(func() []kept { return []kept{{Read: n}} }); err != nil {
		return fault.New(fault.Unavailable, err, "reading the stream")
	}
	defer t.world.done()
	t.stream.mu.Lock()
	defer t.stream.mu.Unlock()
	t.stream.done = max(t.stream.done, n)
	return nil
}

// after returns the records after last that are visible by now; otherwise how long until the next
// one is, 0 if there is none, and a channel that is closed when one is added.
func (s *stream) after(now time.Time, last int64, most int) ([]item.Change, time.Duration, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(now)
	if last > 0 && last < s.first-1 {
		return nil, 0, nil, fault.New(fault.NotFound, nil, "reading the stream after %d: the oldest record kept is %d",
			last, s.first)
	}
	var changes []item.Change
	for n := max(s.first, last+1); n < s.first+int64(len(s.records)) && len(changes) < most; n++ {
		r := s.records[n-s.first]
		if r.shown.After(now) {
			if len(changes) == 0 {
				return nil, r.shown.Sub(now), s.next(), nil
			}
			break
		}
		changes = append(changes, item.Change{Seq: fmt.Sprintf("%021d", n), Old: r.old, New: r.next})
		s.read = max(s.read, n)
	}
	if len(changes) == 0 {
		return nil, 0, s.next(), nil
	}
	return changes, 0, nil, nil
}

// handledAll reports whether a reader has left every record behind.
func (s *stream) handledAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done >= s.first+int64(len(s.records))-1
}

// next returns a channel that is closed when another record is added.
func (s *stream) next() <-chan struct{} {
	if s.added == nil {
		s.added = make(chan struct{})
	}
	return s.added
}
