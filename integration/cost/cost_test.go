package cost

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log/slog"
	"maps"
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
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/price"
	"punctual/shared/span"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/system"
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
	{"due later, by its slice's timer", 16 * time.Minute, 26 * time.Minute, true},
	{"due much later, by the promoter and that timer", 40 * time.Minute, 50 * time.Minute, true},
}

// used is what one job uses, in billed units.
type used struct {
	write, read, queue, timer float64
}

const jobs = 1000

// between is after the start of a minute: what a pass takes is counted whole or not at all.
const between = 20 * time.Second

// fixedCost is what a target has while nothing happens. The templates' tests hold it to infra/target.
type fixedCost struct {
	shards   int      // of the due index
	nats     float64  // gateways
	machines float64  // of the least pods, one each
	hour     float64  // of a machine
	alarms   float64  // metrics with an alarm
	beating  []string // pools that run heartbeats
	asked    float64  // questions of the scaler to each queue and metric, a minute
	boards   float64
	logs     float64 // gigabytes a month, by assumption: the control plane's, and lines of the passes
}

var (
	dev = fixedCost{shards: 4, nats: 1, machines: 1, hour: burstable, alarms: 33, boards: 1, logs: 1,
		beating: []string{"short"}, asked: 1}
	prod = fixedCost{shards: 64, nats: 3, machines: 3, hour: machine, alarms: 155, boards: 1, logs: 8,
		beating: contract.Pools, asked: 2}
)

// metrics are those that are written while nothing runs but heartbeats: two watermarks,
// the passes made, and settled jobs, firings and timers; for each pool with heartbeats what is due, wanted and busy,
// the heartbeats, two lateness metrics and the duration.
func (s fixedCost) metrics() int { return 2 + 3 + 3 + 7*len(s.beating) }

// line is one of the page's.
type line struct {
	what      string
	dev, prod float64
}

// month lists the fixed costs of a month.
func month(idle map[int]item.Units) []line {
	both := func(what string, of func(s fixedCost) float64) line { return line{what, of(dev), of(prod)} }
	const minutes = hoursAMonth * 60
	return []line{
		both("EKS control plane", func(fixedCost) float64 { return controlPlane * hoursAMonth }),
		both("NAT gateways with their addresses, 1 and 3", func(s fixedCost) float64 {
			return s.nats * (gateway + address) * hoursAMonth
		}),
		both("machines, 1 t4g.medium and 3 c7g.large, by Auto Mode", func(s fixedCost) float64 {
			return s.machines * s.hour * autoMode * hoursAMonth
		}),
		both("their disks", func(s fixedCost) float64 { return s.machines * diskMonth }),
		both(fmt.Sprintf("alarms, on %.0f and %.0f metrics", dev.alarms, prod.alarms), func(s fixedCost) float64 {
			return s.alarms * alarmMonth
		}),
		both(fmt.Sprintf("metrics, %d and %d while only heartbeats run", dev.metrics(), prod.metrics()),
			func(s fixedCost) float64 { return float64(s.metrics()) * metricMonth }),
		both("dashboards, 1 and 1", func(s fixedCost) float64 { return s.boards * boardMonth }),
		both("keys, 2", func(fixedCost) float64 { return 2 * keyMonth }),
		both("what passes and heartbeats read and write, of 4 and 64 shards", func(s fixedCost) float64 {
			u := idle[s.shards]
			return hoursAMonth * (u.Read*readUnit + (u.Write+u.IndexWrite)*writeUnit)
		}),
		both("the passes' functions, 3 a minute for a second", func(fixedCost) float64 {
			return 3 * minutes * (invocation + 0.5*gigabyteSec)
		}),
		both("heartbeats' messages and calls of functions, 4 and 8 jobs a minute", func(s fixedCost) float64 {
			beats := float64(len(s.beating) * len(contract.Priorities))
			// A message of its own each, and batches of what a minute's have in common.
			return minutes * (beats*6*queueRequest + 6*(invocation+0.040*0.5*gigabyteSec))
		}),
		both("asking queues: each pod 4 of them every 4 s, 4 sources, the scaler", func(s fixedCost) float64 {
			return minutes * (s.machines*4*15 + 4*5*3 + 8*s.asked) * queueRequest
		}),
		both("the scaler's questions for metrics, 2 pools once and twice a minute", func(s fixedCost) float64 {
			return minutes * 2 * s.asked * metricAsked
		}),
		both("logs, 1 and 8 GB", func(s fixedCost) float64 { return s.logs * logGigabyte }),
	}
}

// play runs a system until it is settled, and returns what was counted before and after some work. indexed says that it
// keeps the index of jobs.
func play(
	t *testing.T, indexed bool, o system.Options, settled time.Duration, work func(a *story.API),
) (before, after item.Counts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := memory.New(memory.Options{})
		defer world.Close()
		o.Registry = worker.NewRegistry()
		var index system.Search
		if indexed {
			index = store.NewSearchTable(nil, world.Table())
		}
		sys := system.Compose(system.Ports{
			Search: index, Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
			Timers: world.Timers(), Secrets: world.Secrets(),
			Clock: clock.System{}, Log: func(string) *slog.Logger { return telemetry.Silent() },
		}, o)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- sys.Run(ctx) }()
		defer func() { stop(); <-done }()
		time.Sleep(settled + between) // a system that has just begun passes more
		before = world.Counts()
		work(story.Over(t, sys.API))
		after = world.Counts()
	})
	return before, after
}

// busy returns what some work took of a system with one worker. It leaves tables out.
func busy(t *testing.T, work func(a *story.API), without ...string) used {
	t.Helper()
	before, after := play(t, false, system.Options{Shards: 4, Worker: worker.Options{Name: "w", Slots: 100}},
		3*time.Minute, work) // a new system passes every slice once
	return spent(after, before, without)
}

// idleHour counts what the passes take of an hour in which nothing happens, whatever it is for.
func idleHour(t *testing.T, s fixedCost) item.Units {
	t.Helper()
	o := system.Options{Shards: s.shards, Worker: worker.Options{Name: "w", Slots: 10, Pools: contract.Pools},
		Heartbeats: s.beating}
	first, last := play(t, false, o, 2*time.Hour, func(*story.API) { time.Sleep(time.Hour) })
	before, after := first.Total(), last.Total()
	return item.Units{Write: after.Write - before.Write, IndexWrite: after.IndexWrite - before.IndexWrite,
		Read: after.Read - before.Read}
}

// post accepts n jobs, a hundred in a request, and returns the id of the last.
func post(a *story.API, n int, body func(n int) story.Object) (last string) {
	for sent := 0; sent < n; {
		batch := make([]story.Object, 0, contract.MaxBatchJobs)
		for ; sent < n && len(batch) < contract.MaxBatchJobs; sent++ {
			batch = append(batch, body(sent))
		}
		items := a.Want(http.StatusOK, "POST", "/jobs/batch", story.Object{"jobs": batch})["items"].([]any)
		last = items[len(items)-1].(story.Object)["job"].(story.Object)["job_id"].(string)
	}
	return last
}

// count runs jobs of a lane and returns what one used, without what an idle system uses meanwhile.
func count(t *testing.T, l lane, n int) used {
	t.Helper()
	return busy(t, func(a *story.API) {
		last := post(a, n, func(sent int) story.Object {
			delay := l.first + (l.last-l.first)*time.Duration(sent)/time.Duration(n)
			return story.Object{"task": "echo", "delay": span.Format(delay), "payload": story.Object{"n": sent}}
		})
		time.Sleep(l.last + 2*time.Minute)
		if n > 0 {
			a.WantStatus(last, "SUCCEEDED")
		}
	}, watermarks)
}

// watermarks is the table that passes write each minute, whatever the load.
const watermarks = contract.Tasks

// running runs jobs that last an hour and returns what one of these hours used, without what an idle system uses
// meanwhile and what a short job uses.
func running(t *testing.T, n int) used {
	t.Helper()
	measure := func(sleep string, n int) used {
		return busy(t, func(a *story.API) {
			for range n {
				a.Want(http.StatusAccepted, "POST", "/jobs", story.Object{"task": "echo", "timeout": "2h",
					"payload": story.Object{"sleep": sleep}})
			}
			time.Sleep(time.Hour + 2*time.Minute)
		}, watermarks)
	}
	return measure("1h", n).less(measure("1ms", n), float64(n))
}

// spent returns what was used between two counts, of all tables but some.
func spent(after, before item.Counts, without []string) used {
	total := func(c item.Counts) item.Units {
		var sum item.Units
		for name, u := range c.Tables {
			if !slices.Contains(without, name) {
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

func (u used) units() price.Units {
	return price.Units{Write: u.write, Read: u.read, Queue: u.queue, Timer: u.timer}
}

func (u used) dollars(jobsPerRequest float64) float64 {
	return 1e6 * (u.units().Dollars() + apiRequest/jobsPerRequest + price.Functions(jobsPerRequest))
}

// estimated fails if estimates of usage take another figure for granted than was counted.
func estimated(t *testing.T, what string, counted used, assumed price.Units) {
	t.Helper()
	if have, want := assumed.Dollars(), counted.units().Dollars(); math.Abs(have-want) > want/10 {
		t.Errorf("package price says that %s takes %+v, $%.8f; counted is %+v, $%.8f", what, assumed, have,
			counted, want)
	}
}

// provisioned is dollars with the tables' capacity bought by the hour.
func (u used) provisioned(jobsPerRequest float64) float64 {
	tables := u.write*(writeProvisioned-writeUnit) + u.read*(readProvisioned-readUnit)
	return u.dollars(jobsPerRequest) + 1e6*tables
}

// What a million jobs may cost at 1,000 a second, a hundred in a request, in dollars.
const mostProvisioned, mostOnDemand = 3.0, 5.0

// crowded is the lane at 1,000 jobs a second: all are due in the last second of the lane.
func (l lane) crowded() lane {
	l.first = max(0, l.last-time.Second)
	return l
}

// seldom lists what a million jobs cost besides, at a low rate and for their work.
func seldom() string {
	alone := 0.0 // functions, where each record has an invocation of its own
	for _, f := range price.Invoked {
		alone += invocation + f.MS/1000*f.MiB/1024*gigabyteSec
	}
	lines := float64(len(price.Invoked)+1) * logged / (1 << 20) * logGigabyte // and the API's
	return fmt.Sprintf(
		"- At one job a second, batches hold one record: a million jobs cost $%.2f for functions, $%.2f for "+
			"the lines that these log, and up to six requests of queues each, as the first table has it.\n"+
			"- The workers' own compute: a machine runs %d jobs at once, so a million jobs of "+
			"one second cost $%.2f where "+
			"its slots are full.\n",
		1e6*alone,
		1e6*lines,
		slots,
		1e6/slots/3600*machine*autoMode,
	)
}

// optional lists what a deployment pays for by what it holds and chooses.
func optional() string {
	return fmt.Sprintf(
		"- Recovery to any second of 35 days costs $%.2f per gigabyte of table and month. A deleted payload "+
			"stays for 36 days as an old version, at $%.3f a gigabyte and month.\n"+
			"- `backup_account`: $%.2f per gigabyte of table and $%.2f of payloads and month, for "+
			"each of the 35 days that "+
			"are kept and in both accounts; only what has changed counts again for payloads, all for tables.\n"+
			"- `auth=cognito`: $%.2f a month for the client of each tenant, and $%.2f for a "+
			"thousand tokens of programs. A "+
			"token lasts an hour: a program that keeps it asks 730 times a month, for $%.2f.\n"+
			"- Detailed metrics of API Gateway are off: nothing reads them, and they cost up to $%.2f a month.\n",
		recovery,
		objects,
		tableCopies,
		objectCopies,
		cognitoClient,
		1e3*cognitoToken,
		hoursAMonth*cognitoToken,
		45*metricMonth,
	)
}

//proof:of 151
func TestCost_MatchesThePage(t *testing.T) {
	var rows, crowds strings.Builder
	counted, cheapest := map[string]float64{}, math.Inf(1)
	for _, l := range lanes {
		idle := count(t, l, 0)
		u, c := count(t, l, jobs).less(idle, jobs), count(t, l.crowded(), jobs).less(idle, jobs)
		if l.timer && l.first < 30*time.Minute {
			estimated(t, "a job "+l.name, u, price.Job)
		}
		for what, n := range map[string]float64{"write units": u.write, "read units": u.read,
			"queue requests": u.queue, "timers": u.timer} {
			counted["a job "+l.name+": "+what] = n
		}
		fmt.Fprintf(&rows, "| %s | %.1f | %.1f | %.1f | %.2f | %.0f | %.0f |\n", l.name, u.write, u.read, u.queue,
			u.timer, u.dollars(100), u.dollars(1))
		for what, n := range map[string]float64{"write units": c.write, "read units": c.read,
			"queue requests": c.queue} {
			counted["a job "+l.name+", of 1,000 a second: "+what] = n
		}
		fmt.Fprintf(&crowds, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", l.name, c.write, c.read, c.queue,
			c.dollars(100), c.provisioned(100))
		if c.provisioned(100) > mostProvisioned || c.dollars(100) > mostOnDemand {
			t.Errorf("a million jobs %s, 1,000 a second, cost $%.2f provisioned and $%.2f on demand; at most $%.2f "+
				"and $%.2f are promised", l.name, c.provisioned(100), c.dollars(100), mostProvisioned, mostOnDemand)
		}
		cheapest = min(cheapest, c.provisioned(100))
		if u.write > 6.005 {
			t.Errorf("a job %s takes %.2f write units; at most 6 are promised", l.name, u.write)
		}
		if l.timer != (u.timer > 0) {
			t.Errorf("a job %s fires %.2f timers", l.name, u.timer)
		}
	}
	ran := running(t, 20)
	counted["an hour of running: write units"], counted["an hour of running: read units"] = ran.write, ran.read
	runs := fmt.Sprintf("%.0f write and %.0f read units, $%.5f", ran.write, ran.read,
		ran.write*writeUnit+ran.read*readUnit)
	estimated(t, "an hour", used{write: ran.write, read: ran.read}, price.Hour)
	options, index := optionRows(t, counted), searchRow(t, counted)
	idle := map[int]item.Units{}
	for _, s := range []fixedCost{dev, prod} {
		u := idleHour(t, s)
		hour := fmt.Sprintf("an idle hour of %d shards: ", s.shards)
		counted[hour+"read units"], counted[hour+"write units"] = u.Read, u.Write+u.IndexWrite
		idle[s.shards] = u
	}
	var fixed strings.Builder
	sum := line{what: "**together**"}
	for _, l := range month(idle) {
		fmt.Fprintf(&fixed, "| %s | $%.2f | $%.2f |\n", l.what, l.dev, l.prod)
		sum.dev, sum.prod = sum.dev+l.dev, sum.prod+l.prod
	}
	fmt.Fprintf(&fixed, "| %s | **$%.0f** | **$%.0f** |\n", sum.what, sum.dev, sum.prod)
	if sum.dev > mostDev || sum.prod > mostProd {
		t.Errorf("a month costs $%.0f in dev and $%.0f in prod; at most $%d and $%d are promised", sum.dev, sum.prod,
			mostDev, mostProd)
	}
	within(t, counted)
	counts, cheap := countingRow(cheapest)
	if !cheap {
		t.Errorf("counting costs more than is promised: %s", counts)
	}
	want := fmt.Sprintf(text, rows.String(), crowds.String(), options, runs, seldom(), fixed.String(),
		counts+index+optional())
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
		n, err1 := strconv.ParseFloat(strings.Trim(x, "$*"), 64)
		m, err2 := strconv.ParseFloat(strings.Trim(y, "$*"), 64)
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

// What a month of a deployment that does nothing may cost, in dollars.
const mostDev, mostProd = 166, 447

// budget is where the counted figures are kept: a line each, the figure and what it is of.
const budget = "testdata/budget.txt"

// grown is how much a figure may grow before it has to be said.
const grown = 1.05

// within holds counted figures to the budget, so that what makes calls dearer is seen where it is made.
func within(t *testing.T, counted map[string]float64) {
	t.Helper()
	if *update {
		var lines strings.Builder
		for _, what := range slices.Sorted(maps.Keys(counted)) {
			fmt.Fprintf(&lines, "%.3f %s\n", counted[what], what)
		}
		if err := os.WriteFile(budget, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile(budget)
	if err != nil {
		t.Fatal(err)
	}
	planned := map[string]bool{}
	for text := range strings.Lines(string(body)) {
		figure, what, _ := strings.Cut(strings.TrimSpace(text), " ")
		plan, err := strconv.ParseFloat(figure, 64)
		have, ok := counted[what]
		if err != nil || !ok {
			t.Errorf("%s has %q, which nobody counts", budget, text)
			continue
		}
		planned[what] = true
		if over(what, have, plan) {
			t.Errorf("%s took %.3f, and takes %.3f: mend it, or say so by go test ./integration/cost -update",
				what, plan, have)
		}
	}
	for what := range counted {
		if !planned[what] {
			t.Errorf("%s is not in %s: go test ./integration/cost -update", what, budget)
		}
	}
}

// over says whether a figure has outgrown its plan. All but queue requests are the same each time: those fall together
// into batches a little differently, by up to 0.05 a job, and twice that where a figure is the difference of two.
func over(what string, have, plan float64) bool {
	if strings.HasSuffix(what, "queue requests") {
		plan += 0.05
		if strings.HasPrefix(what, difference) {
			plan += 0.05
		}
	}
	return have > plan*grown
}

func TestBudget_IsBrokenByGrowthOfOneTwentieth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what       string
		have, plan float64
		want       bool
	}{
		{"write units", 6, 6, false}, {"write units", 6.3, 6, false}, {"write units", 6.31, 6, true},
		{"read units", 5, 6, false}, {"timers", 0.044, 0.044, false}, {"timers", 0.047, 0.044, true},
		{"timers", 0, 0, false}, {"timers", 0.001, 0, true},
		{"queue requests", 0.7, 0.64, false}, {"queue requests", 0.75, 0.64, true}, {"queue requests", 6.4, 6, true},
		{"queue requests", 0.054, 0, true},
	} {
		if over("a job: "+c.what, c.have, c.plan) != c.want {
			t.Errorf("%v %s of %v are over: %v", c.have, c.what, c.plan, !c.want)
		}
	}
	for have, want := range map[float64]bool{0.054: false, 0.1: false, 0.11: true} {
		if over(difference+"with a limit: queue requests", have, 0) != want {
			t.Errorf("%v queue requests more than none are over: %v", have, !want)
		}
	}
}

// text is the page, with verbs of package fmt where numbers go.
//
//go:embed page.md
var text string
