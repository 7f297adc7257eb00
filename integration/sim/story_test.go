package sim

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// tell plays a story to its end in a world of those options, and returns the points that it
// passed and how long it took to come to rest afterwards.
func tell(t *testing.T, s Story, o Options, most time.Duration) (points []Point, took time.Duration, bad bool) {
	t.Helper()
	o.Workers = max(o.Workers, s.Workers)
	synctest.Test(t, func(t *testing.T) {
		w := New(t, o)
		w.Define()
		time.Sleep(7300 * time.Millisecond) // the passes have their minute to themselves
		end := s.Play(w)
		took = w.Settle(most)
		end()
		time.Sleep(20 * time.Second)
		w.Check()
		if !s.Held {
			late := 100 * time.Millisecond
			if o.Plan != nil {
				late = delay
			}
			w.OnTime(late)
		}
		w.Close()
		points = w.told
		bad = w.Report(s.Name)
	})
	return points, took, bad
}

func TestEachStoryEndsWellWhenNothingFails(t *testing.T) {
	t.Parallel()
	for _, s := range Stories {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			points, took, _ := tell(t, s, Options{Seed: 1}, time.Hour)
			if os.Getenv("SIM_FULL") != "" {
				t.Logf("%d points, at rest after %s", len(points), took)
			}
		})
	}
}
