package access

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/operation"
)

// ofBackfills makes every part make, bring on, change and end backfills.
func ofBackfills(t *testing.T, w *bench) {
	a := w.api
	a.Call("PUT", "/dags/filled", object{"nodes": object{"a": object{"task": "echo"}}})
	for n, name := range []string{"filled-small", "filled-item", "filled-blob"} {
		a.Call("PUT", "/schedules/"+name, object{"calendar": object{"cron": "0 * * * *"}, "job": object{"task": "echo",
			"payload": payload(sizes[n]), "tags": object{"team": "a"}, "retry": object{"max_attempts": 1}}})
	}
	a.Call("PUT", "/schedules/filled-runs", object{"calendar": object{"cron": "0 * * * *"},
		"dag": object{"name": "filled"}})
	keys := 0
	begin := func(name string, hours int, more object) string {
		to := time.Now().Truncate(time.Hour)
		body := object{"from": to.Add(-time.Duration(hours) * time.Hour).UTC().Format(time.RFC3339),
			"to": to.UTC().Format(time.RFC3339)}
		for k, v := range more {
			body[k] = v
		}
		keys++
		v := a.Want(202, "POST", "/schedules/"+name+"/backfills", body, "Idempotency-Key", fmt.Sprint("backfill", keys))
		id, _ := v["operation_id"].(string)
		return id
	}
	var ids []string
	for _, name := range []string{"filled-small", "filled-item", "filled-blob", "filled-runs"} {
		ids = append(ids, begin(name, 5, object{"max_running": 2}))
	}
	to := time.Now().UTC().Format(time.RFC3339)
	a.Want(200, "POST", "/schedules/filled-small/backfills", object{"from": "1999-12-01T00:00:00Z", "to": to,
		"again": true, "dry_run": true})
	stopped := begin("filled-small", 9, object{"order": "newest"})
	for _, verb := range []string{"pause", "resume", "stop"} {
		a.Call("POST", "/operations/"+stopped+"/"+verb, nil)
	}
	// A call that follows the end of a job is lost, and the sweeper brings the operation on.
	w.Fail(stagetest.Named(operation.WriteChange))
	time.Sleep(10 * time.Second)
	w.World.SetFaults(nil)
	time.Sleep(time.Hour)
	for _, id := range ids {
		v := a.Want(200, "GET", "/operations/"+id+"?wait=1s", nil)
		if done, _ := v["done"].(float64); v["status"] != "SUCCEEDED" || done < 4 { // one was the stopped one's
			t.Errorf("operation %v", v)
		}
	}
	// A job is cancelled by the API, whose process then goes on with the backfill.
	a.Call("PUT", "/pauses/all", object{})
	id := begin("filled-small", 3, object{"again": true, "reason": "once more"})
	v := a.Want(200, "GET", "/schedules/filled-small/occurrences?outcome=pending&after="+
		time.Now().Add(-4*time.Hour).UTC().Format(time.RFC3339), nil)
	for _, item := range v["items"].([]any) {
		if o := item.(object); o["backfill"] == id {
			a.Call("POST", "/jobs/"+o["job_id"].(string)+"/cancel", nil)
		}
	}
	time.Sleep(time.Minute)
	a.Call("DELETE", "/pauses/all", nil)
	time.Sleep(time.Hour)
	if v := a.Want(200, "GET", "/operations/"+id, nil); v["done"] != 2.0 || v["failed"] != 1.0 {
		t.Errorf("operation %v", v)
	}
	// Dispatch ends rows whose params do not fit the dag any more.
	a.Call("PUT", "/dags/filled", object{"nodes": object{"a": object{"task": "echo"}}, "params": object{"n": 1}})
	a.Call("PUT", "/schedules/filled-runs", object{"calendar": object{"cron": "0 * * * *"},
		"dag": object{"name": "filled", "params": object{"n": 2}}})
	a.Call("PUT", "/dags/filled", object{"nodes": object{"a": object{"task": "echo"}}})
	unfit := begin("filled-runs", 2, object{"again": true})
	time.Sleep(time.Hour)
	if v := a.Want(200, "GET", "/operations/"+unfit, nil); v["status"] != "FAILED" || v["failed"] != 2.0 {
		t.Errorf("operation %v", v)
	}
	a.Want(200, "GET", "/operations", nil)
	a.Want(200, "GET", "/schedules/filled-small/occurrences", nil)
	a.Call("DELETE", "/schedules/filled-runs", nil)
	time.Sleep(3 * time.Hour)
}
