package api_test

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/store"
)

const aSecond = 100 // requests a second in these tests

func bounded(_ *memory.Options, d *api.Deps) {
	d.RateLimit = store.RateLimit{Rate: aSecond, Burst: 2 * aSecond}
}

// answered makes n requests at once and counts the answers by status.
func (b *bench) answered(t *testing.T, n int) map[int]int {
	t.Helper()
	got := map[int]int{}
	for range n {
		got[b.do(t, "GET", "/v1/whoami", "").status]++
	}
	return got
}

func TestRateLimit_BoundsTheRequestsOfATenant(t *testing.T) {
	t.Parallel()
	t.Run("answers a burst, then as many requests as each second allows", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		if got := b.answered(t, 500); got[200] != 2*aSecond || got[429] != 500-2*aSecond {
			t.Errorf("answered %v", got)
		}
		r := b.want(t, 429, "GET", "/v1/whoami", "")
		if r.str("code") != "rate_limited" || r.header.Get("Retry-After") != "1" {
			t.Errorf("refused by %s, Retry-After %q", r.text, r.header.Get("Retry-After"))
		}
		for range 5 {
			b.clock.at = b.clock.at.Add(time.Second)
			if got := b.answered(t, 500); got[200] < aSecond-1 || got[200] > aSecond+1 {
				t.Errorf("within a second answered %v", got)
			}
		}
	})
	t.Run("counts neither other tenants nor routes without a tenant", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		b.answered(t, 1000)
		b.want(t, 200, "GET", "/v1/health", "")
		b.who = all("globex")
		if got := b.answered(t, 2*aSecond); got[200] != 2*aSecond {
			t.Errorf("another tenant was answered %v", got)
		}
	})
	t.Run("counts the requests of all processes together", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		others := []*bench{b}
		for range 4 {
			o := *b
			o.handler = api.New(api.Deps{
				Store: b.Store, Queues: b.World.Queues(), Timers: b.World.Timers(), Base: process.Base{Clock: b.clock},
				RateLimit: store.RateLimit{Rate: aSecond, Burst: 2 * aSecond},
			})
			others = append(others, &o)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		answered := 0
		for _, o := range others {
			all.Go(func() {
				for range 200 {
					ok := o.do(t, "GET", "/v1/whoami", "").status == 200
					mu.Lock()
					if ok {
						answered++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if answered > 2*aSecond || answered < 2*aSecond*9/10 {
			t.Errorf("five processes answered %d", answered)
		}
	})
	t.Run("answers every request while the table is unavailable", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		b.Fail(stagetest.Every(memory.TableWrite))
		if got := b.answered(t, 500); got[200] != 500 {
			t.Errorf("answered %v", got)
		}
	})
	t.Run("writes once for twenty requests, and not for each refused one", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(o *memory.Options, d *api.Deps) {
			d.RateLimit = store.RateLimit{Rate: 1000, Burst: 2000}
		})
		writes := func() float64 { return b.World.Counts().Tables[contract.Tasks].Write }
		before := writes()
		for n := range 2000 {
			b.clock.at = noon.Add(time.Duration(n) * time.Millisecond)
			b.want(t, 200, "GET", "/v1/whoami", "")
		}
		if n := writes() - before; n > 2000/20 {
			t.Errorf("2,000 requests at the rate cost %v writes", n)
		}
		b.answered(t, 3000)
		before = writes()
		b.answered(t, 3000)
		if n := writes() - before; n > 1 {
			t.Errorf("3,000 refused requests cost %v writes", n)
		}
	})
	t.Run("answers how long to wait", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(_ *memory.Options, d *api.Deps) { d.RateLimit = store.RateLimit{Rate: 1, Burst: 3} })
		for range 3 {
			b.want(t, 200, "GET", "/v1/whoami", "")
		}
		r := b.want(t, 429, "GET", "/v1/whoami", "")
		after, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || after < 1 || after > math.MaxInt16 {
			t.Fatalf("Retry-After is %q", r.header.Get("Retry-After"))
		}
		b.clock.at = b.clock.at.Add(time.Duration(after) * time.Second)
		b.want(t, 200, "GET", "/v1/whoami", "")
	})
}
