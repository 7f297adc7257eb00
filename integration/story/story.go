package story

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/tenant"
)

// Object is a JSON object.
type Object = map[string]any

// API sends requests to the REST API.
type API struct {
	T    testing.TB
	Send func(*http.Request) (*http.Response, error)
	Base string // URL that /v1 is below
}

// Over sends requests to a handler in this process, as the tenant of a laptop with every scope.
func Over(t testing.TB, h http.Handler) *API {
	who := tenant.Identity{Tenant: tenant.Local, Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	return &API{T: t, Base: "http://localhost:8080", Send: func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), who)))
		return w.Result(), nil
	}}
}

// Call sends one request; headers come in pairs. The answer's body is nil when there is none.
func (a *API) Call(method, path string, body any, header ...string) (int, Object) {
	a.T.Helper()
	var r io.Reader
	if body != nil {
		j, err := json.Marshal(body)
		if err != nil {
			a.T.Fatal(err)
		}
		r = bytes.NewReader(j)
	}
	req, err := http.NewRequest(method, a.Base+"/v1"+path, r)
	if err != nil {
		a.T.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := a.Send(req)
	if err != nil {
		a.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		a.T.Fatalf("%s %s: %v", method, path, err)
	}
	var v Object
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &v); err != nil {
			a.T.Fatalf("%s %s answered %d with %q", method, path, resp.StatusCode, answer)
		}
	}
	return resp.StatusCode, v
}

// Want is Call; another status fails the test.
func (a *API) Want(status int, method, path string, body any, header ...string) Object {
	a.T.Helper()
	got, v := a.Call(method, path, body, header...)
	if got != status {
		a.T.Fatalf("%s %s answered %d, want %d: %v", method, path, got, status, v)
	}
	return v
}

// Post submits a job and returns its id.
func (a *API) Post(body Object) string {
	a.T.Helper()
	id, _ := a.Want(http.StatusAccepted, "POST", "/jobs", body)["job_id"].(string)
	if id == "" {
		a.T.Fatal("the answer has no job_id")
	}
	return id
}

// Job returns a job.
func (a *API) Job(id string) Object {
	a.T.Helper()
	return a.Want(http.StatusOK, "GET", "/jobs/"+id, nil)
}

// Attempts returns a job's attempts, oldest first.
func (a *API) Attempts(id string) []any {
	a.T.Helper()
	items, _ := a.Want(http.StatusOK, "GET", "/jobs/"+id+"/attempts", nil)["items"].([]any)
	return items
}

// WantStatus returns a job and fails unless it has the status.
func (a *API) WantStatus(id, status string) Object {
	a.T.Helper()
	v := a.Job(id)
	if v["status"] != status {
		a.T.Fatalf("job %s is %v, want %s: %v", id, v["status"], status, v)
	}
	return v
}

// Await polls until the job has the status, and fails after most.
func (a *API) Await(id, status string, most time.Duration) Object {
	a.T.Helper()
	for over := time.Now().Add(most); ; {
		v := a.Want(http.StatusOK, "GET", "/jobs/"+id, nil)
		if v["status"] == status {
			return v
		}
		if time.Now().After(over) {
			a.T.Fatalf("job %s is still %v after %s, want %s: %v", id, v["status"], most, status, v)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// At parses an instant of an answer.
func At(t testing.TB, v any) time.Time {
	t.Helper()
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatalf("%v is no instant", v)
	}
	return at
}
