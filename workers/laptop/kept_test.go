package laptop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// asServer makes the test's binary a laptop's server, so that it can be killed.
const asServer = "PUNCTUAL_TEST_SERVES"

func TestMain(m *testing.M) {
	if data := os.Getenv(asServer); data != "" {
		err := Serve(context.Background(), Options{Addr: "127.0.0.1:0", Data: data,
			Serving: func(addr string) { fmt.Println("serving " + addr) }})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process is a laptop's server in a process of its own.
type process struct {
	client *client.Client
	kill   func()
}

// serves starts a process over a folder.
func serves(t *testing.T, data string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"="+data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addr string
	if _, err := fmt.Fscanf(out, "serving %s\n", &addr); err != nil {
		t.Fatal(err)
	}
	c, err := client.New("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	return process{c, kill}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestServe_KeepsEverythingWhenItIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits 30 s for the leases of what was about to start")
	}
	data := t.TempDir()
	p := serves(t, data)
	ctx := t.Context()
	job, jobs := must[rest.JobView](t), map[string]string{}
	create := func(r rest.JobRequest) string { return job(p.client.CreateJob(ctx, "", r)).JobID }
	done := job(p.client.Wait(ctx, create(rest.JobRequest{Task: "echo", Payload: "done"})))
	jobs[done.JobID] = "done"
	for n := range 20 {
		text := fmt.Sprint("soon ", n)
		jobs[create(rest.JobRequest{Task: "echo", Payload: text, Delay: new(fmt.Sprintf("%dms", 500+100*n))})] = text
	}
	large := strings.Repeat("x", 200<<10) // in a blob
	jobs[create(rest.JobRequest{Task: "echo", Payload: large, Delay: new("3s")})] = large
	later := create(rest.JobRequest{Task: "echo", Delay: new("20m")})
	every := putSchedule(t, p.client, "often", `{"calendar":{"every":"1h"},"job":{"task":"echo"}}`)
	time.Sleep(time.Second) // some run, some are on their way
	p.kill()

	p = serves(t, data)
	for id, want := range jobs {
		view := job(p.client.Wait(ctx, id))
		var got string
		if err := json.Unmarshal(view.Payload, &got); err != nil || string(view.Status) != "SUCCEEDED" || got != want {
			t.Errorf("%s is %s with %.20s, want %.20s", id, view.Status, got, want)
		}
		ran := 0
		for a, err := range p.client.Attempts(ctx, id) {
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != rest.AttemptViewOutcomeLost { // it ran when the process was killed
				ran++
			}
		}
		if ran != 1 {
			t.Errorf("%.20q ran %d times", want, ran)
		}
	}
	if view := job(p.client.Job(ctx, later)); string(view.Status) != "SCHEDULED" {
		t.Errorf("the later one is %s", view.Status)
	}
	restarted := must[rest.ScheduleView](t)(p.client.Schedule(ctx, "often"))
	if !restarted.Next[0].Equal(every.Next[0]) || restarted.Version != every.Version {
		t.Errorf("%+v, was %+v", restarted, every)
	}
}

func TestServe_RefusesAFolderThatAnotherProcessHas(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serves(t, data)
	err := Serve(t.Context(), Options{Addr: "127.0.0.1:0", Data: data})
	if err == nil || !strings.Contains(err.Error(), "another process") {
		t.Error(err)
	}
}
