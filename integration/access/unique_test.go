package access

import (
	"testing"
	"time"
)

// ofUniqueKeys makes every part take, meet and supersede unique keys.
func ofUniqueKeys(t *testing.T, w *bench) {
	a := w.api
	body := func(conflict string, more object) object {
		for name, value := range (object{"task": "echo", "unique": object{"key": "k", "on_conflict": conflict}}) {
			if _, given := more[name]; !given {
				more[name] = value
			}
		}
		return more
	}
	parent := a.Post(object{"task": "echo", "delay": "30m"})
	holder := a.Post(body("return", object{"after": []string{parent}}))
	a.Want(200, "POST", "/jobs", body("return", object{}))
	a.Want(200, "POST", "/jobs", body("return", object{}), "Idempotency-Key", "i")
	a.Want(200, "POST", "/jobs", body("return", object{}), "Idempotency-Key", "i")
	a.Want(200, "POST", "/jobs", body("replace", object{"payload": object{"sleep": "1s"}}), "Idempotency-Key", "j")
	a.Want(409, "POST", "/jobs", body("reject", object{}))
	a.Call("POST", "/jobs/"+holder+"/cancel", nil)
	edited := a.Post(body("return", object{"delay": "17000h"}))
	time.Sleep(time.Hour)
	a.Call("PATCH", "/jobs/"+edited, object{"delay": "17540h"}) // the key is kept longer
	a.Want(200, "POST", "/jobs", body("replace", object{"tags": object{"a": "b"}}))
	time.Sleep(time.Hour)
	a.WantStatus(edited, "SUCCEEDED")

	// Jobs of schedules take it at their start: one is skipped, and one ends the holder.
	held := a.Post(body("return", object{"delay": "3h"}))
	schedule := func(conflict string) {
		a.Call("PUT", "/schedules/keyed", object{"calendar": object{"every": "10m"}, "job": body(conflict, object{})})
		time.Sleep(time.Hour)
		a.Call("POST", "/schedules/keyed/run-now", object{})
		time.Sleep(time.Minute)
	}
	schedule("return")
	a.WantStatus(held, "SCHEDULED")
	schedule("replace")
	a.WantStatus(held, "SKIPPED")
	a.Call("DELETE", "/schedules/keyed", nil)
	until := body("return", object{"unique": object{"key": "s", "until": "started"}, "payload": object{"sleep": "20s"}})
	started := a.Post(until)
	time.Sleep(5 * time.Second)
	next := a.Post(until)
	time.Sleep(time.Hour)
	a.WantStatus(started, "SUCCEEDED")
	a.WantStatus(next, "SUCCEEDED")

	dead := a.Post(body("return", object{"payload": object{"fail": 9}, "retry": object{"max_attempts": 1}}))
	time.Sleep(time.Minute)
	last := a.Post(body("return", object{"delay": "10m"}))
	a.Want(409, "POST", "/jobs/"+dead+"/redrive", nil)
	time.Sleep(time.Hour)
	a.WantStatus(last, "SUCCEEDED")
	a.Want(202, "POST", "/jobs/"+dead+"/redrive", nil)
	time.Sleep(time.Hour)
}
