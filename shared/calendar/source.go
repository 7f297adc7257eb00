package calendar

import (
	"slices"
)

// tick is one nominal time before windows and exclusions, in milliseconds.
type tick struct {
	at      int64
	missing bool // the clock never showed this time
	skip    bool // and it does not run
	moved   int8 // an exclusion moved it: +1 to a later day, -1 to an earlier
}

// source is a set of nominal times.
type source interface {
	// next returns the first tick after after, up to and including until. With skipped it also
	// returns ticks that do not run.
	next(after, until int64, skipped bool) (tick, bool)
}

// every is a sequence of equal steps of real time.
type every struct {
	period, anchor int64
	// begins: there is no tick before the anchor; otherwise there always were ticks.
	begins bool
	// elapsed: the anchor itself is no tick, the first comes one period later.
	elapsed bool
	// floating: the anchor is not known yet; see Calendar.For.
	floating bool
}

func (e every) next(after, until int64, _ bool) (tick, bool) {
	if e.floating {
		e.anchor = after
	}
	k := floorDiv(after-e.anchor, e.period) + 1
	if e.elapsed {
		k = max(k, 1)
	} else if e.begins {
		k = max(k, 0)
	}
	// The horizon bounds searches, and a long period needs none.
	t := e.anchor + k*e.period
	return tick{at: t}, t < lastInstant*1000
}

// dates are explicit instants, sorted.
type dates []int64

func (d dates) next(after, _ int64, _ bool) (tick, bool) {
	i, found := slices.BinarySearch(d, after)
	if found {
		i++
	}
	if i == len(d) {
		return tick{}, false
	}
	return tick{at: d[i]}, true
}
