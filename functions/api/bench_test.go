package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// bench is the stage over a memory world of its own. Its caller is one tenant with all scopes. Subtests may share a
// bench, so its own verbs name the test that they fail.
type bench struct {
	*stagetest.Bench
	handler http.Handler
	log     *strings.Builder
	who     tenant.Identity
	clock   *manualClock
}

// manualClock is a clock that tests set. A test that sets it while a request runs calls set.
type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (h *manualClock) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *manualClock) set(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
}

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func all(t tenant.ID) tenant.Identity {
	return tenant.Identity{Tenant: t, Subject: "tester",
		Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
}

func setup(t testing.TB, change ...func(*memory.Options, *api.Deps)) *bench {
	t.Helper()
	b := &bench{log: &strings.Builder{}, who: all("acme"), clock: &manualClock{at: noon}}
	o := memory.Options{Clock: b.clock}
	d := api.Deps{Base: process.Base{Announced: true,
		Clock: b.clock, Meter: new(telemetry.Meter), Log: telemetry.Logger(b.log, "api"), Shards: stagetest.Shards,
	}}
	for _, c := range change {
		c(&o, &d)
	}
	b.Bench = stagetest.New(t, o)
	b.Meter = d.Meter
	d.Store, d.Queues, d.Timers = b.Store, b.World.Queues(), b.World.Timers()
	b.handler = api.New(d)
	return b
}

func allow(cidrs ...string) func(*memory.Options, *api.Deps) {
	return func(_ *memory.Options, d *api.Deps) {
		for _, c := range cidrs {
			d.HTTPAllow = append(d.HTTPAllow, netip.MustParsePrefix(c))
		}
	}
}

// reply is an answer with its decoded body.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func (r reply) str(name string) string { s, _ := r.body[name].(string); return s }

// do makes a request as the bench's tenant; headers are names and values in pairs.
func (b *bench) do(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	return b.ask(t, r)
}

func (b *bench) ask(t *testing.T, r *http.Request) reply {
	t.Helper()
	if b.who.Tenant != "" {
		r = r.WithContext(api.WithIdentity(r.Context(), b.who))
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	out := reply{status: w.Code, header: w.Header(), text: w.Body.String()}
	if out.text != "" && !strings.HasPrefix(out.header.Get("Content-Type"), "text/plain") {
		if err := json.Unmarshal(w.Body.Bytes(), &out.body); err != nil {
			t.Fatalf("%s %s answered what is not JSON: %v\n%s", r.Method, r.URL, err, out.text)
		}
	}
	if out.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s was answered without X-Request-Id", r.Method, r.URL)
	}
	return out
}

// want makes a request and fails the test if the status is another.
func (b *bench) want(t *testing.T, status int, method, path, body string, headers ...string) reply {
	t.Helper()
	r := b.do(t, method, path, body, headers...)
	if r.status != status {
		t.Fatalf("%s %s answered %d, want %d\n%s", method, path, r.status, status, r.text)
	}
	return r
}

func (b *bench) key(id string) job.Key { return job.Key{Tenant: b.who.Tenant, ID: job.ID(id)} }

func (b *bench) row(t *testing.T, id string) job.Row {
	t.Helper()
	r, err := b.Store.Row(context.Background(), b.key(id))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claim claims the job's attempt, as a worker does.
func (b *bench) claim(t *testing.T, id string) job.Claim {
	t.Helper()
	r, now := b.row(t, id), b.clock.Now()
	c, err := b.Store.WriteClaim(context.Background(), job.ClaimNew(r.Key, r.Attempt,
		job.Owner{Worker: "w1", Nonce: "n", LeaseUntil: now.Add(contract.Lease), DueAt: r.DueAt}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// end settles the job's attempt with an outcome, as the status consumer does.
func (b *bench) end(t *testing.T, id string, o job.Outcome) job.Row {
	t.Helper()
	r, now := b.row(t, id), b.clock.Now()
	o.Worker, o.StartedAt, o.FinishedAt = "w1", now, now.Add(time.Millisecond)
	d, err := job.Settle(&r, r.Attempt, o, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(d.Contents, d.Write) {
		if err := b.Store.Put(context.Background(), w); err != nil {
			t.Fatal(err)
		}
	}
	return d.After
}

func (b *bench) post(t *testing.T, body string) string {
	t.Helper()
	return b.want(t, 202, "POST", "/v1/jobs", body).str("job_id")
}

// dead posts a job and makes it fail for good.
func (b *bench) dead(t *testing.T, body string) string {
	t.Helper()
	id := b.post(t, body)
	b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true,
		Error: &job.Reason{Code: "http_400", Message: "the target said no"}})
	return id
}

// items returns the items of a list.
func (r reply) items() []map[string]any {
	list, _ := r.body["items"].([]any)
	out := make([]map[string]any, len(list))
	for i, v := range list {
		out[i] = v.(map[string]any)
	}
	return out
}
