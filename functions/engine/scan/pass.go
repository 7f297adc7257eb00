package scan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// shardsAtOnce bounds the slices that are visited together.
const shardsAtOnce = 16

// Closing is the time at the end of an invocation that is kept for finishing what runs and writing watermarks.
const Closing = 10 * time.Second

// Pass walks the slices of all shards minute by minute, the earliest first, and moves the watermarks along.
//
// A slice that fails is noted on its shard's watermark, and each later pass visits it until it succeeds. Nothing
// waits for it, neither its shard nor the others. When the invocation's time runs short, the walk ends, and the
// next one continues there.
type Pass struct {
	Marks store.Marks
	Mark  store.Watermark
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Walked says how a pass went.
type Walked struct {
	Slices int  `json:"slices"`           // visited
	Failed int  `json:"failed,omitempty"` // of those; the next pass visits them once more
	Cut    bool `json:"cut,omitempty"`    // time ran short
}

// Visit handles one slice. An error says that it did not handle all of it.
type Visit func(ctx context.Context, s horizon.Slice) error

// Range is what a pass walks: all shards, each from From(its watermark) up to and including the minute of To. The
// watermark is zero in a shard that was never passed.
type Range struct {
	Shards int
	From   func(mark time.Time) time.Time
	To     time.Time
	// Since bounds the slices that failed before and are visited once more: older ones are left to the
	// sweeper. Zero: all are visited.
	Since time.Time
}

// newShare is the part of a pass's time that new minutes get if there are slices that failed before. Those get the
// rest.
const newShare = 0.7

// Run visits the range. A shard whose watermark cannot be read is left to the next pass; the error names it once the
// other shards are done.
func (p Pass) Run(ctx context.Context, r Range, visit Visit) (Walked, error) {
	marks, err := p.marks(ctx, r.Shards)
	w := walk{Pass: p, marks: marks, to: r.To.UTC().Truncate(time.Minute), visit: visit}
	failed := w.failedBefore(r.Since)
	forward := ctx
	if len(failed) > 0 {
		forward = Share(ctx, newShare, Closing)
	}
	w.forward(forward, r.From)
	w.revisit(ctx, failed)
	w.gauge()
	return w.walked, errors.Join(err, w.write(ctx))
}

// shard is what a walk knows of one shard.
type shard struct {
	store.Mark
	unknown      bool      // its watermark could not be read
	at           time.Time // the last minute visited; zero: none was
	done, failed []time.Time
}

func (s *shard) came(minute time.Time, err error) {
	if err != nil {
		s.failed = append(s.failed, minute)
	} else {
		s.done = append(s.done, minute)
	}
}

// news is what has to be written to the shard's watermark. Minutes that succeeded are written only if the watermark
// notes them as failed.
func (s *shard) news() (at time.Time, done, failed []time.Time) {
	for _, m := range s.done {
		if slices.ContainsFunc(s.Behind, m.Equal) {
			done = append(done, m)
		}
	}
	return s.at, done, s.failed
}

type walk struct {
	Pass
	marks  []*shard
	to     time.Time
	visit  Visit
	walked Walked
}

// forward visits the minutes from the start that from gives for each shard.
func (w *walk) forward(ctx context.Context, from func(time.Time) time.Time) {
	starts := make([]time.Time, len(w.marks))
	minute := w.to.Add(time.Minute)
	for n, s := range w.marks {
		starts[n] = minute
		if !s.unknown {
			starts[n] = from(s.At).UTC().Truncate(time.Minute)
		}
	}
	for _, at := range starts {
		if at.Before(minute) {
			minute = at
		}
	}
	for ; !minute.After(w.to); minute = minute.Add(time.Minute) {
		if !TimeLeft(ctx, Closing) {
			w.walked.Cut = true
			return
		}
		var list []horizon.Slice
		for shard, start := range starts {
			if !start.After(minute) {
				list = append(list, horizon.Slice{Minute: minute, Shard: shard})
			}
		}
		w.each(ctx, list)
		for _, s := range list {
			w.marks[s.Shard].at = minute
		}
	}
}

// each visits slices together and notes which of them failed.
func (w *walk) each(ctx context.Context, list []horizon.Slice) {
	for n, err := range w.Pass.visit(ctx, list, w.visit) {
		w.walked.Slices++
		if err != nil {
			w.walked.Failed++
		}
		w.marks[list[n].Shard].came(list[n].Minute, err)
	}
}

// failedBefore lists the slices that failed in earlier passes, oldest first. Those before since are noted as done.
func (w *walk) failedBefore(since time.Time) (list []horizon.Slice) {
	for n, s := range w.marks {
		for _, minute := range s.Behind {
			if minute.Before(since.Truncate(time.Minute)) {
				s.done = append(s.done, minute)
				continue
			}
			list = append(list, horizon.Slice{Minute: minute, Shard: n})
		}
	}
	slices.SortStableFunc(list, func(a, b horizon.Slice) int { return a.Minute.Compare(b.Minute) })
	return list
}

// revisit visits slices that failed before, except those that this walk has visited already. Each pass begins with
// another one, so that a slow slice does not keep the others from being visited.
func (w *walk) revisit(ctx context.Context, list []horizon.Slice) {
	for list = Rotate(list, w.to); len(list) > 0; list = list[min(len(list), shardsAtOnce):] {
		if !TimeLeft(ctx, Closing) {
			w.walked.Cut = true
			return
		}
		w.each(ctx, slices.DeleteFunc(slices.Clone(list[:min(len(list), shardsAtOnce)]), func(s horizon.Slice) bool {
			m := w.marks[s.Shard]
			return slices.ContainsFunc(m.done, s.Minute.Equal) || slices.ContainsFunc(m.failed, s.Minute.Equal)
		}))
	}
}

// Rotate returns the list rotated so that it begins with another entry each minute: a slow entry then does not always
// come before the same others. Of a list that is too long for a minute, each part is soon among the first.
func Rotate[T any](list []T, now time.Time) []T {
	n := len(list)
	if n == 0 {
		return list
	}
	first := int(now.Unix()/60) % n * stride(n) % n
	if first < 0 { // before 1970
		first += n
	}
	return slices.Concat(list[first:], list[:first])
}

// stride is how far apart in a list of n the beginnings of two minutes are: the golden section of it, which spreads
// them evenly after any number of minutes. It has no factor in common with n, so each entry is the first once in n
// minutes.
func stride(n int) int {
	s := int(float64(n) / math.Phi)
	for ; s > 1; s-- {
		if gcd(n, s) == 1 {
			return s
		}
	}
	return 1
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Revisit visits slices that were passed before; no watermark moves. It ends early when the invocation's time runs
// short.
func (p Pass) Revisit(ctx context.Context, slices []horizon.Slice, visit Visit) Walked {
	var walked Walked
	for len(slices) > 0 {
		if !TimeLeft(ctx, Closing) {
			walked.Cut = true
			break
		}
		n := min(len(slices), shardsAtOnce*4)
		for _, err := range p.visit(ctx, slices[:n], visit) {
			walked.Slices++
			if err != nil {
				walked.Failed++
			}
		}
		slices = slices[n:]
	}
	return walked
}

// visit visits slices together, logs those that failed and returns one error for each.
func (p Pass) visit(ctx context.Context, slices []horizon.Slice, visit Visit) []error {
	errs := make([]error, len(slices))
	var g errgroup.Group
	g.SetLimit(shardsAtOnce)
	for i, s := range slices {
		g.Go(func() error {
			errs[i] = fault.Guard(func() error { return visit(ctx, s) })
			if errs[i] != nil && !errors.Is(ctx.Err(), context.Canceled) { // the end of a process is no fault
				p.Log.ErrorContext(ctx, "slice failed and will be retried", "slice", s.String(), telemetry.Err,
					errs[i].Error())
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errs
}

// marks reads the watermark of each shard.
func (p Pass) marks(ctx context.Context, shards int) ([]*shard, error) {
	marks, errs := make([]*shard, shards), make([]error, shards)
	var g errgroup.Group
	g.SetLimit(shardsAtOnce)
	for n := range shards {
		g.Go(func() error {
			mark, err := p.Marks.Watermark(ctx, p.Mark, n)
			marks[n] = &shard{Mark: mark, unknown: err != nil}
			if err != nil {
				errs[n] = fmt.Errorf("reading how far shard %d is %s: %w", n, p.Mark, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return marks, errors.Join(errs...)
}

// write moves the watermark of each shard.
func (w *walk) write(ctx context.Context) error {
	errs := make([]error, len(w.marks))
	var g errgroup.Group
	g.SetLimit(shardsAtOnce)
	for n, s := range w.marks {
		at, done, failed := s.news()
		if s.unknown || at.IsZero() && len(done)+len(failed) == 0 {
			continue
		}
		g.Go(func() error {
			if err := w.Marks.Pass(ctx, w.Mark, n, at, done, failed); err != nil {
				errs[n] = fmt.Errorf("noting how far shard %d is %s: %w", n, w.Mark, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// gauge measures the largest lag of a shard. With an unknown watermark there is no such lag to report: 0 would say
// that the pass keeps up.
func (w *walk) gauge() {
	lag := time.Duration(0)
	for _, s := range w.marks {
		if s.unknown {
			return
		}
		if whole := s.Passed(s.news()).Whole(); !whole.IsZero() {
			lag = max(lag, w.to.Sub(whole))
		}
	}
	pass := telemetry.Dim{Key: "pass", Value: string(w.Mark)}
	w.Meter.Gauge(telemetry.WatermarkLag, float64(lag.Milliseconds()), pass)
}

// Both does two things at once and joins their errors.
func Both(a, b func() error) error {
	var g errgroup.Group
	var errB error
	g.Go(func() error { errB = fault.Guard(b); return nil })
	errA := fault.Guard(a)
	_ = g.Wait() // its error is errB
	return errors.Join(errA, errB)
}

// Counter counts by name, for a pass's summary. It is safe for concurrent use.
type Counter struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one.
func (c *Counter) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

// Counts returns what was counted.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
