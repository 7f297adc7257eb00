package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// Stacks that the documents name are deployed alone: a roll-back of the flow stack must not take the data stack along.
func TestMake_DeploysNamedStacksAlone(t *testing.T) {
	t.Parallel()
	for words, alone := range map[string]bool{
		"deploy STACKS=punctual-flow": true, "diff STACKS=punctual-flow": true, "destroy STACKS=punctual-fleet": true,
		"deploy": false, "diff": false, "destroy": false,
	} {
		args := append([]string{"-n", "-C", root}, strings.Fields(words)...)
		out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput()
		if err != nil {
			t.Errorf("make %s: %v\n%s", words, err, out)
			continue
		}
		verb, _, _ := strings.Cut(words, " ")
		var command string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "node infra/cdk.js "+verb) {
				command = line
			}
		}
		if command == "" || strings.Contains(command, " --exclusively ") != alone {
			t.Errorf("make %s runs %q; alone: %v", words, command, alone)
		}
	}
}

// A build with an empty cache takes a minute, in which Go writes nothing: what builds says so first.
func TestMake_SaysThatItBuilds(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"run", "dev", "seed", "cli"} {
		out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", root, target).CombinedOutput()
		before, _, built := strings.Cut(string(out), " build ")
		if err != nil || !built || !strings.Contains(before, `echo "make `+target+": building") {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}

// A finding of the linter must not hide a failing test, and nothing is checked before the set-up.
func TestMake_ChecksAfterTheSetUp(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "make", "-n", "-k", "-C", root, "test").CombinedOutput()
	before, after, found := strings.Cut(string(out), "sh .ci/setup\n")
	if err != nil || !found || strings.Contains(before, "go ") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, check := range []string{"go vet ./...", "golangci-lint run", "go test -race -vet=off -p 3 -timeout 30m $(",
		"go test -vet=off -timeout 30m ./integration/emulator/deploy"} {
		if !strings.Contains(after, check) {
			t.Errorf("it does not %s:\n%s", check, out)
		}
	}
	rules := text(t, "Makefile")
	if !strings.Contains(rules, "\n\t@$(MAKE) --no-print-directory vet lint race plain\n") {
		t.Error("the checks are no make of their own, which -k would reach")
	}
}

// Without Go, or with one that does not read go.mod, the shell or Go would say nothing of what to do.
func TestMake_SaysThatItNeedsGo(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"run", "dev", "seed", "cli"} {
		out, err := exec.CommandContext(t.Context(), "make", "-C", root, target, "GO=no-go-here").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "or later is needed; get it from https://go.dev/dl") {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}
