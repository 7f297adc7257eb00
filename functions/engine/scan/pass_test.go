package scan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/engine/scan"
	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// walker counts visits.
type walker struct {
	mu   sync.Mutex
	seen []string
	do   func(s horizon.Slice) error
}

func bubble(t *testing.T, name string, do func(b *stagetest.Bench)) {
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true}, do)
}

func (w *walker) visit(_ context.Context, s horizon.Slice) error {
	w.mu.Lock()
	w.seen = append(w.seen, s.String())
	w.mu.Unlock()
	if w.do != nil {
		return w.do(s)
	}
	return nil
}

func TestPass_WalksSlices(t *testing.T) {
	t.Parallel()
	pass := func(b *stagetest.Bench) scan.Pass {
		return scan.Pass{Marks: b.Store, Mark: store.Swept, Log: telemetry.Silent(), Meter: b.Meter}
	}
	fromMark := func(mark time.Time) time.Time { return mark.Add(time.Minute) }
	setMarks := func(b *stagetest.Bench, at ...time.Time) {
		b.Helper()
		for shard, t := range at {
			b.Must(b.Store.SetWatermark(b.Context(), store.Swept, shard, t))
		}
	}
	bubble(t, "continues at each shard's watermark, the earliest minute of all shards first", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now.Add(-3*time.Minute), now.Add(-2*time.Minute))
		w := &walker{}
		walked, err := pass(b).Run(b.Context(), scan.Range{Shards: 2, From: fromMark, To: now}, w.visit)
		b.Must(err)
		at := func(ago int, shard int) string {
			return horizon.SliceOf(now.Add(time.Duration(-ago)*time.Minute), shard).String()
		}
		want := []string{at(2, 0), at(1, 0), at(1, 1), at(0, 0), at(0, 1)}
		slices.Sort(w.seen[1:3])
		slices.Sort(w.seen[3:5])
		if !slices.Equal(w.seen, want) || walked.Slices != 5 {
			b.Errorf("visited %v, want %v", w.seen, want)
		}
		for shard := range 2 {
			if !b.Mark(store.Swept, shard).Equal(now.Truncate(time.Minute)) {
				b.Errorf("shard %d stands at %s", shard, b.Mark(store.Swept, shard))
			}
		}
		if lag := b.Meter.Total(telemetry.WatermarkLag); lag != 0 {
			b.Errorf("the lag is %v ms", lag)
		}
	})
	bubble(t, "notes a slice that failed and visits the later ones", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now.Add(-4*time.Minute), now.Add(-4*time.Minute))
		bad := horizon.SliceOf(now.Add(-2*time.Minute), 1)
		w := &walker{do: func(s horizon.Slice) error {
			if s == bad {
				return errors.New("no")
			}
			return nil
		}}
		walked, err := pass(b).Run(b.Context(), scan.Range{Shards: 2, From: fromMark, To: now}, w.visit)
		if err != nil || len(w.seen) != 8 || walked.Failed != 1 {
			b.Errorf("visited %d, %+v, %v", len(w.seen), walked, err)
		}
		if !b.Mark(store.Swept, 0).Equal(now.Truncate(time.Minute)) ||
			!b.Mark(store.Swept, 1).Equal(bad.Minute.Add(-time.Minute)) {
			b.Errorf("the shards stand at %s and %s", b.Mark(store.Swept, 0), b.Mark(store.Swept, 1))
		}
		if lag := b.Meter.Total(telemetry.WatermarkLag); lag != float64((3 * time.Minute).Milliseconds()) {
			b.Errorf("the lag is %v ms", lag)
		}
	})
	bubble(t, "survives a panic in one slice", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now.Add(-2*time.Minute))
		w := &walker{do: func(s horizon.Slice) error {
			if s.Minute.Before(now.Add(-time.Minute)) {
				return nil
			}
			panic(fmt.Sprint("nil map in ", s))
		}}
		if walked, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: fromMark, To: now},
			w.visit); err != nil || walked.Failed != 2 {
			b.Errorf("%+v, %v", walked, err)
		}
	})
	bubble(t, "a pass without time stops early, and the next one continues there", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now.Add(-60*time.Minute))
		w := &walker{do: func(horizon.Slice) error { time.Sleep(time.Second); return nil }}
		ctx, cancel := context.WithTimeout(b.Context(), 40*time.Second)
		defer cancel()
		walked, err := pass(b).Run(ctx, scan.Range{Shards: 1, From: fromMark, To: now}, w.visit)
		if err != nil || !walked.Cut || walked.Slices != 31 || time.Since(now) != 31*time.Second {
			b.Errorf("%+v after %s, %v", walked, time.Since(now), err)
		}
		if !b.Mark(store.Swept, 0).Equal(now.Truncate(time.Minute).Add(-29 * time.Minute)) {
			b.Errorf("it stands at %s", b.Mark(store.Swept, 0))
		}
		if walked, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: fromMark, To: now},
			w.visit); err != nil || walked.Cut || walked.Slices != 29 {
			b.Errorf("then %+v, %v", walked, err)
		}
	})
	bubble(t, "a slice that fails for hours costs each pass one more visit", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now)
		bad := horizon.SliceOf(now.Add(time.Minute), 0)
		w := &walker{do: func(s horizon.Slice) error {
			if s == bad {
				return errors.New("no")
			}
			return nil
		}}
		for range 300 {
			now = now.Add(time.Minute)
			walked, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: fromMark, To: now}, w.visit)
			if err != nil || walked.Slices > 2 {
				b.Fatalf("%+v, %v", walked, err)
			}
		}
		if lag := b.Meter.Total(telemetry.WatermarkLag); lag != float64((300 * time.Minute).Milliseconds()) {
			b.Errorf("the lag is %v ms", lag)
		}
		w.do = nil
		if _, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: fromMark, To: now},
			w.visit); err != nil ||
			!b.Mark(store.Swept, 0).Equal(now.Truncate(time.Minute)) {
			b.Errorf("once it is mended the shard stands at %s, %v", b.Mark(store.Swept, 0), err)
		}
	})
	bubble(t, "leaves slices that failed before Since alone", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		b.Must(b.Store.Pass(b.Context(), store.Swept, 0, now, nil,
			[]time.Time{now.Add(-time.Hour), now.Add(-time.Minute)}))
		w := &walker{}
		over := scan.Range{Shards: 1, From: fromMark, To: now, Since: now.Add(-3 * time.Minute)}
		if _, err := pass(b).Run(b.Context(), over, w.visit); err != nil || len(w.seen) != 1 ||
			!b.Mark(store.Swept, 0).Equal(now.Truncate(time.Minute)) {
			b.Errorf("visited %v, and stands at %s, %v", w.seen, b.Mark(store.Swept, 0), err)
		}
	})
	bubble(t, "gives new minutes most of its time, and slices that failed before the rest", func(b *stagetest.Bench) {
		now := time.Now().UTC().Truncate(time.Minute)
		setMarks(b, now.Add(-10*time.Hour))
		var failed []time.Time
		for n := range 100 {
			failed = append(failed, now.Add(-20*time.Hour+time.Duration(n)*time.Minute))
		}
		b.Must(b.Store.Pass(b.Context(), store.Swept, 0, time.Time{}, nil, failed))
		var ahead, before atomic.Int64
		w := &walker{do: func(s horizon.Slice) error {
			time.Sleep(time.Second)
			if s.Minute.After(failed[99]) {
				ahead.Add(1)
				return nil
			}
			before.Add(1)
			return nil
		}}
		ctx, cancel := context.WithTimeout(b.Context(), 40*time.Second)
		defer cancel()
		walked, err := pass(b).Run(ctx, scan.Range{Shards: 1, From: fromMark, To: now}, w.visit)
		if err != nil || !walked.Cut || ahead.Load() < 15 || ahead.Load() > 24 || before.Load() < 8 {
			b.Errorf("%+v: %d ahead, %d that had failed, %v", walked, ahead.Load(), before.Load(), err)
		}
	})
	bubble(t, "passes the other shards when one watermark cannot be read", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now.Add(-2*time.Minute), now.Add(-2*time.Minute))
		second := func(c memory.Call) bool { return c.Op == memory.TableGet && c.Ref.SK == "1" }
		b.Fault(second, memory.Fault{Fail: fault.Throttled})
		w := &walker{}
		if _, err := pass(b).Run(b.Context(), scan.Range{Shards: 2, From: fromMark, To: now},
			w.visit); !fault.Retryable(err) || len(w.seen) != 2 {
			b.Errorf("visited %v, %v", w.seen, err)
		}
		b.World.SetFaults(nil)
		if !b.Mark(store.Swept, 0).Equal(now.Truncate(time.Minute)) ||
			!b.Mark(store.Swept, 1).Before(now.Add(-time.Minute)) {
			b.Errorf("the shards stand at %s and %s", b.Mark(store.Swept, 0), b.Mark(store.Swept, 1))
		}
	})
	bubble(t, "never moves a watermark back", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		setMarks(b, now)
		back := func(time.Time) time.Time { return now.Add(-10 * time.Minute) }
		if _, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: back, To: now.Add(-5 * time.Minute)},
			(&walker{}).visit); err != nil {
			b.Fatal(err)
		}
		if !b.Mark(store.Swept, 0).Equal(now) {
			b.Errorf("it stands at %s", b.Mark(store.Swept, 0))
		}
	})
	bubble(t, "visits nothing when no watermark can be read", func(b *stagetest.Bench) {
		b.Fail(stagetest.Every(memory.TableGet))
		w := &walker{}
		if _, err := pass(b).Run(b.Context(), scan.Range{Shards: 1, From: fromMark, To: time.Now()},
			w.visit); !fault.Retryable(err) || len(w.seen) != 0 {
			b.Errorf("visited %v, %v", w.seen, err)
		}
	})
	bubble(t, "a second visit of slices moves no watermark", func(b *stagetest.Bench) {
		now := time.Now().UTC()
		w := &walker{}
		walked := pass(b).Revisit(b.Context(), horizon.Slices(now.Add(-time.Hour), now, 0), w.visit)
		if walked.Slices != 61 || !b.Mark(store.Swept, 0).IsZero() {
			b.Errorf("%+v, and the shard stands at %s", walked, b.Mark(store.Swept, 0))
		}
	})
}

func TestRevisit_LogsNoFaultWhereTheProcessEnds(t *testing.T) {
	t.Parallel()
	for ends, want := range map[bool]int{true: 0, false: 1} {
		ctx, end := context.WithCancel(t.Context())
		var log bytes.Buffer
		pass := scan.Pass{Log: slog.New(slog.NewTextHandler(&log, nil))}
		pass.Revisit(ctx, []horizon.Slice{{}}, func(context.Context, horizon.Slice) error {
			if ends {
				end()
			}
			return errors.New("x")
		})
		if n := strings.Count(log.String(), "slice failed"); n != want {
			t.Errorf("ends %v: %q", ends, log.String())
		}
		end()
	}
}

func TestRotate_BeginsWithAnotherEntryEachMinuteAlsoBefore1970(t *testing.T) {
	t.Parallel()
	for _, from := range []time.Time{time.Unix(0, 0), time.Date(1960, 3, 1, 0, 0, 0, 0, time.UTC)} {
		first := map[string]bool{}
		for minute := range 3 {
			list := scan.Rotate([]string{"a", "b", "c"}, from.Add(time.Duration(minute)*time.Minute))
			if len(list) != 3 {
				t.Fatalf("%v", list)
			}
			first[list[0]] = true
		}
		if len(first) != 3 {
			t.Errorf("from %s the entries %v come first", from, first)
		}
	}
}

// A pass that has time for a twentieth of a list has been at each part of it after three times twenty minutes.
func TestRotate_BringsEachPartOfALongListSoon(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 41, 64, 1000, 9973, 10_000} {
		list := make([]int, n)
		for i := range list {
			list[i] = i
		}
		seen := map[int]bool{}
		for minute := range 60 {
			rotated := scan.Rotate(list, time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC))
			for _, i := range rotated[:(n+19)/20] {
				seen[i] = true
			}
		}
		if len(seen) != n {
			t.Errorf("of %d entries %d were handled", n, len(seen))
		}
	}
}
