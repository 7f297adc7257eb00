package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/memory"
	"punctual/shared/store"
)

func BenchmarkBatchOf100(b *testing.B) {
	w := memory.New(memory.Options{})
	defer w.Close()
	h := api.New(api.Deps{Store: store.New(w.Table(), w.Blobs()), Queues: w.Queues(), Timers: w.Timers()})
	var jobs []string
	for i := range 100 {
		jobs = append(jobs, fmt.Sprintf(`{"task":"echo","payload":{"n":%d,"text":"some words of a payload"}}`, i))
	}
	body := `{"jobs":[` + strings.Join(jobs, ",") + `]}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/jobs/batch", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r.WithContext(api.WithIdentity(r.Context(), all("acme"))))
		if rec.Code != 200 {
			b.Fatal(rec.Body)
		}
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "jobs/s")
}

func BenchmarkSlowBodies(b *testing.B) {
	w := memory.New(memory.Options{})
	defer w.Close()
	h := api.New(api.Deps{Store: store.New(w.Table(), w.Blobs()), Queues: w.Queues(), Timers: w.Timers()})
	ask := func(method, path, body string) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r.WithContext(api.WithIdentity(r.Context(), all("acme"))))
		return rec.Code
	}
	for name, schema := range slowTasks() {
		if got := ask(http.MethodPut, "/v1/tasks/"+name,
			`{"executor":"go","payload_schema":`+schema+`}`); got != http.StatusCreated {
			b.Fatal(name, got)
		}
	}
	for name, s := range slowBodies(1 << 20) {
		b.Run(name, func(b *testing.B) {
			fastest := time.Hour
			for b.Loop() {
				began := time.Now()
				if got := ask(s.method, s.path, s.body); got >= 500 {
					b.Fatal(got)
				}
				fastest = min(fastest, time.Since(began))
			}
			most := slowest
			if strings.HasPrefix(name, "a dag") {
				most = slowestDag
			}
			if fastest > most {
				b.Errorf("takes %v, more than %v", fastest, most)
			}
		})
	}
}

// slowest is how long the slowest request of any reader may take. The fastest of several tries counts, because the
// machine may be busy.
const slowest = 200 * time.Millisecond

// slowestDag is the same for a definition with its expressions.
const slowestDag = 2 * time.Second
