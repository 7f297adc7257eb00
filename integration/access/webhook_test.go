package access

import (
	"fmt"
	"testing"
	"time"
)

// ofWebhooks makes every part announce events, deliver them, and disable a webhook that only fails.
func ofWebhooks(t *testing.T, w *bench) {
	a := w.api
	hook := object{"url": "https://hooks.example.com/x", "events": []string{"job.*", "run.*",
		"schedule.*", "operation.*", "webhook.disabled"}}
	for _, name := range []string{"ops", "other", "gone"} {
		a.Want(201, "PUT", "/webhooks/"+name, hook)
	}
	a.Want(200, "PUT", "/webhooks/ops", object{"url": "https://hooks.example.com/y", "events": []string{"job.dead"}})
	a.Want(200, "GET", "/webhooks/ops", nil)
	a.Want(200, "GET", "/webhooks", nil)
	a.Want(204, "DELETE", "/webhooks/gone", nil)
	time.Sleep(10 * time.Second)
	for _, pool := range []string{"short", "long"} {
		a.Call("POST", "/jobs", object{"task": "echo", "pool": pool, "tags": object{"team": "a"}})
		a.Call("POST", "/jobs", object{"task": "echo", "pool": pool, "payload": object{"fail": 9},
			"retry": object{"max_attempts": 1}, "metadata": object{"x": payload(3000)["text"]}})
	}
	for _, fail := range []int{0, 9} {
		a.Want(202, "POST", "/runs", object{"dag": object{"nodes": object{"a": object{"task": "echo",
			"payload": object{"fail": fail}, "retry": object{"max_attempts": 1}}}}, "tags": object{"team": "a"}})
	}
	v := a.Want(202, "POST", "/webhooks/other/test", nil)
	a.Want(202, "POST", fmt.Sprint("/webhooks/other/deliveries/", v["job_id"], "/redeliver"), nil)
	a.Want(200, "GET", "/webhooks/other/deliveries", nil)
	time.Sleep(80 * time.Hour) // no endpoint is there
	a.Call("POST", "/jobs", object{"task": "echo"})
	time.Sleep(time.Hour)
	a.Call("POST", "/webhooks/other/test", nil)
	time.Sleep(time.Hour)
}
