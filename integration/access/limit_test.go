package access

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
)

// ofLimits makes every part take, wait for, give back and change permits of limits of work.
func ofLimits(t *testing.T, w *bench) {
	a := w.api
	put := func(name string, body object) { a.Call("PUT", "/limits/"+name, body) }
	post := func(sleep string, limits ...object) string {
		return a.Post(object{"task": "echo", "payload": object{"sleep": sleep}, "limits": limits, "timeout": "1h",
			"retry": object{"max_attempts": 1}})
	}
	put("one", object{"max_running": 1})
	put("rate", object{"rate": object{"count": 2, "per": "1m"}})
	put("wide", object{"max_running": 18})
	put("skips", object{"max_running": 1, "when_full": "skip"})
	put("newest", object{"max_running": 1, "when_full": "cancel_oldest"})
	skips := []string{post("2m", object{"name": "skips"})}
	old := post("30m", object{"name": "newest"})
	time.Sleep(time.Second) // both run, before the others take the worker's slots
	var ids []string
	for range 3 {
		ids = append(ids, post("40s", object{"name": "one", "key": "a"}), post("0s", object{"name": "rate"}),
			post("3s", object{"name": "one", "key": "b"}, object{"name": "rate"}))
	}
	for range 40 {
		ids = append(ids, post("10s", object{"name": "wide"}))
	}
	time.Sleep(20 * time.Second)
	put("wide", object{"max_running": 17})
	time.Sleep(40 * time.Second)
	post("1s", object{"name": "skips"})
	post("1s", object{"name": "newest"})
	time.Sleep(time.Minute)
	put("wide", object{"max_running": 20})
	for _, path := range []string{
		"/limits", "/limits/one", "/limits/wide/keys", "/limits/rate/keys", "/jobs/" + ids[0],
	} {
		a.Call("GET", path, nil)
	}
	time.Sleep(2 * time.Hour)
	for _, id := range append(ids, skips...) {
		a.WantStatus(id, "SUCCEEDED")
	}
	a.WantStatus(old, "CANCELLED")

	// One that waits is cancelled, one expires, one is edited; then its limit goes.
	busy := post("20m", object{"name": "one"})
	time.Sleep(time.Second)
	cancelled := post("1s", object{"name": "one"})
	expires := a.Post(object{"task": "echo", "limits": []object{{"name": "one"}}, "start_within": "2m"})
	edited := post("1s", object{"name": "one"})
	paused := post("1s", object{"name": "one"})
	time.Sleep(time.Minute)
	a.Call("POST", "/jobs/"+paused+"/pause", object{"reason": "a story"})
	a.Call("POST", "/jobs/"+cancelled+"/cancel", nil)
	a.Call("PATCH", "/jobs/"+edited, object{"limits": []object{}})
	time.Sleep(time.Hour)
	a.WantStatus(busy, "SUCCEEDED")
	a.WantStatus(expires, "EXPIRED")
	a.WantStatus(edited, "SUCCEEDED")
	a.WantStatus(paused, "SCHEDULED")
	a.Call("POST", "/jobs/"+paused+"/resume", nil)
	time.Sleep(time.Minute)
	a.WantStatus(paused, "SUCCEEDED")

	// The sweeper wakes one whose wake was lost.
	first := post("1m", object{"name": "one"})
	time.Sleep(time.Second)
	second := post("1s", object{"name": "one"})
	time.Sleep(30 * time.Second)
	w.Fail(stagetest.Named(job.WriteUnpark))
	time.Sleep(time.Minute)
	w.World.SetFaults(nil)
	time.Sleep(time.Hour)
	a.WantStatus(first, "SUCCEEDED")
	a.WantStatus(second, "SUCCEEDED")

	// A report is lost, and so the permit is given back by the sweeper's repetition of it.
	w.Fail(stagetest.To(memory.QueueSend, contract.ReportQueue))
	lost := post("1s", object{"name": "one"})
	time.Sleep(time.Minute)
	w.World.SetFaults(nil)
	next := post("1s", object{"name": "one"})
	time.Sleep(2 * time.Hour)
	a.WantStatus(lost, "SUCCEEDED")
	a.WantStatus(next, "SUCCEEDED")

	// Tasks, schedules and dags name limits, too.
	a.Call("PUT", "/tasks/limited", object{"executor": "echo", "limits": []object{{"name": "one"}}})
	a.Call("PUT", "/schedules/limited", object{"calendar": object{"every": "10m"},
		"job": object{"task": "echo", "limits": []object{{"name": "one"}}}})
	a.Call("PUT", "/dags/limited", object{"nodes": object{
		"a": object{"task": "echo", "limits": []object{{"name": "wide", "key": "x"}}},
		"b": object{"task": "echo", "after": []string{"a"}, "limits": []object{{"name": "one"}}},
	}})
	a.Call("POST", "/dags/limited/runs", object{})
	time.Sleep(time.Hour)
	a.Call("DELETE", "/limits/one", nil)
	a.Call("DELETE", "/schedules/limited", nil)
	a.Call("DELETE", "/limits/newest", nil)
	time.Sleep(time.Hour)
}
