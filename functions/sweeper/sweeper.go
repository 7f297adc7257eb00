package sweeper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what the stage reads and writes: what the engine does, and what passes need.
type Store interface {
	engine.Store
	store.Marks
	store.Recognizer
	store.Shards
	store.Notes
	store.WaitingKeys
	store.OperationNotes
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store Store
	Queue decide.Queue
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
	// Alone says that every other process of the deployment has ended, as on a laptop that starts. The first pass that
	// succeeds then takes up whatever is due: no process is about to send it, so there is nothing to wait for.
	Alone bool
}

// Stage is the sweeper. It is safe for concurrent use.
type Stage struct {
	Deps
	engine *engine.Engine
	pass   scan.Pass
	keeper scan.Keeper
	begun  atomic.Bool // a pass has succeeded
	left   left
	since  time.Time     // when this process began
	few    chan struct{} // has a place for each entry that is handled at the same time; nil: any number
}

// fewEntries is how many entries are handled at the same time where one process does everything: with a backlog that is
// older than the grace, more would keep the other stages, by which it shrinks, from the tables.
const fewEntries = 4

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	e := engine.New(engine.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue, RateLimit: d.RateLimit})
	var few chan struct{}
	if d.Alone {
		few = make(chan struct{}, fewEntries)
	}
	return &Stage{
		Deps: d, engine: e, since: d.Clock.Now(), few: few,
		pass:   scan.Pass{Marks: d.Store, Mark: store.Swept, Log: d.Log, Meter: d.Meter},
		keeper: scan.Keeper{Index: d.Store, Clock: d.Clock, Meter: d.Meter, What: "job"},
	}
}

// Summary says what a pass did.
type Summary struct {
	scan.Walked
	Repeated scan.Walked `json:"again"`  // slices of the last day
	Parked   scan.Walked `json:"parked"` // parking places
	Runs     scan.Walked `json:"runs"`   // slices of runs since the cutoff
	// Deadlines counts the slices of the last minutes that were read for deadlines.
	Deadlines scan.Walked    `json:"deadlines"`
	Came      map[string]int `json:"came,omitempty"` // jobs by the step taken
	Held      []string       `json:"held,omitempty"` // tables that were restored: nothing was done
}

// The part of the remaining time that each kind of work may take, in this order. Runs get an eighth of the invocation
// at most, and deadlines an eighth of what is left; of the rest, slices get half, parking places and queued jobs a
// sixth each or more, and the slices of the last day the remainder. Time that is left over goes to a backlog of slices.
const (
	runShare      = 1.0 / 8
	deadlineShare = 1.0 / 8
	sliceShare    = 1.0 / 2
	parkedShare   = 1.0 / 3
	lineShare     = 1.0 / 2
)

// Handle makes one pass; the event is ignored.
func (s *Stage) Handle(ctx context.Context, _ any) (Summary, error) {
	sum, err := s.walk(ctx)
	scan.Made(s.Meter, telemetry.PassSwept, sum.Walked, err)
	return sum, err
}

// walk does each kind of work in its share of the time.
func (s *Stage) walk(ctx context.Context) (Summary, error) {
	if held, err := scan.Held(ctx, s.Store, s.Log, s.Meter); err != nil || len(held) > 0 {
		return Summary{Held: held}, err
	}
	now := s.Clock.Now()
	cutoff := now.Add(-contract.Grace)
	if s.Alone && !s.begun.Load() {
		cutoff = now
	}
	shards, err := s.Store.Shards(ctx, s.Shards)
	if err != nil {
		return Summary{}, err
	}
	var came scan.Counter
	visit := func(ctx context.Context, slice horizon.Slice) error {
		return scan.Both(
			func() error { return s.sweep(ctx, slice.String(), cutoff, &came) },
			func() error {
				return scan.Both(
					// Schedules that were written and not promoted, because of a crash in between.
					func() error { return s.engine.Recur.Slice(ctx, slice.String(), cutoff, &came) },
					func() error { return s.engine.Runs.Slice(ctx, slice.String(), now, &came) },
				)
			},
		)
	}
	// Runs are derived as soon as their wake-up has come: nothing else ends one that has expired.
	runs := func(ctx context.Context, slice horizon.Slice) error {
		return s.engine.Runs.Slice(ctx, slice.String(), now, &came)
	}
	// Schedules that the promoter missed when they entered the horizon.
	ahead := func(ctx context.Context, slice horizon.Slice) error {
		slice.Minute = slice.Minute.Add(contract.Horizon)
		return s.engine.Recur.Slice(ctx, slice.String(), time.Time{}, &came)
	}

	// Each kind of work has a share of the time. What one does not need, the later ones get.
	var sum Summary
	sum.Runs = s.pass.Revisit(scan.Share(ctx, runShare, scan.Closing), since(cutoff, now, shards), runs)
	var errDeadlines error
	sum.Deadlines, errDeadlines = s.deadlines(scan.Share(ctx, deadlineShare, scan.Closing), now, shards, &came)
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
	errLines := errors.Join(s.lines(scan.Share(ctx, lineShare, scan.Closing), now, &came),
		s.limits(scan.Share(ctx, lineShare, scan.Closing), now),
		s.operations(scan.Share(ctx, lineShare, scan.Closing), now))
	sum.Repeated = s.pass.Revisit(ctx, lastDay(cutoff, shards), func(ctx context.Context, slice horizon.Slice) error {
		if rereadWhole(cutoff.Sub(slice.Minute)) {
			return visit(ctx, slice)
		}
		return s.sweep(ctx, slice.String(), cutoff, &came)
	})
	if sum.Cut && scan.TimeLeft(ctx, scan.Closing) { // there is a backlog, and time is left over
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
	err = errors.Join(err, errParked, errLines, errDeadlines)
	s.begun.Store(s.begun.Load() || err == nil)
	return sum, err
}

// firstSlice is where a pass begins in a shard: some minutes before the watermark, which are read once more. In a shard
// that was never passed it begins near the cutoff; older entries are found by the hourly reading of the last day.
func firstSlice(mark, cutoff time.Time) time.Time {
	if mark.IsZero() {
		mark = cutoff
	}
	return mark.Add(-contract.RereadEachPass)
}

// since lists the slices from the cutoff to now.
func since(cutoff, now time.Time, shards int) (slices []horizon.Slice) {
	for at := cutoff.Truncate(time.Minute); !at.After(now); at = at.Add(time.Minute) {
		for shard := range shards {
			slices = append(slices, horizon.SliceOf(at, shard))
		}
	}
	return slices
}

// lastDay lists a sixtieth of the last day's slices, so that each slice is read once an hour. Each hour the list begins
// with another slice.
func lastDay(cutoff time.Time, shards int) []horizon.Slice {
	var slices []horizon.Slice
	for back := time.Hour; back <= contract.RereadHourly; back += time.Hour {
		for shard := range shards {
			slices = append(slices, horizon.SliceOf(cutoff.Add(-back), shard))
		}
	}
	return scan.Rotate(slices, time.Unix(cutoff.Unix()/60, 0))
}

// rereadWhole reports whether a passed slice of that age is also read for schedules and runs: at the ages of 1, 4,
// 12 and 24 hours. There are few of them, and each reading of an empty slice is billed.
func rereadWhole(age time.Duration) bool {
	hours := int(age.Round(time.Hour).Hours())
	return hours == 1 || hours == 4 || hours%12 == 0
}

// sweep decides about every job whose wake-up is in that slice before the cutoff.
func (s *Stage) sweep(ctx context.Context, slice string, cutoff time.Time, came *scan.Counter) error {
	return s.each(ctx, store.DueQuery{Slice: slice, Before: cutoff}, came, s.engine.Entry)
}

// each handles every job that q finds. If one fails with an error that may go away by itself, so does the slice; the
// others are handled all the same.
func (s *Stage) each(ctx context.Context, q store.DueQuery, came *scan.Counter, decide handler) error {
	return scan.Each(ctx, q.Slice, func(cursor string) ([]store.Found, string, error) {
		q.Cursor = cursor
		return s.Store.DuePage(ctx, q)
	}, func(f store.Found) error { return s.one(ctx, f, q.Slice, came, decide) })
}

// handler decides about the job of an index entry.
type handler func(context.Context, store.Entry) (job.Step, error)

// parkedEntry decides about a job that is parked or queued.
func (s *Stage) parkedEntry(ctx context.Context, e store.Entry) (job.Step, error) {
	return s.engine.Parked(ctx, e.Key)
}

// one decides about one job. A job that cannot be read is quarantined, and one that cannot be handled is deferred, so
// that none is forgotten.
func (s *Stage) one(ctx context.Context, f store.Found, slice string, came *scan.Counter, decide handler) error {
	if s.few != nil {
		s.few <- struct{}{}
		defer func() { <-s.few }()
	}
	found := scan.Found{
		Entry: scan.Entry{Ref: f.Ref, Slice: slice, WakeAt: f.WakeAt}, Err: f.Err,
		Log: s.Log.With(telemetry.Tenant, f.Tenant, telemetry.JobID, f.ID),
	}
	return s.keeper.One(ctx, found, came, func(ctx context.Context) (string, error) {
		step, err := decide(ctx, f.Entry)
		if err != nil || step == job.StepNothing {
			return "", err
		}
		s.Meter.Count(telemetry.Swept, 1, telemetry.Dim{Key: "step", Value: string(step)})
		return string(step), nil
	})
}
