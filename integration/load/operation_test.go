package load

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/workers/worker"
)

// operated does an action to what matches, and returns how many rows it did a second.
func (h *shop) operated(body object, n int) float64 {
	h.b.Helper()
	var v struct {
		OperationID  string `json:"operation_id"`
		Status       string
		Done, Failed int
	}
	from := time.Now()
	if err := json.Unmarshal(h.call("POST", "/operations", body), &v); err != nil {
		h.b.Fatal(err)
	}
	for v.Status == "COUNTING" || v.Status == "RUNNING" {
		if err := json.Unmarshal(h.call("GET", "/operations/"+v.OperationID+"?wait=20s", nil), &v); err != nil {
			h.b.Fatal(err)
		}
		if time.Since(from) > 10*time.Minute {
			h.b.Fatalf("%+v", v)
		}
	}
	if v.Status != "SUCCEEDED" || v.Done != n {
		h.b.Fatalf("%+v, want %d done", v, n)
	}
	return float64(n) / time.Since(from).Seconds()
}

func BenchmarkOperations(b *testing.B) {
	const waiting, dead = 20_000, 10_000
	registry := worker.NewRegistry()
	worker.Register(registry, "broken", func(context.Context, worker.Job[json.RawMessage]) (struct{}, error) {
		return struct{}{}, errors.New("it is broken")
	})
	for b.Loop() {
		h := open(b, worker.Options{Slots: 256}, registry)
		h.call("PUT", "/tasks/broken", object{"executor": "go", "retry": object{"max_attempts": 1}})
		h.batches(waiting, inAnHour)
		h.batches(dead, func(int) object { return object{"task": "broken"} })
		h.settled(dead, 5*time.Minute)
		probe := object{"task": "probe", "status": job.Scheduled}
		note("rows a second: reprioritize 20,000 jobs", "%.0f/s", h.operated(object{"action": "reprioritize",
			"filter": probe, "set": object{"priority": "high"}}, waiting))
		note("rows a second: cancel 20,000 jobs", "%.0f/s",
			h.operated(object{"action": "cancel", "filter": probe}, waiting))
		broken := object{"task": "broken"}
		note("rows a second: redrive 10,000 dead letters", "%.0f/s", h.operated(object{"action": "redrive",
			"filter": broken, "set": object{"delay": "1h"}}, dead))
		note("rows a second: purge 10,000 dead letters", "%.0f/s",
			h.operated(object{"action": "purge", "filter": broken}, dead))
		h.stop()
	}
}
