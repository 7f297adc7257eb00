package access

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/operation"
)

// ofOperations makes the parts begin, carry out, change and end operations on many jobs and runs.
func ofOperations(t *testing.T, w *bench) {
	a := w.api
	keys := 0
	begin := func(action string, more object) string {
		body := object{"action": action, "filter": object{"task": "echo"}}
		for k, v := range more {
			body[k] = v
		}
		keys++
		v := a.Want(202, "POST", "/operations", body, "Idempotency-Key", fmt.Sprint("operation", keys))
		id, _ := v["operation_id"].(string)
		return id
	}
	ends := func(id string) {
		t.Helper()
		if v := a.Want(200, "GET", "/operations/"+id, nil); v["status"] != "SUCCEEDED" {
			t.Errorf("operation %v", v)
		}
	}
	for _, size := range sizes {
		a.Post(object{"task": "echo", "delay": "20h", "payload": payload(size), "tags": object{"team": "a"},
			"unique": object{"key": fmt.Sprint("many", size)}})
	}
	for _, action := range []string{"pause", "resume", "run_now", "cancel"} {
		id := begin(action, nil)
		time.Sleep(10 * time.Minute)
		ends(id)
	}
	for range 3 {
		a.Post(object{"task": "echo", "delay": "20h"})
	}
	for action, set := range map[string]object{"reprioritize": {"priority": "high"}, "reschedule": {"delay": "1m"}} {
		id := begin(action, object{"set": set})
		time.Sleep(10 * time.Minute)
		ends(id)
	}
	for range 5 {
		a.Post(object{"task": "echo", "payload": object{"fail": 99}, "retry": object{"max_attempts": 1}})
	}
	time.Sleep(time.Minute)
	a.Want(200, "POST", "/operations", object{"action": "redrive", "all": true, "dry_run": true})
	id := begin("redrive", object{"canary": object{"count": 2, "within": "1m"},
		"rate": object{"count": 1, "per": "2s"}})
	time.Sleep(10 * time.Minute)
	a.Call("POST", "/operations/"+id+"/proceed", nil)
	// A step fails, and is repeated.
	w.Fail(stagetest.Named(operation.WriteChange))
	time.Sleep(10 * time.Second)
	w.World.SetFaults(nil)
	time.Sleep(20 * time.Minute)
	ends(id)
	for _, action := range []string{"purge", "delete"} {
		id := begin(action, nil)
		time.Sleep(10 * time.Minute)
		ends(id)
	}
	a.Call("PUT", "/dags/many", object{"nodes": object{"a": object{"task": "echo", "payload": object{"fail": 99},
		"retry": object{"max_attempts": 1}}, "b": object{"task": "echo", "depends_on": []string{"a"}}}})
	a.Want(202, "POST", "/dags/many/runs", object{})
	a.Want(202, "POST", "/dags/many/runs", object{})
	time.Sleep(time.Minute)
	for _, action := range []string{"retry_runs", "cancel_runs"} {
		id := begin(action, object{"filter": object{"dag": "many"}})
		time.Sleep(5 * time.Minute)
		ends(id)
	}
	// The message that asks for the first work is lost, and the sweeper sends another one.
	w.Fail(stagetest.To(memory.QueueSend, contract.BulkQueue))
	id = begin("cancel", nil)
	w.World.SetFaults(nil)
	time.Sleep(5 * time.Minute)
	ends(id)
	for _, verb := range []string{"pause", "resume", "stop"} {
		a.Call("POST", "/operations/"+begin("cancel", nil)+"/"+verb, nil)
	}
	a.Call("GET", "/operations", nil)
}
