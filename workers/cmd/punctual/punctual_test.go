package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"punctual/shared/client/rest"
	"punctual/workers/laptop"
)

// address is that of the server that tests share.
var address = sync.OnceValue(serving)

// serving starts a laptop's server, which runs until the tests end, and returns its address.
func serving() string {
	addr := make(chan string)
	go func() {
		err := laptop.Serve(context.Background(), laptop.Options{Addr: "127.0.0.1:0",
			Serving: func(at string) { addr <- at }})
		panic(fmt.Sprint("the laptop's server ended: ", err))
	}()
	return "http://" + <-addr
}

var names atomic.Int64

// fresh returns a name that nothing has yet on the server, whose tests may run more than once.
func fresh(name string) string { return fmt.Sprintf("%s-%d", name, names.Add(1)) }

// said is what a command answered.
type said struct {
	code      int
	out, errs string
}

// typed runs a command as if it were typed.
func typed(ctx context.Context, stdin string, args ...string) said {
	var out, errs bytes.Buffer
	code := run(ctx, append([]string{"--url", address()}, args...), strings.NewReader(stdin), &out, &errs)
	return said{code, out.String(), errs.String()}
}

// good runs a command that must do its work.
func good(t *testing.T, args ...string) string {
	t.Helper()
	s := typed(t.Context(), "", args...)
	if s.code != exitDone || s.errs != "" {
		t.Fatalf("punctual %s: %d\n%s%s", strings.Join(args, " "), s.code, s.out, s.errs)
	}
	return s.out
}

// bad runs a command that must end with a code and say some words.
func bad(t *testing.T, code int, words string, args ...string) said {
	t.Helper()
	s := typed(t.Context(), "", args...)
	if s.code != code || !strings.Contains(s.errs, words) {
		t.Errorf("punctual %s: %d, want %d and %q\n%s%s", strings.Join(args, " "), s.code, code, words, s.out, s.errs)
	}
	return s
}

// name runs a command for a name and returns it.
func name(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(good(t, append(args, "-o", "name")...))
}

// object runs a command for JSON.
func object(t *testing.T, args ...string) (v map[string]any) {
	t.Helper()
	if out := good(t, append(args, "-o", "json")...); json.Unmarshal([]byte(out), &v) != nil {
		t.Fatalf("%s is no object", out)
	}
	return v
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

//proof:of 50
func TestRun_EndsAsTheJobDoes(t *testing.T) {
	t.Parallel()
	job := object(t, "run", "echo", "-p", `{"n":1.50}`, "--tag", "a=b", "--wait")
	if job["status"] != "SUCCEEDED" || fmt.Sprint(job["tags"]) != "map[a:b]" {
		t.Errorf("%v", job)
	}
	s := typed(t.Context(), "", "run", "greet", "--wait")
	if s.code != exitFailed || !strings.Contains(s.out, "DEAD") || s.errs != "" {
		t.Errorf("%+v", s)
	}
}

func TestRun_ReadsThePayloadFromAFileOrStandardInput(t *testing.T) {
	t.Parallel()
	job := object(t, "run", "echo", "--wait", "-p", "@"+file(t, `{"from":"a file"}`))
	if fmt.Sprint(job["result"]) != "map[from:a file]" {
		t.Errorf("%v", job)
	}
	s := typed(t.Context(), `{"from":"stdin"}`, "run", "echo", "--wait", "-o", "json", "-p", "-")
	if s.code != 0 || !strings.Contains(s.out, `"from": "stdin"`) {
		t.Errorf("%+v", s)
	}
	bad(t, exitUsage, "line 2, column 2", "run", "echo", "-p", "@"+file(t, "{\n}}"))
	bad(t, exitUsage, "no such file", "run", "echo", "-p", "@/nowhere.json")
	bad(t, exitUsage, "", "run", "echo", "--in", "3s", "--at", "2027-03-28T01:00:00Z")
	bad(t, exitUsage, "unknown_task", "run", "nobody")
	bad(t, exitUsage, "/delay", "run", "echo", "--in", "3x")
	bad(t, exitUsage, "allowed: BLOCKED", "ls", "--status", "nosuch")
}

func TestRun_SaysOnCtrlCWhatGoesOn(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, interrupt)
	s := typed(ctx, "", "run", "echo", "--in", "1h", "--wait")
	if s.code != exitInterrupted || !strings.Contains(s.errs, "goes on") ||
		!strings.Contains(s.errs, "punctual cancel ") || strings.Contains(s.errs, "context") {
		t.Fatalf("%+v", s)
	}
	_, rest, _ := strings.Cut(s.errs, "punctual get ")
	id, _, _ := strings.Cut(rest, ";")
	if job := object(t, "get", id); job["status"] != "SCHEDULED" {
		t.Errorf("%v", job["status"])
	}
}

func TestJobs_AreShownListedAndCancelled(t *testing.T) {
	t.Parallel()
	key := fresh("key")
	id := name(t, "run", "echo", "--in", "1h", "--key", key)
	if repeated := name(t, "run", "echo", "--in", "1h", "--key", key); repeated != id {
		t.Errorf("one key made %s and %s", id, repeated)
	}
	if out := good(t, "get", id); !strings.HasPrefix(out, "JOB ") || !strings.Contains(out, id+"  echo  SCHEDULED") {
		t.Errorf("%s", out)
	}
	if out := good(t, "get", id, "-o", "yaml"); !strings.Contains(out, "\njob_id: "+id+"\n") {
		t.Errorf("%s", out)
	}
	if out := good(t, "ls", "--status", "scheduled", "--limit", "0", "-o", "name"); !strings.Contains(out, id) {
		t.Errorf("%s is not in %s", id, out)
	}
	s := typed(t.Context(), "", "cancel", "01KB4YJ2V0S6Y3Q4M5N6P7R8T9", id)
	if s.code != exitRefused || !strings.Contains(s.out, "CANCELLED") || !strings.Contains(s.errs, "not_found") {
		t.Errorf("one bad id keeps the other from its end: %+v", s)
	}
	over := object(t, "run", "echo", "--wait")
	bad(t, exitRefused, "already_finished", "cancel", fmt.Sprint(over["job_id"]))
}

func TestDead_AreListedRedrivenAndPurged(t *testing.T) {
	t.Parallel()
	dead := func() string {
		id := name(t, "run", "greet")
		for object(t, "get", id)["status"] != "DEAD" {
			time.Sleep(10 * time.Millisecond)
		}
		return id
	}
	first, second := dead(), dead()
	if out := good(t, "attempts", first); !strings.Contains(out, "names nobody to greet") {
		t.Errorf("%s", out)
	}
	if out := good(t, "dead", "ls", "--limit", "0", "-o", "name"); !strings.Contains(out, first+"\n") {
		t.Errorf("%s is not in %s", first, out)
	}
	if out := good(t, "dead", "redrive", first, "--dry-run"); !strings.Contains(out, first) {
		t.Errorf("%s", out)
	}
	if by := object(t, "get", first)["redriven_by"]; by != nil {
		t.Errorf("a dry run has redriven it as %v", by)
	}
	bad(t, exitUsage, " would run again, and there is no terminal", "dead", "redrive", "--all")
	good(t, "dead", "redrive", first)
	if object(t, "get", first)["redriven_by"] == nil {
		t.Error("it is not redriven")
	}
	if out := name(t, "redrive", second); out == second || out == "" {
		t.Errorf("redriven as %q", out)
	}
	for _, verb := range [][]string{{"redrive"}, {"dead", "redrive"}} {
		third := dead()
		good(t, append(verb, third, "--payload-patch", `{"name":"Ada"}`, "--in", "1h", "--tag", "a=b")...)
		next := object(t, "get", object(t, "get", third)["redriven_by"].(string))
		if fmt.Sprint(next["payload"], next["tags"]) != "map[name:Ada] map[a:b]" || next["status"] != "SCHEDULED" {
			t.Errorf("corrected to %v", next)
		}
	}
	bad(t, exitUsage, "is no JSON", "redrive", second, "--payload-patch", "{")
	bad(t, exitUsage, "1 dead job would be deleted for good, and there is no terminal", "dead", "purge", first)
	if out := good(t, "dead", "purge", first, "--dry-run"); !strings.Contains(out, "would be") {
		t.Errorf("%s", out)
	}
	if out := good(t, "dead", "purge", first, "--yes"); !strings.HasPrefix(out, "JOB ") ||
		!strings.Contains(out, "  DELETED  ") || strings.Contains(out, "NEW JOB") || !strings.Contains(out, "  yes ") {
		t.Errorf("%s", out)
	}
	bad(t, exitRefused, "not_found", "get", first)
	bad(t, exitUsage, "which?", "dead", "purge")
	bad(t, exitUsage, "not given together", "dead", "redrive", second, "--all")
}

func TestSchedule_IsAppliedPreviewedAndPaused(t *testing.T) {
	t.Parallel()
	daily, often := fresh("cli-daily"), fresh("cli-often")
	hour := 6 // such that the next time is hours away, and stays the next one when it is moved
	if time.Now().UTC().Hour() < 12 {
		hour = 20
	}
	text := fmt.Sprintf(`# a comment
name: %s
calendar: {cron: "30 %d * * *", timezone: Europe/Berlin}
job: {task: echo, payload: {version: "1.0", n: 1.50, yes: "yes", at: 2027-01-01}}
---
name: %s
calendar:
  every: 10m
job:
  task: echo
`, daily, hour, often)
	path := file(t, text)
	if out := good(t, "schedule", "apply", "-f", path, "--dry-run"); !strings.Contains(out, daily+": 30 added") ||
		strings.Count(out, "  + 20") != 20 || !strings.Contains(out, "  + and 20 more\n") ||
		!strings.Contains(out, "more than are counted") || strings.Count(out, "it is new") != 2 {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "ls", "-o", "name"); strings.Contains(out, daily) {
		t.Error("a dry run has made it")
	}
	if out := good(t, "schedule", "apply", "-f", path); !strings.Contains(out, " * * * Europe/Berlin") {
		t.Errorf("%s", out)
	}
	moved := file(t, strings.ReplaceAll(text, "\"30 ", "\"45 "))
	out := good(t, "schedule", "apply", "-f", moved, "--dry-run")
	if !strings.Contains(out, "0 added, 0 lost, 30 moved") || !strings.Contains(out, "; changes /calendar/cron\n") ||
		strings.Count(out, " ~ 20") != 10 || !strings.Contains(out, often+": 0 added, 0 lost, 0 moved") ||
		!strings.Contains(out, "; nothing changes\n") {
		t.Errorf("%s", out)
	}
	for _, form := range []string{"json", "yaml"} { // JSON is YAML, too
		var all []trial
		out := good(t, "schedule", "apply", "-f", moved, "--dry-run", "-o", form)
		if form == "yaml" {
			if strings.Count(out, "\n- name: ") != 1 || !strings.HasPrefix(out, "- name: "+daily+"\n") {
				t.Errorf("%.300s", out)
			}
			continue
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 2 || all[0].Name != daily ||
			len(all[0].Moved) != 30 || all[1].Name != often {
			t.Errorf("%v %.300s", err, out)
		}
	}
	if out := good(t, "schedule", "ls", "-o", "yaml"); !strings.Contains(out, often) {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "preview", daily, "-n", "3"); strings.Count(out, "\n") != 4 {
		t.Errorf("%s", out)
	}
	until := time.Now().UTC().AddDate(1, 0, 0).Format("2006-01-02T00:00:00Z")
	s := typed(t.Context(), "", "schedule", "pause", daily, "--reason", "a test", "--until", until)
	paused := " until " + until + ": a test\n"
	if s.code != exitDone || !strings.Contains(s.out, "since ") || !strings.Contains(s.out, paused) ||
		!strings.HasPrefix(s.errs, "It holds from 20") {
		t.Errorf("%+v", s)
	}
	if out := good(t, "schedule", "ls"); !strings.Contains(out, paused) {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "resume", daily, "--missed", "drop"); strings.Contains(out, "since ") {
		t.Errorf("%s", out)
	}
}

func TestSchedule_SaysWhereAFileIsWrong(t *testing.T) {
	t.Parallel()
	for text, words := range map[string]string{
		"name: a\ncalendar: b: c\n":                                       "line 2, column 12",
		"name: a\njob: {task: echo\nx: [\n":                               "line 3",
		"calendar: {every: 1m}\n":                                         "line 1, column 1: the document has no name",
		"- name: a\n":                                                     "line 1, column 1: want a document",
		"name: a\njob: {task: a}\njob: {task: b}\n":                       "line 3, column 1",
		"name: &x a\njob: *x\n":                                           "line 2, column 6: aliases",
		"name: a\ncalendar: {every: 1m}\njob:\n  task: none\n":            "line 4, column 9: /job/task",
		"name: a\ncalendar:\n  cron: \"99 * * * *\"\njob: {task: echo}\n": "line 3, column 9: /calendar/cron",
		"name: a\ncalendr: {every: 1m}\njob: {task: echo}\n": `line 2, column 1: /calendr: no field ` +
			`"calendr" is known here; did you mean "calendar"?`,
		"name: a\ncalendar: {every: 1m}\njob: {task: echo, payloud: 1}\n": `line 3, column 19: /job/payloud: no ` +
			`field "payloud"`,
		"# nothing\n": "holds no document",
	} {
		bad(t, exitUsage, words, "schedule", "apply", "-f", file(t, text))
	}
	bad(t, exitUsage, "no such file", "schedule", "apply", "-f", "/nowhere.yaml")
}

func TestTask_IsPutShownAndDeleted(t *testing.T) {
	t.Parallel()
	small, other := fresh("cli-small"), fresh("cli-other")
	path := file(t, "name: "+small+`
executor: http
max_result: 16KiB
on_large_result: fail
retry: {max_attempts: 3}
payload_schema: {properties: {n: {format: int32}}}
---
name: `+other+`
executor: echo
`)
	out := good(t, "task", "put", "-f", path)
	if !strings.Contains(out, "  NOTES\n") || !strings.Contains(out, `the format "int32" is not known`) {
		t.Errorf("put %s", out)
	}
	task := object(t, "task", "get", small)
	if task["max_result"] != "16KiB" || task["on_large_result"] != "fail" || task["version"] != 1.0 ||
		fmt.Sprint(task["retry"].(map[string]any)["max_attempts"]) != "3" {
		t.Errorf("%v", task)
	}
	if repeated := good(t, "task", "put", "-f", path, "-o", "name"); repeated != small+"\n"+other+"\n" {
		t.Errorf("put again %s", repeated)
	}
	all := good(t, "task", "ls")
	if row := regexp.MustCompile(small + ` +http +\w+ +normal +\w+ +3 +16KiB +fail +\d+\n`); !row.MatchString(all) ||
		!regexp.MustCompile(`\necho .* built in\n`).MatchString(all) {
		t.Errorf("listed %s", all)
	}
	s := bad(t, exitRefused, "cli-nothing", "task", "rm", small, "cli-nothing", other, "-o", "name")
	if s.out != small+"\n"+other+"\n" {
		t.Errorf("deleted %s", s.out)
	}
	bad(t, exitRefused, "not_found", "task", "get", small)
	bad(t, exitRefused, "wrong_state", "task", "rm", "echo")
}

func TestTask_SaysWhereAFileIsWrong(t *testing.T) {
	t.Parallel()
	one := fresh("cli-one")
	s := bad(t, exitUsage, "line 3, column 13: /max_result", "task", "put", "-o", "name", "-f",
		file(t, "name: "+fresh("cli-two")+"\nexecutor: echo\nmax_result: 1TB\n---\nname: "+one+"\nexecutor: echo\n"))
	if s.out != one+"\n" {
		t.Errorf("put %s, want the document that is right", s.out)
	}
	bad(t, exitUsage, "line 1, column 1: /maxresult", "task", "put", "-f",
		file(t, "maxresult: 16KiB\nname: x\nexecutor: echo\n"))
}

func TestDag_IsRunWatchedAndMended(t *testing.T) {
	t.Parallel()
	const text = `name: cli-etl
nodes:
  load: {task: greet}
  then: {task: echo, depends_on: [load], payload: {got: "${nodes.load.result}"}}
`
	path := file(t, text)
	good(t, "dag", "apply", "-f", path, "--dry-run")
	good(t, "dag", "apply", "-f", path)
	s := typed(t.Context(), "", "dag", "run", "cli-etl", "--wait", "-o", "name")
	if s.code != exitFailed {
		t.Fatalf("%+v", s)
	}
	id := strings.TrimSpace(s.out)
	s = typed(t.Context(), "", "dag", "watch", id)
	if s.code != exitFailed || !strings.Contains(s.out, "DEAD       load") {
		t.Errorf("%+v", s)
	}
	run := regexp.MustCompile(id + `\s+cli-etl\s+FAILED\s+0/2\s+1\s`) // columns are as wide as their widest
	if out := good(t, "dag", "runs", "cli-etl"); !run.MatchString(out) || !strings.Contains(out, "  STARTED ") {
		t.Errorf("%s", out)
	}
	if out := good(t, "dag", "runs", "--status", "failed", "--limit", "0", "-o", "name"); !strings.Contains(out, id) {
		t.Errorf("%s is not in %s", id, out)
	}
	if out := good(t, "dag", "runs", "another"); strings.Contains(out, id) {
		t.Errorf("%s", out)
	}
	if out := good(t, "dag", "ls"); !strings.Contains(out, "cli-etl") || !strings.HasPrefix(out, "DAG ") {
		t.Errorf("%s", out)
	}
	if out := good(t, "dag", "graph", id); !strings.HasPrefix(out, "flowchart") {
		t.Errorf("%s", out)
	}
	if out := good(t, "dag", "graph", id, "--format", "svg"); !strings.Contains(out, "<svg") {
		t.Errorf("%s", out)
	}
	for verb, use := range map[string]string{"get": "dag status", "attempts": "dag status", "cancel": "dag cancel"} {
		bad(t, exitRefused, "a run of a dag has this identifier, not a job; use: punctual "+use+" "+id, verb, id)
	}
	good(t, "dag", "retry", id, "load", "--reason", "again")
	if s := typed(t.Context(), "", "dag", "watch", id); s.code != exitFailed {
		t.Errorf("%+v", s)
	}
	good(t, "dag", "complete", id, "load", "--result", `{"rows":7}`)
	if out := good(t, "dag", "watch", id, "--every", "20ms"); !strings.Contains(out, "SUCCEEDED  then") {
		t.Errorf("%s", out)
	}
	bad(t, exitRefused, "wrong_state", "dag", "retry", id)
	s = typed(t.Context(), "", "dag", "run", "cli-etl", "--wait", "-o", "name")
	good(t, "dag", "skip", strings.TrimSpace(s.out), "load", "--children", "skip")
	bad(t, exitUsage, "line 3, column 21: /nodes/a/depends_on/0", "dag", "apply", "-f",
		file(t, "name: x\nnodes:\n  a: {depends_on: [ nobody], task: echo}\n"))
}

func TestJob_IsPausedAndResumed(t *testing.T) {
	t.Parallel()
	id := strings.TrimSpace(good(t, "run", "echo", "--in", "1h", "-o", "name"))
	if out := good(t, "job", "pause", id, "--reason", "a test"); !strings.Contains(out, "SCHEDULED") ||
		!strings.Contains(out, "paused") || !strings.Contains(out, ": a test") {
		t.Errorf("pause: %s", out)
	}
	if out := good(t, "get", id); !strings.Contains(out, ": a test") {
		t.Errorf("get: %s", out)
	}
	if out := good(t, "job", "resume", id); strings.Contains(out, "paused") {
		t.Errorf("resume: %s", out)
	}
	good(t, "cancel", id)
	bad(t, exitRefused, "wrong_state", "job", "pause", id)
	bad(t, exitUsage, "", "job", "pause")
}

func TestPause_HoldsATask(t *testing.T) {
	t.Parallel()
	s := typed(t.Context(), "", "pause", "task:http", "--reason", "a test")
	if s.code != exitDone || !strings.Contains(s.out, "  HOLDS FROM  ") || !strings.Contains(s.out, "a test") ||
		!strings.HasPrefix(s.errs, "It holds from 20") || !strings.HasSuffix(s.errs, "jobs may still start.\n") {
		t.Errorf("%+v", s)
	}
	if out := good(t, "pause", "ls"); !strings.Contains(out, "task:http  20") || !strings.Contains(out, "  lifted  ") ||
		!strings.Contains(out, "a test") {
		t.Errorf("%s", out)
	}
	if out := good(t, "pause", "ls", "-o", "name"); !strings.Contains(out, "task:http\n") {
		t.Errorf("%s", out)
	}
	good(t, "resume", "task:http")
	bad(t, exitUsage, "", "pause", "nonsense")
	bad(t, exitUsage, `there is no task "htp"; did you mean "http"?; nothing is paused`, "pause", "task:htp")
	if out := good(t, "pause", "ls", "-o", "name"); strings.Contains(out, "task:htp\n") {
		t.Errorf("it is paused: %s", out)
	}
	if out := name(t, "pause", "task:htp", "--force"); out != "task:htp" {
		t.Errorf("--force: %s", out)
	}
	good(t, "resume", "task:htp")
}

func TestTask_IsNamedWhereAFilterHasAnUnknownOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ls"}, {"dead", "ls"}, {"dead", "groups"}, {"tail", "--for", "100ms"},
		{"dead", "purge", "--yes"}, {"dead", "redrive", "--dry-run"}} {
		s := typed(t.Context(), "", append(args, "--task", "ecko")...)
		if s.code != exitDone || s.errs != "warning: there is no task \"ecko\"; did you mean \"echo\"?\n" {
			t.Errorf("%v: %+v", args, s)
		}
	}
	good(t, "ls", "--task", "http") // which has no jobs
}

func TestDoctor_ChecksTheServer(t *testing.T) {
	t.Parallel()
	if out := good(t, "doctor"); !strings.Contains(out, "clocks agree") || strings.Contains(out, " NO ") ||
		!strings.Contains(out, version()) {
		t.Errorf("%s", out)
	}
}

func TestDoctor_ShowsQuotasAndWarnsOfThoseNearlyUsedUp(t *testing.T) {
	t.Parallel()
	if out := good(t, "doctor"); !strings.Contains(out, "quota schedule_runs  yes") ||
		!strings.Contains(out, " of 1000 used, ") {
		t.Errorf("%s", out)
	}
	for used, want := range map[int64]string{0: "yes", 800: "yes", 801: "WARNING", 1200: "WARNING"} {
		f := quotaLeft(rest.QuotaView{Name: rest.QuotaViewNameScheduleRuns, Used: used, Limit: 1000})
		if f.word() != want || !strings.HasPrefix(f.Says, fmt.Sprintf("%d of 1000 used, %d %%", used, used/10)) {
			t.Errorf("%d used: %s %s", used, f.word(), f.Says)
		}
	}
}

func TestDoctor_WarnsOfOldTimeZoneRules(t *testing.T) {
	t.Parallel()
	if out := good(t, "doctor"); !strings.Contains(out, "time zones") || !strings.Contains(out, "rules of 20") {
		t.Errorf("%s", out)
	}
	released := time.Date(2026, 10, 28, 0, 0, 0, 0, time.UTC)
	for old, want := range map[bool]string{false: "yes rules of 2026f, 130 days old",
		true: "WARNING rules of 2026f, 130 days old; "} {
		f := zoneRules(
			rest.ZoneRulesView{Version: "2026f", ReleasedAt: released, Old: old},
			released.Add(130*24*time.Hour),
		)
		if got := f.word() + " " + f.Says; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestServe_Serves(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int)
	go func() {
		code := run(ctx, []string{"--url", laptopURL, "serve", "--addr", "127.0.0.1:0"}, nil, in, io.Discard)
		_ = in.Close()
		ended <- code
	}()
	var first [64]byte
	n, err := io.ReadAtLeast(out, first[:], 30)
	if err != nil || !strings.HasPrefix(string(first[:n]), "Punctual on http://127.0.0.1:") {
		t.Errorf("%s %v", first[:n], err)
	}
	rest := make(chan []byte)
	go func() {
		said, _ := io.ReadAll(out)
		rest <- said
	}()
	stop()
	said := <-rest
	code, draining := <-ended, "\ndraining: running jobs have 10s to end"
	if code != exitDone || !strings.Contains(string(said), draining) {
		t.Errorf("it ended with %d\n%s", code, said)
	}
	bad(t, exitRefused, "only loopback", "serve", "--addr", "0.0.0.0:0")
	bad(t, exitUsage, "a port from 1 to 65535", "serve", "--port", "70000")
	shared, err := url.Parse(address())
	if err != nil {
		t.Fatal(err)
	}
	bad(t, exitRefused, "another process uses port "+shared.Port()+" of localhost", "serve", "--port", shared.Port())
}

func TestCommand_SaysWhatIsWrongWithItsSurroundings(t *testing.T) {
	t.Parallel()
	wiki := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>")
	}))
	t.Cleanup(wiki.Close)
	expired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer old" {
			t.Error("the token is not sent")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"message":"The incoming token has expired"}`)
	}))
	t.Cleanup(expired.Close)
	noServer := httptest.NewServer(nil)
	noServer.Close()
	for _, c := range []struct {
		args  []string
		code  int
		words string
	}{
		{[]string{"--url", "punctual.example.com", "ls"}, exitUsage, "no address of an API"},
		{[]string{"--url", noServer.URL, "cancel", "x"}, exitUnreached, "PUNCTUAL_URL sets it"},
		{[]string{"--url", wiki.URL, "ls"}, exitUnreached, "is the address right?"},
		{[]string{"--url", expired.URL, "--token", "old", "ls"}, exitForbidden, "has expired"},
		{[]string{"--url", expired.URL, "--token", "old", "doctor"}, exitForbidden, "PUNCTUAL_TOKEN"},
		{[]string{"frobnicate"}, exitUsage, "there is no command frobnicate; see punctual --help"},
		{[]string{"schedule", "why", "nightly", "now"}, exitUsage, "argument now; see punctual schedule why --help"},
		{[]string{"schedule"}, exitUsage, "see punctual schedule --help"},
		{[]string{"ls", "-o", "xml"}, exitUsage, "--output"},
		{[]string{}, exitUsage, "see punctual --help"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, nil, &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%v: %d, want %d and %q\n%s%s", c.args, code, c.code, c.words, &out, &errs)
		}
	}
	for _, c := range []struct{ args, words string }{{"--help", "doctor"}, {"help", "doctor"},
		{"help schedule why", "Usage: punctual schedule why <name>"}, {"help stats", "--from=TIME"}} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), nil, &out, io.Discard); code != 0 ||
			!strings.Contains(out.String(), c.words) {
			t.Errorf("%s: %d %s", c.args, code, &out)
		}
	}
}
