package recur_test

import (
	"slices"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// beating lists the schedules of heartbeats that are there.
func (b *bench) beating() (names []string) {
	b.Helper()
	page, _, err := b.Store.Schedules(b.Context(), tenant.System, "", contract.ListMax)
	b.Must(err)
	for _, s := range page {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

func TestHeartbeats_BelongToThePoolsThatAreNamed(t *testing.T) {
	t.Parallel()
	short := []string{"heartbeat-short-critical", "heartbeat-short-high", "heartbeat-short-low",
		"heartbeat-short-normal"}
	keep := func(b *bench, pools ...string) {
		b.Helper()
		b.Must(b.engine.Recur.Heartbeats(b.Context(), pools))
	}
	bubble(t, "makes one schedule for each priority of a pool, once", func(b *bench) {
		keep(b, "short")
		keep(b, "short")
		if got := b.beating(); !slices.Equal(got, short) {
			b.Errorf("the heartbeats are %q; want %q", got, short)
		}
		s, err := b.Store.Schedule(b.Context(), schedule.Key{Tenant: tenant.System, Name: short[0]})
		if err != nil || s.Epoch != 1 {
			b.Errorf("the schedule was written %d times: %v", s.Epoch, err)
		}
	})
	bubble(t, "deletes those of a pool that is not named any more, and makes them again", func(b *bench) {
		keep(b, contract.Pools...)
		if n := len(b.beating()); n != len(contract.Pools)*len(contract.Priorities) {
			b.Errorf("all pools have %d heartbeats", n)
		}
		keep(b, "short")
		if got := b.beating(); !slices.Equal(got, short) {
			b.Errorf("the heartbeats are %q; want %q", got, short)
		}
		keep(b)
		if got := b.beating(); len(got) != 0 {
			b.Errorf("without a pool there are %q", got)
		}
		keep(b, "short")
		if got := b.beating(); !slices.Equal(got, short) {
			b.Errorf("the heartbeats are %q again; want %q", got, short)
		}
	})
}
