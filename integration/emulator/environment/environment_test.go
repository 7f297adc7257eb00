package environment

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestMiniStack_AnswersTheSDK(t *testing.T) {
	t.Parallel()
	stack := MiniStack(t)
	tables, err := dynamodb.NewFromConfig(stack.Config()).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatalf("listing tables at %s: %v", stack.URL, err)
	}
	if len(tables.TableNames) != 0 && os.Getenv(miniStack.given) == "" {
		t.Errorf("a new emulator has tables %q", tables.TableNames)
	}
	if second := MiniStack(t); second != stack {
		t.Errorf("a second one was started at %s", second.URL)
	}
}

func TestLocalStack_ServesQueuesAndMoveTasks(t *testing.T) {
	t.Parallel()
	stack := LocalStack(t)
	queues := sqs.NewFromConfig(stack.Config())
	made, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("environment-test")})
	if err != nil {
		t.Fatalf("creating a queue at %s: %v", stack.URL, err)
	}
	if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made.QueueUrl,
		MessageBody: aws.String("here")}); err != nil {
		t.Fatalf("sending to %s: %v", *made.QueueUrl, err)
	}
	got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl,
		WaitTimeSeconds: 5})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != "here" {
		t.Fatalf("received %+v, %v; want the message sent", got, err)
	}
	// MiniStack lacks this call; this is why there are two emulators.
	_, err = queues.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{
		SourceArn: aws.String("arn:aws:sqs:" + Region + ":000000000000:environment-test"),
	})
	if err != nil && strings.Contains(err.Error(), "not implemented") {
		t.Errorf("moving messages is not served: %v", err)
	}
}

// installed ensures that a test can start its own MiniStack.
func installed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		SkipOrFail(t, "nothing is started with -short")
	}
	if _, err := Install(t.Context(), miniStack); err != nil {
		SkipOrFail(t, err.Error())
	}
}

// parentOnly makes the test binary start an emulator, print its address, and wait to be killed.
const parentOnly = "PUNCTUAL_TEST_EMULATOR_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(tiedOnly) != "" {
		cmd, _, err := Tied("/bin/sh", "-c", "echo here; sleep 600")
		if err != nil {
			panic(err)
		}
		cmd.Stdout = os.Stdout
		panic(cmd.Run())
	}
	if os.Getenv(parentOnly) == "" {
		os.Exit(m.Run())
	}
	e, err := givenOrStarted(miniStack)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(e.URL + "\n")
	<-e.Done()
}

func TestEmulator_EndsWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	installed(t)
	tmp := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOnly+"=1", miniStack.given+"=", "TMPDIR="+tmp)
	parent.Stderr = t.Output()
	says, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(says).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent did not say where its emulator is: %v", err)
	}
	at, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatalf("the emulator does not listen before the kill: %v", err)
	}
	defer conn.Close()

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	// The kernel closes the connection when the emulator's process is gone.
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a minute after its parent was killed the emulator still holds its connections (%v)", err)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "punctual-*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// tiedOnly makes the test binary start a tied program, print its process id, and wait to be killed.
const tiedOnly = "PUNCTUAL_TEST_TIED_PARENT"

func TestTied_EndsWithItsParent(t *testing.T) {
	t.Parallel()
	alive, ours, err := os.Pipe() // the program holds the other end, whatever happens to its parent
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), tiedOnly+"=1")
	parent.Stdout, parent.Stderr = ours, t.Output()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	says := bufio.NewReader(alive)
	if line, err := says.ReadString('\n'); err != nil || line != "here\n" {
		t.Fatalf("the program said %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := alive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := says.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("a minute after its parent was killed the program still runs: %v", err)
	}
}

func TestTied_EndsAllThatItStarted(t *testing.T) {
	t.Parallel()
	cmd, end, err := Tied("/bin/sh", "-c", "sleep 600 & sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well; want it killed")
	}
}

func TestEmulator_EndsWithStop(t *testing.T) {
	t.Parallel()
	installed(t)
	e, err := Start(t.Context(), miniStack, Options{Output: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	e.Stop()
	if answers(t.Context(), e.Client(answerWithin), e.URL+miniStack.ready) {
		t.Error("it still answers after Stop")
	}
	if _, err := os.Stat(e.process.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder %s is still there: %v", e.process.folder, err)
	}
}

func TestEmulator_UsesAGivenEndpoint(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://sqs.example:4566/")
	e, err := givenOrStarted(localStack)
	if err != nil {
		t.Fatal(err)
	}
	if e.URL != "http://sqs.example:4566" || e.process != nil {
		t.Errorf("got %q and process %v; want the given URL without its slash and no process", e.URL, e.process)
	}
	e.Stop()
}

func TestStart_ReturnsTheOutputOfAFailedEmulator(t *testing.T) {
	t.Parallel()
	installed(t)
	broken := miniStack
	broken.module = "no_such_emulator"
	_, err := Start(t.Context(), broken, Options{})
	if err == nil || !strings.Contains(err.Error(), "No module named no_such_emulator") {
		t.Errorf("starting a module that is not there gave %v; want Python's own words", err)
	}
}

func TestStart_RefusesATakenPort(t *testing.T) {
	t.Parallel()
	installed(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Start(t.Context(), miniStack, Options{Port: taken.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("starting on a taken port gave %v; want EADDRINUSE", err)
	}
}

func TestStart_RunsOneAtATime(t *testing.T) {
	t.Parallel()
	unlock, err := lockStart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it must not even begin
	if _, err := start(ctx, "/nowhere/python", miniStack, Options{}); err == nil ||
		!strings.Contains(err.Error(), "waiting to start") {
		t.Errorf("during another start it returns %v; want it to wait", err)
	}
}

func TestConfig_IgnoresTheUsersSettings(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://elsewhere.example")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDREAL")
	cfg := (&Emulator{URL: "http://127.0.0.1:1"}).Config()
	keys, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil || keys.AccessKeyID != secret {
		t.Errorf("credentials are %q, %v; want the emulator's", keys.AccessKeyID, err)
	}
	if got := aws.ToString(sqs.NewFromConfig(cfg).Options().BaseEndpoint); got != "http://127.0.0.1:1" {
		t.Errorf("queues are sought at %q; want the emulator", got)
	}
}

func TestLock_AdmitsOneAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := syscall.Flock(int(second.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("while it is held another gets %v; want EWOULDBLOCK", err)
	}
	unlock()
	third, err := lock(t.Context(), path)
	if err != nil {
		t.Fatalf("it cannot be taken after it was freed: %v", err)
	}
	third()
}

func TestPinned_KeysByPinsAndPython(t *testing.T) {
	t.Parallel()
	key := func(k Kind, version string) string {
		files, key, err := pinned(k.name, version)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 2 {
			t.Errorf("%s has %d requirement files; want its pins and its lock", k, len(files))
		}
		return key
	}
	first, second := key(miniStack, "3.11"), key(miniStack, "3.11")
	if first == key(localStack, "3.11") || first == key(miniStack, "3.12") {
		t.Error("two different environments share a folder")
	}
	if first != second {
		t.Error("the same environment is made twice")
	}
}

// ending records how a test ended.
type ending struct {
	testing.TB
	how string
}

func (e *ending) Helper()               {}
func (e *ending) Skip(...any)           { e.how = "skipped"; panic(e) }
func (e *ending) Fatalf(string, ...any) { e.how = "failed"; panic(e) }

func TestSkipOrFail_FailsOnlyWhereCIIsTrue(t *testing.T) {
	t.Parallel()
	for ci, want := range map[string]string{"": "skipped", "false": "skipped", "0": "skipped", "perhaps": "skipped",
		"true": "failed", "1": "failed"} {
		e := &ending{TB: t}
		func() {
			defer func() { _ = recover() }()
			skipOrFail(e, ci, "no Python")
		}()
		if e.how != want {
			t.Errorf("with CI=%q the test was %s; want %s", ci, e.how, want)
		}
	}
}

func TestTail_KeepsTheLastWholeLines(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("an earlier line of the log\n", 1000) + "the last line\n"
	if err := os.WriteFile(name, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	got := tail(name)
	if len(got) > tailBytes || !strings.HasPrefix(got, "an earlier") || !strings.HasSuffix(got, "the last line\n") {
		t.Errorf("tail is %d bytes, from %.12q", len(got), got)
	}
	if tail(filepath.Join(t.TempDir(), "none")) != "" {
		t.Error("a file that is not there has a tail")
	}
}
