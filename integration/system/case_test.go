package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/api"
	"punctual/integration/story"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// counted registers a task "probe" that records when it ran for which job.
type counted struct {
	sync.Mutex
	at map[string][]time.Time
}

func count(o *system.Options) *counted {
	c := &counted{at: map[string][]time.Time{}}
	o.Worker.Poll = 20 * time.Second // waiting for hours needs fewer polls
	worker.Register(o.Registry, "probe", func(_ context.Context, j worker.Job[json.RawMessage]) (struct{}, error) {
		c.Lock()
		defer c.Unlock()
		c.at[j.Key] = append(c.at[j.Key], time.Now())
		return struct{}{}, nil
	})
	return c
}

func (c *counted) runs(id string) []time.Time {
	c.Lock()
	defer c.Unlock()
	return slices.Clone(c.at[id])
}

// held returns how many messages all queues between a job and its worker hold, visible or not.
func held(t *testing.T, w *memory.World) (n int) {
	t.Helper()
	for _, q := range append(contract.FiringQueues(), contract.DispatchQueue) {
		d, err := w.Queues().Depth(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		n += d.Visible + d.Delayed + d.InFlight
	}
	return n
}

// S26: a long delay is not spent in a queue, and one just above a queue's limit works, too.
//
//proof:of 2 183 S26
func TestSystem_SendsNoMessageForALongDelay(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{901 * time.Second, 6 * time.Hour} {
		t.Run("delayed by "+delay.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c *counted
				b := setup(t, func(o *system.Options) { c = count(o) })
				defer b.stop()
				b.Want(201, "PUT", "/tasks/probe", object{"executor": "go"})
				id := b.Post(object{"task": "probe", "delay": fmt.Sprintf("%ds", int(delay.Seconds()))})
				due := story.At(t, b.Job(id)["due_at"])
				for nearly := due.Add(-contract.TimerLead - time.Minute); time.Now().Before(nearly); {
					time.Sleep(min(20*time.Second, time.Until(nearly)))
					if n := held(t, b.World); n != 0 {
						t.Fatalf("%s before it is due queues hold %d messages", time.Until(due), n)
					}
				}
				time.Sleep(time.Until(due) + 20*time.Minute)
				b.WantStatus(id, "SUCCEEDED")
				if runs := c.runs(id); len(runs) != 1 || runs[0].Before(due) ||
					runs[0].Sub(due) > 100*time.Millisecond {
					t.Errorf("due at %s it ran at %v", due, runs)
				}
			})
		})
	}
}

// S32: a stage's writes must not call the stage once more.
//
//proof:of 147 S32
func TestSystem_WritesNothingForAWaitingJob(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{"20m", "26h"} { // one with a timer, one that is only stored
		t.Run("delayed by "+delay, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				defer b.stop()
				b.Post(object{"task": "echo", "delay": delay})
				time.Sleep(time.Minute)
				seen, err := b.World.Table().Stream(context.Background(), "", 1000, 0)
				if err != nil || len(seen) != 1 {
					t.Fatalf("accepting a job made %d changes, %v", len(seen), err)
				}
				before := b.World.Counts()
				time.Sleep(4 * time.Minute)
				after := b.World.Counts()
				for _, table := range []string{contract.Jobs, contract.Claims} {
					if was, is := before.Tables[table], after.Tables[table]; is.Write != was.Write ||
						is.IndexWrite != was.IndexWrite {
						t.Errorf("%s was written: %+v became %+v", table, was, is)
					}
				}
				// The stream consumer arms its timer, and the promoter, which cannot know, finds it
				// armed.
				if after.TimerCalls != before.TimerCalls || after.TimerCalls > 2 {
					t.Errorf("%d calls to the scheduler, then %d", before.TimerCalls, after.TimerCalls)
				}
			})
		})
	}
}

// S17: the period is longer than any process lives, and most of the time no process runs.
//
//proof:of S17
func TestSystem_RunsAWeeklyScheduleOverShortProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := memory.New(memory.Options{})
		defer world.Close()
		o := system.Options{Shards: 2, Registry: worker.NewRegistry(), Worker: worker.Options{Pools: []string{"short"}}}
		c := count(&o)
		day := time.Date(2000, 1, 4, 5, 0, 0, 0, time.UTC) // a Tuesday
		for n := range 8 {
			time.Sleep(time.Until(day.AddDate(0, 0, n)))
			sys := system.Compose(system.Ports{
				Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
				Timers: world.Timers(), Secrets: world.Secrets(),
				Clock: clock.System{}, Log: func(string) *slog.Logger {
					return telemetry.Silent()
				}, Meter: new(telemetry.Meter),
			}, o)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- sys.Run(ctx) }()
			if n == 0 {
				a := story.Over(t, sys.API)
				a.Want(201, "PUT", "/tasks/probe", object{"executor": "go"})
				a.Want(201, "PUT", "/schedules/weekly", object{"calendar": object{"cron": "0 6 * * 1"},
					"job": object{"task": "probe"}})
			}
			time.Sleep(70 * time.Minute)
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		var all []time.Time
		for _, runs := range c.at {
			all = append(all, runs...)
		}
		monday := day.AddDate(0, 0, 6).Add(time.Hour)
		if len(all) != 1 || all[0].Before(monday) || all[0].Sub(monday) > 100*time.Millisecond {
			t.Errorf("due at %s it ran at %v", monday, all)
		}
	})
}

// S22: of ten firings two are not sent, one by SQS's fault and one by ours.
//
//proof:of 84 S22
func TestSystem_RepeatsAFiringThatAQueueRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *counted
		b := setup(t, func(o *system.Options) { c = count(o) })
		defer b.stop()
		b.Want(201, "PUT", "/tasks/probe", object{"executor": "go"})
		time.Sleep(time.Minute)
		var jobs []object
		for range 10 {
			jobs = append(jobs, object{"task": "probe"})
		}
		refused := false
		fires := func(c memory.Call) bool { return c.Op == memory.QueueSend && strings.HasPrefix(c.Name, "firing-") }
		b.Once(fires, func() memory.Fault {
			refused = true
			return memory.Fault{Entries: map[int]fault.Kind{2: fault.Unavailable, 7: fault.Invalid}}
		})
		items, _ := b.Want(200, "POST", "/jobs/batch", object{"jobs": jobs})["items"].([]any)
		time.Sleep(contract.Grace + 2*time.Minute)
		if !refused || len(items) != 10 {
			t.Fatalf("a send was spoilt: %v, %d jobs accepted", refused, len(items))
		}
		for i, item := range items {
			id, _ := item.(object)["job"].(object)["job_id"].(string)
			b.WantStatus(id, "SUCCEEDED")
			if n := len(c.runs(id)); n != 1 {
				t.Errorf("job %d ran %d times", i, n)
			}
		}
	})
}

// S48: a job with a timer is moved three times, the last time in its last second.
//
//proof:of S48
func TestSystem_RunsOnlyTheLastOfSeveralEdits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *counted
		b := setup(t, func(o *system.Options) { c = count(o) })
		defer b.stop()
		b.Want(201, "PUT", "/tasks/probe", object{"executor": "go"})
		id := b.Post(object{"task": "probe", "delay": "15m"})
		first := story.At(t, b.Job(id)["due_at"])
		time.Sleep(time.Minute)
		b.Want(200, "PATCH", "/jobs/"+id, object{"run_at": first.Add(3 * time.Hour).Format(time.RFC3339Nano)})
		time.Sleep(time.Minute)
		b.Want(200, "PATCH", "/jobs/"+id, object{"run_at": first.Format(time.RFC3339Nano)}) // back to its first time
		time.Sleep(time.Until(first) - time.Second)
		last := first.Add(2 * time.Hour)
		b.Want(200, "PATCH", "/jobs/"+id, object{"run_at": last.Format(time.RFC3339Nano)})
		time.Sleep(time.Until(last) - time.Millisecond)
		if runs := c.runs(id); len(runs) != 0 {
			t.Fatalf("moved to %s it ran at %v", last, runs)
		}
		time.Sleep(90 * time.Minute)
		if runs := c.runs(id); len(runs) != 1 || runs[0].Before(last) {
			t.Errorf("due at %s it ran at %v", last, runs)
		}
	})
}

// S44: the number of series must not depend on how many jobs and tenants there are.
//
//proof:of 161 165 S44 M1
func TestMetrics_KeepTheirNumberOfSeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		seen := map[string]bool{}
		for round, jobs := range []int{2, 20} { // for each of 50 tenants
			for n := range 50 {
				b.as(tenant.ID(fmt.Sprintf("tenant-%d-%d", round, n)))
				var batch []object
				for i := range jobs {
					batch = append(batch, object{"task": "echo", "payload": object{"fail": i % 3},
						"retry": object{"max_attempts": 2}, "pool": contract.Pools[i%2],
						"priority": contract.Priorities[i%4]})
				}
				b.Want(200, "POST", "/jobs/batch", object{"jobs": batch})
			}
			time.Sleep(10 * time.Minute)
			if n := b.Meter.Total(telemetry.JobsSettled); n < float64(50*jobs) {
				t.Fatalf("%v of %d jobs were settled: the test is about nothing", n, 50*jobs)
			}
			var lines bytes.Buffer
			if err := b.Meter.Flush(&lines, time.Now()); err != nil {
				t.Fatal(err)
			}
			for s := range seriesOf(t, lines.String()) {
				seen[s] = true
			}
		}
		if len(seen) < 10 || len(seen) > 60 {
			t.Errorf("%d series: %q", len(seen), slices.Sorted(maps.Keys(seen)))
		}
		identity := regexp.MustCompile(`tenant-|local|[0-9A-HJKMNP-TV-Z]{26}`)
		for s := range seen {
			if identity.MatchString(s) {
				t.Errorf("a series for one: %s", s)
			}
		}
	})
}

// seriesOf parses embedded-metric lines into namespaces, metrics and dimension values.
func seriesOf(t *testing.T, lines string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(lines) {
		var v map[string]any
		var head struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil || len(head.AWS.CloudWatchMetrics) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		m := head.AWS.CloudWatchMetrics[0]
		name := m.Namespace + " " + m.Metrics[0].Name
		for _, key := range m.Dimensions[0] {
			name += fmt.Sprint(" ", key, "=", v[key])
		}
		all[name] = true
	}
	return all
}

// as lets the bench act for another tenant.
func (b *bench) as(id tenant.ID) {
	who := tenant.Identity{Tenant: id, Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	b.API.Send = func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		b.sys.API.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), who)))
		return w.Result(), nil
	}
}

// S41: a target repeats the credential that it received until the job is dead.
//
//proof:of 187 S41
func TestSystem_StoresNoSecretThatATargetRepeats(t *testing.T) {
	t.Parallel()
	// Real sockets need real time; this takes about a second.
	const secret = "s3cr3t-t0ken-of-a-tenant"
	const arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/local/hook"
	var got atomicString
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.set(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "no such user: ", r.Header.Get("Authorization"))
	}))
	t.Cleanup(target.Close)
	b := setup(t)
	b.World.Secrets().Put(arn, secret)
	id := b.Post(object{"task": "http", "payload": object{"url": target.URL, "auth": object{"bearer": arn}},
		"retry": object{"max_attempts": 2, "initial_delay": "0s"}})
	if v := b.Want(200, "GET", "/jobs/"+id+"?wait=20s", nil); v["status"] != "DEAD" {
		t.Fatalf("it is %v", v)
	}
	if got.get() != "Bearer "+secret {
		t.Fatalf("the target was sent %q: the test is about nothing", got.get())
	}
	text := func(v any) string { j, _ := json.Marshal(v); return string(j) }
	said := map[string]string{
		"the job":         text(b.Job(id)),
		"its attempts":    text(b.Attempts(id)),
		"its dead letter": text(b.Want(200, "GET", "/dead-letters", nil)),
	}
	for over := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ds, err := b.World.Queues().Receive(context.Background(), contract.DeadLetters, 1, 0, time.Hour)
		if err != nil || time.Now().After(over) {
			t.Fatalf("nothing reached the dead-letter queue, %v", err)
		}
		if len(ds) > 0 {
			said["the dead-letter queue"] = ds[0].Body
			break
		}
	}
	b.stop()
	var metrics bytes.Buffer
	if err := b.Meter.Flush(&metrics, time.Now()); err != nil {
		t.Fatal(err)
	}
	said["the metrics"], said["the log"] = metrics.String(), b.log.String()
	for where, s := range said {
		if strings.Contains(s, secret) {
			t.Errorf("%s says %s", where, s)
		}
		if s == "" {
			t.Errorf("%s is empty: the test reads the wrong data", where)
		}
	}
}

type atomicString struct {
	sync.Mutex
	s string
}

func (a *atomicString) set(s string) { a.Lock(); a.s = s; a.Unlock() }

func (a *atomicString) get() string { a.Lock(); defer a.Unlock(); return a.s }
