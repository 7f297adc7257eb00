package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"
)

func modelOf(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("punctual"), kong.Vars{"version": "punctual"},
		kong.PostBuild(showExamples))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

func TestExamples_ParseAsTheirVerbs(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, verb := range modelOf(t).Model.Leaves(true) {
		name := nameOf(verb)
		known[name] = true
		if len(examples[name]) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, line := range examples[name] {
			if !strings.Contains(verb.Detail, line) {
				t.Errorf("%s: its help lacks %q", name, line)
			}
			// The shell splits the line, so that quotes mean what they mean there.
			words, err := exec.CommandContext(t.Context(), "bash", "-c",
				`punctual() { printf '%s\n' "$@"; }; `+line).Output()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			parsed, err := modelOf(t).Parse( // anew: kong keeps which flags were set
				strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"))
			if err != nil {
				t.Errorf("%s: %v", line, err)
			} else if got := nameOf(parsed.Selected()); got != name {
				t.Errorf("%s is %q, want %q", line, got, name)
			}
		}
	}
	for name := range examples {
		if !known[name] {
			t.Errorf("an example is for %q, which is no verb", name)
		}
	}
}

// dangling are words that open a text which needs its neighbour to be understood.
var dangling = regexp.MustCompile(`^(Of|As|Those|What|Its|And|That|Which|With|From|How|Why|When|Where)\b`)

func unclear(help string) bool {
	return help == "" || !unicode.IsUpper([]rune(help)[0]) || !strings.HasSuffix(help, ".") ||
		dangling.MatchString(help)
}

func TestHelp_OfEachVerbAndFlagIsASentence(t *testing.T) {
	t.Parallel()
	var check func(n *kong.Node)
	seen := 0
	check = func(n *kong.Node) {
		if n.Parent != nil && unclear(n.Help) {
			t.Errorf("%s: help %q", nameOf(n), n.Help)
		}
		values := append([]*kong.Value{}, n.Positional...)
		for _, f := range n.Flags {
			values = append(values, f.Value)
		}
		for _, v := range values {
			if seen++; unclear(v.Help) {
				t.Errorf("%s, %s: help %q", nameOf(n), v.Name, v.Help)
			}
		}
		for _, child := range n.Children {
			check(child)
		}
	}
	check(modelOf(t).Model.Node)
	if seen < 50 {
		t.Errorf("only %d arguments and flags seen", seen)
	}
	for _, text := range []string{"", "Of a task.", "How many jobs.", "number of jobs.", "Number of jobs"} {
		if !unclear(text) {
			t.Errorf("%q passes", text)
		}
	}
}
