package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"punctual/workers/laptop"
	"punctual/workers/worker"
)

// asLaptop in the environment makes the test binary a laptop, with the arguments of make run.
const asLaptop = "PUNCTUAL_LOAD_LAPTOP"

// causes are what the handlers of the tasks cause-0 to cause-3 fail of, unless the payload says that it is fixed.
var causes = []string{"the mail server refuses the connection", "the invoice has no address",
	"the account is locked", "the answer has no field total"}

func serveLaptop() {
	laptop.Main(func(r *worker.Registry) {
		for n, cause := range causes {
			worker.Register(r, fmt.Sprintf("cause-%d", n),
				func(_ context.Context, j worker.Job[struct{ Fixed bool }]) (struct{}, error) {
					if j.Payload.Fixed {
						return struct{}{}, nil
					}
					return struct{}{}, errors.New(cause)
				})
		}
	})
}

// laptopProcess is a laptop in a process of its own, which can be killed.
type laptopProcess struct {
	b          testing.TB
	addr, data string
	cmd        *exec.Cmd
	used       time.Duration // CPU time of those that have ended
}

func startLaptop(b testing.TB) *laptopProcess {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p := &laptopProcess{b: b, addr: listener.Addr().String(), data: b.TempDir()}
	if err := listener.Close(); err != nil {
		b.Fatal(err)
	}
	p.start()
	b.Cleanup(p.kill)
	return p
}

func (p *laptopProcess) start() {
	p.cmd = exec.Command(os.Args[0], "-addr", p.addr, "-data", p.data)
	p.cmd.Env = append(os.Environ(), asLaptop+"=1", fmt.Sprintf("GOGC=%d", collectorPercent))
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.b.Fatal(err)
	}
	p.until(time.Minute, func() bool {
		resp, err := http.Get("http://" + p.addr + "/v1/operations")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (p *laptopProcess) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	_ = p.cmd.Wait()                          // it says that it was killed
	p.used += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// cpu is how much processor time the laptop has used, 0 where that cannot be read.
func (p *laptopProcess) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var user, system int64
	_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	const tick = 10 * time.Millisecond // of Linux
	return p.used + time.Duration(user+system)*tick
}

func (p *laptopProcess) until(most time.Duration, holds func() bool) {
	p.b.Helper()
	for end := time.Now().Add(most); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.b.Fatalf("it does not hold after %s", most)
		}
	}
}

// call makes a request, and reads its answer into to.
func (p *laptopProcess) call(method, path string, body, to any) {
	p.b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.b.Fatal(err)
	}
	req, err := http.NewRequest(method, "http://"+p.addr+"/v1"+path, bytes.NewReader(text))
	if err != nil {
		p.b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		p.b.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, answer, err)
	}
	if err := json.Unmarshal(answer, to); err != nil {
		p.b.Fatal(err)
	}
}

// die posts each task's jobs, and waits until all of them are dead letters.
func (p *laptopProcess) die(each int) {
	p.b.Helper()
	var all sync.WaitGroup
	for n := range causes {
		all.Go(func() {
			for from := 0; from < each; from += 100 {
				var jobs []object
				for i := from; i < min(from+100, each); i++ {
					jobs = append(jobs, object{"task": fmt.Sprintf("cause-%d", n), "payload": object{"n": i},
						"retry": object{"max_attempts": 1}})
				}
				var answer struct{ Refused int }
				if p.call("POST", "/jobs/batch", object{"jobs": jobs}, &answer); answer.Refused > 0 {
					p.b.Errorf("%d of a batch were refused", answer.Refused)
				}
			}
		})
	}
	all.Wait()
	p.until(time.Hour, func() bool {
		time.Sleep(time.Second)
		counts, _ := p.groups()
		total := 0
		for _, n := range counts {
			total += n
		}
		return total == each*len(causes)
	})
}

// groups counts the dead letters by task, and says how long the request took.
func (p *laptopProcess) groups() (counts map[string]int, took time.Duration) {
	p.b.Helper()
	var page struct {
		Items []struct {
			Task  string
			Count int
		}
	}
	from := time.Now()
	p.call("GET", "/dead-letters/groups", nil, &page)
	took = time.Since(from)
	counts = map[string]int{}
	for _, g := range page.Items {
		counts[g.Task] += g.Count
	}
	return counts, took
}

type operationView struct {
	OperationID                    string `json:"operation_id"`
	Status                         string
	Matched, Done, Skipped, Failed int
	StatusReason                   struct{ Code string } `json:"status_reason"`
	Canary                         struct{ Succeeded, Failed, Open int }
}

func (p *laptopProcess) read(v operationView) operationView {
	p.b.Helper()
	p.call("GET", "/operations/"+v.OperationID, nil, &v)
	return v
}

func (p *laptopProcess) ended(v operationView) operationView {
	p.b.Helper()
	p.until(time.Hour, func() bool {
		v = p.read(v)
		return v.Status != "COUNTING" && v.Status != "CANARY" && v.Status != "RUNNING"
	})
	return v
}

// jobs lists the jobs of a task with a status.
func (p *laptopProcess) jobs(task, status string) (all []jobView) {
	p.b.Helper()
	for at := "/jobs?limit=200&task=" + task + "&status=" + status; ; {
		var page struct {
			Items      []jobView
			NextCursor string `json:"next_cursor"`
		}
		p.call("GET", at, nil, &page)
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all
		}
		at = "/jobs?limit=200&task=" + task + "&status=" + status + "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

type jobView struct {
	JobID      string `json:"job_id"`
	RedriveOf  string `json:"redrive_of"`
	RedrivenBy string `json:"redriven_by"`
}

// BenchmarkDeadLetters is the night of an operator: thousands of dead letters of four causes on a laptop that keeps
// its data. A canary redrive of one cause fails, because nothing was mended; one with a patch of the payload succeeds
// at 500 rows a second, although the laptop is killed in the middle of it, and brings each row back once.
func BenchmarkDeadLetters(b *testing.B) {
	each := 25_000
	if testing.Short() {
		each = 1_000
	}
	for b.Loop() {
		p := startLaptop(b)
		from := time.Now()
		p.die(each)
		note("dead letters of four causes on a laptop: made in", "%d in %s, %.2f ms CPU each", each*len(causes),
			time.Since(from).Round(time.Second), float64(p.cpu().Microseconds())/1000/float64(each*len(causes)))
		var slowest time.Duration
		for range 10 {
			counts, took := p.groups()
			slowest = max(slowest, took)
			if len(counts) != len(causes) || counts["cause-0"] != each {
				b.Fatalf("groups %v", counts)
			}
		}
		note("dead letters: groups, slowest of 10 requests", "%s", slowest.Round(time.Millisecond))

		redrive := object{"action": "redrive", "filter": object{"task": "cause-0"}, "reason": "mended",
			"canary": object{"count": 10, "min_succeeded": 0.9, "within": "5m"}}
		var v operationView
		p.call("POST", "/operations", redrive, &v)
		if v = p.ended(v); v.Status != "FAILED" || v.StatusReason.Code != "canary_failed" || v.Done != 10 {
			b.Fatalf("nothing was mended: %+v", v)
		}

		redrive["set"] = object{"payload_patch": object{"fixed": true}}
		redrive["rate"] = object{"count": 500, "per": "1s"}
		before := p.cpu()
		p.call("POST", "/operations", redrive, &v)
		p.until(time.Hour, func() bool { v = p.read(v); return v.Done > 10 || v.Status == "FAILED" })
		from, first := time.Now(), v.Done // the canary has ended
		p.until(time.Hour, func() bool { v = p.read(v); return v.Done > each/2 || v.Status == "FAILED" })
		if v.Matched != each { // ten were redriven, and died once more
			b.Fatalf("%+v", v)
		}
		rate := float64(v.Done-first) / time.Since(from).Seconds()
		used := p.cpu() - before
		p.kill()
		killed, done := time.Now(), v.Done
		p.start()
		p.until(10*time.Minute, func() bool { v = p.read(v); return v.Done > done+100 || v.Status != "RUNNING" })
		note("dead letters: redrive at 500/s, with canary", "%.0f rows/s, %.2f ms CPU a row with its job", rate,
			float64(used.Microseconds())/1000/float64(done))
		note("dead letters: killed half-way, goes on after", "%s", time.Since(killed).Round(100*time.Millisecond))
		if v = p.ended(v); v.Status != "SUCCEEDED" || v.Done != each || v.Failed+v.Skipped != 0 {
			b.Fatalf("%+v", v)
		}
		p.until(10*time.Minute, func() bool { // the kill lost some workers' leases
			time.Sleep(time.Second)
			return len(p.jobs("cause-0", "SUCCEEDED")) >= each
		})
		p.once(each)
		note("dead letters: each row once", "%d", each)
		p.kill()
	}
}

// once checks that each dead job of the first cause was redriven once.
func (p *laptopProcess) once(each int) {
	p.b.Helper()
	by := map[string]string{}
	for _, j := range p.jobs("cause-0", "DEAD") {
		by[j.JobID] = j.RedrivenBy
	}
	if len(by) != each+10 {
		p.b.Errorf("%d jobs are dead", len(by))
	}
	succeeded := p.jobs("cause-0", "SUCCEEDED")
	if len(succeeded) != each {
		p.b.Errorf("%d jobs have succeeded", len(succeeded))
	}
	seen := map[string]bool{}
	for _, j := range succeeded {
		if seen[j.RedriveOf] || by[j.RedriveOf] != j.JobID {
			p.b.Fatalf("job %s repeats %s, which was redriven as %s", j.JobID, j.RedriveOf, by[j.RedriveOf])
		}
		seen[j.RedriveOf] = true
	}
}
