package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"punctual/functions/api"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// door is one REST handler. Making one takes longer than most runs, so they are used again,
// one world after the other; the request says whose process it runs in.
type door struct {
	handler http.Handler
	mu      sync.Mutex
	w       *World
	entropy entropy
}

var doors struct {
	mu   sync.Mutex
	free []*door
}

func openDoor(w *World) *door {
	doors.mu.Lock()
	defer doors.mu.Unlock()
	var d *door
	if n := len(doors.free); n > 0 {
		d, doors.free = doors.free[n-1], doors.free[:n-1]
	} else {
		d = new(door)
		d.handler = api.New(api.Deps{Store: store.New(callerTable{}, callerBlobs{}), Queues: callerQueues{}, Timers: callerTimers{}, Clock: d, Shards: 1, Entropy: d})
	}
	d.w, d.entropy = w, entropy{dice(w.o.Seed, "ids")}
	return d
}

func (d *door) close() {
	d.w = nil
	doors.mu.Lock()
	defer doors.mu.Unlock()
	doors.free = append(doors.free, d)
}

// Now is the clock of the API's process as it is now.
func (d *door) Now() time.Time {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.api.clock.Now()
}

func (d *door) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entropy.Read(p)
}

// The API's ports are those of the process that the request's context names.
type (
	callerTable  struct{}
	callerBlobs  struct{}
	callerQueues struct{}
	callerTimers struct{}
	callerKey    struct{}
)

func callerOf(ctx context.Context) *process { return ctx.Value(callerKey{}).(*process) }

func (callerTable) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	return table{callerOf(ctx)}.Get(ctx, ref)
}

func (callerTable) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	return table{callerOf(ctx)}.GetMany(ctx, refs)
}

func (callerTable) Write(ctx context.Context, w item.Write) (item.Item, error) {
	return table{callerOf(ctx)}.Write(ctx, w)
}

func (callerTable) Commit(ctx context.Context, writes ...item.Write) error {
	return table{callerOf(ctx)}.Commit(ctx, writes...)
}

func (callerTable) Query(ctx context.Context, q item.Query) (item.Page, error) {
	return table{callerOf(ctx)}.Query(ctx, q)
}

func (callerBlobs) Put(ctx context.Context, key string, body []byte) error {
	return blobs{callerOf(ctx)}.Put(ctx, key, body)
}

func (callerBlobs) Get(ctx context.Context, key string) ([]byte, error) {
	return blobs{callerOf(ctx)}.Get(ctx, key)
}

func (callerBlobs) Delete(ctx context.Context, key string) error {
	return blobs{callerOf(ctx)}.Delete(ctx, key)
}

func (callerQueues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	return queues{callerOf(ctx)}.Send(ctx, queue, out...)
}

func (callerQueues) Depth(ctx context.Context, queue string) (message.Depth, error) {
	return queues{callerOf(ctx)}.Depth(ctx, queue)
}

func (callerTimers) Arm(ctx context.Context, t message.Timer) error {
	return timers{callerOf(ctx)}.Arm(ctx, t)
}

type object = map[string]any

// patience is how long a client waits for an answer: as long as API Gateway does.
const patience = 29 * time.Second

// Call asks the API once; 0 means that no answer came.
func (w *World) Call(method, path string, body any, header ...string) (int, object) {
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
	p := w.api
	w.mu.Unlock()
	if p.dead.Load() {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.WithValue(w.over, callerKey{}, p), patience)
	everything := []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}
	ctx = api.WithIdentity(ctx, tenant.Identity{Tenant: tenant.Local, Scopes: everything})
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
		w.door.handler.ServeHTTP(rec, req)
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
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
			w.violation("%s %s answered %d with %q", method, path, rec.Code, rec.Body)
		}
	}
	w.note(p, fmt.Sprintf("ANSWER %s %s: %d %v", method, path, rec.Code, v["status"]))
	return rec.Code, v
}

// Ask asks until an answer comes that is not "try again".
func (w *World) Ask(method, path string, body any, header ...string) (int, object) {
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

// Want is Ask, and a violation unless one of those codes is answered.
func (w *World) Want(codes []int, method, path string, body any, header ...string) (int, object) {
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

// Post has a job accepted, under a key so that asking again is safe.
func (w *World) Post(key string, body object) job.ID {
	if _, ok := body["task"]; !ok {
		body["task"] = taskName
	}
	_, v := w.Want([]int{202}, "POST", "/jobs", body, "Idempotency-Key", key)
	id, _ := v["job_id"].(string)
	return job.ID(id)
}

// Define puts the task that all jobs here are of.
func (w *World) Define() {
	w.Want([]int{200, 201}, "PUT", "/tasks/"+taskName, object{"executor": "go"})
}

// Pause pauses everything and notes from when nothing may start.
func (w *World) Pause(body object) int {
	if code, _ := w.Want([]int{200, 201}, "PUT", "/pauses/all", body); code == 0 {
		return -1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses = append(w.pauses, hold{since: time.Now().Add(contract.EffectiveAfter)})
	return len(w.pauses) - 1
}

// Lift lifts the pause; it may be over from the moment of asking.
func (w *World) Lift(n int) {
	w.Over(n, time.Now())
	w.Want([]int{204, 404}, "DELETE", "/pauses/all", nil)
}

// Over notes when the pause ends, or began to.
func (w *World) Over(n int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n >= 0 {
		w.pauses[n].lifted = at
	}
}
