package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/workers/laptop"
)

func TestSchedule_AppliesAFileWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	fine, wrong, worse := fresh("cli-fine"), fresh("cli-wrong"), fresh("cli-worse")
	path := file(t, fmt.Sprintf(`name: %s
calendar: {every: 10m}
job: {task: echo}
---
name: %s
calendar: {every: 10m}
job: {task: nosuch, payloud: 1}
---
name: %s
calendar: {every: 10m}
colour: red
job: {task: echo}
`, fine, wrong, worse))
	for _, more := range [][]string{{"--dry-run"}, {}} {
		s := bad(t, exitUsage, "refused: "+wrong+", "+worse+"; nothing is changed", append([]string{"schedule", "apply",
			"-f", path}, more...)...)
		for _, words := range []string{"line 7, column 13: /job/task", "line 7, column 21: /job/payloud",
			"line 11, column 1: /colour"} {
			if !strings.Contains(s.errs, words) {
				t.Errorf("%v: no %q in %s", more, words, s.errs)
			}
		}
	}
	if out := good(t, "schedule", "ls", "-o", "name"); strings.Contains(out, fine) {
		t.Errorf("%s was written although %s was refused", fine, wrong)
	}
}

func TestDag_AppliesAFileWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	fine := fresh("cli-fine")
	path := file(t, "name: "+fine+"\nnodes: {a: {task: echo}}\n---\nname: x\nnods: {a: {task: echo}}\n")
	bad(t, exitUsage, "line 5, column 1: /nods", "dag", "apply", "-f", path)
	if out := good(t, "dag", "ls", "-o", "name"); strings.Contains(out, fine) {
		t.Errorf("%s was written although another was refused", fine)
	}
}

func TestConfirm_AsksAtATerminal(t *testing.T) {
	t.Parallel()
	for answer, done := range map[string]bool{"y\n": true, "n\n": false, "\n": false} {
		var out, errs bytes.Buffer
		s := &shell{ctx: t.Context(), in: strings.NewReader(answer), out: &out, err: &errs, asks: true, output: "table"}
		dead := typed(t.Context(), "", "run", "greet", "--wait", "-o", "name")
		id := strings.TrimSpace(dead.out)
		var err error
		if s.client, err = client.New(address()); err != nil {
			t.Fatal(err)
		}
		err = purgeDead{which: which{ID: []string{id}}}.Run(s)
		if (err == nil) != done || errs.String() != "1 dead job would be deleted for good. Go on? [y/N] " {
			t.Errorf("after %q: %v %s", answer, err, &errs)
		}
		if gone := typed(t.Context(), "", "get", id).code != exitDone; gone != done {
			t.Errorf("after %q it is gone: %v", answer, gone)
		}
	}
}

func TestProgress_IsRedrawnTenTimesASecond(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	s := &shell{err: &errs, moves: true}
	start := time.Now()
	for i := range 10000 {
		s.progress("%d", i)
	}
	most := 1 + int(time.Since(start)/redraw)
	if n := strings.Count(errs.String(), "\r"); n < 1 || n > most {
		t.Errorf("it was drawn %d times, want at most %d", n, most)
	}
	errs.Reset()
	s.progress("")
	s.progress("anew")
	if errs.String() != "\r\x1b[K\r\x1b[Kanew" {
		t.Errorf("after its end: %q", &errs)
	}
}

func TestVersion_IsWhatTheBuildKnows(t *testing.T) {
	t.Parallel()
	if out := good(t, "--version"); out != "punctual "+version()+"\n" {
		t.Errorf("%s", out)
	}
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	if got := versionOf(info); got != "v1.2.3, commit unknown, go1.26.0" {
		t.Error(got)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	if got := versionOf(info); got != "v1.2.3, commit abc, changed since, go1.26.0" {
		t.Error(got)
	}
}

func TestConfig_TakesAFlagBeforeTheEnvironment(t *testing.T) {
	var seen string
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen += name + " " + r.Header.Get("Authorization")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"items":[],"next_cursor":null}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	elsewhere, dev := server("elsewhere"), server("dev")
	path := file(t, "contexts:\n  dev: {url: "+dev+"}\n  prod: {url: "+server("prod")+
		", token_command: echo own}\n")
	for _, c := range []struct {
		name, url, context string // the variables
		args               []string
		code               int
		seen               string
	}{
		{"a context beats the variable of the address", elsewhere, "", []string{"--context", "dev"}, exitDone, "dev "},
		{"an address beats the variable of the context", "", "dev", []string{"--url", elsewhere}, exitDone,
			"elsewhere "},
		{"an address is sent the token of the same address", elsewhere, "", []string{"--url", elsewhere}, exitDone,
			"elsewhere Bearer exported"},
		{"an address is sent the token of a context with the same address", "", "dev", []string{"--url", dev}, exitDone,
			"dev Bearer exported"},
		{"an address is sent no token that belongs nowhere", "", "", []string{"--url", elsewhere}, exitDone,
			"elsewhere "},
		{"a context is sent a token that the environment gives no address", "", "", []string{"--context", "dev"},
			exitDone, "dev Bearer exported"},
		{"a context beats the variable of the context", "", "prod", []string{"--context", "dev"}, exitDone,
			"dev "},
		{"a context's own sign-in beats the variable of the token", "", "", []string{"--context", "prod"}, exitDone,
			"prod Bearer own"},
		{"a token that is typed beats all", elsewhere, "", []string{"--context", "prod", "--token", "typed"}, exitDone,
			"prod Bearer typed"},
		{"two flags are refused", elsewhere, "", []string{"--context", "dev", "--url", elsewhere}, exitUsage, ""},
		{"two variables are refused", elsewhere, "dev", nil, exitUsage, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PUNCTUAL_URL", c.url)
			t.Setenv("PUNCTUAL_CONTEXT", c.context)
			t.Setenv("PUNCTUAL_TOKEN", "exported")
			seen = ""
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"--config", path, "ls"}, c.args...), nil, &out, &errs)
			if code != c.code || seen != c.seen {
				t.Errorf("%d, want %d; seen %q, want %q\n%s", code, c.code, seen, c.seen, &errs)
			}
		})
	}
}

func TestWhy_GoesByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	addr := make(chan string, 1)
	next := time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour).Add(12 * time.Hour)
	served := make(chan error, 1)
	go func() {
		served <- laptop.Serve(ctx, laptop.Options{Addr: "127.0.0.1:0", At: next,
			Serving: func(at string) { addr <- at }})
	}()
	url := "http://" + <-addr
	at := func(args ...string) said { return typed(t.Context(), "", append([]string{"--url", url}, args...)...) }
	path := file(t, "name: later\ncalendar: {cron: \"0 0 * * *\", timezone: UTC}\njob: {task: echo}\n")
	if s := at("schedule", "apply", "-f", path); s.code != exitDone {
		t.Fatalf("%+v", s)
	}
	s := at("schedule", "why", "later", "-o", "json")
	var a account
	if err := json.Unmarshal([]byte(s.out), &a); err != nil || a.At.Before(next) || a.At.After(next.Add(time.Hour)) {
		t.Errorf("%v: it asks for %s on a server of %s", err, a.At, next)
	}
	s = at("doctor")
	if s.code != exitDone || !strings.Contains(s.out, "WARNING  the API's is at "+next.Format("2006-01-02T15:0")) ||
		!strings.Contains(s.out, "shows their time; it may be a laptop") || strings.Contains(s.out, " NO ") {
		t.Errorf("%+v", s)
	}
	stop()
	<-served
}

func TestDoctor_ComparesTheClocks(t *testing.T) {
	t.Parallel()
	here := time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ahead time.Duration
		local bool
		word  string
		says  string
	}{
		{-time.Second, false, "yes", "within 1s"},
		{2 * time.Minute, false, "yes", "the API's is at 2027-03-28T01:02:00Z, 2m0s ahead of this one: " +
			"jobs start 2m0s before this one shows their time"},
		{-2 * time.Minute, false, "yes", "the API's is at 2027-03-28T00:58:00Z, 2m0s behind this one: " +
			"jobs start 2m0s after this one shows their time"},
		{3 * time.Minute, true, "NO", "the API's is at 2027-03-28T01:03:00Z, 3m0s ahead of this one: " +
			"jobs start 3m0s before this one shows their time; let the wrong clock be set by NTP"},
		{-59 * time.Minute, false, "NO", "the API's is at 2027-03-28T00:01:00Z, 59m0s behind this one: " +
			"jobs start 59m0s after this one shows their time, and tokens may count as not yet valid; " +
			"from 5m on, signed requests are refused; let the wrong clock be set by NTP"},
		{2 * time.Hour, false, "NO", "the API's is at 2027-03-28T03:00:00Z, 2h0m0s ahead of this one: " +
			"jobs start 2h0m0s before this one shows their time, and tokens may count as expired too early; " +
			"from 5m on, signed requests are refused; " +
			"it may be a laptop that was started with another time (AT=, serve --at)"},
		{48 * time.Hour, true, "WARNING", "the API's is at 2027-03-30T01:00:00Z, 2 days ahead of this one: " +
			"jobs start 2 days before this one shows their time; " +
			"it may be a laptop that was started with another time (AT=, serve --at)"},
	} {
		if f := skewOf(here.Add(c.ahead), here, c.local); f.word() != c.word || f.Says != c.says {
			t.Errorf("%s ahead: %s %s", c.ahead, f.word(), f.Says)
		}
	}
	if f := skewOf(time.Time{}, here, true); f.Good {
		t.Errorf("nobody says what time it is, and the clocks agree: %+v", f)
	}
}

func TestDag_SaysOnATerminalHowAGraphIsDrawn(t *testing.T) {
	t.Parallel()
	dag := fresh("cli-drawn")
	good(t, "dag", "apply", "-f", file(t, "name: "+dag+"\nnodes: {a: {task: echo}}\n"))
	id := name(t, "dag", "run", dag)
	c, err := client.New(address())
	if err != nil {
		t.Fatal(err)
	}
	for _, seen := range []bool{true, false} {
		var out, errs bytes.Buffer
		s := &shell{ctx: t.Context(), client: c, out: &out, err: &errs, seen: seen}
		err := graphRun{ID: id, Format: "mermaid"}.Run(s)
		advised := strings.Contains(errs.String(), "punctual dag graph "+id+" -f svg > run.svg")
		if err != nil || advised != seen {
			t.Errorf("on a terminal %v: %v %s", seen, err, &errs)
		}
	}
	if out := good(t, "dag", "graph", id, "-f", "svg"); !strings.Contains(out, "<svg") {
		t.Errorf("%s", out)
	}
}

func TestCommand_SaysOnCtrlCThatItWasInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if s := typed(ctx, "", "ls"); s.code != exitInterrupted || s.errs != "punctual: interrupted\n" {
		t.Errorf("%+v", s)
	}
}
