package worker

import (
	"slices"
	"time"

	"punctual/shared/clock"
)

// intakes are those of the pools served. Each pool has slots of its own, so that jobs of one never
// wait for those of another; the table that a worker loses reach of is the same for all.
type intakes []*intake

func newIntakes(o Options, c clock.Clock) intakes {
	var all intakes
	for n, pool := range o.Pools {
		if !slices.Contains(o.Pools[:n], pool) {
			all = append(all, newIntake(pool, o, c))
		}
	}
	return all
}

func (all intakes) ask(s *source) int                { return s.intake.ask(s) }
func (all intakes) answered(s *source, n int)        { s.intake.answered(s, n) }
func (all intakes) release(f *firing)                { f.source.intake.release(f) }
func (all intakes) add(f *firing, at time.Time) bool { return f.source.intake.add(f, at) }

// taken is how many slots are taken, of all pools.
func (all intakes) taken() int {
	n := 0
	for _, in := range all {
		n += in.taken()
	}
	return n
}

// close ends the intakes and returns all that they held.
func (all intakes) close() []*firing {
	var held []*firing
	for _, in := range all {
		held = append(held, in.close()...)
	}
	return held
}

func (all intakes) unreached() {
	for _, in := range all {
		in.unreached()
	}
}

func (all intakes) reached() {
	for _, in := range all {
		in.reached()
	}
}

// pool is the pool of the intake.
func (in *intake) pool() string { return in.sources[0].pool }
