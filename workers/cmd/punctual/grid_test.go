package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"punctual/shared/client/rest"
)

func TestGrid_FitsTheTerminalAndKeepsWhatIsCopied(t *testing.T) {
	t.Parallel()
	const id, due = "01JQ7Z3W9V5K2M8X4T6B1N0C9D", "2027-03-28T01:00:00Z"
	rows := [][]string{{"JOB", "TASK", "STATUS", "ATTEMPT", "DUE", "FINISHED", "WHY"},
		{id, "report", "DEAD", "3", due, due, "handler_error: " + strings.Repeat("long ", 40)},
		{id, "echo", "SUCCEEDED", "1", due, "-", "-"}}
	for _, c := range []struct {
		width int
		left  string // the columns that are left out
		cut   bool   // whether a cell is cut
		over  bool   // whether rows are wider than the terminal all the same
	}{
		{0, "", false, false},
		{400, "", false, false},
		{160, "", true, false},
		{111, "FINISHED", true, false},
		{80, "FINISHED, DUE", true, false},
		{64, "FINISHED, DUE, ATTEMPT", true, false},
		{20, "FINISHED, DUE, ATTEMPT, TASK", true, true},
	} {
		t.Run(fmt.Sprint(c.width), func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			s := &shell{out: &out, err: &errs, width: c.width}
			if err := s.grid(rows); err != nil {
				t.Fatal(err)
			}
			widest := 0
			for line := range strings.Lines(out.String()) {
				widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
			if over := c.width > 0 && widest > c.width; over != c.over {
				t.Errorf("%d wide:\n%s", widest, &out)
			}
			if strings.Contains(out.String(), "…") != c.cut {
				t.Errorf("want a cut cell: %v\n%s", c.cut, &out)
			}
			if strings.Count(out.String(), id) != 2 || !strings.Contains(out.String(), "SUCCEEDED") {
				t.Errorf("an id or an outcome is not whole:\n%s", &out)
			}
			note := ""
			if c.left != "" {
				note = "left out for want of room: " + c.left + "; --wide shows all\n"
			}
			if errs.String() != note {
				t.Errorf("%q, want %q", &errs, note)
			}
		})
	}
}

func TestShow_WritesALineForEachColumnWhereARowHasNoRoom(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := rest.JobView{JobID: "a", Task: "echo", Status: "DEAD",
		StatusReason: &rest.Reason{Code: "failed", Message: new(strings.Repeat("x ", 50))}}
	s := &shell{out: &out, output: "table", width: 80}
	if err := show(s, j, jobID, jobColumns...); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "JOB       a\nTASK      echo\n") ||
		!strings.HasSuffix(got, "WHY       failed: "+strings.Repeat("x ", 50)+"\n") {
		t.Errorf("%s", got)
	}
}

func TestWithLocal_AddsWhatTheClockHereShows(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("", 9*3600)
	for _, c := range []struct {
		zone       *time.Location
		text, want string
	}{
		{nil, "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z"},
		{time.UTC, "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z"},
		{tokyo, "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z (10:00)"},
		{tokyo, "since 2027-03-28T20:30:00Z: x", "since 2027-03-28T20:30:00Z (03-29 05:30): x"},
		{tokyo, "2027-03-28", "2027-03-28"},
		{tokyo, "2027-99-99T01:00:00Z", "2027-99-99T01:00:00Z"},
	} {
		if got := (&shell{zone: c.zone}).withLocal(c.text); got != c.want {
			t.Errorf("%s in %v: %s, want %s", c.text, c.zone, got, c.want)
		}
	}
}

func TestTerminal_IsAsWideAsItSaysOrAsColumns(t *testing.T) {
	t.Parallel()
	for columns, want := range map[string]int{"": defaultWidth, "120": 120, "-1": defaultWidth, "x": defaultWidth} {
		if got := widthOf(new(bytes.Buffer), func(string) string { return columns }); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, got, want)
		}
	}
	if _, err := exec.LookPath("script"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	command := filepath.Join(program(t), "punctual")
	id := name(t, "run", "echo", "--wait")
	for _, c := range []struct {
		pipe  string // after the command
		whole bool   // nothing is left out
		local bool   // local times are shown
	}{{"", false, false}, {"--wide", true, true}, {"| cat", true, false}} {
		line := fmt.Sprintf("stty cols 70; %s --url %s ls --status SUCCEEDED --limit 1 %s", command, address(), c.pipe)
		cmd := exec.CommandContext(t.Context(), "script", "-qec", line, os.DevNull)
		cmd.Env = append(os.Environ(), "TERM=xterm", "TZ=Asia/Tokyo", "NO_COLOR=1")
		said, err := cmd.CombinedOutput()
		out := string(said)
		if err != nil || strings.Contains(out, "DUE  ") != c.whole || strings.Contains(out, "Z (") != c.local ||
			strings.Contains(out, "left out for want of room: ") == c.whole {
			t.Errorf("%q: %v\n%s", c.pipe, err, said)
		}
	}
	line := fmt.Sprintf("stty cols 70; %s --url %s get %s", command, address(), id)
	cmd := exec.CommandContext(t.Context(), "script", "-qec", line, os.DevNull)
	cmd.Env = append(os.Environ(), "TERM=xterm", "TZ=Asia/Tokyo", "NO_COLOR=1")
	if said, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(said), "FINISHED  20") ||
		!strings.Contains(string(said), "Z (") {
		t.Errorf("%v\n%s", err, said)
	}
}
