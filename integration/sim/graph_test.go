package sim

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/tenant"
)

func TestGraph_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Graphs)
}

func TestGraph_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	for n, s := range Graphs {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			together(t, s, Options{
				Seed: uint64(n), Twins: true, Shards: 3, IndexLag: time.Second, EmptyPages: n%2 == 0,
			})
		})
	}
}

// graphSeeds is how many seeds each story of runs is played with.
const graphSeeds = 4

func TestGraph_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	for _, s := range slices.Concat(Graphs, RunsOfSchedules) {
		for seed := range uint64(number(t, "SIM_SEEDS", graphSeeds)) {
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := Climate(seed + 1)
					o.Disturbed, o.Twins = true, false
					w := New(t, o).As(tenant.Local)
					w.Define()
					end := s.Play(w)
					time.Sleep(time.Minute)
					w.Calm()
					w.Settle(3 * time.Hour)
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

// TestNetwork_EndsRightDespiteActsAndFaults plays random graphs. SIM_SEEDS=1000 plays a thousand worlds.
func TestNetwork_EndsRightDespiteActsAndFaults(t *testing.T) {
	t.Parallel()
	var all counts
	t.Run("seeds", func(t *testing.T) {
		playAll(t, "network", func(w *World) {
			Network(w)
			all.add(w.done, w.faults())
		})
	})
	t.Log(all.String())
}
