package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/tenant"
)

func TestAfter_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Afters)
}

func TestAfter_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	for n, s := range Afters {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			together(t, s, Options{
				Seed: uint64(n), Twins: true, Shards: 3, IndexLag: time.Second, EmptyPages: n%2 == 0,
			})
		})
	}
}

func TestAfter_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	for _, s := range Afters {
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
					w.Settle(4 * time.Hour)
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
