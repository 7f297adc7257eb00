package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/integration/story"
	"punctual/shared/item"
	"punctual/shared/store"
	"punctual/workers/system"
	"punctual/workers/worker"
)

func limitedTo(name, key string) []object { return []object{{"name": name, "key": key}} }

// BenchmarkLimits measures starts through one key of a limit and through many, and how soon a permit that was given
// back is used.
func BenchmarkLimits(b *testing.B) {
	for b.Loop() {
		plain := throughKeys(b, 20_000, 0, 0)
		note("no-op jobs without a limit", "%.0f/s", plain)
		for _, c := range []struct{ jobs, keys, most int }{
			{20_000, 1, 10_000}, {5_000, 1, 100}, {1_000, 1, 1}, {20_000, 10_000, 1},
		} {
			rate := throughKeys(b, c.jobs, c.keys, c.most)
			note(fmt.Sprintf("through %d keys of a limit of %d", c.keys, c.most), "%.0f starts/s, %.2f ×", rate,
				rate/plain)
		}
		note("a limit of 1: from the end of a handler to the next start", "%s", spread(gaps(b, 500)))
	}
}

// throughKeys returns how many no-op jobs a second go through the keys of a limit; without keys, how many without one.
func throughKeys(b *testing.B, jobs, keys, most int) float64 {
	b.Helper()
	h := open(b, worker.Options{Slots: 500, Hold: 5000})
	defer h.stop()
	if keys > 0 {
		h.call("PUT", "/limits/limit", object{"max_running": most})
	}
	from := time.Now()
	h.batches(jobs, func(n int) object {
		body := object{"task": "probe"}
		if keys > 0 {
			body["limits"] = limitedTo("limit", fmt.Sprint(n%keys))
		}
		return body
	})
	h.settled(float64(jobs), 5*time.Minute)
	return float64(jobs) / time.Since(from).Seconds()
}

// gaps runs jobs of some milliseconds one at a time, and returns how long after the end of one the next began.
func gaps(b *testing.B, jobs int) []time.Duration {
	b.Helper()
	var mu sync.Mutex
	var ended time.Time
	var list []time.Duration
	registry := worker.NewRegistry()
	worker.Register(registry, "turn", func(context.Context, worker.Job[json.RawMessage]) (struct{}, error) {
		mu.Lock()
		defer mu.Unlock()
		if !ended.IsZero() {
			list = append(list, time.Since(ended))
		}
		time.Sleep(5 * time.Millisecond)
		ended = time.Now()
		return struct{}{}, nil
	})
	h := open(b, worker.Options{Slots: 50}, registry)
	defer h.stop()
	h.call("PUT", "/tasks/turn", object{"executor": "go"})
	h.call("PUT", "/limits/limit", object{"max_running": 1})
	h.batches(jobs, func(int) object { return object{"task": "turn", "limits": limitedTo("limit", "k")} })
	h.settled(float64(jobs), 5*time.Minute)
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(slices.Values(list))
}

// A flood of jobs on one key of a limit waits for its own permits, and leaves the starts of another key as they were.
// In virtual time only the protocol adds lateness, by how many calls it makes, and not the machine.
func TestLimits_AFloodOnOneKeyLeavesAnotherAsItWas(t *testing.T) {
	flood := 10_000
	if testing.Short() {
		flood = 1_000
	}
	alone, flooded := underFlood(t, 0), underFlood(t, flood)
	a, b := quantile(alone, .99), quantile(flooded, .99)
	note("start lateness of a key of a limit, virtual time", "%s", spread(alone))
	note(fmt.Sprintf("the same with %d jobs of another key", flood), "%s", spread(flooded))
	if a == 0 || float64(b) > 1.2*float64(a) {
		t.Errorf("p99 of the starts of a key is %v, and %v with a flood on another", a, b)
	}
}

// underFlood returns how late the jobs of a quiet key start while a flood waits for another.
func underFlood(t *testing.T, flood int) (late []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := composeOver(t, system.Options{Shards: 4, Worker: worker.Options{Name: "bench", Slots: 100}, Pumps: 6},
			func(_ string, t store.Table) store.Table { return slowTable{t} })
		a := story.Over(t, h.sys.API)
		a.Want(201, "PUT", "/limits/limit", story.Object{"max_running": 10})
		for sent := 0; sent < flood; sent += 100 {
			batch := make([]story.Object, 100)
			for n := range batch {
				batch[n] = story.Object{"task": "echo", "payload": story.Object{"sleep": "200ms"},
					"limits": limitedTo("limit", "flood")}
			}
			a.Want(200, "POST", "/jobs/batch", story.Object{"jobs": batch})
		}
		time.Sleep(5 * time.Second)
		var ids []string
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			ids = append(ids, a.Post(story.Object{"task": "echo", "limits": limitedTo("limit", "quiet")}))
		}
		time.Sleep(30 * time.Second) // reports of ends wait behind those of the flood
		for _, id := range ids {
			v := a.WantStatus(id, "SUCCEEDED")
			late = append(late, time.Duration(v["start_lateness_ms"].(float64))*time.Millisecond)
		}
	})
	slices.Sort(late)
	return late
}

// slowTable takes as long for a call as a table of AWS.
type slowTable struct{ store.Table }

const callTakes = 5 * time.Millisecond

func (t slowTable) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	time.Sleep(callTakes)
	return t.Table.Get(ctx, ref)
}

func (t slowTable) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	time.Sleep(callTakes)
	return t.Table.GetMany(ctx, refs)
}

func (t slowTable) Write(ctx context.Context, w item.Write) (item.Item, error) {
	time.Sleep(callTakes)
	return t.Table.Write(ctx, w)
}

func (t slowTable) Commit(ctx context.Context, writes ...item.Write) error {
	time.Sleep(2 * callTakes)
	return t.Table.Commit(ctx, writes...)
}

func (t slowTable) Query(ctx context.Context, q item.Query) (item.Page, error) {
	time.Sleep(callTakes)
	return t.Table.Query(ctx, q)
}
