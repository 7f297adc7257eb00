package scan

import (
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
	"punctual/shared/telemetry"
)

// entriesAtOnce bounds the entries of one slice that are handled together.
const entriesAtOnce = 8

// Each handles every entry of a slice, page by page and several at once. read returns a page and
// where the next one begins, "" at the end. An entry that fails keeps no other from being handled;
// the first failure is returned. When the invocation's time runs short that is a fault.Unavailable.
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

// Index is what a Keeper writes of the due index. An entry that has moved since it was found there,
// at wakeAt, is left alone.
type Index interface {
	// PutOff gives an entry its next wake-up, a quarter of an hour later.
	PutOff(ctx context.Context, ref item.Ref, slice string, wakeAt, now time.Time) error
	// SetAside is PutOff for what cannot be read: it is listed, with the reason, for a person.
	SetAside(ctx context.Context, ref item.Ref, slice string, wakeAt time.Time, reason string, now time.Time) error
}

// Keeper keeps in sight what could not be handled: whatever the index holds has a wake-up.
type Keeper struct {
	Index Index
	Clock clock.Clock
	Meter *telemetry.Meter
	What  string // "job", "schedule" or "run", for the log
	Came  string // goes before what an entry came to in a Counter
}

// Met is an entry as a walk over a slice meets it.
type Met struct {
	Entry
	Err error        // why the entry cannot be read; nil if it can
	Log *slog.Logger // names whose entry it is
}

// One handles an entry, or else keeps it in sight. handle returns what the entry came to, "" for
// nothing that counts. An error that may go better next time is returned.
func (k Keeper) One(ctx context.Context, m Met, came *Counter, handle func() (string, error)) error {
	is, err := "", m.Err
	if err == nil {
		err = fault.Guard(func() (err error) { is, err = handle(); return err })
	}
	if is != "" {
		came.Add(is)
	}
	if err == nil {
		return nil
	}
	kept, err := k.Keep(ctx, m.Entry, err, m.Log)
	if kept != "" {
		came.Add(k.Came + kept)
	}
	return err
}

// Entry is where something lies in the due index.
type Entry struct {
	Ref    item.Ref
	Slice  string
	WakeAt time.Time
}

// Keep deals with the error that handling an entry came to. What cannot be read is set aside, what
// may go better next time is returned as it is, anything else is put off: visiting the slice again
// would meet the same, and after a day nobody visits it any more. came names which it was.
func (k Keeper) Keep(ctx context.Context, e Entry, err error, log *slog.Logger) (came string, _ error) {
	log = log.With("ref", e.Ref.String(), telemetry.Err, err.Error())
	panicked := new(fault.Panicked)
	switch {
	case fault.KindOf(err) == fault.Undecodable, errors.As(err, &panicked):
		reason := job.Cut(err.Error(), contract.MaxReason)
		if err := k.Index.SetAside(ctx, e.Ref, e.Slice, e.WakeAt, reason, k.Clock.Now()); err != nil {
			return "", err
		}
		log.ErrorContext(ctx, k.What+" set aside")
		k.Meter.Count(telemetry.SetAside, 1)
		return "set_aside", nil
	case fault.Retryable(err):
		return "failed", err
	}
	if err := k.Index.PutOff(ctx, e.Ref, e.Slice, e.WakeAt, k.Clock.Now()); err != nil {
		return "", err
	}
	log.ErrorContext(ctx, k.What+" could not be brought on")
	return "passed_over", nil
}
