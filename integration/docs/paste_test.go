package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/shared/contract"
)

// pasted is what the answers to the README's blocks of commands must contain, block by block.
var pasted = []string{
	`"status":"SCHEDULED","task":"greet" … "name":"morning" … "next":[" … "run_id":"`,
	`"status":"SUCCEEDED","task":"greet" … "start_lateness_ms" … Hello, Ada! … "next":[" … "status":"SUCCEEDED"`,
}

// wrong is what a shell or curl says of a line that it does not understand.
var wrong = regexp.MustCompile(`not found|no matches|No such file|(?i:syntax|parse) error|unmatched|curl: \(`)

// paste gives a script to an interactive shell as its terminal would: no option -e or -u, no arguments.
func paste(t *testing.T, shell, script string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	// Without the settings of this machine.
	args := map[string][]string{"bash": {"--norc", "--noediting", "-i"}, "zsh": {"-f", "-i"}}
	cmd := exec.CommandContext(ctx, shell, args[shell]...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TERM=dumb", "PS1=", "PS2=", "NO_PROXY=127.0.0.1,localhost")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interactive shell would take the terminal of the test
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unanswered lists what is wrong with what a shell has written about blocks that were pasted.
func unanswered(wants []string, out string) (all []string) {
	answers := strings.Split(out, mark)
	if len(answers)-1 != len(wants) {
		return []string{fmt.Sprintf("%d of %d blocks were answered:\n%s", len(answers)-1, len(wants), out)}
	}
	for i, text := range wants {
		if w := (want{0, text}); !w.in(answers[i]) {
			all = append(all, fmt.Sprintf("the answers to block %d lack %s:\n%s", i+1, text, answers[i]))
		}
		if refused.MatchString(answers[i]) || wrong.MatchString(answers[i]) {
			all = append(all, fmt.Sprintf("something in block %d is refused:\n%s", i+1, answers[i]))
		}
	}
	return all
}

// marked returns the script of blocks, with a mark after each.
func marked(all []block) (script string, n int) {
	for _, b := range all {
		if b.info == runs {
			script += b.body + "echo; echo '" + mark + "'\n"
			n++
		}
	}
	return script, n
}

// shellsOf runs a test for each shell that is here.
func shellsOf(t *testing.T, test func(t *testing.T, shell string)) {
	t.Helper()
	for _, shell := range []string{"bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				environment.SkipOrFail(t, shell+" is not here")
			}
			test(t, shell)
		})
	}
}

func TestREADME_WorksWhenItsBlocksArePastedWhole(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		environment.SkipOrFail(t, "curl is not here")
	}
	readme, err := read("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range readme.blocks {
		if b.info == serves && (strings.Contains(b.body, "#") || strings.Count(b.body, "\n") != 1) {
			t.Errorf("line %d: what serves is one line without a comment, or zsh does not start it", b.line)
		}
	}
	script, n := marked(readme.blocks)
	if n != len(pasted) {
		t.Fatalf("it has %d blocks of commands, and this test knows the answers to %d", n, len(pasted))
	}
	server := filepath.Join(t.TempDir(), "local")
	build(t, root, server, "./workers/cmd/local")
	shellsOf(t, func(t *testing.T, shell string) {
		out, err := paste(t, shell, strings.ReplaceAll(script, "localhost:8080", serve(t, server)))
		if err != nil {
			t.Errorf("%s ended with %v", shell, err)
		}
		for _, m := range unanswered(pasted, out) {
			t.Error(m)
		}
	})
}

func TestPaste_FindsWhatAShellDoesNotTake(t *testing.T) {
	t.Parallel()
	shellsOf(t, func(t *testing.T, shell string) {
		for body, bad := range map[string]bool{
			"echo one\necho two\n":                       false,
			"nothing-of-this-name\necho one\necho two\n": true,
			"echo one\n":                                  true, // and not two
			"echo 'one\necho two\n":                       true, // the quote does not end
			"ls # one\necho one\necho two\n":              shell == "zsh",
			"echo one\necho two\necho '\"status\":404'\n": true,
		} {
			script, _ := marked([]block{{1, runs, body}})
			out, _ := paste(t, shell, script) // how the last line ended is no matter
			if got := unanswered([]string{"one … two"}, out); (got != nil) != bad {
				t.Errorf("%q: %q", body, got)
			}
		}
	})
}

var together = regexp.MustCompile(`\| \*\*together\*\* \| \*\*(\$\d+)\*\* \| \*\*(\$\d+)\*\* \|`)

// The README's numbers are those that the code has, and those of the page of costs, which is computed.
func TestREADME_StatesTheNumbersOfTheCode(t *testing.T) {
	t.Parallel()
	costs := together.FindStringSubmatch(text(t, "infra/cost.md"))
	if costs == nil {
		t.Fatal("the page of costs has no line of what a deployment costs together")
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d seconds", int(d.Seconds())) }
	readme := text(t, "README.md")
	for what, sentence := range map[string]string{
		"recovery":        fmt.Sprintf("at most %d minutes late", int((contract.Grace + time.Minute).Minutes())),
		"lease":           "by a lease of " + seconds(contract.Lease),
		"cancel":          "hears of a cancel within " + seconds(contract.CancelCheckEvery+time.Second),
		"pause":           "A pause takes effect " + seconds(contract.EffectiveAfter) + " after",
		"delayed message": fmt.Sprintf("due within %d minutes", int((contract.MaxDelay - time.Minute).Minutes())),
		"cost of dev":     costs[1] + " a month for a small deployment (dev)",
		"cost of prod":    costs[2] + " for one that survives the loss of a zone (prod)",
	} {
		if !strings.Contains(readme, sentence) {
			t.Errorf("%s: the README does not say %q", what, sentence)
		}
	}
	if n := strings.Count(readme, "\n"); n > 120 {
		t.Errorf("the README has %d lines; a screen or two have 120", n)
	}
}
