package emulator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/secret"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// shop is the product over an emulator: real SDK calls, with the stages in this process.
type shop struct {
	*story.API
	env    contract.Env
	queues *queue.Queues
}

// testLog writes errors to the test's log and drops other lines.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"level":"ERROR"`)) || bytes.Contains(p, []byte(`"level":"WARN"`)) {
		l.t.Logf("%s", bytes.TrimSpace(p))
	}
	return len(p), nil
}

// build creates tables, queues, a bucket and a timer group with a unique prefix on MiniStack, with
// the queues at queuesAt, and runs the stages over them.
func build(t *testing.T, queuesAt aws.Config, change ...func(*system.Options)) *shop {
	t.Helper()
	return buildOver(t, queuesAt, func(*system.Ports) {}, change...)
}

func buildOver(t *testing.T, queuesAt aws.Config, tune func(*system.Ports), change ...func(*system.Options)) *shop {
	t.Helper()
	ctx := t.Context()
	cfg := environment.MiniStack(t).Config()
	env := deployment()
	env.Bucket, env.TimerGroup = env.Prefix, env.Prefix
	tables, queues := table.New(cfg, env.TableName), queue.New(queuesAt, env.QueueName)
	blobs := blob.New(cfg, env.Bucket)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tables.CreateAll(ctx))
	must(queues.CreateAll(ctx))
	must(blobs.Create(ctx))
	target, err := queues.ARN(ctx, contract.DispatchQueue)
	must(err)
	dead, err := queues.ARN(ctx, contract.FiringDead)
	must(err)
	timers := timer.New(cfg, timer.Settings{Group: env.TimerGroup, Target: target, DeadLetter: dead,
		Role: "arn:aws:iam::000000000000:role/timers"})
	must(timers.CreateGroup(ctx))
	stream, err := streamOf(ctx, cfg, env.TableName(contract.Jobs))
	must(err)

	o := system.Options{
		Shards: 2, Registry: worker.NewRegistry(), HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Worker: worker.Options{Name: "in-process", Pools: []string{"short", "long"}, Poll: time.Second,
			Drain: 5 * time.Second},
	}
	for _, c := range change {
		c(&o)
	}
	ports := system.Ports{
		Table: tables, Blobs: blobs, Stream: stream, Queues: queues, Timers: timers, Secrets: secret.New(cfg),
		Clock: clock.System{}, Log: func(stage string) *slog.Logger {
			return telemetry.Logger(testLog{t}, stage)
		}, Meter: new(telemetry.Meter),
	}
	tune(&ports)
	sys := system.Compose(ports, o)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		if err := sys.Run(running); err != nil {
			t.Errorf("the system ended with %v", err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return &shop{API: story.Over(t, sys.API), env: env, queues: queues}
}

//proof:of 70
func TestJob_RunsOverMiniStack(t *testing.T) {
	t.Parallel()
	h := build(t, environment.MiniStack(t).Config())
	object := func(pairs ...any) story.Object {
		o := story.Object{}
		for i := 0; i < len(pairs); i += 2 {
			o[pairs[i].(string)] = pairs[i+1]
		}
		return o
	}
	soon := h.Post(object("task", "echo", "payload", object("hello", "world")))
	later := h.Post(object("task", "echo", "delay", "6s"))
	big := h.Post(object("task", "echo", "payload", strings.Repeat("x", 300<<10)))
	flaky := h.Post(object("task", "echo", "payload", object("fail", 1)))
	gone := h.Post(object("task", "echo", "payload", object("fail", 9), "retry", object("max_attempts", 2)))
	moved := h.Post(object("task", "echo", "delay", "1h"))
	cancelled := h.Post(object("task", "echo", "delay", "8s"))
	h.Want(200, "POST", "/jobs/"+cancelled+"/cancel", nil)
	over := time.Now().Add(10 * time.Second) // it would have run by then
	h.Want(200, "PATCH", "/jobs/"+moved, object("delay", "4s"))

	if v := h.Await(soon, "SUCCEEDED", patient); fmt.Sprint(v["result"]) != "map[hello:world]" {
		t.Errorf("the result is %v", v["result"])
	}
	if v := h.Await(later, "SUCCEEDED",
		patient); v["start_lateness_ms"].(float64) > float64(promised().Milliseconds()) ||
		v["start_lateness_ms"].(float64) < 0 {
		t.Errorf("started %v ms late", v["start_lateness_ms"])
	}
	h.Await(big, "SUCCEEDED", patient)
	if h.Await(flaky, "SUCCEEDED", patient); len(h.Attempts(flaky)) != 2 {
		t.Errorf("attempts: %v", h.Attempts(flaky))
	}
	h.Await(moved, "SUCCEEDED", patient)
	h.Await(gone, "DEAD", patient)
	v := h.Want(202, "POST", "/jobs/"+gone+"/redrive", nil)
	if v["redrive_of"] != gone {
		t.Errorf("redriven as %v", v)
	}
	time.Sleep(time.Until(over))
	if v := h.WantStatus(cancelled, "CANCELLED"); v["started_at"] != nil {
		t.Errorf("a cancelled job ran: %v", v)
	}
}

// A dead letter on its way through SQS: into the DLQ by the redrive policy, marked with its source,
// and back by a move task without a destination. It becomes exactly one new job, also when it was
// sent twice and when it is redriven twice.
//
//proof:of 107 108 S23
func TestRedrive_FromTheConsoleOverLocalStack(t *testing.T) {
	t.Parallel()
	at := environment.LocalStack(t).Config()
	h := build(t, at)
	dead := h.Post(story.Object{"task": "echo", "payload": story.Object{"fail": 1},
		"retry": story.Object{"max_attempts": 1}})
	h.Await(dead, "DEAD", patient)

	client := sqs.NewFromConfig(at)
	arn, err := h.queues.ARN(t.Context(), contract.DeadLetters)
	if err != nil {
		t.Fatal(err)
	}
	buried := func(n int) {
		t.Helper()
		for over := time.Now().Add(patient); ; time.Sleep(200 * time.Millisecond) {
			d, err := h.queues.Depth(t.Context(), contract.DeadLetters)
			if err != nil {
				t.Fatal(err)
			}
			if d.Visible >= n {
				return
			}
			if time.Now().After(over) {
				t.Fatalf("the DLQ holds %+v, want %d", d, n)
			}
		}
	}
	buried(1)
	letters, err := h.queues.Receive(t.Context(), contract.DeadLetters, 10, 0, time.Second)
	if err != nil || len(letters) != 1 || letters[0].Source == "" {
		t.Fatalf("the DLQ gave %+v, %v: want one letter stamped with its source", letters, err)
	}
	copied := letters[0].Body // to be sent once more, as after a crash of the status consumer
	redrive := func() {
		t.Helper()
		if _, err := client.StartMessageMoveTask(t.Context(),
			&sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn)}); err != nil {
			t.Fatal(err)
		}
	}
	buried(1) // it must be visible, or the task finds nothing to move
	redrive()
	var by string
	for over := time.Now().Add(patient); by == ""; time.Sleep(200 * time.Millisecond) {
		by, _ = h.Job(dead)["redriven_by"].(string)
		if time.Now().After(over) {
			t.Fatal("the letter came back and nothing was redriven")
		}
	}
	h.Await(by, "DEAD", patient) // it fails as the first did, and sends a dead letter of its own
	url, err := client.GetQueueUrl(t.Context(),
		&sqs.GetQueueUrlInput{QueueName: aws.String(h.env.QueueName(contract.RedriveQueue))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url.QueueUrl,
		MessageBody: aws.String(copied)}); err != nil {
		t.Fatal(err)
	}
	for over := time.Now().Add(patient); ; time.Sleep(200 * time.Millisecond) { // until it is handled
		d, err := h.queues.Depth(t.Context(), contract.RedriveQueue)
		if err != nil {
			t.Fatal(err)
		}
		if d == (message.Depth{}) {
			break
		}
		if time.Now().After(over) {
			t.Fatalf("the redrive queue still holds %+v", d)
		}
	}
	items, _ := h.Want(200, "GET", "/jobs", nil)["items"].([]any)
	children := 0
	for _, j := range items {
		if j.(story.Object)["redrive_of"] == dead {
			children++
		}
	}
	if children != 1 {
		t.Errorf("%d jobs were made of one letter that came back twice, want 1", children)
	}
}

// workerProcess starts the real worker binary with the emulator.
func workerProcess(t *testing.T, h *shop, name string) *exec.Cmd {
	t.Helper()
	cmd, _ := environment.Logged(t, name, workerBinary(t), append(environment.MiniStack(t).Environ(),
		"PUNCTUAL_PREFIX="+h.env.Prefix, "PUNCTUAL_BUCKET="+h.env.Bucket, "PUNCTUAL_SLOTS=10",
		"PUNCTUAL_DRAIN_SECONDS=20", "HOSTNAME="+name)...)
	return cmd
}

// workerFolder holds the worker's binary; it is removed when the process ends.
var workerFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(workerFolder)
	os.Exit(code)
}

var workerOnce = sync.OnceValues(func() (string, error) {
	var err error
	if workerFolder, err = os.MkdirTemp("", "punctual-worker-"); err != nil {
		return "", err
	}
	binary := filepath.Join(workerFolder, "worker")
	out, err := exec.Command("go", "build", "-o", binary, "punctual/workers/cmd/worker").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the worker: %w\n%s", err, out)
	}
	return binary, nil
})

func workerBinary(t *testing.T) string {
	t.Helper()
	binary, err := workerOnce()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// A killed worker reports nothing. Another one finishes the job within lease and grace, as the same
// attempt, with a higher token.
//
//proof:of 116 174 184
func TestWorker_LosesItsJobToAnotherWhenKilled(t *testing.T) {
	t.Parallel()
	h := build(t, environment.MiniStack(t).Config(), func(o *system.Options) { o.NoWorker = true })
	first := workerProcess(t, h, "first")
	id := h.Post(story.Object{"task": "echo", "payload": story.Object{"sleep": "20s"}, "timeout": "5m"})
	h.Await(id, "RUNNING", patient)
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	h.WantStatus(id, "RUNNING") // otherwise there is nothing to take over
	workerProcess(t, h, "second")
	v := h.Await(id, "SUCCEEDED", contract.Lease+contract.Grace+patient)
	t.Logf("finished %s after the kill", time.Since(killed).Round(time.Second))
	tries := h.Attempts(id)
	if len(tries) != 2 {
		t.Fatalf("tries %v: each start is told", tries)
	}
	lost, _ := tries[0].(story.Object)
	if v["attempt"] != 1.0 || lost["attempt"] != 1.0 || lost["outcome"] != "lost" {
		t.Errorf("attempt %v, tries %v: each start is told, and a take-over costs none", v["attempt"], tries)
	}
}

// SIGTERM under load: running jobs finish or are given back; none is lost or done twice.
//
//proof:of 119 190 S29
func TestWorker_LosesNothingWhenTerminated(t *testing.T) {
	t.Parallel()
	h := build(t, environment.MiniStack(t).Config(), func(o *system.Options) { o.NoWorker = true })
	first := workerProcess(t, h, "first")
	var jobs []story.Object
	for range 60 {
		jobs = append(jobs, story.Object{"task": "echo", "payload": story.Object{"sleep": "500ms"}})
	}
	answer := h.Want(200, "POST", "/jobs/batch", story.Object{"jobs": jobs})
	items, _ := answer["items"].([]any)
	status := func(i any) string {
		id, _ := i.(story.Object)["job"].(story.Object)["job_id"].(string)
		s, _ := h.Job(id)["status"].(string)
		return s
	}
	for over := time.Now().Add(patient); !slices.ContainsFunc(items, func(i any) bool {
		return status(i) == "SUCCEEDED"
	}); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("after %s the worker has finished none of %d jobs", patient, len(items))
		}
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	workerProcess(t, h, "second")
	if err := first.Wait(); err != nil {
		t.Errorf("the drained worker ended with %v, want exit 0", err)
	}
	for _, i := range items {
		id, _ := i.(story.Object)["job"].(story.Object)["job_id"].(string)
		h.Await(id, "SUCCEEDED", patient)
		if tries := h.Attempts(id); len(tries) != 1 {
			t.Errorf("job %s took %d attempts: %v", id, len(tries), tries)
		}
	}
}
