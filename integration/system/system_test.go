package system_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/stagetest"
	"punctual/integration/story"
	"punctual/shared/clock"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// bench is the whole product over memory.
type bench struct {
	*stagetest.Bench
	*story.API
	sys  *system.System
	log  *lines // of all stages
	stop func() // drains; safe to call twice
}

func setup(t *testing.T, change ...func(*system.Options)) *bench {
	t.Helper()
	b := &bench{Bench: stagetest.New(t, memory.Options{}), log: new(lines)}
	o := system.Options{
		Shards: 4, Registry: worker.NewRegistry(), HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Worker: worker.Options{Name: "w1", Slots: 25, Pools: []string{"short", "long"}},
	}
	for _, c := range change {
		c(&o)
	}
	b.sys = system.Compose(system.Ports{
		Table: b.World.Table(), Blobs: b.World.Blobs(), Stream: b.World.Table(), Queues: b.World.Queues(),
		Timers: b.World.Timers(), Secrets: b.World.Secrets(),
		Clock: clock.System{}, Log: func(stage string) *slog.Logger {
			return telemetry.Logger(testLog{t, b.log}, stage)
		}, Meter: b.Meter,
		Executors: executor.Options{Queues: b.World.TenantQueues()},
	}, o)
	b.API = story.Over(t, b.sys.API)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.sys.Run(ctx) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the system ended with %v", err)
		}
	}
	t.Cleanup(b.stop)
	return b
}

// lines collects what several loggers write.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// testLog writes faults to the test's log, and everything to the bench's.
type testLog struct {
	t   *testing.T
	all *lines
}

func (l testLog) Write(p []byte) (int, error) {
	l.all.mu.Lock()
	l.all.all.Write(p)
	l.all.mu.Unlock()
	if bytes.Contains(p, []byte(`"level":"ERROR"`)) {
		l.t.Logf("%s", bytes.TrimSpace(p))
	}
	return len(p), nil
}

type object = story.Object

//proof:of 1 145 S19
func TestJob_RunsOnTimeInEveryLane(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{"1ms", "1500ms", "3s", "59s", "10m", "14m1s", "20m", "30m", "31m", "33m", "2h",
		"26h"} {
		t.Run("due in "+delay, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				defer b.stop()
				id := b.Post(object{"task": "echo", "payload": object{"hello": "world"}, "delay": delay})
				due := story.At(t, b.Job(id)["due_at"])
				time.Sleep(time.Until(due) - time.Millisecond)
				if v := b.Job(id); v["started_at"] != nil {
					t.Fatalf("started before it was due: %v", v)
				}
				time.Sleep(2 * time.Second)
				v := b.WantStatus(id, "SUCCEEDED")
				if ms, _ := v["start_lateness_ms"].(float64); ms > 100 {
					t.Errorf("started %v ms late", ms)
				}
				if fmt.Sprint(v["result"]) != "map[hello:world]" {
					t.Errorf("result is %v", v["result"])
				}
			})
		})
	}
}

//proof:of 175
func TestJob_IsRetriedBuriedAndRedriven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		// Two failures, then success: about 1 s and 2 s apart.
		id := b.Post(object{"task": "echo", "payload": object{"fail": 2}})
		time.Sleep(10 * time.Second)
		b.WantStatus(id, "SUCCEEDED")
		tries := b.Attempts(id)
		if len(tries) != 3 {
			t.Fatalf("%d attempts: %v", len(tries), tries)
		}
		for n, want := range []time.Duration{time.Second, 2 * time.Second} {
			gap := story.At(t, tries[n+1].(object)["started_at"]).Sub(story.At(t, tries[n].(object)["finished_at"]))
			if gap < want || gap > want*13/10+300*time.Millisecond {
				t.Errorf("attempt %d came %s after the one before, want %s and up to 30 %%", n+2, gap, want)
			}
		}
		// Always failing, two attempts: a dead letter with its context.
		dead := b.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 2}})
		time.Sleep(10 * time.Second)
		b.WantStatus(dead, "DEAD")
		letters, _ := b.Want(200, "GET", "/dead-letters", nil)["items"].([]any)
		if len(letters) != 1 || letters[0].(object)["job_id"] != dead {
			t.Fatalf("dead letters: %v", letters)
		}
		// The dead letter reaches the DLQ by SQS's redrive policy.
		time.Sleep(5 * time.Minute)
		if d, _ := b.World.Queues().Depth(context.Background(), "dead-letters"); d.Visible != 1 {
			t.Errorf("the DLQ holds %+v", d)
		}
		// The console's redrive moves it back to its source, where it becomes exactly one new job.
		for range 2 {
			if _, err := b.World.Queues().StartMoveTask(context.Background(), "dead-letters", ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		old := b.Job(dead)
		redriven, _ := old["redriven_by"].(string)
		if redriven == "" {
			t.Fatalf("not redriven: %v", old)
		}
		if v := b.Job(redriven); v["redrive_of"] != dead {
			t.Errorf("the new job says redrive_of %v", v["redrive_of"])
		}
		jobs, _ := b.Want(200, "GET", "/jobs", nil)["items"].([]any)
		children := 0
		for _, j := range jobs {
			if j.(object)["redrive_of"] == dead {
				children++
			}
		}
		if children != 1 { // the new one fails as well, and has a redrive of its own by now
			t.Errorf("%d jobs are redrives of one dead letter that was redriven twice", children)
		}
		if code, v := b.Call("POST", "/jobs/"+dead+"/redrive", nil); code != 409 || v["code"] != "wrong_state" ||
			v["redriven_by"] != redriven {
			t.Errorf("a second redrive answered %d %v", code, v)
		}
	})
}

//proof:of 19 21
func TestJob_CanBeCancelledAndMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		// Before due: never runs.
		id := b.Post(object{"task": "echo", "delay": "1m"})
		if v := b.Want(200, "POST", "/jobs/"+id+"/cancel", nil); v["status"] != "CANCELLED" {
			t.Errorf("cancelled into %v", v["status"])
		}
		// While running: the worker sees the flag within a heartbeat.
		long := b.Post(object{"task": "echo", "payload": object{"sleep": "2m"}, "timeout": "5m"})
		time.Sleep(15 * time.Second)
		b.WantStatus(long, "RUNNING")
		if v := b.Want(202, "POST", "/jobs/"+long+"/cancel", nil); v["cancel_requested_at"] == nil {
			t.Errorf("no cancel_requested_at in %v", v)
		}
		time.Sleep(12 * time.Second)
		b.WantStatus(long, "CANCELLED")
		// PATCH earlier and later: once, at the new time.
		for _, move := range [][2]string{{"5m", "1m"}, {"1m", "20m"}, {"40m", "3s"}, {"20m", "3h"}} {
			id := b.Post(object{"task": "echo", "delay": move[0]})
			v := b.Want(200, "PATCH", "/jobs/"+id, object{"delay": move[1]})
			due := story.At(t, v["due_at"])
			time.Sleep(time.Until(due) - time.Millisecond)
			if v := b.Job(id); v["started_at"] != nil {
				t.Fatalf("%v: started early: %v", move, v)
			}
			time.Sleep(4 * time.Hour)
			v = b.WantStatus(id, "SUCCEEDED")
			if late := story.At(t, v["started_at"]).Sub(due); late < 0 || late > 100*time.Millisecond ||
				len(b.Attempts(id)) != 1 {
				t.Errorf("%v: started %s late, attempts %v", move, late, b.Attempts(id))
			}
		}
		time.Sleep(2 * time.Minute)
		if v := b.WantStatus(id, "CANCELLED"); v["started_at"] != nil {
			t.Errorf("a cancelled job ran: %v", v)
		}
	})
}

//proof:of 20
func TestPause_HoldsJobsAndUnparksThemWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		b.Want(201, "PUT", "/pauses/task:echo", object{"reason": "maintenance"})
		time.Sleep(3 * time.Second)
		var ids []string
		for n := range 20 {
			ids = append(ids, b.Post(object{"task": "echo", "delay": fmt.Sprintf("%ds", n*5+1)}))
		}
		time.Sleep(2 * time.Hour)
		for _, id := range ids {
			if v := b.Job(id); v["started_at"] != nil || v["waiting_for"] != "pause" {
				t.Fatalf("during the pause: %v", v)
			}
		}
		b.Want(204, "DELETE", "/pauses/task:echo", nil)
		time.Sleep(5 * time.Second)
		for _, id := range ids {
			b.WantStatus(id, "SUCCEEDED")
		}
		// A pause with an end.
		until := time.Now().Add(50 * time.Minute).UTC()
		b.Want(201, "PUT", "/pauses/all", object{"reason": "lunch", "until": until.Format(time.RFC3339)})
		time.Sleep(3 * time.Second)
		id := b.Post(object{"task": "echo", "delay": "1m"})
		time.Sleep(time.Until(until))
		if v := b.Job(id); v["started_at"] != nil {
			t.Fatalf("started during the pause: %v", v)
		}
		time.Sleep(6 * time.Second)
		b.WantStatus(id, "SUCCEEDED")
	})
}

//proof:of S12
func TestJob_IsCreatedOnceForAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		body := object{"task": "echo", "run_at": time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}
		first := b.Want(202, "POST", "/jobs", body, "Idempotency-Key", "k1")
		time.Sleep(time.Hour) // it has run, and its run_at is in the past
		second := b.Want(202, "POST", "/jobs", body, "Idempotency-Key", "k1")
		if first["job_id"] != second["job_id"] {
			t.Errorf("two jobs: %v and %v", first["job_id"], second["job_id"])
		}
		if v := b.Want(422, "POST", "/jobs", object{"task": "echo"}, "Idempotency-Key",
			"k1"); v["code"] != "idempotency_key_reused" {
			t.Errorf("another body answered %v", v)
		}
	})
}

func TestJob_ExpiresAfterItsWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *system.Options) { o.NoWorker = true })
		defer b.stop()
		id := b.Post(object{"task": "echo", "start_within": "10s"})
		other := b.Post(object{"task": "echo", "expire_after": "1h"})
		time.Sleep(6 * time.Minute)
		v := b.WantStatus(id, "EXPIRED")
		if r, _ := v["status_reason"].(object); r["code"] != "start_within" {
			t.Errorf("the reason is %v", v["status_reason"])
		}
		time.Sleep(2 * time.Hour)
		b.WantStatus(other, "EXPIRED")
	})
}

func TestJob_CallsAnHTTPTarget(t *testing.T) {
	t.Parallel()
	// Real sockets need real time; this takes about 4 s.
	var calls []http.Header
	var codes = map[string][]int{"/flaky": {500, 503, 200}, "/gone": {400}}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Header)
		left := codes[r.URL.Path]
		code := left[0]
		if len(left) > 1 {
			codes[r.URL.Path] = left[1:]
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "answer ", code)
	}))
	t.Cleanup(target.Close)
	b := setup(t)
	wait := func(id string) object {
		return b.Want(200, "GET", "/jobs/"+id+"?wait=20s", nil)
	}
	id := b.Post(object{"task": "http", "payload": object{"url": target.URL + "/flaky", "body": object{"n": 1}}})
	v := wait(id)
	if v["status"] != "SUCCEEDED" || v["attempt"] != 3.0 || !strings.Contains(fmt.Sprint(v["result"]), "answer 200") {
		t.Errorf("got %v", v)
	}
	keys := map[string]bool{}
	for _, h := range calls {
		keys[h.Get("Idempotency-Key")] = true
	}
	if len(calls) != 3 || len(keys) != 1 || keys[""] {
		t.Errorf("%d calls with keys %v", len(calls), keys)
	}
	gone := b.Post(object{"task": "http", "payload": object{"url": target.URL + "/gone"}})
	if v := wait(gone); v["status"] != "DEAD" || v["attempt"] != 1.0 {
		t.Errorf("a 400 made %v", v)
	}
}
