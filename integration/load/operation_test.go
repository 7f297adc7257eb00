package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// operated does an action to n rows that match, and notes how many it did a second, and the processor time of a row
// with all that the other stages do about it.
func (h *shop) operated(action string, n int, body object) {
	h.b.Helper()
	var v struct {
		OperationID  string `json:"operation_id"`
		Status       string
		Done, Failed int
	}
	body["action"] = action
	from, used := time.Now(), processorTime()
	if err := json.Unmarshal(h.call("POST", "/operations", body), &v); err != nil {
		h.b.Fatal(err)
	}
	for v.Status == "COUNTING" || v.Status == "RUNNING" {
		if err := json.Unmarshal(h.call("GET", "/operations/"+v.OperationID+"?wait=20s", nil), &v); err != nil {
			h.b.Fatal(err)
		}
		if time.Since(from) > 2*time.Minute {
			h.b.Fatalf("%+v", v)
		}
	}
	if v.Status != "SUCCEEDED" || v.Done != n {
		h.b.Fatalf("%s: %+v, want %d done", action, v, n)
	}
	note(fmt.Sprintf("operation %s on %d rows", action, n), "%.0f/s, %.2f ms of processor time a row",
		float64(n)/time.Since(from).Seconds(), float64((processorTime()-used).Microseconds())/1000/float64(n))
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails for another who only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkOperations does each action to thousands of rows in memory.
func BenchmarkOperations(b *testing.B) {
	const waiting, dead, ran = 10_000, 5_000, 500
	registry := worker.NewRegistry()
	worker.Register(registry, "broken", func(context.Context, worker.Job[json.RawMessage]) (struct{}, error) {
		return struct{}{}, errors.New("it is broken")
	})
	for b.Loop() {
		h := openOver(b, worker.Options{Slots: 256}, system.Options{Registry: registry}, nil)
		h.call("PUT", "/tasks/broken", object{"executor": "go", "retry": object{"max_attempts": 1}})
		h.batches(waiting, inAnHour)
		h.batches(dead, func(int) object { return object{"task": "broken"} })
		h.settled(dead, 2*time.Minute)
		probe := object{"task": "probe", "status": job.Scheduled}
		h.operated("reprioritize", waiting, object{"filter": probe, "set": object{"priority": "high"}})
		h.operated("reschedule", waiting, object{"filter": probe, "set": object{"delay": "2h"}})
		h.operated("pause", waiting, object{"filter": probe})
		h.operated("resume", waiting, object{"filter": probe})
		h.operated("cancel", waiting, object{"filter": probe})
		h.operated("delete", waiting, object{"filter": object{"task": "probe", "status": job.Cancelled}})
		h.call("PUT", "/pauses/task:probe", object{"reason": "the runs are to wait"}) // it counts from a second on
		broken := object{"task": "broken"}
		h.operated("redrive", dead, object{"filter": broken, "set": object{"delay": "1h"}})
		h.operated("purge", dead, object{"filter": broken})
		h.operated("run_now", dead, object{"filter": object{"task": "broken", "status": job.Scheduled}, "spread": "1h"})

		h.call("PUT", "/dags/wait", object{"nodes": object{"probe": object{"task": "probe"}}})
		for range ran {
			h.run("wait")
		}
		h.operated("cancel_runs", ran, object{"filter": object{"dag": "wait"}})
		h.operated("retry_runs", ran, object{"filter": object{"dag": "wait"}})
		h.stop()
	}
}
