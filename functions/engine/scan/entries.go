package scan

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// entriesAtOnce bounds the entries of one slice that are handled together.
const entriesAtOnce = 8

// Each handles every entry of a slice, page by page and several at once. read returns a page and the cursor of the
// next one, "" at the end. If an entry fails, the others are handled all the same, and the first error is returned.
// When the invocation's time runs short, that is a fault.Unavailable.
func Each[T any](
	ctx context.Context, slice string,
	read func(cursor string) (page []T, next string, err error), handle func(T) error,
) error {
	var g errgroup.Group
	g.SetLimit(entriesAtOnce)
	for cursor := ""; ; {
		page, next, err := read(cursor)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		for _, e := range page {
			if !TimeLeft(ctx, Closing) {
				cut := fault.New(fault.Unavailable, nil, "handling what lies in %s: there is more than time", slice)
				return errors.Join(g.Wait(), cut)
			}
			g.Go(func() error { return handle(e) })
		}
		if next == "" {
			return g.Wait()
		}
		cursor = next
	}
}

// Keeper gives another wake-up to entries that could not be handled, so that none is forgotten.
type Keeper struct {
	Index store.DueWriter
	Clock clock.Clock
	Meter *telemetry.Meter
	What  string // "job", "schedule" or "run", for the log
	// Most is the time that the work on one entry may take; 0: EntryTime.
	Most time.Duration
	// Prefix goes before the outcome in the Counter: "schedule_" makes "schedule_failed".
	Prefix string
}

// Found is an entry as it was read from a slice.
type Found struct {
	Entry
	Err error        // why the entry cannot be read; nil if it can
	Log *slog.Logger // names whose entry it is
}

// EntryTime is the time that the work on one entry of a pass may take.
const EntryTime = 20 * time.Second

// One handles an entry, or calls Keep if that fails. handle returns the outcome to count, "" for none. An error that
// may go away by itself is returned. Handling has a deadline of its own: an entry whose work does not end by then, even
// if the work does not heed its context, is deferred like one that cannot be handled, and the pass goes on.
func (k Keeper) One(
	ctx context.Context, f Found, came *Counter, handle func(context.Context) (string, error),
) error {
	is, err := "", f.Err
	if err == nil {
		handled := make(chan string, 1) // the work may end after it was abandoned
		err = fault.Within(ctx, cmp.Or(k.Most, EntryTime), "handling a "+k.What, func(ctx context.Context) error {
			is, err := handle(ctx)
			handled <- is
			return err
		})
		select {
		case is = <-handled:
		default:
		}
	}
	if is != "" {
		came.Add(is)
	}
	if err == nil {
		return nil
	}
	kept, err := k.Keep(ctx, f.Entry, err, f.Log)
	if kept != "" {
		came.Add(k.Prefix + kept)
	}
	return err
}

// Entry names an entry of the due index.
type Entry struct {
	Ref    item.Ref
	Slice  string
	WakeAt time.Time
}

// Keep handles the error of an entry. If the entry cannot be read, it is quarantined. An error that may go away by
// itself is returned as it is. After any other error the entry is deferred: visiting the slice once more would not
// help, and after a day no process visits it. came is the outcome to count.
func (k Keeper) Keep(ctx context.Context, e Entry, err error, log *slog.Logger) (came string, _ error) {
	log = log.With("ref", e.Ref.String(), telemetry.Err, err.Error())
	panicked, overrun := new(fault.Panicked), new(fault.Overrun)
	switch {
	case errors.As(err, &overrun):
		if err := k.Index.DeferFailed(ctx, e.Ref, e.Slice, e.WakeAt, k.Clock.Now()); err != nil {
			return "", err
		}
		log.ErrorContext(ctx, k.What+" deferred: its work did not end in time")
		k.Meter.Count(telemetry.Overrun, 1)
		k.Meter.Count(telemetry.Quarantined, 1)
		return "overrun", nil
	case fault.KindOf(err) == fault.Undecodable, errors.As(err, &panicked):
		reason := job.Cut(err.Error(), contract.MaxReason)
		if err := k.Index.Quarantine(ctx, e.Ref, e.Slice, e.WakeAt, reason, k.Clock.Now()); err != nil {
			return "", err
		}
		log.ErrorContext(ctx, k.What+" quarantined")
		k.Meter.Count(telemetry.Quarantined, 1)
		return "set_aside", nil
	case fault.Retryable(err):
		return "failed", err
	}
	if err := k.Index.DeferFailed(ctx, e.Ref, e.Slice, e.WakeAt, k.Clock.Now()); err != nil {
		return "", err
	}
	log.ErrorContext(ctx, k.What+" could not be processed")
	return "passed_over", nil
}
