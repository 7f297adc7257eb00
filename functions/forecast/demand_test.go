package forecast

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func TestDemand_CountsTheMostThatRunAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		due  []time.Duration // after now
		each time.Duration
		want int
	}{
		"nothing due":          {nil, time.Minute, 0},
		"one":                  {[]time.Duration{time.Minute}, time.Second, 2}, // headroom rounds up
		"ten at the same time": {[]time.Duration{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, time.Second, 12},
		"ten, each over before the next": {[]time.Duration{0, 2e9, 4e9, 6e9, 8e9, 10e9, 12e9, 14e9, 16e9, 18e9},
			2 * time.Second, 2},
		"ten, of which five overlap": {[]time.Duration{0, 1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 8e9, 9e9},
			5 * time.Second, 6},
		"what is overdue starts now":          {[]time.Duration{-time.Minute, -time.Minute, 0}, time.Second, 4},
		"what lies beyond the end is nothing": {[]time.Duration{time.Hour}, time.Second, 0},
	} {
		d := newDemand(noon, 30*time.Minute)
		for _, in := range c.due {
			d.add(noon.Add(in))
		}
		if got := d.slots(c.each); got != c.want {
			t.Errorf("%s: %d slots; want %d", name, got, c.want)
		}
	}
}

//proof:of 127
func TestDemand_NeverFallsShortOfAnyMoment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		due := rapid.SliceOfN(rapid.IntRange(0, 1800), 0, 200).Draw(t, "due")
		each := time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second
		d := newDemand(noon, 30*time.Minute)
		for _, s := range due {
			d.add(noon.Add(time.Duration(s) * time.Second))
		}
		slots := d.slots(each)
		for _, s := range due { // the most run when one of them begins
			running := 0
			for _, o := range due {
				if o <= s && s < o+int(each/time.Second) {
					running++
				}
			}
			if running > slots {
				t.Fatalf("%d run at second %d, %d slots are wanted", running, s, slots)
			}
		}
	})
}

func TestAverage_FollowsSlowlyAndBeginsAtTheFirst(t *testing.T) {
	t.Parallel()
	a := average(0, 4*time.Second)
	if a != 4*time.Second {
		t.Fatalf("the first gave %s", a)
	}
	for range 50 {
		a = average(a, 10*time.Second)
	}
	if a < 9900*time.Millisecond || a > 10*time.Second {
		t.Errorf("after 50 of 10s it is %s", a)
	}
	if one := average(10*time.Second, time.Second); one < 8*time.Second {
		t.Errorf("one short job moved it to %s", one)
	}
}
