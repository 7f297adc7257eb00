package forecast

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// MostEntries bounds what one pass counts. It is above the number at which an alarm rings.
const MostEntries = contract.DueAheadMost + contract.DueAheadMost/5

// slicesAtOnce bounds the slices that are read together.
const slicesAtOnce = 16

// Store is what the stage reads, and the text that it leaves for its next pass.
type Store interface {
	store.JobReader
	store.DueReader
	store.Shards
	store.Forecasts
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store Store
}

// Stage is the look ahead. It is safe for concurrent use.
type Stage struct{ Deps }

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{d}
}

// Wanted is what one pool will want.
type Wanted struct {
	Due     int           `json:"due"`        // jobs in the next half hour
	Slots   int           `json:"slots"`      // at once, with headroom
	Average time.Duration `json:"average_ns"` // how long a job is taken to run
	Error   *int          `json:"error,omitempty"`
}

// Summary says what a pass found, by pool.
type Summary struct {
	Pools map[string]Wanted `json:"pools"`
	Cut   bool              `json:"cut,omitempty"` // there was more than is counted
}

// Handle makes one pass; what triggers it says nothing.
func (s *Stage) Handle(ctx context.Context, _ any) (Summary, error) {
	sum, err := s.ahead(ctx)
	if err == nil {
		s.Meter.Count(telemetry.PassesMade, 1, telemetry.Dim{Key: "pass", Value: telemetry.PassForecast})
	}
	return sum, err
}

// ahead counts what is due until the horizon and reports what each pool will want.
func (s *Stage) ahead(ctx context.Context) (Summary, error) {
	now := s.Clock.Now()
	shards, err := s.Store.Shards(ctx, s.Shards)
	if err != nil {
		return Summary{}, err
	}
	seen, err := s.countDue(ctx, now, shards)
	if err != nil {
		return Summary{}, err
	}
	m, err := s.remember(ctx)
	if err != nil {
		return Summary{}, err
	}
	if err := s.learn(ctx, m, now); err != nil {
		return Summary{}, err
	}
	sum := Summary{Pools: map[string]Wanted{}, Cut: seen.cut}
	for _, pool := range contract.Pools {
		sum.Pools[pool] = s.say(pool, seen, m, now)
	}
	m.note(seen, now)
	if err := s.keep(ctx, m); err != nil {
		return sum, err
	}
	s.Log.InfoContext(ctx, "forecast made", "summary", sum)
	return sum, nil
}

// say reports what one pool wants.
func (s *Stage) say(pool string, seen *sight, m *learnt, now time.Time) Wanted {
	d := seen.pools[pool]
	w := Wanted{Due: d.total, Average: m.average(pool)}
	w.Slots = d.slots(w.Average)
	dim := telemetry.Dim{Key: "pool", Value: pool}
	if w.Due > 0 { // a metric is billed by the hours in which it is written, and none reads as 0
		s.Meter.Gauge(telemetry.DueAhead, float64(w.Due), dim)
		s.Meter.Gauge(telemetry.SlotsWanted, float64(w.Slots), dim)
	}
	if was, ok := m.forecast(pool, now); ok {
		e := seen.minutes[minuteOf(now.Add(time.Minute))][pool] - was
		w.Error = &e
		if e != 0 {
			s.Meter.Gauge(telemetry.ForecastError, float64(e), dim)
		}
	}
	return w
}

// sight is what the index holds of the next half hour.
type sight struct {
	mu      sync.Mutex
	pools   map[string]*demand
	minutes map[string]map[string]int // jobs by the minute in which they are due, and pool
	soon    map[string][]store.Entry  // some that are due within the next minutes, by pool
	entries int
	cut     bool
}

// countDue counts what is due until the horizon.
func (s *Stage) countDue(ctx context.Context, now time.Time, shards int) (*sight, error) {
	v := &sight{pools: map[string]*demand{}, minutes: map[string]map[string]int{}, soon: map[string][]store.Entry{}}
	for _, pool := range contract.Pools {
		v.pools[pool] = newDemand(now, contract.Horizon)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(slicesAtOnce)
	for shard := range shards {
		for _, slice := range horizon.Slices(now, now.Add(contract.Horizon), shard) {
			g.Go(func() error { return s.count(ctx, slice, v, now) })
		}
	}
	return v, g.Wait()
}

func (s *Stage) count(ctx context.Context, slice horizon.Slice, v *sight, now time.Time) error {
	for e, err := range s.Store.Due(ctx, slice.String()) {
		if fault.KindOf(err) == fault.Undecodable { // the sweeper sets its row aside
			continue
		}
		if err != nil {
			return err
		}
		if !v.add(e, now) {
			return nil
		}
	}
	return nil
}

// add counts an entry; false when there are enough. A wake-up that is no start, such as a look
// at a claim's end, has a due time in the past and is not counted.
func (v *sight) add(e store.Entry, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.entries >= MostEntries {
		v.cut = true
		return false
	}
	v.entries++
	d := v.pools[e.Pool]
	if d == nil || e.DueAt.Before(now) {
		return true
	}
	d.add(e.DueAt)
	minute := minuteOf(e.DueAt)
	if v.minutes[minute] == nil {
		v.minutes[minute] = map[string]int{}
	}
	v.minutes[minute][e.Pool]++
	if e.DueAt.Before(now.Add(sampleWithin)) && len(v.soon[e.Pool]) < sampleSize {
		v.soon[e.Pool] = append(v.soon[e.Pool], e)
	}
	return true
}
