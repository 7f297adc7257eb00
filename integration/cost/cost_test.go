package cost

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/integration/story"
	"punctual/integration/system"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/span"
	"punctual/shared/telemetry"
	"punctual/workers/worker"
)

var update = flag.Bool("update", false, "write the page anew")

// page is where the result is.
const page = "../../infra/cost.md"

// lane is a way to a worker, and delays that lead there: jobs are spread evenly between the two.
type lane struct {
	name        string
	first, last time.Duration
	timer       bool
}

var lanes = []lane{
	{"due now", 0, 0, false},
	{"due within 14 minutes", 5 * time.Minute, 10 * time.Minute, false},
	{"due later, by a timer", 16 * time.Minute, 26 * time.Minute, true},
	{"due much later, by the promoter and a timer", 40 * time.Minute, 50 * time.Minute, true},
}

// used is what one job takes, in billed units.
type used struct {
	write, read, queue, timer float64
}

const jobs = 1000

// alarms of a deployment; the templates' tests hold the page to it.
const alarms = 78

// count runs jobs of a lane and says what one took; what an idle system takes meanwhile is
// taken off.
func count(t *testing.T, l lane, n int) (u used) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := memory.New(memory.Options{})
		defer world.Close()
		sys := system.Compose(system.Ports{
			Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(), Timers: world.Timers(), Secrets: world.Secrets(),
			Clock: clock.System{}, Log: func(string) *slog.Logger { return telemetry.Silent() },
		}, system.Options{Shards: 4, Worker: worker.Options{Name: "w", Slots: 100}, Registry: worker.NewRegistry()})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- sys.Run(ctx) }()
		defer func() { stop(); <-done }()
		a := story.Over(t, sys.API)

		time.Sleep(3 * time.Minute) // a system that has just begun passes every slice once
		before := world.Counts()
		last := ""
		for sent := 0; sent < n; {
			batch := make([]story.Object, 0, contract.MaxBatchJobs)
			for ; sent < n && len(batch) < contract.MaxBatchJobs; sent++ {
				delay := l.first + (l.last-l.first)*time.Duration(sent)/time.Duration(n)
				batch = append(batch, story.Object{"task": "echo", "delay": span.Format(delay), "payload": story.Object{"n": sent}})
			}
			items := a.Want(http.StatusOK, "POST", "/jobs/batch", story.Object{"jobs": batch})["items"].([]any)
			last = items[len(items)-1].(story.Object)["job"].(story.Object)["job_id"].(string)
		}
		time.Sleep(l.last + 2*time.Minute)
		if n > 0 {
			a.WantStatus(last, "SUCCEEDED")
		}
		u = spent(world.Counts(), before)
	})
	return u
}

// spent leaves out the table of the passes' own notes: it is written each minute whatever the
// load is.
func spent(after, before item.Counts) used {
	total := func(c item.Counts) item.Units {
		var sum item.Units
		for name, u := range c.Tables {
			if name != contract.Tasks {
				sum.Write, sum.IndexWrite, sum.Read = sum.Write+u.Write, sum.IndexWrite+u.IndexWrite, sum.Read+u.Read
			}
		}
		return sum
	}
	return used{
		write: total(after).Write + total(after).IndexWrite - total(before).Write - total(before).IndexWrite,
		read:  total(after).Read - total(before).Read,
		queue: float64(after.QueueUnits - before.QueueUnits),
		timer: float64(after.TimersFired - before.TimersFired),
	}
}

func (u used) less(idle used, n float64) used {
	per := func(a, b float64) float64 { return max(0, a-b) / n }
	return used{per(u.write, idle.write), per(u.read, idle.read), per(u.queue, idle.queue), per(u.timer, idle.timer)}
}

// functions is what Lambda takes for one job, by assumption.
func functions(perRequest float64) float64 {
	sum := (invocation + 0.040*0.5*gigabyteSec) / perRequest // the API, with 512 MB for 40 ms
	for _, f := range invoked {
		sum += (invocation + f.ms/1000*f.mib/1024*gigabyteSec) / f.records
	}
	return sum
}

func (u used) dollars(jobsPerRequest float64) float64 {
	return 1e6 * (u.write*writeUnit + u.read*readUnit + u.queue*queueRequest + u.timer*timerFired + apiRequest/jobsPerRequest + functions(jobsPerRequest))
}

func TestThePageSaysWhatJobsCost(t *testing.T) {
	var rows strings.Builder
	for _, l := range lanes {
		u := count(t, l, jobs).less(count(t, l, 0), jobs)
		fmt.Fprintf(&rows, "| %s | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f |\n", l.name, u.write, u.read, u.queue, u.timer, u.dollars(100), u.dollars(1))
		if u.write > 6.005 {
			t.Errorf("a job %s takes %.2f write units; at most 6 are promised", l.name, u.write)
		}
		if l.timer != (u.timer > 0) {
			t.Errorf("a job %s fires %.2f timers", l.name, u.timer)
		}
	}
	want := fmt.Sprintf(text, rows.String(),
		controlPlane*hoursAMonth,
		gateway*hoursAMonth, 3*gateway*hoursAMonth,
		2*vCPUHour*autoMode*hoursAMonth, 10*vCPUHour*autoMode*hoursAMonth,
		alarms*alarmMonth, 60*metricMonth, 2*boardMonth, 2*keyMonth,
		floor(1, 2), floor(3, 10), alarms)
	if strings.Contains(want, "%!") {
		t.Fatal("the page is not filled in well")
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !alike(string(have), want) {
		t.Errorf("%s is not what the code costs any more; go test ./integration/cost -update\n%s", page, rows.String())
	}
}

// alike reports whether two pages say the same, but for numbers that differ by less than a
// sixth or a half: how calls fall together into batches is never quite the same.
func alike(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return slices.EqualFunc(x, y, func(x, y string) bool {
		n, err1 := strconv.ParseFloat(x, 64)
		m, err2 := strconv.ParseFloat(y, 64)
		if err1 != nil || err2 != nil {
			return x == y
		}
		return math.Abs(n-m) <= max(0.5, n/6)
	})
}

func TestPagesAreAlikeUnlessANumberHasMoved(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]bool{
		"| due now | 6.2 | 3.0 |": true, "| due now | 7.5 | 3.0 |": false, "| due soon | 6.0 | 3.0 |": false, "| due now | 6.0 |": false,
	} {
		if alike("| due now | 6.0 | 3.1 |", other) != want {
			t.Errorf("%q is taken for the same: %v", other, !want)
		}
	}
}

// floor is what stands there costs in a month, with so many NAT gateways and cores.
func floor(nats, cores float64) float64 {
	return controlPlane*hoursAMonth + nats*gateway*hoursAMonth + cores*vCPUHour*autoMode*hoursAMonth + alarms*alarmMonth + 60*metricMonth + 2*boardMonth + 2*keyMonth
}

const text = `# What it costs

List prices of us-east-1, without free tiers; other regions differ by up to a third. Made by ` + "`go test ./integration/cost -update`" + ` from counted calls; a test holds it to the code.

## A million jobs

What one job takes, counted over 1,000 jobs that run once, succeed, and have a small payload:

| a job that is | write units | read units | queue requests | timers | $ per million, 100 a request | $ per million, one a request |
| --- | --- | --- | --- | --- | --- | --- |
%s
- A write unit is a kilobyte written ($0.625 per million), a read unit 4 KB read consistently ($0.125), a queue request a batch of up to ten ($0.40, and $0.10 for fair queues), a timer $1.00 per million fired, a request to the API $3.50 per million. Lambda is assumed at 40 ms an invocation, in batches, by the million $0.20 and $0.0000133334 a GB-second.
- Writes are most of it. Provisioned capacity (` + "`Tables.Provisioned`" + ` in infra/target) costs about a third of on-demand at steady load.
- A retry costs about what a run costs. A job over 256 B of payload costs a write and a read unit more for each kilobyte begun; over 256 KB it goes to S3 ($5 per million put).
- Left out: the workers' own compute (below), data through NAT ($0.045 a GB; tables and S3 are reached without it), logs ($0.50 a GB).

## What stands there, a month

| part | dev | prod |
| --- | --- | --- |
| EKS control plane | $%.0[2]f | $%.0[2]f |
| NAT gateways, 1 and 3 | $%.0[3]f | $%.0[4]f |
| nodes at the least pods, 2 and 10 cores | $%.0[5]f | $%.0[6]f |
| alarms (%[13]d) | $%.2[7]f | $%.2[7]f |
| metrics (about 60) | $%.0[8]f | $%.0[8]f |
| dashboards (2) | $%.0[9]f | $%.0[9]f |
| keys (2) | $%.0[10]f | $%.0[10]f |
| **together** | **$%.0[11]f** | **$%.0[12]f** |

- Tables, queues, timers and functions cost nothing while nothing happens, but for the passes of each minute: about 130,000 invocations a month, and their reads of the due index (64 shards × some 53 slices a minute at half a read unit: about $9 a month; fewer shards cost less).
- Stored: $0.25 a GB and month; a finished job is kept 30 days with all that lies beside it, so a million jobs a day hold about 30 GB.

## Against others

| | $ per million one-off jobs |
| --- | --- |
| Punctual, due later, 100 a request | see above |
| a bare EventBridge timer into SQS, unbatched | 2.20 |
| Google Cloud Tasks | 0.80 |
| Hatchet Cloud | 10 |
| Step Functions Standard | 50–100 |
| Temporal Cloud | 100–200 |

The cheaper two keep no history, no results, no retries with a memory, no graphs, and no dead letters that say why.
`
