package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/store"
)

// params gives a run the param s, a text of that many bytes.
func params(bytes int) func(*runs.Request) {
	return func(n *runs.Request) {
		n.Params = json.RawMessage(`{"s":"` + strings.Repeat("x", bytes) + `"}`)
	}
}

// sees gives a node a payload, and lets the dag know the param s.
func sees(d dag.Definition, node, forEach, payload string) dag.Definition {
	d.Params = map[string]json.RawMessage{"s": json.RawMessage(`""`)}
	return with(d, node, func(n *dag.Node) {
		n.ForEach = forEach
		n.Payload = json.RawMessage(`"` + payload + `"`)
	})
}

// listOf is a for_each over n numbers.
func listOf(n int) string {
	return "${[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]}"
}

// drawn is how many requests a tenant has drawn.
func (b *bench) drawn() int64 {
	n, err := b.Store.UsedByRequests(context.Background(), "acme", b.rate, b.now)
	b.Must(err)
	return n
}

// limited is a bench whose tenants have that rate limit.
func limited(t *testing.T, rate, burst int) *bench {
	b := setup(t)
	b.rate = store.RateLimit{Rate: rate, Burst: burst}
	b.rel = b.another()
	return b
}

//proof:of F84
func TestWeight_BoundsThePayloadsOfARun(t *testing.T) {
	t.Parallel()
	for payload, code := range map[string]string{
		"${params.s}${params.s}${params.s}${params.s}": dag.ReasonPayloadsTooLarge,
		"${params.s + params.s + params.s + params.s}": dag.ReasonExpressionFailed, // it is too much work, too
	} {
		t.Run("a request of 241 KB does not make 288 MB by "+payload, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(sees(def("m"), "m", listOf(300), payload), params(240_000))
			b.settle()
			b.is("m", job.Dead, code)
			b.runIs(run.Failed)
			if n := b.World.Counts().Total().Write; n > 2000 {
				t.Errorf("the run wrote %v units", n)
			}
		})
	}
	t.Run("the reason names both figures and the limit", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		d := sees(def("a", "b: a"), "a", "", "${params.s}")
		b.create(sees(d, "b", listOf(200), "${params.s}"), params(100_000))
		b.settle()
		b.is("b", job.Dead, dag.ReasonPayloadsTooLarge)
		why := b.current("b").Reason.Message
		for _, figure := range []int{contract.MaxRunPayloads, 100_002} {
			if !strings.Contains(why, fmt.Sprint(figure)) {
				t.Errorf("the reason is %q, without %d", why, figure)
			}
		}
	})
	t.Run("nodes count together, and the others go on", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		d := def("c: b", "b: a", "a", "z")
		d = sees(d, "a", listOf(90), "${params.s}")
		d = sees(d, "b", listOf(90), "${params.s}")
		b.create(d, params(100_000))
		b.settle()
		b.is("a", job.Succeeded, "")
		b.is("b", job.Dead, dag.ReasonPayloadsTooLarge)
		b.is("z", job.Succeeded, "")
	})
	t.Run("a node that is retried counts once", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.fails = func(r job.Row) bool { return r.ItemNo == 90 && r.Generation < 4 }
		b.create(sees(def("a"), "a", listOf(90), "${params.s}"), params(100_000))
		b.settle()
		for range 3 {
			_, err := b.rel.Retry(context.Background(), b.key, "", by)
			b.Must(err)
			b.settle()
		}
		b.is("a", job.Succeeded, "")
	})
}

func TestWeight_DrawsOnTheRateLimitOfTheTenant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		dag  dag.Definition
		size int
		want int64
	}{
		{"a small run draws nothing", def("a", "b: a", "c: b"), 10, 0},
		{"nodes count when the run is made", def(strings.Split("a b c d e f g h i j k l", " ")...), 10, 1},
		{"items count when their node is released", sees(def("m"), "m", listOf(300), "${item}"), 10, 30},
		{"bytes count beside jobs", sees(def("m"), "m", listOf(100), "${params.s}"), 16 << 10, 110},
		{"a large payload counts", sees(def("a"), "a", "", "${params.s}"), 160 << 10, 10},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			b := limited(t, 100, 1000)
			b.create(c.dag, params(c.size))
			if got := b.drawn(); got != c.want {
				t.Errorf("it draws %d requests, want %d", got, c.want)
			}
			b.Must(b.rel.Reconcile(context.Background(), b.key))
			if got := b.drawn(); got != c.want {
				t.Errorf("derived once more it draws %d requests, want %d", got, c.want)
			}
		})
	}
}

//proof:of F84
func TestWeight_DefersAReleaseWhileItsTenantIsInDebt(t *testing.T) {
	t.Parallel()
	indebted := func(t *testing.T, overdraft int) *bench {
		b := limited(t, 10, 20)
		_, _, err := b.Store.DrawWeight(context.Background(), "acme", b.rate, 20+overdraft, store.AnyDeficit, b.now)
		b.Must(err)
		b.create(sees(def("m", "small", "end: m"), "m", listOf(40), "${item}"))
		return b
	}
	t.Run("it is continued without a wake-up once the debt is paid", func(t *testing.T) {
		t.Parallel()
		b := indebted(t, 1000)
		if row := b.current("m"); row.Status != "" {
			t.Fatalf("m is %s while its tenant is in debt", row.Status)
		}
		b.is("small", job.Scheduled, "")
		// 1,000 requests of deficit, of which 128 may be left, at 10 a second
		if b.longest < 87*time.Second || b.longest > 88*time.Second {
			t.Errorf("the run is derived after %s", b.longest)
		}
		b.now = b.now.Add(b.longest)
		b.calm()
		b.runIs(run.Succeeded)
	})
	t.Run("it asks again while there is debt", func(t *testing.T) {
		t.Parallel()
		b := indebted(t, 1000)
		b.now = b.now.Add(time.Second)
		if !b.later() || b.current("m").Status != "" || b.reconcileLater == 0 {
			t.Fatalf("m is %q, and %d invocations were asked for", b.current("m").Status, b.reconcileLater)
		}
	})
	t.Run("a debt that requests can leave defers nothing", func(t *testing.T) {
		t.Parallel()
		b := indebted(t, contract.MaxReleaseOverdraft)
		b.calm()
		b.runIs(run.Succeeded)
	})
	t.Run("the runs of a neighbour go on", func(t *testing.T) {
		t.Parallel()
		b := indebted(t, 1000)
		b.key.Tenant = "globex"
		b.create(sees(def("m"), "m", listOf(40), "${item}"))
		b.calm()
		b.runIs(run.Succeeded)
	})
}

// TestWeight_FinishesADeferredRunWhicheverCallFails fails one call of the table, each in turn, or the request for
// another invocation. There is no sweep and no wake-up.
func TestWeight_FinishesADeferredRunWhicheverCallFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Conflict} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				for fails := 0; fails == 0 || fails <= calls; fails++ {
					b := limited(t, 10, 20)
					_, _, err := b.Store.DrawWeight(t.Context(), "acme", b.rate, 1020, store.AnyDeficit, b.now)
					b.Must(err)
					b.create(sees(def("a", "m: a", "z: m"), "m", listOf(12), "${item}"))
					b.redelivered, calls, b.refuseAfter = 3, 0, fails == 0
					var mu sync.Mutex // calls may come together
					b.World.SetFaults(func(memory.Call) memory.Fault {
						mu.Lock()
						defer mu.Unlock()
						if !b.propagating.Load() {
							return memory.Fault{}
						}
						if calls++; calls == fails {
							return memory.Fault{Fail: kind}
						}
						return memory.Fault{}
					})
					for b.work() {
					}
					if row := b.current("m"); row.Status != "" {
						t.Fatalf("m is %s while its tenant is in debt", row.Status)
					}
					b.now = b.now.Add(2 * time.Minute)
					b.calm()
					b.World.SetFaults(nil)
					if is := b.run(); is.Status != run.Succeeded {
						t.Fatalf("the run is %s after call %d failed", is.Status, fails)
					}
				}
				t.Logf("%d calls", calls)
			})
		})
	}
}
