package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// batchOf is a batch of n jobs whose payloads are texts of that many bytes.
func batchOf(n, bytes int) string {
	one := `{"task":"echo","payload":"` + strings.Repeat("x", bytes) + `"}`
	return `{"jobs":[` + strings.Repeat(one+",", n-1) + one + `]}`
}

// refusedFor posts a batch that must be refused, and returns for how long.
func (b *bench) refusedFor(t *testing.T, body string) time.Duration {
	t.Helper()
	r := b.want(t, 429, "POST", "/v1/jobs/batch", body)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.str("code") != "rate_limited" || err != nil {
		t.Fatalf("refused by %s, Retry-After %q", r.text, r.header.Get("Retry-After"))
	}
	return time.Duration(after) * time.Second
}

func (b *bench) used(t *testing.T) int64 {
	t.Helper()
	limit := store.RateLimit{Rate: aSecond, Burst: 2 * aSecond}
	n, err := b.Store.UsedByRequests(t.Context(), "acme", limit, b.clock.at)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

//proof:of F84
func TestWeight_DrawsOnTheRateLimitOfTheTenantAlone(t *testing.T) {
	t.Parallel()
	t.Run("a tenant that writes 10 MB in bulk waits, and its neighbour does not", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		megabyte := batchOf(10, 100_000)
		accepted, waited := 0, time.Duration(0)
		for accepted < 10 {
			r := b.do(t, "POST", "/v1/jobs/batch", megabyte)
			if r.status == 200 {
				accepted++
				continue
			}
			wait := b.refusedFor(t, megabyte)
			b.who = all("globex")
			b.want(t, 200, "POST", "/v1/jobs/batch", batchOf(2, 100))
			b.who = all("acme")
			waited += wait
			b.clock.at = b.clock.at.Add(wait)
		}
		// 10 MB are 610 requests; the burst has 200 of them, and each second gives 100 more.
		if waited < 3*time.Second || waited > 8*time.Second {
			t.Errorf("10 MB were written within %s", waited)
		}
	})
	t.Run("a request that weighs more than a burst is made, and is paid for afterwards", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(_ *memory.Options, d *api.Deps) { d.RateLimit = store.RateLimit{Rate: 1, Burst: 1} })
		large := batchOf(contract.MaxBatchJobs, 10_000)
		b.want(t, 200, "POST", "/v1/jobs/batch", large)
		wait := b.refusedFor(t, large)
		if wait < 70*time.Second || wait > 72*time.Second {
			t.Errorf("the next request waits for %s", wait)
		}
		b.clock.at = b.clock.at.Add(wait)
		b.want(t, 200, "POST", "/v1/jobs/batch", large)
	})
	for _, c := range []struct {
		what string
		body string
		want int64
	}{
		{"nine small jobs", batchOf(9, 100), 1},
		{"a batch of the most small jobs", batchOf(contract.MaxBatchJobs, 40), 11},
		{"ten large jobs", batchOf(10, 20_000), 14},
	} {
		t.Run(fmt.Sprintf("%s count as %d requests", c.what, c.want), func(t *testing.T) {
			t.Parallel()
			b := setup(t, bounded)
			b.want(t, 200, "POST", "/v1/jobs/batch", c.body)
			if got := b.used(t); got != c.want {
				t.Errorf("they count as %d", got)
			}
		})
	}
	t.Run("a payload counts by its size", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","payload":"`+strings.Repeat("x", 1000)+`"}`)
		if got := b.used(t); got != 1 {
			t.Errorf("1 KB counts as %d requests", got)
		}
		b.clock.at = b.clock.at.Add(time.Minute)
		b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","payload":"`+strings.Repeat("x", 1_000_000)+`"}`)
		if got := b.used(t); got != 62 {
			t.Errorf("1 MB counts as %d requests", got)
		}
	})
	t.Run("a redrive counts the jobs that it makes, and a dry run none", func(t *testing.T) {
		t.Parallel()
		b := setup(t, bounded)
		for range 30 {
			b.dead(t, `{"task":"echo"}`)
		}
		b.clock.at = b.clock.at.Add(time.Minute)
		b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{},"dry_run":true}`)
		if got := b.used(t); got != 1 {
			t.Errorf("a dry run counts as %d requests", got)
		}
		b.clock.at = b.clock.at.Add(time.Minute)
		b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{}}`)
		if got := b.used(t); got != 4 {
			t.Errorf("a redrive of 30 jobs counts as %d requests", got)
		}
	})
}
