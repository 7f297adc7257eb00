package access

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
)

// ofAfter makes every part end jobs that others come after, and evaluate those.
func ofAfter(t *testing.T, w *bench) {
	a := w.api
	after := func(more object, ids ...string) string {
		body := object{"task": "echo", "after": ids}
		for name, v := range more {
			body[name] = v
		}
		return a.Post(body)
	}
	good := a.Post(object{"task": "echo", "delay": "20m"})
	bad := a.Post(object{"task": "echo", "delay": "20m", "payload": object{"fail": 9},
		"retry": object{"max_attempts": 1}})
	runs := after(object{"payload": payload(2_000), "tags": object{"a": "b"}}, good)
	falls := after(nil, good, bad)
	below := after(object{"run_if": "all_failed"}, falls)
	cancelled := after(nil, good)
	after(nil, cancelled)
	a.Call("POST", "/jobs/"+cancelled+"/cancel", nil)
	a.Call("POST", "/jobs/batch", object{"jobs": []object{{"task": "echo"}, {"task": "echo", "after": []string{"#0"}}}})
	for _, path := range []string{"/jobs?status=BLOCKED", "/jobs/" + runs} {
		a.Call("GET", path, nil)
	}
	time.Sleep(time.Hour)
	a.WantStatus(runs, "SUCCEEDED")
	a.WantStatus(falls, "CANCELLED")
	a.WantStatus(below, "SUCCEEDED")
	a.Call("DELETE", "/jobs/"+good, nil)
	after(nil, good)

	// One is released by its own wake-up.
	w.Fail(stagetest.Named(job.WriteRelease))
	late := after(nil, a.Post(object{"task": "echo", "delay": "1m"}))
	time.Sleep(2 * time.Minute)
	w.World.SetFaults(nil)
	time.Sleep(2 * time.Hour)
	a.WantStatus(late, "SUCCEEDED")

	// The sweeper ends one that no worker started.
	w.Fail(stagetest.To(memory.QueueSend, contract.FiringQueue("short", "normal")))
	follows := after(object{"run_if": "all_failed"}, a.Post(object{"task": "echo", "start_within": "1m"}))
	time.Sleep(15 * time.Minute)
	w.World.SetFaults(nil)
	time.Sleep(time.Hour)
	a.WantStatus(follows, "SUCCEEDED")

	// A pause outlasts one: the end of the pause ends that.
	a.Call("PUT", "/pauses/all", object{"reason": "to see"})
	held := after(object{"run_if": "all_failed"}, a.Post(object{"task": "echo", "expire_after": "5m"}))
	time.Sleep(20 * time.Minute)
	a.Call("DELETE", "/pauses/all", nil)
	time.Sleep(20 * time.Minute)
	a.WantStatus(held, "SUCCEEDED")
}
