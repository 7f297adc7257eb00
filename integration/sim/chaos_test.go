package sim

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
)

// Seeds that found something, and what.
var found = []uint64{
	1629, // a job moved while it was being parked kept the mark of the parked, and lay elsewhere
	1844, // the same of a job rewoken while it was being parked
}

// seeds are those to try: the ones that found something, and the first so many. SIM_SEEDS=n
// tries n, SIM_SEED=s only that one.
func seeds(t *testing.T) []uint64 {
	number := func(name string, otherwise int) int {
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
	if s := number("SIM_SEED", -1); s >= 0 {
		return []uint64{uint64(s)}
	}
	list := found
	first := number("SIM_FROM", 1)
	for n := range number("SIM_SEEDS", 24/fewer) {
		list = append(list, uint64(first+n))
	}
	return list
}

func TestWhateverHappensAllComesToRestAsItMust(t *testing.T) {
	t.Parallel()
	// A seed gives the weather and what people do; in which order goroutines run that are ready
	// at the same instant it does not. One that fails may need -count to fail again.
	for _, seed := range seeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(t, Climate(seed))
				Chaos(w)
				w.Close()
				w.Report("chaos")
			})
		})
	}
}
