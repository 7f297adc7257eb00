package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"time"

	"punctual/functions/api"
	"punctual/shared/job"
	proc "punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// newAPI returns the REST handler of a process.
func (w *World) newAPI(p *process) http.Handler {
	ports := p.ports()
	return api.New(api.Deps{
		Store:   store.New(ports.Table, ports.Blobs),
		Queues:  ports.Queues,
		Timers:  ports.Timers,
		Base:    proc.Base{Clock: p.clock, Log: w.log("api"), Shards: w.o.Shards, Announced: w.o.Webhooks},
		Entropy: &entropy{seed: w.o.Seed, sameIDs: w.o.SameIDs},
	})
}

// tenants lists all tenants.
var tenants = []tenant.ID{tenant.Local, "other"}

// secretOf returns a text that is in every payload of a tenant and must be in no answer to another.
func secretOf(t tenant.ID) string { return "belongs to " + string(t) }

// Client acts for one tenant.
type Client struct {
	*World
	tenant tenant.ID
}

// As returns a client of the tenant.
func (w *World) As(t tenant.ID) *Client { return &Client{w, t} }

// row returns a job of the tenant; false if there is none.
func (w *Client) row(id job.ID) (job.Row, bool) {
	return w.ledger.row(job.Key{Tenant: w.tenant, ID: id})
}

// rows returns all jobs of the tenant.
func (w *Client) rows() []job.Row {
	return slices.DeleteFunc(w.ledger.all(), func(r job.Row) bool { return r.Tenant != w.tenant })
}

// of returns the runs of a job of the tenant.
func (w *Client) of(id job.ID) []*run { return w.runs(job.Key{Tenant: w.tenant, ID: id}) }

type requestKey struct{}

// request returns a new name for a request, so that two equal requests of one instant differ.
func (w *World) request() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	return strconv.Itoa(w.requests)
}

type object = map[string]any

// patience is how long a client waits for an answer: as long as API Gateway.
const patience = 29 * time.Second

// Call sends one request; code 0 means that no answer came.
func (w *Client) Call(method, path string, body any, header ...string) (int, object) {
	var r io.Reader
	if body != nil {
		j, err := json.Marshal(body)
		if err != nil {
			w.violation("encoding a body: %v", err)
			return 0, nil
		}
		r = bytes.NewReader(j)
	}
	w.mu.Lock()
	p, rest := w.api, w.rest
	w.mu.Unlock()
	if p.dead.Load() {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.WithValue(w.over, requestKey{}, w.request()), patience)
	everything := []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}
	ctx = api.WithIdentity(ctx, tenant.Identity{Tenant: w.tenant, Scopes: everything})
	req := httptest.NewRequestWithContext(ctx, method, "http://localhost:8080/v1"+path, r)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	w.running.Go(func() {
		defer cancel()
		rest.ServeHTTP(rec, req)
		close(done)
	})
	select {
	case <-done:
	case <-p.died:
		return 0, nil
	case <-ctx.Done():
		return 0, nil
	}
	if p.dead.Load() {
		return 0, nil
	}
	var v object
	for _, t := range tenants {
		if t != w.tenant && bytes.Contains(rec.Body.Bytes(), []byte(secretOf(t))) {
			w.violation("%s %s shows %s what is %s's", method, path, w.tenant, t)
		}
	}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
			w.violation("%s %s answered %d with %q", method, path, rec.Code, rec.Body)
		}
	}
	if method == "POST" && (rec.Code == http.StatusOK || rec.Code == http.StatusAccepted) {
		w.hearCancel(path)
	}
	w.note(p, fmt.Sprintf("ANSWER %s %s: %d %v", method, path, rec.Code, v["status"]))
	return rec.Code, v
}

// Ask repeats the request until the answer is final.
func (w *Client) Ask(method, path string, body any, header ...string) (int, object) {
	for n := range 300 {
		code, v := w.Call(method, path, body, header...)
		if code != 0 && code != http.StatusTooManyRequests && code < 500 {
			return code, v
		}
		time.Sleep(min(time.Duration(n+1)*700*time.Millisecond, 5*time.Second))
	}
	w.violation("%s %s was not answered in all these times", method, path)
	return 0, nil
}

// Want is Ask; any other code is a violation.
func (w *Client) Want(codes []int, method, path string, body any, header ...string) (int, object) {
	code, v := w.Ask(method, path, body, header...)
	for _, c := range codes {
		if c == code {
			return code, v
		}
	}
	if code != 0 {
		w.violation("%s %s answered %d, want %v: %v", method, path, code, codes, v)
	}
	return code, v
}

// Post creates a job with an idempotency key, so that repeating it is safe.
func (w *Client) Post(key string, body object) job.ID {
	if _, ok := body["task"]; !ok {
		body["task"] = taskOf(w.tenant)
	}
	w.own(body)
	w.awaitSameID()
	_, v := w.Want([]int{202}, "POST", "/jobs", body, "Idempotency-Key", key)
	id, _ := v["job_id"].(string)
	return job.ID(id)
}

// awaitSameID waits for the next full second in a world with in-memory implementations, so that both tenants act at the
// same time.
func (w *Client) awaitSameID() {
	if w.o.SameIDs {
		now := time.Now()
		time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now))
	}
}

// own adds the tenant's secret to a job's payload.
func (w *Client) own(body object) {
	work, _ := body["payload"].(Work)
	work.Owner = secretOf(w.tenant)
	body["payload"] = work
}

// Define puts the task of all jobs of the tenant.
func (w *Client) Define() {
	w.Want([]int{200, 201}, "PUT", "/tasks/"+taskOf(w.tenant), object{"executor": "go"})
}

// Pause pauses everything and notes from when nothing may start.
func (w *Client) Pause(body object) int { return w.PauseScope("all", body) }

// PauseScope pauses everything or one task.
func (w *Client) PauseScope(scope string, body object) int {
	code, v := w.Want([]int{200, 201}, "PUT", "/pauses/"+scope, body)
	if code == 0 {
		return -1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses = append(w.pauses, hold{tenant: w.tenant, since: effectiveAt(v).Add(2 * w.o.Skew)})
	return len(w.pauses) - 1
}

// Lift lifts the pause of everything; it may be over as soon as the request is sent.
func (w *Client) Lift(n int) { w.LiftScope(n, "all") }

// LiftScope lifts a pause of PauseScope.
func (w *Client) LiftScope(n int, scope string) {
	w.Over(n, time.Now())
	w.Want([]int{204, 404}, "DELETE", "/pauses/"+scope, nil)
}

// Over notes when the pause ends or began to end.
func (w *Client) Over(n int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n >= 0 {
		w.pauses[n].lifted = at
	}
}
