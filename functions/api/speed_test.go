//go:build unix

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
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
	if got := ask(http.MethodPut, "/v1/schedules/there",
		`{"job":{"task":"echo"},"calendar":{"cron":"0 0 * * *"}}`); got != http.StatusCreated {
		b.Fatal("schedule", got)
	}
	if got := ask(http.MethodPut, "/v1/dags/there", `{"nodes":{"a":{"task":"echo"}}}`); got != http.StatusCreated {
		b.Fatal("dag", got)
	}
	bodies := slowBodies(1 << 20)
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		s := bodies[name]
		b.Run(name, func(b *testing.B) {
			least := time.Hour
			for b.Loop() {
				before := processorTime(b)
				if got := ask(s.method, s.path, s.body); got >= 500 {
					b.Fatal(got)
				}
				least = min(least, processorTime(b)-before)
			}
			b.ReportMetric(float64(least.Microseconds())/1000, "CPU-ms/request")
			b.ReportMetric(0, "ns/op") // the time of a busy machine says nothing
			if least > slowest {
				b.Errorf("takes %v of a processor, more than %v", least, slowest)
			}
		})
	}
}

// processorTime is how long this process has kept the machine's processors busy.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// slowest is how long the slowest request of any reader may keep a processor busy. The least of several tries counts,
// because what else the machine does makes a processor slower.
const slowest = 200 * time.Millisecond
