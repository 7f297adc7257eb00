package forecast

import (
	"context"
	"encoding/json"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
)

const (
	// sampleSize is how many jobs of a pool are watched at a time.
	sampleSize = 20
	// sampleWithin is how soon a job must be due to be watched.
	sampleWithin = 2 * time.Minute
	// sampleFor is how long a job is watched; one that has not ended by then counts as that long.
	sampleFor = 10 * time.Minute
	// forecastAhead is the age of the forecasts that are compared with what came.
	forecastAhead = 10 * time.Minute
)

// learnt is what is known from earlier passes.
type learnt struct {
	Averages map[string]int64          `json:"average_ms"` // by pool
	Seen     map[string]map[string]int `json:"seen"`       // jobs by minute and pool, as they were forecast
	Watched  map[string][]watched      `json:"watched"`    // by pool
	At       time.Time                 `json:"at"`         // when the watched ones were chosen
}

type watched struct {
	job.Key
	DueAt time.Time `json:"due_at"`
}

const minuteLayout = "2006-01-02T15:04"

func minuteOf(t time.Time) string { return t.UTC().Format(minuteLayout) }

// remember reads what was learnt. What cannot be read any more is forgotten: it holds nothing that
// would not be learnt again.
func (s *Stage) remember(ctx context.Context) (*learnt, error) {
	text, err := s.Store.Forecast(ctx)
	if err != nil {
		return nil, err
	}
	var m learnt
	if text == "" || json.Unmarshal([]byte(text), &m) != nil {
		m = learnt{}
	}
	if m.Averages == nil {
		m.Averages = map[string]int64{}
	}
	if m.Seen == nil {
		m.Seen = map[string]map[string]int{}
	}
	return &m, nil
}

func (s *Stage) keep(ctx context.Context, m *learnt) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.Store.SetForecast(ctx, string(text))
}

// average is how long a job of the pool takes.
func (m *learnt) average(pool string) time.Duration {
	if ms := m.Averages[pool]; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return firstGuess
}

// forecast is how many jobs of the pool were expected in the minute that comes, false if no process
// looked then.
func (m *learnt) forecast(pool string, now time.Time) (int, bool) {
	pools, ok := m.Seen[minuteOf(now.Add(time.Minute))]
	return pools[pool], ok
}

// note keeps what this pass expects of the minute forecastAhead away, and forgets what has come.
func (m *learnt) note(seen *sight, now time.Time) {
	for minute := range m.Seen {
		if minute <= minuteOf(now) {
			delete(m.Seen, minute)
		}
	}
	ahead := minuteOf(now.Add(forecastAhead))
	expected := map[string]int{}
	for _, pool := range contract.Pools {
		expected[pool] = seen.minutes[ahead][pool]
	}
	m.Seen[ahead] = expected
	if len(m.Watched) > 0 {
		return
	}
	m.Watched, m.At = map[string][]watched{}, now
	for pool, entries := range seen.soon {
		for _, e := range entries {
			m.Watched[pool] = append(m.Watched[pool], watched{e.Key, e.DueAt})
		}
	}
}

// learn looks whether the watched jobs have ended, and how long they took. When all have, or
// time is up, the next ones are chosen.
func (s *Stage) learn(ctx context.Context, m *learnt, now time.Time) error {
	timeUp := now.Sub(m.At) >= sampleFor
	for _, pool := range contract.Pools {
		var open []watched
		for _, w := range m.Watched[pool] {
			took, done, err := s.took(ctx, w, now)
			switch {
			case err != nil:
				return err
			case !done && !timeUp:
				open = append(open, w)
			case took > 0:
				m.Averages[pool] = average(time.Duration(m.Averages[pool])*time.Millisecond, took).Milliseconds()
			}
		}
		if len(open) == 0 {
			delete(m.Watched, pool)
			continue
		}
		m.Watched[pool] = open
	}
	return nil
}

// took is how long a job's last attempt ran, or has been running; 0 if it never started.
func (s *Stage) took(ctx context.Context, w watched, now time.Time) (took time.Duration, done bool, err error) {
	r, err := s.Store.Row(ctx, w.Key)
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Undecodable:
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if n := len(r.Attempts); n > 0 && !r.Attempts[n-1].FinishedAt.IsZero() && !r.Attempts[n-1].StartedAt.IsZero() {
		a := r.Attempts[n-1]
		return max(a.FinishedAt.Sub(a.StartedAt), time.Millisecond), true, nil
	}
	if r.Status == job.Running {
		return max(now.Sub(r.StartedAt), time.Millisecond), false, nil
	}
	return 0, r.Status != job.Scheduled, nil
}
