package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/client"
	"punctual/shared/client/rest"
	"punctual/shared/clock"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// signingKey names the secret that jobs sign by.
const signingKey = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:punctual/punctual/local/signing-AbCdEf"

// address is that of the whole product, in memory; it runs until the tests end.
var address = sync.OnceValue(func() string {
	world := memory.New(memory.Options{})
	world.Secrets().Put(signingKey, oldSecret)
	registry := worker.NewRegistry()
	worker.Register(registry, "fail", func(context.Context, worker.Job[any]) (any, error) {
		return nil, worker.Permanent(errors.New("it fails always"))
	})
	sys := system.Compose(system.Ports{
		Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
		Timers: world.Timers(), Secrets: world.Secrets(), Clock: clock.System{},
		Log:   func(string) *slog.Logger { return slog.New(slog.DiscardHandler) },
		Meter: new(telemetry.Meter),
	}, system.Options{
		Registry: registry, HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Worker: worker.Options{Name: "w", Pools: []string{"short", "long"}},
	})
	if err := sys.DefineHandlers(context.Background(), tenant.Local, registry); err != nil {
		panic(err)
	}
	go func() { _ = sys.Run(context.Background()) }()
	who := tenant.Identity{Tenant: tenant.Local, Subject: "test",
		Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sys.API.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), who)))
	})).URL
})

func connect() *client.Client {
	c, err := client.New(address())
	if err != nil {
		panic(err)
	}
	return c
}

func Example() {
	ctx := context.Background()
	c, err := client.New(address()) // such as https://punctual.example.com
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := c.CreateJob(ctx, "", rest.JobRequest{Task: "echo", Payload: map[string]any{"hello": "world"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err = c.Wait(ctx, job.JobID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.Status, string(job.Result))
	// Output: SUCCEEDED {"hello":"world"}
}

func ExampleError() {
	_, err := connect().CreateJob(context.Background(), "", rest.JobRequest{Task: "echo", Delay: new("soon")})
	if errors.Is(err, client.InvalidValue) {
		e, _ := errors.AsType[*client.Error](err)
		for _, m := range e.Violations() {
			fmt.Println(m.Pointer, m.Code)
		}
	}
	_, err = connect().Job(context.Background(), "01KB4YJ2V0S6Y3Q4M5N6P7R8T9")
	fmt.Println(errors.Is(err, client.NotFound))
	// Output:
	// /delay invalid_value
	// true
}

func ExampleClient_CreateJobs() {
	items, err := connect().CreateJobs(context.Background(), []rest.BatchJobRequest{
		{Task: "echo"},
		{Task: "echo", After: &[]string{"#0"}},
		{Task: "nobody"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, item := range items {
		if item.Problem != nil {
			fmt.Println(i, item.Problem.Code)
		}
	}
	// Output: 2 unknown_task
}

func ExampleClient_RunDag() {
	ctx, c := context.Background(), connect()
	_, err := c.PutDag(ctx, "greeting", rest.DagRequest{Nodes: map[string]rest.NodeRequest{
		"say":  {Task: "echo", Payload: map[string]any{"n": 1}},
		"then": {Task: "echo", DependsOn: &[]string{"say"}, Payload: map[string]any{"n": "${nodes.say.result.n + 1}"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := c.RunDag(ctx, "", "greeting", rest.DagRunRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err = c.WaitRun(ctx, run.RunID)
	fmt.Println(run.Status, run.Counts.Succeeded, err)
	// Output: SUCCEEDED 2 <nil>
}

func ExampleReadSigned() {
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := client.ReadSigned(r, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(body)
	}
	w := httptest.NewRecorder()
	receive(w, httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(`{}`)))
	fmt.Println(w.Code)
	// Output: 401
}

func TestClient_CreatesBatchesOfAnyLength(t *testing.T) {
	t.Parallel()
	jobs := make([]rest.BatchJobRequest, 205)
	for i := range jobs {
		jobs[i] = rest.BatchJobRequest{Task: "echo", Tags: &map[string]string{"n": strconv.Itoa(i)}}
	}
	jobs[1].Task = "nobody"
	jobs[150].After = &[]string{"#0", "#149"}
	jobs[151].After = &[]string{"#1"}
	items, err := connect().CreateJobs(t.Context(), jobs)
	if err != nil || len(items) != len(jobs) {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, item := range items {
		if i == 1 || i == 151 {
			if item.Problem == nil {
				t.Errorf("job %d is taken", i)
			}
			continue
		}
		if item.Job == nil {
			t.Fatalf("job %d: %+v", i, item.Problem)
		}
		if (*item.Job.Tags)["n"] != strconv.Itoa(i) {
			t.Errorf("item %d is of job %s", i, (*item.Job.Tags)["n"])
		}
	}
	job, err := connect().Job(t.Context(), items[150].Job.JobID)
	if err != nil || (*job.After)[0] != items[0].Job.JobID || (*job.After)[1] != items[149].Job.JobID {
		t.Errorf("%+v %v", job.After, err)
	}
	if jobs[0].IdempotencyKey != nil || (*jobs[150].After)[0] != "#0" {
		t.Error("the caller's jobs were changed")
	}
}

func TestClient_SplitsBatchesByTheirBytes(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 300_000)
	jobs := make([]rest.BatchJobRequest, 7)
	for i := range jobs {
		jobs[i] = rest.BatchJobRequest{Task: "echo", Payload: large}
	}
	items, err := connect().CreateJobs(t.Context(), jobs)
	if err != nil || len(items) != 7 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, item := range items {
		if item.Job == nil {
			t.Errorf("job %d: %+v", i, item.Problem)
		}
	}
}

func TestClient_ListsOverPages(t *testing.T) {
	t.Parallel()
	c, jobs := connect(), make([]rest.BatchJobRequest, 7)
	put := func(ctx context.Context) error {
		_, err := c.PutTask(ctx, "listed", rest.TaskRequest{Executor: rest.TaskRequestExecutorEcho})
		return err
	}
	if err := put(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		jobs[i] = rest.BatchJobRequest{Task: "listed"}
	}
	if _, err := c.CreateJobs(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for job, err := range c.Jobs(t.Context(), &rest.ListJobsParams{Task: new("listed"), Limit: new(3)}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[job.JobID] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d of 7 jobs are listed", len(seen))
	}
	n := 0
	for range c.Jobs(t.Context(), &rest.ListJobsParams{Task: new("listed"), Limit: new(3)}) {
		if n++; n == 4 {
			break
		}
	}
	if n != 4 {
		t.Errorf("the list went on to %d", n)
	}
	for _, err := range c.Jobs(t.Context(), &rest.ListJobsParams{Limit: new(-1)}) {
		if !errors.Is(err, client.InvalidValue) {
			t.Errorf("%v", err)
		}
	}
}

func TestClient_RedrivesDeadLetters(t *testing.T) {
	t.Parallel()
	c := connect()
	job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "fail"})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = c.Wait(t.Context(), job.JobID); err != nil || job.Status != rest.JobViewStatusDEAD {
		t.Fatalf("%s %v", job.Status, err)
	}
	other, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "fail"})
	if err != nil {
		t.Fatal(err)
	}
	if other, err = c.Wait(t.Context(), other.JobID); err != nil {
		t.Fatal(err)
	}
	corrected, err := c.RedriveCorrected(t.Context(), other.JobID, rest.RedriveRequest{Payload: 7, Delay: new("1h")})
	if err != nil || string(corrected.Payload) != "7" || corrected.Status != rest.JobViewStatusSCHEDULED {
		t.Errorf("corrected to %+v, %v", corrected, err)
	}
	repeated := map[string]string{}
	for o, err := range c.RedriveDeadLetters(t.Context(), rest.DeadLettersRequest{JobIds: &[]string{job.JobID}}) {
		if err != nil || o.NewJobID == nil {
			t.Fatalf("%+v %v", o, err)
		}
		repeated[o.JobID] = *o.NewJobID
	}
	if len(repeated) != 1 || repeated[job.JobID] == "" {
		t.Errorf("%v", repeated)
	}
	_, err = c.RedriveJob(t.Context(), job.JobID)
	e, ok := errors.AsType[*client.Error](err)
	if !ok || !errors.Is(err, client.WrongState) || *e.RedrivenBy != repeated[job.JobID] {
		t.Errorf("%v", err)
	}
}

func TestClient_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := connect()
	job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo", Delay: new("1h")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, job.JobID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if job, err = c.CancelJob(t.Context(), job.JobID); err != nil || job.Status != rest.JobViewStatusCANCELLED {
		t.Errorf("%s %v", job.Status, err)
	}
}

func TestReadSigned_TakesWhatAJobSends(t *testing.T) {
	t.Parallel()
	received := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := client.ReadSigned(r, newSecret, oldSecret)
		received <- fmt.Sprint(string(body), err)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(hook.Close)
	c := connect()
	job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "http", Payload: rest.HTTPPayload{
		URL: hook.URL, Body: map[string]int{"n": 1}, SignWith: new(signingKey)}})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = c.Wait(t.Context(), job.JobID); err != nil || job.Status != rest.JobViewStatusSUCCEEDED {
		t.Fatalf("%s %+v %v", job.Status, job.StatusReason, err)
	}
	if got := <-received; got != `{"n":1}<nil>` {
		t.Error(got)
	}
}

func TestClient_KeepsTheDigitsOfResults(t *testing.T) {
	t.Parallel()
	c := connect()
	const number = "12345678901234567890.10"
	job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo", Payload: rawJSON(`{"n":` + number + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = c.Wait(t.Context(), job.JobID); err != nil || string(job.Result) != `{"n":`+number+`}` {
		t.Errorf("%s %v", job.Result, err)
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestResult_ReadsTheWholeValueAndNeverAPartOfIt(t *testing.T) {
	t.Parallel()
	c := connect()
	run := func(bytes int) rest.JobView {
		t.Helper()
		job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo",
			Payload: map[string]string{"text": strings.Repeat("x", bytes)}})
		if err != nil {
			t.Fatal(err)
		}
		if job, err = c.Wait(t.Context(), job.JobID); err != nil || job.Status != rest.JobViewStatusSUCCEEDED {
			t.Fatalf("%s %v", job.Status, err)
		}
		return job
	}
	for _, bytes := range []int{10, 13_000, 250_000} {
		got, err := client.Result[map[string]string](run(bytes))
		if err != nil || len(got["text"]) != bytes {
			t.Errorf("of %d bytes %d came back: %v", bytes, len(got["text"]), err)
		}
	}
	job := run(300_000)
	if got, err := client.Result[map[string]any](job); !errors.Is(err, client.ResultTooLarge) || got != nil {
		t.Errorf("%v %v", got, err)
	}
	if !strings.HasPrefix(string(job.Result), `{"truncated":true,"preview":"{\"text\":`) {
		t.Errorf("it shows %.60s", job.Result)
	}
	// A value that looks like a preview is a value.
	job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo", Payload: rawJSON(`{"truncated":true,"preview":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = c.Wait(t.Context(), job.JobID); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[map[string]any](job); err != nil || got["preview"] != "a" {
		t.Errorf("%v %v", got, err)
	}
}

func TestTask_LowersWhatIsKeptOfResults(t *testing.T) {
	t.Parallel()
	c := connect()
	for name, fails := range map[string]rest.TaskRequestOnLargeResult{
		"small": rest.TaskRequestOnLargeResultPreview, "strict": rest.TaskRequestOnLargeResultFail,
	} {
		if _, err := c.PutTask(t.Context(), name, rest.TaskRequest{Executor: "echo", MaxResult: new("2KiB"),
			OnLargeResult: &fails}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(task string, bytes int) rest.JobView {
		t.Helper()
		job, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: task, Payload: strings.Repeat("x", bytes)})
		if err != nil {
			t.Fatal(err)
		}
		if job, err = c.Wait(t.Context(), job.JobID); err != nil {
			t.Fatal(err)
		}
		return job
	}
	if _, err := client.Result[string](run("small", 2_000)); err != nil {
		t.Error(err)
	}
	if _, err := client.Result[string](run("small", 2_100)); !errors.Is(err, client.ResultTooLarge) {
		t.Error(err)
	}
	if job := run("strict", 2_000); job.Status != rest.JobViewStatusSUCCEEDED {
		t.Errorf("it is %s", job.Status)
	}
	job := run("strict", 2_100)
	if job.Status != rest.JobViewStatusDEAD || job.StatusReason.Code != "result_too_large" || job.Attempt != 1 {
		t.Errorf("it is %s, %+v, at attempt %d", job.Status, job.StatusReason, job.Attempt)
	}
}
