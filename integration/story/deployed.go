package story

import (
	"net/http"
	"testing"
	"time"
)

// Remote sends requests to a deployed API through client, with a token; "" sends none. host names the API where base
// is an emulator that answers for many; "" is base's own.
func Remote(t testing.TB, client *http.Client, base, host, token string) *API {
	return &API{T: t, Base: base, Send: func(r *http.Request) (*http.Response, error) {
		if host != "" {
			r.Host = host
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return client.Do(r)
	}}
}

// In returns the same API for a subtest.
func (a *API) In(t testing.TB) *API { return &API{T: t, Base: a.Base, Send: a.Send} }

// LivesOfJobs does to a deployment with a worker what a user does to jobs first, each in a subtest. No job may take
// longer than most.
func (a *API) LivesOfJobs(t *testing.T, most time.Duration) {
	t.Run("a job due now runs and keeps its result", func(t *testing.T) {
		a := a.In(t)
		v := a.Await(a.Post(Object{"task": "echo", "payload": Object{"n": 1}}), "SUCCEEDED", most)
		if result, _ := v["result"].(Object); result["n"] != 1.0 {
			t.Errorf("the result is %v", v["result"])
		}
	})
	t.Run("a job that always fails becomes a dead letter and is redriven", func(t *testing.T) {
		a := a.In(t)
		id := a.Post(Object{"task": "echo", "payload": Object{"fail": 2}, "retry": Object{"max_attempts": 1}})
		a.Await(id, "DEAD", most)
		next, _ := a.Want(http.StatusAccepted, "POST", "/jobs/"+id+"/redrive", nil)["job_id"].(string)
		if v := a.Await(id, "DEAD", most); v["redriven_by"] != next {
			t.Errorf("the old one says it was redriven by %v; want %s", v["redriven_by"], next)
		}
		a.Await(next, "DEAD", most) // its first attempt fails as well
	})
	t.Run("a cancelled job does not run", func(t *testing.T) {
		a := a.In(t)
		id := a.Post(Object{"task": "echo", "delay": "20m"})
		a.Want(http.StatusOK, "POST", "/jobs/"+id+"/cancel", nil)
		a.WantStatus(id, "CANCELLED")
	})
}
