package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// figures are printed in one table at the end.
var figures struct {
	sync.Mutex
	lines []string
}

func note(what, format string, args ...any) {
	figures.Lock()
	defer figures.Unlock()
	figures.lines = append(figures.lines, fmt.Sprintf("  %-58s %s", what, fmt.Sprintf(format, args...)))
}

// The memory in-memory implementations hold everything on the heap, where AWS uses disks: with the default setting the
// collector would use a third of the time.
const collectorPercent = 400

func TestMain(m *testing.M) {
	if os.Getenv(asLaptop) != "" {
		serveLaptop()
	}
	debug.SetGCPercent(collectorPercent)
	code := m.Run()
	if len(figures.lines) > 0 {
		fmt.Printf("\nPunctual over memory on %s, %d cores, %s (GOGC=%d), %s\n\n%s\n\n", machine(), runtime.NumCPU(),
			runtime.Version(), collectorPercent, time.Now().UTC().Format(time.DateOnly),
			strings.Join(figures.lines, "\n"))
	}
	os.Exit(code)
}

func machine() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // elsewhere the name stays unknown
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

// shop is the product with a task "probe" whose handler records when it started.
type shop struct {
	*composed
	b      testing.TB
	url    string
	client *http.Client
}

// starts collects when handlers started and when they were due.
type starts struct {
	sync.Mutex
	late []time.Duration
	at   []time.Time
	ch   chan struct{}
}

func (s *starts) handler(_ context.Context, j worker.Job[json.RawMessage]) (struct{}, error) {
	now := time.Now()
	s.Lock()
	s.late, s.at = append(s.late, now.Sub(j.DueAt)), append(s.at, now)
	s.Unlock()
	select {
	case s.ch <- struct{}{}:
	default:
	}
	return struct{}{}, nil
}

func (s *starts) reset() {
	s.Lock()
	s.late, s.at = nil, nil
	s.Unlock()
}

// wait blocks until n handlers have started.
func (s *starts) wait(b testing.TB, n int, most time.Duration) {
	b.Helper()
	over := time.Now().Add(most)
	for time.Now().Before(over) {
		s.Lock()
		have := len(s.late)
		s.Unlock()
		if have >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.Fatalf("%d of %d jobs started within %s", len(s.late), n, most)
}

func (s *starts) sorted() []time.Duration {
	s.Lock()
	defer s.Unlock()
	return slices.Sorted(slices.Values(s.late))
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(10 * time.Microsecond)
}

func spread(sorted []time.Duration) string {
	return fmt.Sprintf("p50 %s  p99 %s  p99.9 %s  max %s  earliest %s", quantile(sorted, .5), quantile(sorted, .99),
		quantile(sorted, .999),
		sorted[len(sorted)-1].Round(10*time.Microsecond), sorted[0].Round(10*time.Microsecond))
}

// composed is the product over memory; it runs until the test ends or stop is called.
type composed struct {
	world  *memory.World
	meter  *telemetry.Meter
	sys    *system.System
	starts *starts
	stop   func()
}

func compose(t testing.TB, o system.Options) *composed { return composeOver(t, o, nil) }

// with changes what the product is composed of.
type with func(*memory.World, *system.Ports)

// composeOver gives each stage the table that over makes of the world's; nil leaves it.
func composeOver(
	t testing.TB, o system.Options, over func(stage string, of store.Table) store.Table, with ...with,
) *composed {
	if o.Registry == nil {
		o.Registry = worker.NewRegistry()
	}
	c := &composed{world: memory.New(memory.Options{}), meter: new(telemetry.Meter),
		starts: &starts{ch: make(chan struct{}, 1)}}
	worker.Register(o.Registry, "probe", c.starts.handler)
	ports := system.Ports{
		Table: c.world.Table(), Blobs: c.world.Blobs(), Stream: c.world.Table(), Queues: c.world.Queues(),
		Timers: c.world.Timers(), Secrets: c.world.Secrets(),
		Clock: clock.System{}, Log: func(string) *slog.Logger { return telemetry.Silent() }, Meter: c.meter,
	}
	for _, change := range with {
		change(c.world, &ports)
	}
	if over != nil {
		ports.Of = func(stage string) system.Ports {
			p := ports
			p.Table = over(stage, p.Table)
			return p
		}
	}
	c.sys = system.Compose(ports, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.sys.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		c.world.Close()
	})
	t.Cleanup(c.stop)
	return c
}

// open serves the product; its worker knows the handlers of registry besides, if there is one.
func open(b testing.TB, o worker.Options, registry ...*worker.Registry) *shop {
	of := system.Options{}
	for _, r := range registry {
		of.Registry = r
	}
	return openOver(b, o, of, nil)
}

func openOver(
	b testing.TB, o worker.Options, of system.Options, over func(string, store.Table) store.Table, with ...with,
) *shop {
	o.Name = "bench"
	of.Worker, of.Pumps = o, 6
	h := &shop{composed: composeOver(b, of, over, with...), b: b}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	who := tenant.Identity{Tenant: tenant.Local, Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.sys.API.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), who)))
	})}
	go server.Serve(listener) // ends with ErrServerClosed
	h.url = "http://" + listener.Addr().String() + "/v1"
	h.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(func() { server.Close(); h.client.CloseIdleConnections() })
	h.call("PUT", "/tasks/probe", map[string]any{"executor": "go"})
	return h
}

func (h *shop) call(method, path string, body any) []byte {
	j, err := json.Marshal(body)
	if err != nil {
		h.b.Fatal(err)
	}
	req, err := http.NewRequest(method, h.url+path, bytes.NewReader(j))
	if err != nil {
		h.b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(req)
	if err != nil {
		h.b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		h.b.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, answer, err)
	}
	return answer
}

type object = map[string]any

// batches posts n jobs in hundreds over eight connections; each returns the body of job i.
func (h *shop) batches(n int, each func(i int) object) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for from := range next {
				jobs := make([]object, 0, 100)
				for i := from; i < min(from+100, n); i++ {
					jobs = append(jobs, each(i))
				}
				var answer struct{ Accepted, Refused int }
				if err := json.Unmarshal(h.call("POST", "/jobs/batch", object{"jobs": jobs}), &answer); err != nil ||
					answer.Refused > 0 {
					h.b.Errorf("a batch was answered %+v, %v", answer, err)
				}
			}
		})
	}
	for from := 0; from < n; from += 100 {
		next <- from
	}
	close(next)
	wg.Wait()
}

func (h *shop) settled(n float64, most time.Duration) {
	h.b.Helper()
	over := time.Now().Add(most)
	for h.meter.Total(telemetry.JobsSettled) < n {
		if time.Now().After(over) {
			h.b.Fatalf("%v of %v jobs settled within %s", h.meter.Total(telemetry.JobsSettled), n, most)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func inAnHour(int) object { return object{"task": "probe", "delay": "1h"} }

func BenchmarkSubmissions(b *testing.B) {
	for b.Loop() {
		h := open(b, worker.Options{})
		const n = 20_000
		from := time.Now()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range n / 8 {
					h.call("POST", "/jobs", inAnHour(i))
				}
			})
		}
		wg.Wait()
		note("submissions, one a request, 8 connections", "%.0f/s", n/time.Since(from).Seconds())
		const many = 100_000
		from = time.Now()
		h.batches(many, inAnHour)
		note("submissions, in batches of 100, 8 connections", "%.0f/s", many/time.Since(from).Seconds())
		h.stop()
	}
}

func BenchmarkEndToEnd(b *testing.B) {
	for b.Loop() {
		var rates []float64
		for range 3 {
			h := open(b, worker.Options{Slots: 500, Hold: 5000})
			n := 50_000
			if testing.Short() {
				n = 5_000
			}
			before := h.world.Counts()
			from := time.Now()
			h.batches(n, func(int) object { return object{"task": "probe", "payload": object{"n": 1}} })
			h.settled(float64(n), 2*time.Minute)
			rates = append(rates, float64(n)/time.Since(from).Seconds())
			if len(rates) == 3 {
				cost(h.world.Counts(), before, float64(n))
			}
			h.stop()
			runtime.GC()
		}
		slices.Sort(rates)
		note("end to end: batch submit to settled, median of 3", "%.0f jobs/s (%.0f–%.0f)", rates[1], rates[0],
			rates[2])
	}
}

// cost prints what one job used of each service, as the adapters count it.
func cost(after, before item.Counts, n float64) {
	// Watermarks are written each minute whatever the load: they are not a cost of jobs.
	jobs := func(c item.Counts) (table, indexes, read float64) {
		for name, u := range c.Tables {
			if name != contract.Tasks {
				table, indexes, read = table+u.Write, indexes+u.IndexWrite, read+u.Read
			}
		}
		return table, indexes, read
	}
	table, indexes, read := jobs(after)
	table0, indexes0, read0 := jobs(before)
	note("write units a job (table + indexes)", "%.2f (%.2f + %.2f)", (table+indexes-table0-indexes0)/n,
		(table-table0)/n, (indexes-indexes0)/n)
	note("read units a job", "%.2f", (read-read0)/n)
	note("requests a job: tables", "%.2f", float64(after.TableCalls-before.TableCalls)/n)
	note("requests a job: queues", "%.2f", float64(after.QueueCalls-before.QueueCalls)/n)
	note("requests a job: timers", "%.2f", float64(after.TimerCalls-before.TimerCalls)/n)
}

func BenchmarkLateness(b *testing.B) {
	for b.Loop() {
		h := open(b, worker.Options{Slots: 500})
		for _, lane := range []struct {
			what  string
			delay string
		}{{"start lateness, due now", "0s"}, {"start lateness, due in 5 s", "5s"}} {
			h.starts.reset()
			const n = 1000
			for i := range n {
				if lane.delay == "0s" {
					h.call("POST", "/jobs", object{"task": "probe"})
				} else {
					h.call("POST", "/jobs", object{"task": "probe", "delay": lane.delay})
				}
				if i%10 == 0 {
					time.Sleep(10 * time.Millisecond)
				}
			}
			h.starts.wait(b, n, 30*time.Second)
			note(lane.what, "%s", spread(h.starts.sorted()))
		}
		h.starts.reset()
		const n = 2000
		base := time.Now().Add(5 * time.Second)
		h.batches(n, func(i int) object {
			return object{"task": "probe",
				"run_at": base.Add(time.Duration(i) * 2 * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z")}
		})
		h.starts.wait(b, n, 30*time.Second)
		note("start lateness, 2,000 due at spread times 5–9 s ahead", "%s", spread(h.starts.sorted()))
		h.stop()
	}
}

func BenchmarkBurst(b *testing.B) {
	for b.Loop() {
		h := open(b, worker.Options{Slots: 10_000, Hold: 12_000})
		const n = 10_000
		due := time.Now().Add(8 * time.Second).Truncate(time.Second)
		h.batches(n, func(int) object { return object{"task": "probe", "run_at": due.UTC().Format(time.RFC3339)} })
		h.starts.wait(b, n, 60*time.Second)
		late := h.starts.sorted()
		note("10,000 due in the same second: all started within", "%s (p50 %s)", quantile(late, 1), quantile(late, .5))
		h.settled(n, time.Minute)
		h.stop()
	}
}

func BenchmarkPickup(b *testing.B) {
	for b.Loop() {
		for _, waiting := range []int{0, 10_000} {
			h := open(b, worker.Options{Slots: 25})
			if waiting > 0 {
				h.batches(waiting, func(int) object {
					return object{"task": "echo", "priority": "low", "payload": object{"sleep": "200ms"}}
				})
				time.Sleep(time.Second)
			}
			h.starts.reset()
			const n = 100
			for range n {
				h.call("POST", "/jobs", object{"task": "probe", "priority": "critical"})
				time.Sleep(10 * time.Millisecond)
			}
			h.starts.wait(b, n, 30*time.Second)
			note(fmt.Sprintf("pickup of a critical job due now, %d low ones waiting", waiting), "%s",
				spread(h.starts.sorted()))
			h.stop()
		}
	}
}

// resident returns the process's resident memory in bytes, 0 where it cannot be read.
func resident() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		var kb uint64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}
