package wake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/batch"
	"punctual/shared/horizon"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

const (
	// shardsAtOnce bounds the slices of one minute that are visited together.
	shardsAtOnce = 16
	// closing is what is kept of an invocation's time to finish what runs and write watermarks.
	closing = 10 * time.Second
)

// Pass walks the slices of all shards, minute by minute, so that what is due first comes first
// in whichever shard it lies, and moves the watermarks behind it.
//
// A shard's watermark moves only over slices that were handled whole. A slice that failed
// holds it back, and nothing else: the slices behind it are visited all the same. When the
// invocation's time runs short the walk ends and the next one goes on from there.
type Pass struct {
	Store *store.Store
	Mark  store.Watermark
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Walked says how a pass went.
type Walked struct {
	Slices int  `json:"slices"`           // visited
	Failed int  `json:"failed,omitempty"` // of those; they are visited again by the next pass
	Cut    bool `json:"cut,omitempty"`    // time ran short
}

// Visit handles one slice whole, or says why it could not.
type Visit func(ctx context.Context, s horizon.Slice) error

// Run visits the slices of all shards from each shard's from(watermark) up to and including
// the minute of to. The watermark is zero in a shard that was never passed.
func (p Pass) Run(ctx context.Context, shards int, from func(mark time.Time) time.Time, to time.Time, visit Visit) (Walked, error) {
	to = to.UTC().Truncate(time.Minute)
	starts, err := p.starts(ctx, shards, from)
	if err != nil {
		return Walked{}, err
	}
	minute := to.Add(time.Minute)
	for _, at := range starts {
		if at.Before(minute) {
			minute = at
		}
	}
	var walked Walked
	through := make([]time.Time, shards) // how far each shard has come without a gap; zero: nowhere
	gap := make([]bool, shards)
	for ; !minute.After(to); minute = minute.Add(time.Minute) {
		if !batch.TimeLeft(ctx, closing) {
			walked.Cut = true
			break
		}
		var slices []horizon.Slice
		for shard, start := range starts {
			if !start.After(minute) {
				slices = append(slices, horizon.Slice{Minute: minute, Shard: shard})
			}
		}
		for i, err := range p.visit(ctx, slices, visit) {
			walked.Slices++
			switch shard := slices[i].Shard; {
			case err != nil:
				walked.Failed++
				gap[shard] = true
			case !gap[shard]:
				through[shard] = minute
			}
		}
	}
	p.gauge(starts, through, to)
	return walked, p.mark(ctx, through)
}

// Again visits slices that were passed before; no watermark moves. It ends early when the
// invocation's time runs short.
func (p Pass) Again(ctx context.Context, slices []horizon.Slice, visit Visit) Walked {
	var walked Walked
	for len(slices) > 0 {
		if !batch.TimeLeft(ctx, closing) {
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

// visit visits some slices together and logs what failed.
func (p Pass) visit(ctx context.Context, slices []horizon.Slice, visit Visit) []error {
	errs := make([]error, len(slices))
	var g errgroup.Group
	g.SetLimit(shardsAtOnce)
	for i, s := range slices {
		g.Go(func() error {
			errs[i] = batch.Guard(func() error { return visit(ctx, s) })
			if errs[i] != nil {
				p.Log.ErrorContext(ctx, "slice failed and will be visited again", "slice", s.String(), telemetry.Err, errs[i].Error())
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errs
}

// starts reads where each shard begins.
func (p Pass) starts(ctx context.Context, shards int, from func(time.Time) time.Time) ([]time.Time, error) {
	starts := make([]time.Time, shards)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for shard := range shards {
		g.Go(func() error {
			mark, err := p.Store.Watermark(ctx, p.Mark, shard)
			if err != nil {
				return fmt.Errorf("reading how far shard %d is %s: %w", shard, p.Mark, err)
			}
			starts[shard] = from(mark).UTC().Truncate(time.Minute)
			return nil
		})
	}
	return starts, g.Wait()
}

func (p Pass) mark(ctx context.Context, through []time.Time) error {
	var g errgroup.Group
	g.SetLimit(shardsAtOnce)
	for shard, at := range through {
		if at.IsZero() {
			continue
		}
		g.Go(func() error {
			if err := p.Store.SetWatermark(ctx, p.Mark, shard, at); err != nil {
				return fmt.Errorf("noting how far shard %d is %s: %w", shard, p.Mark, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// gauge says how far the shard that has come least is behind.
func (p Pass) gauge(starts, through []time.Time, to time.Time) {
	lag := time.Duration(0)
	for shard, at := range through {
		if at.IsZero() {
			at = starts[shard]
		}
		lag = max(lag, to.Sub(at))
	}
	p.Meter.Gauge(telemetry.WatermarkLag, float64(lag.Milliseconds()), telemetry.Dim{Key: "pass", Value: string(p.Mark)})
}

// Both does two things at once: the jobs and the schedules of a slice.
func Both(a, b func() error) error {
	var g errgroup.Group
	var errB error
	g.Go(func() error { errB = batch.Guard(b); return nil })
	errA := batch.Guard(a)
	_ = g.Wait() // its error is errB
	return errors.Join(errA, errB)
}

// Few counts by name under a lock, for a pass's summary.
type Few struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one.
func (f *Few) Add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == nil {
		f.n = map[string]int{}
	}
	f.n[name]++
}

// Counts returns what was counted.
func (f *Few) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}
