package cost

import (
	"context"
	_ "embed"
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

// page is the golden file.
const page = "../../infra/cost.md"

// lane is a lane with the range of delays that use it; jobs are distributed evenly over the range.
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

// used is what one job uses, in billed units.
type used struct {
	write, read, queue, timer float64
}

const jobs = 1000

// alarms is how many a deployment has; the templates' tests compare the page with it.
const alarms = 78

// count runs jobs of a lane and returns what one used, without what an idle system uses meanwhile.
func count(t *testing.T, l lane, n int) (u used) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := memory.New(memory.Options{})
		defer world.Close()
		sys := system.Compose(system.Ports{
			Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
			Timers: world.Timers(), Secrets: world.Secrets(),
			Clock: clock.System{}, Log: func(string) *slog.Logger { return telemetry.Silent() },
		}, system.Options{Shards: 4, Worker: worker.Options{Name: "w", Slots: 100}, Registry: worker.NewRegistry()})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- sys.Run(ctx) }()
		defer func() { stop(); <-done }()
		a := story.Over(t, sys.API)

		time.Sleep(3 * time.Minute) // a new system passes every slice once
		before := world.Counts()
		last := ""
		for sent := 0; sent < n; {
			batch := make([]story.Object, 0, contract.MaxBatchJobs)
			for ; sent < n && len(batch) < contract.MaxBatchJobs; sent++ {
				delay := l.first + (l.last-l.first)*time.Duration(sent)/time.Duration(n)
				batch = append(batch, story.Object{"task": "echo", "delay": span.Format(delay),
					"payload": story.Object{"n": sent}})
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

// spent excludes the table with the passes' watermarks: it is written each minute whatever the
// load.
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

// functions returns what Lambda costs for one job, by assumption.
func functions(perRequest float64) float64 {
	sum := (invocation + 0.040*0.5*gigabyteSec) / perRequest // the API, with 512 MB for 40 ms
	for _, f := range invoked {
		sum += (invocation + f.ms/1000*f.mib/1024*gigabyteSec) / f.records
	}
	return sum
}

func (u used) dollars(jobsPerRequest float64) float64 {
	return 1e6 * (u.write*writeUnit + u.read*readUnit + u.queue*queueRequest + u.timer*timerFired +
		apiRequest/jobsPerRequest + functions(jobsPerRequest))
}

func TestCost_MatchesThePage(t *testing.T) {
	var rows strings.Builder
	for _, l := range lanes {
		u := count(t, l, jobs).less(count(t, l, 0), jobs)
		fmt.Fprintf(&rows, "| %s | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f |\n", l.name, u.write, u.read, u.queue,
			u.timer, u.dollars(100), u.dollars(1))
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

// alike reports whether two pages say the same, except for numbers that differ by less than a sixth
// or a half: batches are never quite the same.
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

func TestAlike_AllowsSmallChangesOfNumbers(t *testing.T) {
	t.Parallel()
	for other, want := range map[string]bool{
		"| due now | 6.2 | 3.0 |": true, "| due now | 7.5 | 3.0 |": false, "| due soon | 6.0 | 3.0 |": false,
		"| due now | 6.0 |": false,
	} {
		if alike("| due now | 6.0 | 3.1 |", other) != want {
			t.Errorf("%q is taken for the same: %v", other, !want)
		}
	}
}

// floor returns the monthly cost of an idle deployment with so many NAT gateways and cores.
func floor(nats, cores float64) float64 {
	return controlPlane*hoursAMonth + nats*gateway*hoursAMonth + cores*vCPUHour*autoMode*hoursAMonth +
		alarms*alarmMonth + 60*metricMonth + 2*boardMonth + 2*keyMonth
}

// text is the page, with verbs of package fmt where numbers go.
//
//go:embed page.md
var text string
