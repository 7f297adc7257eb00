package sweeper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/decide"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/scan"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Deps is what the stage needs. A nil Meter drops metrics.
type Deps struct {
	Store  *store.Store
	Queue  decide.Queue
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  *telemetry.Meter
	Shards int // of the due index, as the deployment says; more may be recorded
}

// Stage is the sweeper. It is safe for concurrent use.
type Stage struct {
	Deps
	waker *decide.Waker
	recur *recur.Recurrer
	pass  scan.Pass
}

// New returns the stage.
func New(d Deps) *Stage {
	return &Stage{
		Deps:  d,
		waker: decide.New(decide.Deps{Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter}),
		recur: recur.New(recur.Deps{Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards}),
		pass:  scan.Pass{Store: d.Store, Mark: store.Swept, Log: d.Log, Meter: d.Meter},
	}
}

// Summary says what a pass did.
type Summary struct {
	scan.Walked
	Again  scan.Walked    `json:"again"`          // slices of the last day
	Parked scan.Walked    `json:"parked"`         // parking places
	Came   map[string]int `json:"came,omitempty"` // jobs by what came of them
}

// rowsAtOnce bounds the jobs of one slice that are brought on together.
const rowsAtOnce = 8

// The parts of what time is left that each kind of work may take when its turn comes. Of an
// invocation's time the slices have half, parking places and lines each a sixth or more, and the
// slices of the last day the rest; what is left over goes to a backlog of slices.
const (
	sliceShare  = 1.0 / 2
	parkedShare = 1.0 / 3
	lineShare   = 1.0 / 2
)

// Handle makes one pass; what triggers it says nothing.
func (s *Stage) Handle(ctx context.Context, _ any) (Summary, error) {
	now := s.Clock.Now()
	cutoff := now.Add(-contract.Grace)
	shards, err := s.Store.Shards(ctx, s.Shards)
	if err != nil {
		return Summary{}, err
	}
	var came scan.Counter
	visit := func(ctx context.Context, slice horizon.Slice) error {
		return scan.Both(
			func() error { return s.sweep(ctx, slice.String(), cutoff, &came) },
			func() error { return s.recur.Slice(ctx, slice.String(), cutoff, &came) }, // whose writer did not get to promote them
		)
	}
	// Schedules that the promoter left behind when they entered the horizon.
	ahead := func(ctx context.Context, slice horizon.Slice) error {
		slice.Minute = slice.Minute.Add(contract.Horizon)
		return s.recur.Slice(ctx, slice.String(), time.Time{}, &came)
	}

	// Each kind of work has a share of the time. What one does not need the next ones have.
	var sum Summary
	over := scan.Range{
		Shards: shards, To: cutoff,
		From: func(mark time.Time) time.Time { return firstSlice(mark, cutoff) },
	}
	both := func(ctx context.Context, slice horizon.Slice) error {
		return scan.Both(func() error { return visit(ctx, slice) }, func() error { return ahead(ctx, slice) })
	}
	sum.Walked, err = s.pass.Run(scan.Share(ctx, sliceShare, scan.Closing), over, both)
	var errParked error
	sum.Parked, errParked = s.parked(scan.Share(ctx, parkedShare, scan.Closing), now, &came)
	errLines := s.lines(scan.Share(ctx, lineShare, scan.Closing), now, &came)
	sum.Again = s.pass.Again(ctx, lastDay(cutoff, shards), visit)
	if sum.Cut && scan.TimeLeft(ctx, scan.Closing) { // the others left time for more of a backlog
		over.From = func(mark time.Time) time.Time {
			if mark.IsZero() {
				return firstSlice(mark, cutoff)
			}
			return mark.Add(time.Minute)
		}
		walked, errMore := s.pass.Run(ctx, over, both)
		sum.Slices, sum.Failed, sum.Cut = sum.Slices+walked.Slices, walked.Failed, walked.Cut
		err = errors.Join(err, errMore)
	}
	sum.Came = came.Counts()
	s.Log.InfoContext(ctx, "pass made", "summary", sum)
	return sum, errors.Join(err, errParked, errLines)
}

// firstSlice is where a pass begins in a shard: what was passed in the last minutes is read
// once more. A shard that was never passed has nothing that is older, or the hourly reading
// of the last day finds it.
func firstSlice(mark, cutoff time.Time) time.Time {
	if mark.IsZero() {
		mark = cutoff
	}
	return mark.Add(-contract.RereadEachPass)
}

// lastDay lists this pass's share of the last day's slices: a sixtieth, so that each slice has
// its turn once an hour. Each hour another of them is the first.
func lastDay(cutoff time.Time, shards int) []horizon.Slice {
	var slices []horizon.Slice
	for back := time.Hour; back <= contract.RereadHourly; back += time.Hour {
		for shard := range shards {
			slices = append(slices, horizon.SliceOf(cutoff.Add(-back), shard))
		}
	}
	return scan.Rotate(slices, time.Unix(cutoff.Unix()/60, 0))
}

// sweep brings on every job whose wake-up lies in that slice before the cutoff.
func (s *Stage) sweep(ctx context.Context, slice string, cutoff time.Time, came *scan.Counter) error {
	return s.each(ctx, store.DueQuery{Slice: slice, Before: cutoff}, came, s.waker.Entry)
}

// each brings on what the pages of q hold. A job that failed in a
// way that again may help fails the slice; the others are brought on all the same.
func (s *Stage) each(ctx context.Context, q store.DueQuery, came *scan.Counter, bring func(context.Context, store.Entry) (job.Step, error)) error {
	var g errgroup.Group
	g.SetLimit(rowsAtOnce)
	for {
		found, next, err := s.Store.DuePage(ctx, q)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		for _, f := range found {
			if !scan.TimeLeft(ctx, scan.Closing) {
				cut := fault.New(fault.Unavailable, nil, "bringing on the jobs of %s: there is more than time", q.Slice)
				return errors.Join(g.Wait(), cut)
			}
			g.Go(func() error { return s.one(ctx, f, q.Slice, came, bring) })
		}
		if next == "" {
			return g.Wait()
		}
		q.Cursor = next
	}
}

// one brings on one job. What cannot be read is set aside for a while, and what cannot be brought
// on is put off: whatever the index holds stays in sight.
func (s *Stage) one(ctx context.Context, f store.Found, slice string, came *scan.Counter, bring func(context.Context, store.Entry) (job.Step, error)) error {
	step := job.StepNothing
	err := f.Err
	if err == nil {
		err = fault.Guard(func() (err error) { step, err = bring(ctx, f.Entry); return err })
	}
	if err == nil {
		if step != job.StepNothing {
			came.Add(string(step))
			s.Meter.Count(telemetry.Swept, 1, telemetry.Dim{Key: "step", Value: string(step)})
		}
		return nil
	}
	log := s.Log.With(telemetry.Tenant, f.Tenant, telemetry.JobID, f.ID, "ref", f.Ref.String(), telemetry.Err, err.Error())
	panicked := new(fault.Panicked)
	switch {
	case fault.KindOf(err) == fault.Undecodable, errors.As(err, &panicked):
		reason := job.Cut(err.Error(), contract.MaxReason)
		if err := s.Store.SetAside(ctx, f.Ref, slice, f.WakeAt, reason, s.Clock.Now()); err != nil {
			return err
		}
		log.ErrorContext(ctx, "job set aside")
		s.Meter.Count(telemetry.SetAside, 1)
		came.Add("set_aside")
		return nil
	case fault.Retryable(err):
		came.Add("failed")
		return err
	}
	// Visiting the slice again would meet the same, and after a day nobody visits it any more.
	if err := s.Store.PutOff(ctx, f.Ref, slice, f.WakeAt, s.Clock.Now()); err != nil {
		return err
	}
	log.ErrorContext(ctx, "job could not be brought on")
	came.Add("passed_over")
	return nil
}
