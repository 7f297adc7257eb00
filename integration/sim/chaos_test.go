package sim

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

// number returns a setting of the environment.
func number(t *testing.T, name string, otherwise int) int {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s is %q, want a number", name, v)
	}
	return n
}

// seeds returns the seeds to try: as many as most by default. SIM_SEEDS=n tries n of them, SIM_FROM=s starts at s,
// SIM_SEED=s tries only s. A seed gives another run as soon as the product changes, so an error that a seed has found
// gets a test of its own.
func seeds(t *testing.T) (list []uint64) {
	if s := number(t, "SIM_SEED", -1); s >= 0 {
		return []uint64{uint64(s)}
	}
	first := number(t, "SIM_FROM", 1)
	for n := range number(t, "SIM_SEEDS", 24/fewer) {
		list = append(list, uint64(first+n))
	}
	return list
}

//proof:of 77
func TestChaos_SettlesEveryJob(t *testing.T) {
	t.Parallel()
	playAll(t, "chaos", Chaos)
}

//proof:of 77 F37
func TestTimetable_GivesEachTimeOneOutcome(t *testing.T) {
	t.Parallel()
	playAll(t, "timetable", Timetable)
}

// playAll plays each seed in its own world.
func playAll(t *testing.T, what string, play func(*World)) {
	for _, seed := range seeds(t) {
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playSeed(t, seed, what, play) })
		})
	}
}

func playSeed(t *testing.T, seed uint64, what string, play func(*World)) *World {
	o := Climate(seed)
	o.Hazards = Hazards{OddText: true, Outages: true, LastSecond: true, ShortPauses: true, Afters: true}
	w := New(t, o)
	play(w)
	w.Close()
	w.Report(what)
	return w
}

// A seed is useful because it repeats a run. If goroutines meet at the same instant, the runtime still chooses their
// order, so a run may differ now and then: of four runs two must be the same.
func TestWorld_RepeatsTheRunOfASeed(t *testing.T) {
	t.Parallel()
	const most = 4
	for _, c := range []struct {
		what string
		play func(*World)
		seed uint64
	}{{"jobs", Chaos, 22}, {"jobs", Chaos, 46},
		{"schedules", Timetable, 5}, {"schedules", Timetable, 8}} { // seeds that once differed between runs
		var runs [][]string
		repeated := false
		for len(runs) < most && !repeated {
			synctest.Test(t, func(t *testing.T) {
				w := playSeed(t, c.seed, c.what, c.play)
				slices.Sort(w.trace) // events of one instant have no order
				repeated = slices.ContainsFunc(runs, func(earlier []string) bool {
					return slices.Equal(earlier, w.trace)
				})
				runs = append(runs, w.trace)
			})
		}
		if !repeated {
			t.Errorf("%s, seed %d: no two of %d runs are the same", c.what, c.seed, most)
		}
	}
}
