package main

import (
	"encoding/json"
	"strings"
	"testing"

	"punctual/shared/client"
)

// everything is a file of one resource of each kind, in an order that no dependence has, with names that begin with a
// prefix.
func everything(prefix string) string {
	return strings.ReplaceAll(`schedules:
- name: X-nightly
  calendar: {cron: "30 2 * * *", timezone: Europe/Berlin, exclude: [X-closed]}
  dag: {name: X-etl, params: {day: monday}}
- name: X-hourly
  calendar: {every: 1h}
  job: {task: X-report, payload: {n: 1}}
tasks:
- name: X-report
  executor: echo
  timeout: 60s
  limits: [{name: X-github}]
limits:
- {name: X-github, max_running: 5, rate: {count: 5, per: 60s}}
exclusions:
- {name: X-closed, weekly: [sat, sun]}
---
kind: dag
name: X-etl
params: {day: today}
nodes:
  load: {task: X-report}
  report: {task: echo, depends_on: [load], payload: {a: 1.50, b: "60s"}}
`, "X", prefix)
}

// outcomes applies a file, and returns what became of each resource by kind and name, with the changes.
func outcomesOf(t *testing.T, path string, more ...string) string {
	t.Helper()
	var all []struct {
		Kind, Name, Outcome string
		Changes             []string
	}
	out := good(t, append([]string{"apply", "-f", path, "-o", "json"}, more...)...)
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range all {
		lines = append(lines, strings.TrimSpace(e.Kind+" "+e.Outcome+" "+strings.Join(e.Changes, " ")))
	}
	return strings.Join(lines, "\n")
}

const (
	allCreated = "limit created\nexclusion created\ntask created\ndag created\nschedule created\nschedule created"
	allSame    = "limit unchanged\nexclusion unchanged\ntask unchanged\ndag unchanged\nschedule unchanged\n" +
		"schedule unchanged"
)

func TestApply_CreatesEachKindAfterWhatItRefersTo(t *testing.T) {
	t.Parallel()
	x := fresh("cli-apply")
	path := file(t, everything(x))
	if got := outcomesOf(t, path, "--dry-run"); got != allCreated {
		t.Errorf("the dry run of new ones:\n%s", got)
	}
	bad(t, exitRefused, "not_found", "limit", "get", x+"-github")
	if got := outcomesOf(t, path); got != allCreated {
		t.Errorf("the first time:\n%s", got)
	}
	if got := outcomesOf(t, path, "--dry-run"); got != allSame {
		t.Errorf("the dry run of the same:\n%s", got)
	}
	if got := outcomesOf(t, path); got != allSame {
		t.Errorf("the second time:\n%s", got)
	}
	if v := object(t, "schedule", "get", x+"-nightly"); v["version"] != 1.0 {
		t.Errorf("a second apply of the same file has changed it: %v", v["version"])
	}
	edited := strings.NewReplacer("max_running: 5", "max_running: 6", "timeout: 60s", "retry: {max_attempts: 3}",
		"30 2", "31 2", "day: today", "day: {a: 1}", "[sat, sun]", "[sat]", `b: "60s"`,
		`b: "1m"`).Replace(everything(x))
	const want = "limit changed /max_running\nexclusion changed /weekly\n" +
		"task changed /retry/max_attempts /timeout\n" +
		"dag changed /nodes/report/payload/b /params/day\nschedule changed /calendar/cron\nschedule changed"
	path = file(t, edited)
	if got := outcomesOf(t, path, "--dry-run"); got != want {
		t.Errorf("the dry run of changes:\n%s", got)
	}
	if got := outcomesOf(t, path); got != want {
		t.Errorf("the changes:\n%s", got)
	}
	if got := outcomesOf(t, path); got != allSame {
		t.Errorf("the same changes once more:\n%s", got)
	}
}

func TestApply_WritesNothingWhenAnyEntryIsRefused(t *testing.T) {
	t.Parallel()
	x := fresh("cli-refused")
	for _, c := range []struct{ old, bad, words string }{
		{"executor: echo", "executor: ecko", "document 1: line 10, column 13: /executor: this is not one of"},
		{"executor: echo", "executor: echo\n  timeuot: 1s", "document 1: line 11, column 3: /timeuot: no field"},
		{"executor: echo", "executor: echo\n  timeuot: 1s", `did you mean "timeout"?`},
		{"max_running: 5", "max_running: 0", ": /max_running: the number is too small; allowed: minimum 1"},
		{"limits: [{name: X-github}]", "limits: [{name: X-gitlab}]", `/limits/0/name: there is no limit "X-gitlab"`},
		{"weekly: [sat, sun]", "weekly: [someday]", "/weekly/0"},
		{"exclude: [X-closed]", "exclude: [X-open]", `/calendar/exclude/0: there is no exclusion "X-open"`},
		{"30 2", "99 2", "/calendar/cron: minute"},
		{"task: X-report, payload", "task: X-rapport, payload", `/job/task: task "X-rapport" is not defined`},
		{"load: {task: X-report}", "load: {task: X-rapport}", `document 2: line 22, column 16: /nodes/load/task: task`},
		{"depends_on: [load]", "depends_on: [lode]", "/nodes/report/depends_on"},
		{"dag: {name: X-etl", "dag: {name: X-elt", "/dag/name: there is no dag"},
		{"name: X-report\n", "name: X.report\n", `"X.report" is no name`},
		{"name: X-report\n", "name: echo\n", "task/echo is built in and cannot be changed"},
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(everything("X"), c.old, c.bad), "X", x)
		path := file(t, text)
		words := strings.ReplaceAll(c.words, "X", x)
		for _, more := range [][]string{nil, {"--dry-run"}} {
			s := bad(t, exitUsage, words, append([]string{"apply", "-f", path}, more...)...)
			if !strings.Contains(s.errs, "nothing is changed") {
				t.Errorf("%s: %s", c.bad, s.errs)
			}
		}
	}
	for _, kind := range []string{"limit", "exclusion", "task", "dag", "schedule"} {
		if out := good(t, kind, "ls", "-o", "name"); strings.Contains(out, x+"-") {
			t.Errorf("%s", out)
		}
	}
}

func TestApply_SaysWhereAFileIsWrong(t *testing.T) {
	t.Parallel()
	for text, words := range map[string]string{
		"shedules: []\n":                     `no key "shedules" is known here; did you mean "schedules"?`,
		"tasks: {a: {executor: echo}}\n":     "line 1, column 8: tasks is no list",
		"tasks: [{executor: echo}]\n":        "line 1, column 9: the document has no name",
		"tasks: [1]\n":                       "want a document with name",
		"kind: tsak\nname: a\n":              `there is no kind "tsak"; did you mean "task"?; allowed: limit,`,
		"kind: task\n---\nkind: dag\n":       "document 2: line 3, column 1: the document has no name",
		"name: a\nexecutor: echo\n":          `no key "name" is known here`,
		"- 1\n":                              "want a document with kind and name",
		"":                                   "holds no document",
		"a: [\n":                             "line 2",
		"tasks:\n- {name: a}\n- {name: a}\n": "line 3, column 3: task/a is in the file twice; before: ",
	} {
		bad(t, exitUsage, words, "apply", "-f", file(t, text))
	}
	bad(t, exitUsage, "no such file", "apply", "-f", "/nowhere.yaml")
	bad(t, exitUsage, "--file", "apply")
}

func TestApply_ReadsJSONFromStandardInput(t *testing.T) {
	t.Parallel()
	x := fresh("cli-json")
	s := typed(t.Context(), "{\n\t\"tasks\": [\n\t\t{\"name\": \""+x+"\", \"executor\": \"echo\"}\n\t]\n}\n",
		"apply", "-f", "-", "-o", "name")
	if s.code != exitDone || s.out != "task/"+x+"\n" {
		t.Errorf("%+v", s)
	}
	s = typed(t.Context(), `{"tasks":[{"name":"`+x+`","executor":"ecko"}]}`, "apply", "-f", "-")
	if s.code != exitUsage || !strings.Contains(s.errs, "standard input: line 1, column ") {
		t.Errorf("%+v", s)
	}
}

func TestApply_TakesWhatOnlyTheFileItselfAllows(t *testing.T) {
	t.Parallel()
	x := fresh("cli-both")
	good(t, "apply", "-f", file(t, everything(x)))
	// The task and the dag of before refuse the payload and the params.
	both := strings.NewReplacer("executor: echo", "executor: echo\n  payload_schema: {type: object, required: [m]}",
		"payload: {n: 1}", "payload: {m: 1}",
		"load: {task: "+x+"-report}", "load: {task: "+x+"-report, payload: {m: 2}}",
		"params: {day: today}", "params: {day: today, hour: 1}", "params: {day: monday}", "params: {hour: 2}",
	).Replace(everything(x))
	if got := outcomesOf(t, file(t, both)); !strings.HasSuffix(got, "schedule changed\nschedule changed /job/payload") {
		t.Errorf("%s", got)
	}
	// A payload that the new task refuses, too, is found where it is written; what follows is not written.
	wrong := file(t, strings.NewReplacer("required: [m]", "required: [k]", "{m: 1}", "{m: 3}").Replace(both))
	s := bad(t, exitUsage, "/nodes/load/payload", "apply", "-f", wrong)
	if !strings.Contains(s.errs, "not applied: dag/"+x+"-etl, schedule/"+x+"-nightly, schedule/"+x+"-hourly") ||
		!strings.Contains(s.out, "/payload_schema/required") {
		t.Errorf("%+v", s)
	}
}

func TestDiffer_NamesThePartsThatAreOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{`{"a":1,"b":[1,{"c":"x"}]}`, `{"b":[1,{"c":"x"}],"a":1}`, ""},
		{`{"a":1.50}`, `{"a":1.5}`, ""},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, "/a"},
		{`{"a":1}`, `{"a":"1"}`, "/a"},
		{`{"a":null,"b":[],"c":{},"d":{"e":null}}`, `{}`, ""},
		{`{}`, `{"a":null,"b":[],"c":{},"d":{"e":[]}}`, ""},
		{`{"a":false}`, `{}`, "/a"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, "/a"},
		{`{"a":[1]}`, `{"a":"x"}`, "/a"},
		{`{"a":[]}`, `{"a":"x"}`, "/a"},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3,"d":4}}`, "/a/c /a/d"},
		{`{"a":{"b":1}}`, `{}`, "/a"},
		{`{}`, `{"a":{"b":1}}`, "/a"},
		{`{"a":{"b":1}}`, `{"a":3}`, "/a"},
		{`{"timeout":"60s","max_result":"1024B"}`, `{"timeout":"1m","max_result":"1KiB"}`, ""},
		{`{"timeout":"60s"}`, `{"timeout":"61s"}`, "/timeout"},
		{`{"payload":{"timeout":"60s"}}`, `{"payload":{"timeout":"1m"}}`, "/payload/timeout"},
		{`{"a/b":1}`, `{"a/b":2}`, "/a~1b"},
	} {
		a, errA := fieldsOf([]byte(c.a))
		b, errB := fieldsOf([]byte(c.b))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := strings.Join(differ(a, b, "", false), " "); got != c.want {
			t.Errorf("%s and %s differ in %q, want %q", c.a, c.b, got, c.want)
		}
		if got := strings.Join(differ(b, a, "", false), " "); got != c.want {
			t.Errorf("%s and %s differ in %q, want %q", c.b, c.a, got, c.want)
		}
	}
}

func TestFill_GivesTheDefaultsOfFieldsThatAreAbsent(t *testing.T) {
	t.Parallel()
	v, _ := fieldsOf([]byte(`{"a":1,"o":{"x":5},"nodes":{"n":{"k":2},"m":{},"s":"text"}}`))
	defaults, _ := fieldsOf([]byte(`{"a":9,"b":2,"o":{"x":0,"y":1},"p":{"q":1},"nodes":{"*":{"k":1}}}`))
	fill(v, defaults)
	text, err := json.Marshal(v)
	const want = `{"a":1,"b":2,"nodes":{"m":{"k":1},"n":{"k":2},"s":"text"},"o":{"x":5,"y":1},"p":{"q":1}}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestServedSchemas_SayWhenTheAPIIsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	c, err := client.New(address())
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{ctx: t.Context(), client: c}
	r := resources[0]
	r.write.Path = "/v2/limits/{name}"
	if _, err := new(servedSchemas).of(s, r.write); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("%v", err)
	}
}
