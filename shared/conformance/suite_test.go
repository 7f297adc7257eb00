package conformance

import (
	"testing"
)

// A request that was resent may have been carried out twice, so the exercise that saw it runs once more; only a failure
// without one is the adapter's.
func TestRun_RepeatsAnExerciseWhileRequestsAreResent(t *testing.T) {
	t.Parallel()
	var runs, resent int64
	exercises := []exercise[int]{{name: "fails while requests are resent", run: func(t T, _ int) {
		if runs++; runs <= 2 {
			resent++
			t.Errorf("carried out twice")
		}
	}}}
	run(t, Knobs{Resent: func() int64 { return resent }}, func(*testing.T) int { return 0 }, exercises)
	t.Cleanup(func() {
		if runs != 3 {
			t.Errorf("the exercise ran %d times, want 3", runs)
		}
	})
}
