package job

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// edge is one arrow of the diagram of a row in PROTOCOL.md.
var edge = regexp.MustCompile(`(?m)^    ([A-Z]+) --> ([A-Z]+): `)

// The diagram shows each change of status that a transition allows, and no other.
func TestProtocol_DrawsTheTransitionsOfARow(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Row ")
	diagram, _, _ := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("PROTOCOL.md has no section of rows")
	}
	var drawn []string
	for _, m := range edge.FindAllStringSubmatch(diagram, -1) {
		drawn = append(drawn, m[1]+" to "+m[2])
	}
	slices.Sort(drawn)
	var allowed []string
	for _, tr := range Transitions {
		if slices.Equal(tr.From, tr.To) {
			continue // it keeps the status
		}
		for _, from := range tr.From {
			for _, to := range tr.To {
				if from != to && to != Gone {
					allowed = append(allowed, string(from)+" to "+string(to))
				}
			}
		}
	}
	slices.Sort(allowed)
	if allowed = slices.Compact(allowed); !slices.Equal(drawn, allowed) {
		t.Errorf("drawn:\n%s\nwant:\n%s", strings.Join(drawn, "\n"), strings.Join(allowed, "\n"))
	}
}
