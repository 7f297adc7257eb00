package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	alarmed = regexp.MustCompile(`alarm\{name: ([^}]*?), runbook: "([a-z-]+)"`)
	literal = regexp.MustCompile(`"([^"]*)"`)
)

// Each alarm that infra makes is in the table, with its page. A name that is put together there, such as
// one of a pool, is found by its parts.
func TestOperating_NamesEachAlarmBesideItsPage(t *testing.T) {
	t.Parallel()
	rows := map[string]string{} // by page
	for line := range strings.Lines(text(t, "shared/docs/operating.md")) {
		if _, page, ok := strings.Cut(line, "infra/runbook/"); ok && strings.HasPrefix(line, "| ") {
			name, _, _ := strings.Cut(page, ".md")
			rows[name] = line
		}
	}
	source := strings.Join(strings.Fields(text(t, "infra/stack/alarms.go")), " ")
	found := alarmed.FindAllStringSubmatch(source, -1)
	if len(found) < 30 {
		t.Fatalf("only %d alarms are found: this test reads the source wrongly", len(found))
	}
	for _, m := range found {
		row := rows[m[2]]
		if row == "" {
			t.Errorf("the page %s has no line", m[2])
		}
		for _, part := range literal.FindAllStringSubmatch(m[1], -1) {
			for word := range strings.SplitSeq(part[1], "%s") {
				if word = strings.Trim(word, "-"); !strings.Contains(strings.ToLower(row), strings.ToLower(word)) {
					t.Errorf("the line of %s does not name %s", m[2], word)
				}
			}
		}
	}
	for chunk := range strings.SplitSeq(source, "add(") {
		m := alarmed.FindStringSubmatch(chunk)
		if m == nil || !strings.HasPrefix(m[1], `"`) {
			continue
		}
		name := literal.FindStringSubmatch(m[1])[1]
		wakes := strings.Contains(chunk, "pages: true")
		if bold := strings.Contains(rows[m[2]], "**"+name); bold != wakes {
			t.Errorf("%s wakes somebody: %v; the page has it in bold: %v", name, wakes, bold)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "infra/runbook/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !strings.Contains(text(t, "shared/docs/operating.md"), "infra/runbook/"+filepath.Base(page)) {
			t.Errorf("%s is not linked", page)
		}
	}
}

// The panels that the page explains are there.
func TestOperating_NamesPanelsThatThereAre(t *testing.T) {
	t.Parallel()
	_, panels, _ := strings.Cut(text(t, "shared/docs/operating.md"), "| panel |")
	panels, _, _ = strings.Cut(panels, "\n\n")
	source, n := text(t, "infra/stack/dashboard.go"), 0
	for line := range strings.Lines(panels) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		n++
		if title := strings.TrimSpace(cells[1]); !strings.Contains(source, `"`+title+`"`) {
			t.Errorf("no panel is called %s", title)
		}
	}
	if n < 5 {
		t.Errorf("only %d panels are named", n)
	}
}

var dollars = regexp.MustCompile(`\$(\d+)`)

func TestDeploying_CostsWhatTheCostPageSays(t *testing.T) {
	t.Parallel()
	_, costs, _ := strings.Cut(text(t, "shared/docs/deploying.md"), "## What it costs")
	costs, _, _ = strings.Cut(costs, "\n## ")
	page, found := text(t, "infra/cost.md"), dollars.FindAllStringSubmatch(costs, -1)
	if len(found) == 0 {
		t.Error("no price is there")
	}
	for _, m := range found {
		if !strings.Contains(page, "**$"+m[1]+"**") && !strings.Contains(page, "| "+m[1]+" |") {
			t.Errorf("infra/cost.md has no $%s", m[1])
		}
	}
}
