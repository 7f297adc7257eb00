package api_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// waiting returns a bench in virtual time whose tenants may have two waiting requests at once.
func waiting(t *testing.T) *bench {
	b := setup(t, func(o *memory.Options, d *api.Deps) {
		o.Clock, d.Clock, d.Waiting = clock.System{}, clock.System{}, 2
	})
	b.clock.at = time.Now()
	return b
}

//proof:of F77
func TestWait_BoundsTheWaitingRequestsOfATenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := waiting(t)
		id := b.post(t, `{"task":"echo","delay":"1h"}`)
		b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
		run := b.want(t, 202, "POST", "/v1/dags/d/runs", "").str("run_id")
		paths := []string{"/v1/jobs/" + id, "/v1/runs/" + run}
		ask := func(path, wait string) (took time.Duration, after string) {
			start := time.Now()
			r := b.want(t, 200, "GET", path+"?wait="+wait, "")
			return time.Since(start), r.header.Get("Retry-After")
		}
		for round := range 3 { // slots that are given back, or were not, are free for the next round
			if round == 2 {
				b.Fail(stagetest.Writes(store.WriteWaitingGive))
			}
			for i := range 2 {
				go func() {
					if took, after := ask(paths[i], "20s"); took != 20*time.Second || after != "" {
						t.Errorf("round %d: %s waited %v, Retry-After %q", round, paths[i], took, after)
					}
				}()
			}
			time.Sleep(time.Second)
			for _, path := range paths {
				if took, after := ask(path, "20s"); took != 0 || after != "2" {
					t.Errorf("round %d: one more request for %s waited %v, Retry-After %q", round, path, took, after)
				}
			}
			time.Sleep(19 * time.Second)
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		if took, after := ask(paths[0], "1s"); took != time.Second || after != "" {
			t.Errorf("after the time of slots that were not given back it waited %v, Retry-After %q", took, after)
		}
	})
}

func TestWait_CountsEachTenantByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := waiting(t)
		now := time.Now()
		for range 2 {
			if _, ok, err := b.Store.TakeWaiting(t.Context(), "globex", 2, now.Add(time.Minute), now); !ok ||
				err != nil {
				t.Fatal(ok, err)
			}
		}
		if _, ok, err := b.Store.TakeWaiting(t.Context(), "globex", 2, now.Add(time.Minute), now); ok || err != nil {
			t.Fatal(ok, err)
		}
		id := b.post(t, `{"task":"echo","delay":"1h"}`)
		if b.want(t, 200, "GET", "/v1/jobs/"+id+"?wait=5s", ""); time.Since(now) != 5*time.Second {
			t.Errorf("it waited %v", time.Since(now))
		}
	})
}

func TestWait_AnswersAtOnceWhenTheSlotsCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := waiting(t)
		id := b.post(t, `{"task":"echo","delay":"1h"}`)
		waiting := func(c memory.Call) bool { return c.Ref.Table == contract.Tasks && c.Ref.SK == "waiting" }
		b.Fault(waiting, memory.Fault{Fail: fault.Unavailable})
		start := time.Now()
		r := b.want(t, 200, "GET", "/v1/jobs/"+id+"?wait=5s", "")
		if got := fmt.Sprint(time.Since(start), r.header.Get("Retry-After")); got != "0s2" {
			t.Errorf("it took, and says Retry-After: %s", got)
		}
	})
}
