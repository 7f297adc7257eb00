package emulator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
	"punctual/shared/aws/table"
	"punctual/shared/contract"
	"punctual/shared/item"
)

const runbook = "../../infra/runbook"

// blocks are the commands of a page as they would be pasted, by the heading above them.
func blocks(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(runbook, page))
	if err != nil {
		t.Fatal(err)
	}
	all, under := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			under = strings.TrimSpace(heading)
		}
		if command, ok := strings.CutPrefix(line, "    "); ok {
			all[under] += command
		}
	}
	return all
}

// paste runs commands in a shell, as an operator of that deployment, against an emulator.
func paste(t *testing.T, e *environment.Emulator, prefix, commands string) string {
	t.Helper()
	if commands == "" {
		t.Fatal("the page has no such commands")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patient) // a page has dozens of commands, each a process
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Env = append(append(os.Environ(), e.Environ()...), "PREFIX="+prefix, "AWS_PAGER=",
		"AWS_DEFAULT_REGION="+environment.Region)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s\n%s", err, commands, out.String(), said.String())
	}
	return out.String()
}

func needCLI(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("aws"); err != nil {
		environment.SkipOrFail(t, "the AWS CLI is not here")
	}
}

// The drill: the jobs table of a deployment that works is restored and swapped in as the page says,
// command by command, and let run.
func TestRestore_IsHeldUntilTheOperatorHasSeenWhatIsOverdue(t *testing.T) {
	t.Parallel()
	needCLI(t)
	page := blocks(t, "restore.md")
	e := environment.MiniStack(t)
	h := build(t, e.Config())
	tables := table.New(e.Config(), h.env.TableName)
	note := item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "tables"}
	wait := func(what string, within time.Duration, holds func() bool) {
		t.Helper()
		for until := time.Now().Add(within); !holds(); time.Sleep(time.Second) {
			if time.Now().After(until) {
				t.Fatalf("%s did not come true within %s", what, within)
			}
		}
	}
	wait("the first pass", patient, func() bool {
		i, err := tables.Get(t.Context(), note)
		return err == nil && i.Str(contract.Jobs) != ""
	})
	done := h.Post(story.Object{"task": "echo"})
	h.Await(done, "SUCCEEDED", patient)
	due := h.Post(story.Object{"task": "echo", "delay": "150s"})
	dueAt := story.At(t, h.Job(due)["due_at"])

	began := time.Now()
	paste(t, e, h.env.Prefix, page["Restore next to the table"]+page["Swap it in"])
	if !time.Now().Before(dueAt.Add(-20 * time.Second)) {
		environment.SkipOrFail(t, fmt.Sprint("the job was due before the table was swapped, which took ",
			time.Since(began)))
	}
	held := func() bool {
		tables, _ := h.Want(200, "GET", "/ready", nil)["held"].([]any)
		return len(tables) == 1 && tables[0] == contract.Jobs
	}
	wait("what ready says of held tables", patient, held)
	time.Sleep(time.Until(dueAt) + 30*time.Second)
	if v := h.Job(due); v["started_at"] != nil {
		t.Errorf("nobody has let it run, and it is %v", v)
	}
	if seen := paste(t, e, h.env.Prefix, page["See what is overdue"]); !strings.Contains(seen, due) ||
		strings.Contains(seen, done) {
		t.Errorf("overdue are %s; want %s, and not %s", seen, due, done)
	}
	paste(t, e, h.env.Prefix, page["Lift"])
	h.Await(due, "SUCCEEDED", patient)
	h.Await(h.Post(story.Object{"task": "echo"}), "SUCCEEDED", patient)
	wait("the end of what ready says", patient, func() bool { return !held() })
}

var inline = regexp.MustCompile("`((?:aws|kubectl|make) [^`]+)`")

// Each command of the runbook, and each within a line of a document, is one: the shell reads it, and the AWS CLI knows
// its words.
func TestRunbook_HasCommandsThatAreSome(t *testing.T) {
	t.Parallel()
	needCLI(t)
	pages, err := filepath.Glob(filepath.Join(runbook, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	known, others := 0, documents(t)
	for _, path := range append(pages, others...) {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		if !slices.Contains(others, path) {
			for _, block := range blocks(t, name) {
				commands = append(commands, strings.Split(strings.TrimSpace(block), "\n")...)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, m[1])
		}
		for _, c := range commands {
			if out, err := shell(t, "-n", c); err != nil {
				t.Errorf("%s: %s\n%s", name, c, out)
				continue
			}
			_, call, ok := strings.Cut(c, "aws ")
			if !ok || strings.HasPrefix(call, "dynamodb wait") || strings.HasPrefix(call, "lambda invoke") ||
				strings.HasPrefix(call, "configure ") {
				continue // these have no skeleton
			}
			known++
			// A skeleton is printed instead of the call, once all options are known.
			call = strings.TrimSuffix(call, ")")
			if out, err := shell(t, "-c", "aws "+call+" --generate-cli-skeleton input >/dev/null"); err != nil {
				t.Errorf("%s: %s\n%s", name, c, out)
			}
		}
	}
	if known < 10 {
		t.Errorf("only %d commands of the AWS CLI were found: the test reads the wrong lines", known)
	}
}

// shell runs bash with a flag and a command, without an account.
func shell(t *testing.T, flag, command string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", flag)
	if flag == "-c" {
		cmd.Args = append(cmd.Args, command)
	} else {
		cmd.Stdin = strings.NewReader(command)
	}
	cmd.Env = append(os.Environ(), "PREFIX=punctual", "RESTORED=arn", "AWS_PAGER=",
		"AWS_DEFAULT_REGION="+environment.Region, "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ACCESS_KEY_ID=x",
		"AWS_SECRET_ACCESS_KEY=x", "AWS_MAX_ATTEMPTS=1")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("running bash: %w", err)
	}
	return string(out), err
}
