package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/shared/client/rest"
)

// asCommand makes the test's binary the command itself.
const asCommand = "PUNCTUAL_TEST_IS_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is a folder with the command in it.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", asCommand, os.Args[0])
	if err := os.WriteFile(filepath.Join(dir, "punctual"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What packages do before main is waited for by each command, and by each new function in AWS.
func TestCommand_DoesLittleBeforeItStarts(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), filepath.Join(program(t), "punctual"), "--url", laptopURL, "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &trace)
	}
	const enough = 1500 << 10 // bytes that our packages allocate, mostly for regular expressions
	line := regexp.MustCompile(`(?m)^init (punctual/\S+) .* (\d+) bytes`)
	took := map[string]int{}
	total := 0
	for _, m := range line.FindAllStringSubmatch(trace.String(), -1) {
		took[m[1]], _ = strconv.Atoi(m[2])
		total += took[m[1]]
	}
	if t.Logf("%d bytes by %d packages", total, len(took)); total > enough || len(took) < 10 {
		t.Errorf("our packages allocate %d bytes before main, want at most %d: %v", total, enough, took)
	}
}

// lines is what a command has written so far; every line of it can be waited for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for a line that has all words.
func (l *lines) await(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(l.String()) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no line with %q in:\n%s", words, l)
		}
	}
}

func TestTail_ShowsWhatStartsEndsAndFails(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	before := name(t, "run", "echo", "--wait")
	out, errs, ended := new(lines), new(lines), make(chan int)
	go func() {
		ended <- run(ctx, []string{"--url", address(), "tail", "--every", "100ms"}, nil, out, errs)
	}()
	time.Sleep(500 * time.Millisecond) // what there is by now is no news
	done := name(t, "run", "echo", "--wait")
	dead := strings.TrimSpace(typed(t.Context(), "", "run", "greet", "--wait", "-o", "name").out)
	out.await(t, "SUCCEEDED", done, "echo", "attempt 1", " ms late")
	out.await(t, "DEAD", dead, "greet", "names nobody")
	slow := name(t, "run", "echo", "-p", `{"sleep":"1h"}`)
	t.Cleanup(func() { typed(context.Background(), "", "cancel", slow) })
	out.await(t, "RUNNING", slow)
	interrupt()
	if code := <-ended; code != exitInterrupted || !strings.Contains(errs.String(), "what runs goes on: ") ||
		strings.Contains(errs.String(), "context") {
		t.Errorf("%d %s", code, errs)
	}
	if strings.Contains(out.String(), before) {
		t.Errorf("%s was over before:\n%s", before, out)
	}
	if n := strings.Count(out.String(), "SUCCEEDED  "+done); n != 1 {
		t.Errorf("the end of %s is shown %d times:\n%s", done, n, out)
	}
	if out := good(t, "tail", "--for", "300ms", "--every", "100ms", "--task", "greet"); strings.Contains(out, slow) {
		t.Errorf("%s is no greeting", out)
	}
	out2 := good(t, "tail", "--for", "300ms", "--every", "100ms", "-o", "json")
	var j rest.JobView
	for line := range strings.Lines(out2) {
		if err := json.Unmarshal([]byte(line), &j); err != nil || j.JobID == "" {
			t.Errorf("%v in %s", err, line)
		}
	}
	bad(t, exitUsage, "--every", "tail", "--every", "1ms")
}

func TestBench_MeasuresAndAsksBeforeItSendsElsewhere(t *testing.T) {
	t.Parallel()
	var m measured
	if err := json.Unmarshal([]byte(good(t, "bench", "-n", "30", "-c", "4", "-o", "json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Jobs != 30 || m.Refused != 0 || m.Over["SUCCEEDED"] != 30 || m.Rate <= 0 || m.Accept.Max < m.Accept.P50 ||
		m.Lateness.P99 < m.Lateness.P50 {
		t.Errorf("%+v", m)
	}
	out := good(t, "bench", "-n", "3")
	for _, words := range []string{"accepted ", "jobs/s (3 of 3", "lateness ", "SUCCEEDED 3"} {
		if !strings.Contains(out, words) {
			t.Errorf("no %q in %s", words, out)
		}
	}
	bad(t, exitUsage, "unknown_task", "bench", "nobody", "-n", "5")
	bad(t, exitUsage, "at least one", "bench", "-n", "0")
	for address, local := range map[string]bool{"http://localhost:8080": true, "http://[::1]:1": true,
		"http://127.8.0.1": true, "https://punctual.example.com": false, "http://10.0.0.1": false} {
		if loopback(address) != local {
			t.Errorf("%s is loopback: %v", address, !local)
		}
	}
	s := typed(t.Context(), "y\n", "--url", "http://10.255.255.1", "bench")
	if s.code != exitUsage || !strings.Contains(s.errs, "give --yes") {
		t.Errorf("without a terminal: %+v", s)
	}
	for answer, sent := range map[string]bool{"y\n": true, "Yes\n": true, "\n": false, "": false, "what?\n": false} {
		var said bytes.Buffer
		err := bench{Jobs: 7, Task: "echo"}.ask(&shell{url: "https://punctual.example.com", asks: true,
			in: strings.NewReader(answer), err: &said})
		if (err == nil) != sent || !strings.Contains(said.String(), "7 jobs of task echo") {
			t.Errorf("after %q: %v %s", answer, err, &said)
		}
	}
}

func TestBench_SaysOnCtrlCWhatGoesOn(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, interrupt)
	s := typed(ctx, "", "bench", "-n", "2", "-p", `{"sleep":"3s"}`)
	if s.code != exitInterrupted || !strings.Contains(s.errs, "2 jobs are accepted and go on") ||
		strings.Contains(s.errs, "context") {
		t.Errorf("%+v", s)
	}
	s = typed(t.Context(), "", "bench", "-n", "2", "-p", `{"sleep":"3s"}`, "--within", "1ms")
	if s.code != exitRefused || !strings.Contains(s.errs, "2 jobs are not over after 1ms") ||
		!strings.Contains(s.out, "2 of 2") {
		t.Errorf("%+v", s)
	}
}

// offered is what may be completed.
func offered(words ...string) string {
	var out bytes.Buffer
	run(context.Background(), append([]string{completing}, words...), nil, &out, &out)
	var all []string
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(line, "\t")
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func TestCompletion_OffersWhatMayStandThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"sch"}, "schedule"},
		{[]string{"schedule", "p"}, "preview pause"},
		{[]string{"--url", "http://x", "-o", "json", "dag", "gr"}, "graph"},
		{[]string{"-o", ""}, "table json yaml name"},
		{[]string{"ls", "--output", "j"}, "json"},
		{[]string{"dag", "graph", "id", "--format", ""}, "mermaid svg"},
		{[]string{"dag", "ru"}, "run runs"},
		{[]string{"dag", "l"}, "ls"},
		{[]string{"task", ""}, "ls get delete put"},
		{[]string{"task", "put", "--f"}, "--file"},
		{[]string{"dag", "runs", "--st"}, "--status"},
		{[]string{"pause", ""}, "ls"},
		{[]string{"pause", "task:echo", "--re"}, "--reason"}, // below an argument
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"schedule", "apply", "--pr"}, "--prune"},
		{[]string{"run", "echo", "--wa"}, "--wait"},
		{[]string{"run", "echo", "-w", "--k"}, "--key"}, // a flag without a value
		{[]string{"schedule", "apply", "-f", ""}, ""},   // a file
		{[]string{"nonsense", ""}, offered("")},
	} {
		if got := offered(c.words...); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
	if all := offered(); !strings.Contains(all, "doctor") || strings.Contains(all, completing) {
		t.Errorf("%s", all)
	}
}

func TestCompletion_WorksInEachShell(t *testing.T) {
	t.Parallel()
	dir := program(t)
	for shell, script := range map[string]string{
		"bash": `eval "$(punctual completion bash)"; COMP_WORDS=(punctual schedule pre); COMP_CWORD=2; _punctual
			echo "${COMPREPLY[*]}"; COMP_WORDS=(punctual sch); COMP_CWORD=1; _punctual; echo "${COMPREPLY[*]}"`,
		"zsh": `compdef() { }; _describe() { print -l "${all[@]}" }; _files() { print files }
			eval "$(punctual completion zsh)"; words=(punctual schedule pre); CURRENT=3; _punctual
			words=(punctual sch); CURRENT=2; _punctual`,
		"fish": `punctual completion fish | source; complete -C "punctual schedule pre"; complete -C "punctual sch"`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			cmd := exec.CommandContext(t.Context(), shell, "-c", script)
			cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
			cmd.Dir = dir
			said, err := cmd.CombinedOutput()
			found := strings.Split(strings.TrimSpace(string(said)), "\n")
			if err != nil || len(found) != 2 || !strings.HasPrefix(found[0], "preview") ||
				!strings.HasPrefix(found[1], "schedule") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
	if said := bad(t, exitUsage, "bash", "completion", "csh"); said.out != "" {
		t.Errorf("%+v", said)
	}
}

func TestColours_AreForTerminalsAlone(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nothing.Close() })
	if colours(new(bytes.Buffer), none) || colours(nothing, none) || terminal(nothing) || terminal(nil) {
		t.Error("what is no terminal is coloured")
	}
	var out bytes.Buffer
	s := &shell{out: &out, colour: true, output: "table"}
	jobs := []rest.JobView{{JobID: "a", Status: "SUCCEEDED"}, {JobID: "b", Status: "DEAD"}}
	if err := s.grid(cells(jobs, jobColumns[:4])); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(out.String(), "\n")
	if got[1] != "a    -     \x1b[32mSUCCEEDED\x1b[0m  0" || got[2] != "b    -     \x1b[31mDEAD\x1b[0m       0" {
		t.Errorf("%q", got)
	}
	if _, err := exec.LookPath("script"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	command := filepath.Join(program(t), "punctual")
	name(t, "run", "echo", "--wait")
	for variable, want := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		cmd := exec.CommandContext(t.Context(), "script", "-qec",
			fmt.Sprintf("%s --url %s ls --status SUCCEEDED --limit 1", command, address()), os.DevNull)
		cmd.Env = append(os.Environ(), "TERM=xterm", variable)
		said, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(said), "\x1b[32mSUCCEEDED") != want {
			t.Errorf("with %s: %v\n%q", variable, err, said)
		}
	}
}
