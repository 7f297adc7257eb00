package sim

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/tenant"
)

// play runs a story to its end in a world with those options. It returns the points and how long
// the world took to settle.
func play(t *testing.T, s Story, o Options, most time.Duration) (points []Point, took time.Duration, bad bool) {
	t.Helper()
	o.Workers, o.Pumps, o.Cores = max(o.Workers, s.Workers), max(o.Pumps, s.Pumps), max(o.Cores, s.Cores)
	o.Disturbed, o.Webhooks, o.Indexed = o.Plan != nil, s.Webhooks, s.Indexed
	if s.Plan != nil {
		o.Plan = both(s.Plan(), o.Plan)
	}
	synctest.Test(t, func(t *testing.T) {
		w := New(t, o).As(tenant.Local)
		w.Define()
		time.Sleep(7300 * time.Millisecond) // so that passes and stories do not share an instant
		end := s.Play(w)
		took = w.Settle(most)
		end()
		time.Sleep(20 * time.Second)
		w.Check()
		if !s.Held {
			late := 100 * time.Millisecond
			if o.Plan != nil {
				late = delay + o.deferral()
			}
			w.OnTime(late)
		}
		w.Close()
		points = w.passed
		if os.Getenv("SIM_TRACE") == "always" {
			t.Log(strings.Join(w.trace, "\n"))
		}
		bad = w.Report(s.Name)
	})
	return points, took, bad
}

// deferral returns how much later a fault may make a job because a pass puts it off: its work did not end in time.
func (o Options) deferral() time.Duration {
	if o.Late < scan.EntryTime {
		return 0
	}
	return contract.RetryEvery
}

//proof:of 104 by timeout, then dead
//proof:of S47 by cancel at due
func TestStory_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Stories)
}

func nothingFails(t *testing.T, stories []Story) {
	t.Helper()
	for _, s := range stories {
		if s.Crowded && fewer > 1 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			points, took := cleanly(t, s)
			if os.Getenv("SIM_FULL") != "" {
				t.Logf("%d points, at rest after %s", len(points), took)
			}
		})
	}
}

//proof:of 186
func TestStory_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Stories)
}

// forTwoTenants runs each story that is not Alone for two tenants at once.
func forTwoTenants(t *testing.T, stories []Story) {
	t.Helper()
	for n, s := range stories {
		if s.Alone {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			together(t, s, Options{
				Seed: uint64(n), SameIDs: true, Shards: 3, Workers: s.Workers, IndexLag: time.Second,
				EmptyPages: n%2 == 0, Webhooks: s.Webhooks, Indexed: s.Indexed,
			})
		})
	}
}

// weatherSeeds is how many seeds inAnyWeather plays each story with by default.
const weatherSeeds = 4

// inAnyWeather plays each story with random faults, which stop after a minute; the world must settle within that time.
func inAnyWeather(t *testing.T, stories []Story, settle time.Duration) {
	t.Helper()
	for _, s := range stories {
		if s.Calm {
			continue
		}
		for seed := range uint64(number(t, "SIM_SEEDS", weatherSeeds)) {
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := Climate(seed + 1)
					o.Disturbed, o.SameIDs, o.Webhooks, o.Indexed = true, false, s.Webhooks, s.Indexed
					w := New(t, o).As(tenant.Local)
					w.Define()
					end := s.Play(w)
					time.Sleep(time.Minute)
					w.Calm()
					w.Settle(settle)
					end()
					time.Sleep(2 * time.Minute) // the index may lag that much
					w.Check()
					w.Close()
					w.Report(s.Name)
				})
			})
		}
	}
}

// together runs a story for two tenants at once. Their jobs have the same keys and, made in the
// same millisecond, the same ids.
func together(t *testing.T, s Story, o Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(t, o)
		for _, who := range tenants {
			w.As(who).Define()
		}
		time.Sleep(7300*time.Millisecond - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
		ends := make([]func(), len(tenants))
		var notifying sync.WaitGroup
		for n, who := range tenants {
			notifying.Go(func() { ends[n] = s.Play(w.As(who)) })
		}
		notifying.Wait()
		w.Settle(time.Hour)
		for _, end := range ends {
			end()
		}
		time.Sleep(20 * time.Second)
		w.Check()
		w.Close()
		w.Report(s.Name)
		alike := 0
		for _, r := range w.As(tenants[0]).rows() {
			if _, there := w.As(tenants[1]).row(r.ID); there {
				alike++
			}
		}
		for _, g := range w.graphs { // the ids of nodes' jobs are derived from the tenant as well
			for _, other := range w.graphs {
				if other.ID == g.ID && other.Tenant != g.Tenant {
					alike++
				}
			}
		}
		if jobs := len(w.ledger.order); alike == 0 && jobs == len(w.ledger.all()) {
			t.Error("no two jobs have the same id")
		}
	})
}
