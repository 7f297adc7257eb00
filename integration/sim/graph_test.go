package sim

import (
	"slices"
	"testing"
	"time"
)

func TestGraph_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Graphs)
}

func TestGraph_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Graphs)
}

func TestGraph_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, slices.Concat(Graphs, RunsOfSchedules), 3*time.Hour)
}

// TestNetwork_EndsRightDespiteActsAndFaults plays random graphs. SIM_SEEDS=1000 plays a thousand worlds.
//
//proof:of 86 135 137 S45 S46
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
