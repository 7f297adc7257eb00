package main

import (
	"os"
	"strings"
	"testing"
)

// page is the document that shows every verb; integration/docs runs it.
const page = "../../../shared/docs/cli.md"

func TestPage_NamesEveryVerb(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	help := good(t, "--help")
	_, list, _ := strings.Cut(help, "Commands:\n")
	verbs := 0
	for line := range strings.SplitSeq(list, "\n") {
		verb, _, found := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
		if !found || !strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "   ") {
			continue
		}
		verbs++
		words := strings.Fields(verb)
		at := len(words) // the verb itself, without its arguments
		for i, w := range words {
			if strings.ContainsAny(w, "<[(") {
				at = min(at, i)
			}
		}
		if verb = strings.Join(words[:at], " "); !strings.Contains(string(text), verb) {
			t.Errorf("%s is not in %s", verb, page)
		}
	}
	if verbs < 20 {
		t.Errorf("%d verbs in %s", verbs, help)
	}
}
