package laptop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/workers/worker"
)

// answer is what a server said.
type answer struct {
	status     int
	code       string
	detail     string
	id         string
	retryAfter string
	err        error
}

// ask sends one request, and never repeats it.
func ask(method, url, body string) answer {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	var v struct {
		Code, Detail string
		JobID        string `json:"job_id"`
	}
	_ = json.Unmarshal(text, &v)
	return answer{got.StatusCode, v.Code, v.Detail, v.JobID, got.Header.Get("Retry-After"), err}
}

// running is a server of this process whose end a test looks at.
type running struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

func runs(t *testing.T, o Options) running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := make(chan string), make(chan error, 1)
	o.Addr, o.Serving = "127.0.0.1:0", func(at string) { addr <- at }
	go func() { ended <- Serve(ctx, o) }()
	t.Cleanup(stop)
	select {
	case at := <-addr:
		return running{"http://" + at, stop, ended}
	case err := <-ended:
		t.Fatal(err)
	}
	return running{}
}

// end waits for the end of Serve.
func (r running) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}

// unavailable says that an answer is a 503 that may be repeated, and says why.
func (a answer) unavailable(t *testing.T, what, why string) {
	t.Helper()
	if a.err != nil || a.status != http.StatusServiceUnavailable || a.code != "unavailable" || a.retryAfter == "" ||
		!strings.Contains(a.detail, why) {
		t.Errorf("%s: %+v, want 503 because %q", what, a, why)
	}
}

func TestServe_AnswersWaitingClientsBeforeItEnds(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 1), make(chan struct{})
	r := runs(t, Options{Drain: time.Minute, Handlers: func(reg *worker.Registry) {
		worker.Register(reg, "busy", func(context.Context, worker.Job[int]) (int, error) {
			started <- struct{}{}
			<-release
			return 1, nil
		})
	}})
	busy := ask("POST", r.url+"/v1/jobs", `{"task":"busy"}`)
	later := ask("POST", r.url+"/v1/jobs", `{"task":"echo","delay":"1h"}`)
	<-started
	waits := func(id string) chan answer {
		got := make(chan answer, 1)
		go func() { got <- ask("GET", r.url+"/v1/jobs/"+id+"?wait=25s", "") }()
		return got
	}
	ofBusy, ofLater := waits(busy.id), waits(later.id)
	time.Sleep(200 * time.Millisecond) // they are on their way
	r.stop()
	for n := 0; ask("GET", r.url+"/v1/ready", "").status == http.StatusOK; n++ {
		if time.Sleep(10 * time.Millisecond); n > 1000 {
			t.Fatal("it is still ready")
		}
	}
	ask("GET", r.url+"/v1/ready", "").unavailable(t, "ready", "the process is ending")
	ask("POST", r.url+"/v1/jobs", `{"task":"echo"}`).unavailable(t, "a new job", "this process is ending")
	if a := ask("GET", r.url+"/v1/jobs/"+later.id, ""); a.status != http.StatusOK {
		t.Errorf("a read while it drains: %+v", a)
	}
	select {
	case a := <-ofLater:
		t.Errorf("a wait was cut before the running job had ended: %+v", a)
	default:
	}
	close(release)
	if a := <-ofBusy; a.status != http.StatusOK && a.status != http.StatusServiceUnavailable || a.err != nil {
		t.Errorf("the wait for the job that ended while it drained: %+v", a)
	}
	(<-ofLater).unavailable(t, "the wait for the other job", "")
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

// fullDisk is a folder whose disk has no space while it is full.
type fullDisk struct {
	memory.Folder
	full *atomic.Bool
}

type fullFile struct {
	memory.File
	full *atomic.Bool
}

func (d fullDisk) Create(name string) (memory.File, error) {
	f, err := d.Folder.Create(name)
	return fullFile{f, d.full}, err
}

func (d fullDisk) Append(name string) (memory.File, error) {
	f, err := d.Folder.Append(name)
	return fullFile{f, d.full}, err
}

func (f fullFile) Write(b []byte) (int, error) {
	if f.full.Load() {
		return 0, &fs.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC}
	}
	return f.File.Write(b)
}

func TestServe_IsNotReadyOnAFullDisk(t *testing.T) {
	t.Parallel()
	full := new(atomic.Bool)
	r := runs(t, Options{Data: t.TempDir(), disk: func(f memory.Folder) memory.Folder { return fullDisk{f, full} }})
	ready := func(status int) answer {
		t.Helper()
		for n := 0; ; n++ { // the answer of a probe counts for a second
			a := ask("GET", r.url+"/v1/ready", "")
			if a.status == status || n > 100 {
				return a
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	if a := ready(http.StatusOK); a.status != http.StatusOK {
		t.Fatalf("at the start: %+v", a)
	}
	full.Store(true)
	ask("POST", r.url+"/v1/jobs", `{"task":"echo"}`).unavailable(t, "a job on a full disk", "")
	ready(http.StatusServiceUnavailable).unavailable(t, "ready", "the disk that keeps the data is full")
	full.Store(false)
	if a := ready(http.StatusOK); a.status != http.StatusOK {
		t.Errorf("with space again: %+v", a)
	}
	if a := ask("POST", r.url+"/v1/jobs", `{"task":"echo"}`); a.status != http.StatusAccepted {
		t.Errorf("a job with space again: %+v", a)
	}
	r.stop()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

func TestServe_EndsWithAnErrorWhenItsFolderIsGone(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 1), make(chan struct{})
	data := filepath.Join(t.TempDir(), "data")
	r := runs(t, Options{Data: data, Drain: 5 * time.Second, Handlers: func(reg *worker.Registry) {
		worker.Register(reg, "busy", func(context.Context, worker.Job[int]) (int, error) {
			started <- struct{}{}
			<-release
			return 1, nil
		})
	}})
	ask("POST", r.url+"/v1/jobs", `{"task":"busy"}`)
	<-started // so that it drains for a while, and can be asked
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	ask("POST", r.url+"/v1/jobs", `{"task":"echo"}`).unavailable(t, "a job without the folder", "")
	ask("GET", r.url+"/v1/ready", "").unavailable(t, "ready", "")
	close(release)
	if err := r.end(t); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), data) {
		t.Errorf("it ended with %v", err)
	}
}

func TestServe_RefusesADamagedFolderAndSaysWhatHelps(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w, err := memory.Open(data, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	log := filepath.Join(data, "00000001.log")
	if err := os.WriteFile(log, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), Options{Addr: "127.0.0.1:0", Data: data})
	if !errors.Is(err, memory.ErrDamaged) || !strings.Contains(err.Error(), log) ||
		!strings.Contains(err.Error(), "punctual data check "+data) {
		t.Errorf("it started, or said %v", err)
	}
	if s, err := CheckData(data); err != nil || len(s.Damages) != 1 {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := RepairData(data); err != nil || s.Kept == "" {
		t.Errorf("%+v %v", s, err)
	}
	r := runs(t, Options{Data: data})
	if _, err := RepairData(data); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("it repairs what is served: %v", err)
	}
	r.stop()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

// kept opens the folder of a server that has ended, for changes that a server would not make.
func kept(t *testing.T, data string, change func(w *memory.World, s *store.Store)) {
	t.Helper()
	w, err := memory.Open(data, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	change(w, store.New(w.Table(), w.Blobs()))
}

func TestServe_TakesUpAtItsStartWhatWasAcceptedAndNeverSent(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := runs(t, Options{Data: data})
	id := ask("POST", r.url+"/v1/jobs", `{"task":"echo","delay":"1h"}`).id
	r.stop()
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}
	k := job.Key{Tenant: tenant.Local, ID: job.ID(id)}
	kept(t, data, func(w *memory.World, s *store.Store) { // as if the process had ended between the row and the send
		row, err := s.Row(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		row.DueAt, row.CreatedAt = time.Now(), time.Now()
		job.Route(&row, time.Now())
		if _, err := w.Table().Write(t.Context(), item.Write{Ref: k.Ref(), Name: "test.put",
			Put: row.Item()}); err != nil {
			t.Fatal(err)
		}
	})
	r = runs(t, Options{Data: data})
	got, err := http.Get(r.url + "/v1/jobs/" + id + "?wait=25s") // far below the grace of three minutes
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if !strings.Contains(string(text), `"SUCCEEDED"`) {
		t.Errorf("after 25 s it is %s", text)
	}
}

func TestServe_RemovesWhatHasExpiredAtItsStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	ref := item.Ref{Table: contract.Tasks, PK: "idem#local#k", SK: "k"}
	kept(t, data, func(w *memory.World, _ *store.Store) {
		_, err := w.Table().Write(t.Context(), item.Write{Ref: ref, Name: "test.put", Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrSK: ref.SK,
			contract.AttrExpiresAt: time.Now().Add(-time.Hour).Unix()}})
		if err != nil {
			t.Fatal(err)
		}
	})
	r := runs(t, Options{Data: data})
	time.Sleep(500 * time.Millisecond)
	r.stop()
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}
	kept(t, data, func(w *memory.World, _ *store.Store) {
		if i, err := w.Table().Get(t.Context(), ref); i != nil || err != nil {
			t.Errorf("it is still there: %v %v", i, err)
		}
	})
}
