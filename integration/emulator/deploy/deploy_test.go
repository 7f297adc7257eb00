package deploy

import (
	"net/http"
	"os"
	"testing"
	"time"

	"punctual/integration/story"
)

var everything = []string{"punctual:read", "punctual:write", "punctual:admin"}

//proof:of 49 201
func TestAPI_AnswersOnTheDeployment(t *testing.T) {
	d := setup(t)
	t.Log("the deployment took ", d.took)
	t.Run("the deployed API answers its health check without a token", func(t *testing.T) {
		d.api(t, "").Want(http.StatusOK, "GET", "/health", nil)
		if doc := d.api(t, "").Want(http.StatusOK, "GET", "/openapi.json", nil); doc["openapi"] != "3.1.0" {
			t.Errorf("the document is %v", doc["openapi"])
		}
	})
	t.Run("the deployed API serves the console without a token", func(t *testing.T) {
		said := d.api(t, "").Want(http.StatusOK, "GET", "/console/config.json", nil)
		if said["api"] != "/v1" || said["issuer"] == nil {
			t.Errorf("the console is told %v", said)
		}
	})
	//proof:of 185
	t.Run("the deployed API identifies a caller by the token, and refuses others", func(t *testing.T) {
		if me := d.api(t, "acme", everything...).Want(http.StatusOK, "GET", "/whoami", nil); me["tenant"] != "acme" {
			t.Errorf("whoami says %v", me)
		}
		if code, _ := d.api(t, "").Call("GET", "/jobs", nil); code != http.StatusUnauthorized {
			t.Errorf("without a token it answers %d", code)
		}
		if code, _ := d.api(t, "acme", "punctual:read").Call("POST", "/jobs",
			story.Object{"task": "echo"}); code != http.StatusForbidden {
			t.Errorf("a token that may only read gets %d for a write", code)
		}
	})
}

//proof:of 41 175
func TestJobs_RunOnTheDeployment(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "api-read", "stream", "status", "dispatch", "sweeper", "promoter", "redrive")
	d.work(t, "short")
	a := d.api(t, "acme", everything...)
	const most = 3 * time.Minute // what takes a second may take much longer on a busy machine
	a.LivesOfJobs(t, most)
	t.Run("a job due in some seconds uses the stream and starts on time", func(t *testing.T) {
		a := a.In(t)
		v := a.Await(a.Post(story.Object{"task": "echo", "delay": "8s"}), "SUCCEEDED", most)
		most := 60_000.0 // no sweep can meet this bound
		if os.Getenv("PUNCTUAL_STRICT") != "" {
			most = 1000
		}
		if late, _ := v["start_lateness_ms"].(float64); late > most || late < 0 {
			t.Errorf("it started %v ms late", v["start_lateness_ms"])
		}
	})
	//proof:of 183
	t.Run("a job beyond a queue's delay uses a timer", func(t *testing.T) {
		d.timerLane(t, a.In(t))
	})
	t.Run("a job that fails once is retried", func(t *testing.T) {
		a := a.In(t)
		id := a.Post(story.Object{"task": "echo", "payload": story.Object{"fail": 1},
			"retry": story.Object{"initial_delay": "1s", "max_attempts": 3}})
		if v := a.Await(id, "SUCCEEDED", most); v["attempt"] != 2.0 {
			t.Errorf("it took %v attempts", v["attempt"])
		}
	})
	t.Run("a batch is accepted in one request", func(t *testing.T) {
		a := a.In(t)
		jobs := make([]story.Object, 20)
		for i := range jobs {
			jobs[i] = story.Object{"task": "echo", "payload": story.Object{"n": i}}
		}
		items, _ := a.Want(http.StatusOK, "POST", "/jobs/batch", story.Object{"jobs": jobs})["items"].([]any)
		if len(items) != len(jobs) {
			t.Fatalf("%d of %d were answered", len(items), len(jobs))
		}
		for _, i := range items {
			job, _ := i.(story.Object)["job"].(story.Object)
			id, _ := job["job_id"].(string)
			a.Await(id, "SUCCEEDED", most)
		}
	})
	t.Run("another tenant sees none of the jobs", func(t *testing.T) {
		other := d.api(t, "globex", everything...)
		id := a.Post(story.Object{"task": "echo"})
		other.Want(http.StatusNotFound, "GET", "/jobs/"+id, nil)
		if items, _ := other.Want(http.StatusOK, "GET", "/jobs", nil)["items"].([]any); len(items) != 0 {
			t.Errorf("it lists %v", items)
		}
	})
}
