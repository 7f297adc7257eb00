package forecast

import "time"

const (
	// headroom is how much more than the forecast is asked for, in percent.
	headroom = 20
	// firstGuess is how long a job is taken to run before any was seen.
	firstGuess = time.Second
	// weight is the share of a new measurement in the average, in percent.
	weight = 20
)

// demand counts the jobs of one pool by the second in which they are due.
type demand struct {
	from   time.Time
	perSec []int // of the seconds after from; what is due earlier counts in the first
	total  int
}

func newDemand(from time.Time, ahead time.Duration) *demand {
	return &demand{from: from, perSec: make([]int, int(ahead/time.Second)+1)}
}

// add counts a job; one that is due beyond the last second is left out.
func (d *demand) add(due time.Time) {
	at := max(0, int(due.Sub(d.from)/time.Second))
	if at >= len(d.perSec) {
		return
	}
	d.perSec[at]++
	d.total++
}

// slots is the most jobs that run at the same time, if each begins when it is due and takes
// that long (at least a second is counted), with headroom.
func (d *demand) slots(each time.Duration) int {
	window := max(1, int((each+time.Second-1)/time.Second))
	running, most := 0, 0
	for s, n := range d.perSec {
		running += n
		if s >= window {
			running -= d.perSec[s-window]
		}
		most = max(most, running)
	}
	return (most*(100+headroom) + 99) / 100
}

// average moves an average (0: none yet) towards what was measured.
func average(old, measured time.Duration) time.Duration {
	if old == 0 {
		return measured
	}
	return (old*(100-weight) + measured*weight) / 100
}
