package system_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"punctual/integration/story"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

//proof:of 39
func TestAfter_RunsOnceItsParentsHaveEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		late := b.Post(object{"task": "echo", "delay": "20m"})
		bad := b.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}})
		answer := b.Want(200, "POST", "/jobs/batch", object{"jobs": []object{
			{"task": "echo", "after": []string{late}, "payload": object{"n": 1}, "metadata": object{"order": 7}},
			{"task": "echo", "after": []string{"#0"}, "delay": "10m"},
			{"task": "echo", "after": []string{"#0", bad}},
			{"task": "echo", "after": []string{"#2"}, "run_if": "all_done"},
		}})
		var ids []string
		for _, i := range answer["items"].([]any) {
			ids = append(ids, i.(object)["job"].(object)["job_id"].(string))
		}
		time.Sleep(19 * time.Minute)
		for _, id := range ids {
			if v := b.WantStatus(id, "BLOCKED"); v["waiting_for"] != "parents" {
				t.Errorf("it waits for %v", v["waiting_for"])
			}
		}
		time.Sleep(2 * time.Minute)
		v := b.WantStatus(ids[0], "SUCCEEDED")
		ended := story.At(t, b.Job(late)["finished_at"])
		if took := story.At(t, v["started_at"]).Sub(ended); took < 0 || took > time.Second {
			t.Errorf("it started %s after its parent had ended", took)
		}
		if v["metadata"].(object)["order"] != 7.0 {
			t.Errorf("it has lost what it was given: %v", v)
		}
		if v := b.WantStatus(ids[2], "CANCELLED"); v["status_reason"].(object)["code"] != "parent_failed" {
			t.Errorf("it was cancelled because of %v", v["status_reason"])
		}
		b.WantStatus(ids[3], "SUCCEEDED")
		b.WantStatus(ids[1], "SCHEDULED")
		time.Sleep(10 * time.Minute)
		v = b.WantStatus(ids[1], "SUCCEEDED")
		waited := story.At(t, v["started_at"]).Sub(story.At(t, b.Job(ids[0])["finished_at"]))
		if waited < 10*time.Minute || waited > 10*time.Minute+time.Second {
			t.Errorf("it started %s after its parent, want 10m", waited)
		}
	})
}

func TestAfter_IsReleasedByItsOwnWakeUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		parent := b.Post(object{"task": "echo", "delay": "10s"})
		id := b.Post(object{"task": "echo", "after": []string{parent}})
		key := func(id string) job.Key { return job.Key{Tenant: tenant.Local, ID: job.ID(id)} }
		// The end of the parent does not evaluate the job.
		if err := b.sys.Store.Unfollow(t.Context(), key(parent), key(id)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.WantStatus(parent, "SUCCEEDED")
		b.WantStatus(id, "BLOCKED")
		time.Sleep(3*contract.Grace + 2*time.Minute)
		b.WantStatus(id, "SUCCEEDED")
	})
}

//proof:of 39
func TestAfter_FollowsNodesOfARun(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		d := graph("a", "m: a")
		m := d.Nodes["m"]
		m.ForEach, m.Payload = "${[1, 2, 3]}", json.RawMessage(`{"node":"m"}`)
		d.Nodes["m"] = m
		g.slow["a"], g.slow["m"] = 5*time.Second, 30*time.Second
		g.create(d)
		time.Sleep(time.Second)
		after := func(node string) string {
			return g.Post(object{"task": "echo", "after": []string{string(g.key.Job(node, 1, 0).ID)}})
		}
		first := after("a")
		g.WantStatus(first, "BLOCKED")
		if got := fmt.Sprint(g.Want(400, "POST", "/jobs", object{"task": "echo",
			"after": []string{string(g.key.Job("m", 1, 0).ID)}})["code"]); got != "unknown_job" {
			t.Errorf("a node that is not released yet: %s", got)
		}
		time.Sleep(15 * time.Second)
		g.WantStatus(first, "SUCCEEDED")
		whole := after("m")
		g.WantStatus(whole, "BLOCKED")
		time.Sleep(time.Minute)
		g.want("SUCCEEDED a=SUCCEEDED m=SUCCEEDED")
		g.WantStatus(whole, "SUCCEEDED")
		// What follows a finished node does not wait; a worker may have it before it is looked at.
		late := after("m")
		time.Sleep(time.Second)
		g.WantStatus(late, "SUCCEEDED")
	})
}

func TestAfter_HoldsUnderAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		parent := b.Post(object{"task": "echo", "payload": object{"sleep": "10s"}})
		id := b.Post(object{"task": "echo", "after": []string{parent}})
		time.Sleep(3 * time.Second)
		b.Want(201, "PUT", "/pauses/all", object{"reason": "to see"})
		time.Sleep(10 * time.Minute)
		if v := b.Job(id); v["status"] == "BLOCKED" || v["waiting_for"] != "pause" {
			t.Errorf("under the pause it is %v, waiting for %v", v["status"], v["waiting_for"])
		}
		b.Want(204, "DELETE", "/pauses/all", nil)
		time.Sleep(5 * time.Second)
		b.WantStatus(id, "SUCCEEDED")
	})
}
