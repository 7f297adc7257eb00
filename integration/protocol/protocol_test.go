package protocol_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

const folder = "../../shared/job/protocol"

// specification is one file of the folder, and how it is searched.
type specification struct {
	name       string
	invariants []string
	witnesses  []string // states that the traces must have met
	traces     int      // TRACES=n has n times as many
	steps      int      // of one trace at most
}

var specifications = []specification{
	{
		name: "job",
		invariants: []string{"startsRight", "finalIsQuiet", "outcomeOfTheOwner", "settledOnce", "successCounts",
			"stopCounts", "hasWakeUp", "hasLetter", "redrivenOnce"},
		witnesses: []string{"aRetrySucceeds", "aJobIsRedriven", "aRunningJobIsCancelled", "anEditedJobSucceeds",
			"anAttemptIsTakenOver", "aJobIsPausedBetweenAttempts", "aResumedJobSucceeds"},
		traces: 750, steps: 50,
	},
	{
		name:       "dagrun",
		invariants: []string{"stepsRight", "finalIsComplete", "neverStuck"},
		witnesses: []string{"aRunSucceeds", "aRunIsCancelled", "aRetrySucceeds", "aRunIsHeld",
			"aNodeRunsAlways"},
		traces: 400, steps: 80,
	},
	{
		name:       "permit",
		invariants: []string{"withinLimit", "counted", "heldByOpen", "noneForgotten"},
		witnesses:  []string{"allHaveRun", "someWait"},
		traces:     400, steps: 100,
	},
	{
		name:       "limit",
		invariants: []string{"withinLimit", "runningHolds", "finalHoldsNone", "noneForgotten"},
		witnesses:  []string{"allHaveRun", "someWait"},
		traces:     500, steps: 100,
	},
	{
		name:       "backfill",
		invariants: []string{"once", "withinMost", "noneForgotten", "counted"},
		witnesses:  []string{"bothAreOver", "bothHaveMade", "aSecondRowRan"},
		traces:     400, steps: 100,
	},
	{
		name: "unique",
		invariants: []string{"oneHolds", "oneRuns", "answeredRight", "doesWhatItSays", "runsOpen",
			"runningIsMarked"},
		witnesses: []string{"keyIsTakenTwice", "someAreReplaced", "someAreReturned", "anOccurrenceRuns",
			"anOccurrenceIsSkipped"},
		traces: 500, steps: 60,
	},
}

// quint runs Quint's simulator, installed once into the user's cache as package-lock.json pins it, and returns what it
// writes. The simulator in TypeScript needs nothing but Node.js.
func quint(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	if testing.Short() {
		environment.SkipOrFail(t, "Node.js is needed; nothing but Go is with -short")
	}
	modules, err := environment.InstallNode(t.Context(), ".")
	if err != nil {
		environment.SkipOrFail(t, "Quint cannot be installed, which needs Node.js 20, npm and its registry once: "+
			err.Error())
	}
	program := filepath.Join(modules, "@informalsystems", "quint", "dist", "src", "cli.js")
	out, err := exec.CommandContext(t.Context(), "node",
		append([]string{program}, append(args, "--backend", "typescript")...)...).CombinedOutput()
	return string(out), err
}

// TestProtocol_KeepsItsInvariants follows random traces, the same each time: SEED=n follows others.
//
//proof:of 135
func TestProtocol_KeepsItsInvariants(t *testing.T) {
	t.Parallel()
	for _, s := range specifications {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"run", filepath.Join(folder, s.name+".qnt"), "--seed", strconv.Itoa(number(t, "SEED", 1)),
				"--max-samples", strconv.Itoa(number(t, "TRACES", 1) * s.traces), "--max-steps", strconv.Itoa(s.steps)}
			args = append(append(args, "--invariants"), s.invariants...)
			said, err := quint(t, append(append(args, "--witnesses"), s.witnesses...)...)
			if err != nil || !strings.Contains(said, "[ok] No violation found") {
				t.Fatalf("%v\n%s", err, said)
			}
			_, summary, _ := strings.Cut(said, "[ok] ")
			for _, w := range s.witnesses {
				if !regexp.MustCompile(w + ` was witnessed in [1-9]`).MatchString(summary) {
					t.Errorf("no trace meets %s, so nothing was shown about it", w)
				}
			}
			t.Logf("%d traces: %s", s.traces, summary)
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n
}

var (
	asked   = regexp.MustCompile(`asks\((?:\w+, )?"([^"]+)"\)`)
	leftOut = regexp.MustCompile(`(?m)^  run \w+Test =\s+\w+\("([^"]+)"`)
)

// TestProtocol_NeedsEachOfItsConditions leaves out one condition after the other: each has a trace that then breaks an
// invariant.
func TestProtocol_NeedsEachOfItsConditions(t *testing.T) {
	t.Parallel()
	for _, s := range specifications {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			conditions := names(t, s.name+".qnt", asked)
			if traces := names(t, s.name+"_test.qnt", leftOut); !slices.Equal(conditions, traces) {
				t.Fatalf("the conditions are\n%q, and those with a trace\n%q", conditions, traces)
			}
			said, err := quint(t, "test", filepath.Join(folder, s.name+"_test.qnt"), "--main", s.name+"_test")
			if want := strconv.Itoa(len(conditions)) + " passing"; err != nil || !strings.Contains(said, want) {
				t.Fatalf("want %s; %v\n%s", want, err, said)
			}
			t.Logf("each of %d conditions is needed: %s", len(conditions), strings.Join(conditions, "; "))
		})
	}
}

// names returns what the pattern finds in a file of the specification, sorted and each once.
func names(t *testing.T, file string, pattern *regexp.Regexp) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
