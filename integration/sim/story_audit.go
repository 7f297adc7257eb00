package sim

import (
	"fmt"
	"strings"
	"time"

	"punctual/shared/audit"
)

// Audited are stories about who changed what.
var Audited = []Story{
	{Name: "each change leaves one entry in the audit", Held: true, Play: func(w *Client) func() {
		w.change(audit.TaskPut, "task/audited", "PUT", "/tasks/audited", object{"executor": "echo"}, 200, 201)
		w.change(audit.LimitPut, "limit/audited", "PUT", "/limits/audited", object{"max_running": 3}, 200, 201)
		w.change(audit.ExclusionPut, "exclusion/audited", "PUT", "/exclusions/audited",
			object{"dates": []string{"2000-06-06"}}, 200, 201)
		w.change(audit.DagPut, "dag/audited", "PUT", "/dags/audited",
			object{"nodes": object{"a": object{"task": "echo"}}}, 200, 201)
		w.change(audit.PausePut, "pause/task:audited", "PUT", "/pauses/task:audited", object{"reason": "why"}, 200, 201)
		w.change(audit.PauseDelete, "pause/task:audited", "DELETE", "/pauses/task:audited", nil, 204, 404)
		w.change(audit.SchedulePut, "schedule/audited", "PUT", "/schedules/audited", object{
			"calendar": object{"cron": "0 0 1 1 *"}, "job": object{"task": "audited"}}, 200, 201)
		w.change(audit.SchedulePatch, "schedule/audited", "PATCH", "/schedules/audited",
			object{"pause_after_failures": 3}, 200)
		w.change(audit.SchedulePause, "schedule/audited", "POST", "/schedules/audited/pause", object{"reason": "why"},
			200)
		w.change(audit.ScheduleResume, "schedule/audited", "POST", "/schedules/audited/resume", nil, 200)
		w.change(audit.ScheduleDelete, "schedule/audited", "DELETE", "/schedules/audited", nil, 200, 204, 404)
		id := string(w.Post("k", object{"delay": "2h"}))
		w.change(audit.JobPause, "job/"+id, "POST", "/jobs/"+id+"/pause", object{"reason": "why"}, 200)
		w.change(audit.JobResume, "job/"+id, "POST", "/jobs/"+id+"/resume", nil, 200)
		w.change(audit.JobCancel, "job/"+id, "POST", "/jobs/"+id+"/cancel", nil, 200, 202, 409)
		w.change(audit.DagDelete, "dag/audited", "DELETE", "/dags/audited", nil, 204, 404)
		w.change(audit.ExclusionDelete, "exclusion/audited", "DELETE", "/exclusions/audited", nil, 204, 404)
		w.change(audit.LimitDelete, "limit/audited", "DELETE", "/limits/audited", nil, 204, 404)
		w.change(audit.TaskDelete, "task/audited", "DELETE", "/tasks/audited", nil, 204, 404)
		return func() {}
	}},
}

// change makes a change, as often as it takes until it is answered, and then the same once more: the audit must have
// one entry of it. All of these change nothing where they are repeated.
func (w *Client) change(a audit.Action, resource, method, path string, body any, codes ...int) {
	repeated := append([]int{404, 409}, codes...) // what is deleted or has ended
	code, _ := w.Want(codes, method, path, body)
	if code == 0 {
		return
	}
	time.Sleep(patience) // an earlier try may take effect late
	w.Want(repeated, method, path, body)
	since := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339) // each day is a read, which may fail
	query := fmt.Sprintf("?action=%s&resource=%s&after=%s", a, resource, since)
	code, page := w.Want([]int{200}, "GET", "/audit"+query, nil)
	items, _ := page["items"].([]any)
	if code == 200 && len(items) != 1 {
		w.violation("%s of %s has %d entries: %s", a, resource, len(items), strings.TrimSpace(fmt.Sprint(items)))
	}
}
