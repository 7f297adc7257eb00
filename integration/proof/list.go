package proof

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// list is a text with tables of lines, and the document that is written from it.
type list struct {
	text     string // its path
	document string
}

var lists = []list{
	{text: "integration/proof/checklist.md", document: "integration/CHECKLIST.md"},
	{text: "integration/proof/cases.md", document: "integration/CASES.md"},
}

var (
	rowID    = regexp.MustCompile(`^(?:[A-Z]?\d+)$`)
	headID   = regexp.MustCompile(`^(?:#|case)$`)
	code     = regexp.MustCompile("`([^`\n]+)`")
	makeGoal = regexp.MustCompile(`^make ([a-z-]+)`)
	topOf    = regexp.MustCompile(`^[A-Za-z.]+`)
	anyTest  = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*_`)
)

// notShown are the answers that need no test.
var notShown = []string{"**declined**", "**later**"}

// page is a list that is being written.
type page struct {
	list     list
	tests    map[string][]string // by id
	ids      []string            // of the rows, in their order
	problems []string
	columns  int // of the texts in the table that is being written, 0 outside of one
}

// write returns the document of a text, with a last cell in each row that names its tests.
func (p *page) write(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(p.line(strings.TrimSuffix(line, "\n")) + "\n")
		if strings.HasPrefix(line, "# ") {
			fmt.Fprintf(&b, "\n`make generate` writes this page: the texts are those of `%s`, and the tests those\n"+
				"that have a mark (`%s…`).\n", p.list.text, directive)
		}
	}
	return b.String()
}

func (p *page) line(line string) string {
	cells, ok := cellsOf(line)
	switch {
	case !ok:
		p.columns = 0
		return line
	case headID.MatchString(cells[0]):
		p.columns = len(cells)
		return line + " what shows it |"
	case p.columns > 0 && strings.HasPrefix(line, "|---"):
		return line + "---|"
	case p.columns > 0 && rowID.MatchString(cells[0]):
		return p.row(cells)
	}
	return line
}

// row returns a row with the names of its tests.
func (p *page) row(cells []string) string {
	id := cells[0]
	if slices.Contains(p.ids, id) {
		p.problem("line %s is there twice", id)
	}
	p.ids = append(p.ids, id)
	var shown []string
	for _, test := range p.tests[id] {
		shown = append(shown, "`"+test+"`")
	}
	switch {
	case len(cells) == p.columns+1:
		shown = append(shown, cells[p.columns])
		cells = cells[:p.columns]
	case len(cells) != p.columns:
		p.problem("line %s has %d cells, its table has %d", id, len(cells), p.columns)
	case len(shown) == 0 && slices.ContainsFunc(cells, func(c string) bool { return slices.Contains(notShown, c) }):
		shown = []string{"—"}
	case len(shown) == 0:
		p.problem("line %s has no mark: write %s%s above the test that shows it, or give its row one more cell "+
			"with the reason why there is none", id, directive, id)
	}
	return "| " + strings.Join(append(cells, strings.Join(shown, ", ")), " | ") + " |"
}

func (p *page) problem(format string, args ...any) {
	p.problems = append(p.problems, p.list.text+": "+fmt.Sprintf(format, args...))
}

// cellsOf returns the cells of a row, and whether the line is one.
func cellsOf(line string) ([]string, bool) {
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
		return nil, false
	}
	return strings.Split(strings.Trim(line, "| "), " | "), true
}

// writeAll returns the documents by their paths, and a sentence for each mark and line that is wrong.
func writeAll(root fs.FS) (documents map[string]string, problems []string, err error) {
	marks, problems, err := readMarks(root)
	if err != nil {
		return nil, nil, err
	}
	tests := map[string][]string{}
	for _, m := range marks {
		tests[m.id] = append(tests[m.id], m.test)
	}
	for id := range tests {
		slices.Sort(tests[id])
		tests[id] = slices.Compact(tests[id])
	}
	documents = map[string]string{}
	var ids []string
	for _, l := range lists {
		text, err := fs.ReadFile(root, l.text)
		if err != nil {
			return nil, nil, err
		}
		p := page{list: l, tests: tests}
		documents[l.document] = p.write(string(text))
		ids = append(ids, p.ids...)
		problems = append(problems, p.problems...)
		for _, lost := range lostNames(root, string(text)) {
			problems = append(problems, l.text+": "+lost)
		}
	}
	for _, m := range marks {
		if !slices.Contains(ids, m.id) {
			problems = append(problems, fmt.Sprintf("%s: no line has the id %s", m.at, m.id))
		}
	}
	return documents, problems, nil
}

// lostNames returns a sentence for each file and make target that a text names and that does not exist, and for each
// test, which a mark is to name.
func lostNames(root fs.FS, text string) (lost []string) {
	makefile, _ := fs.ReadFile(root, "Makefile") // without one, no target is there
	there := func(at string) bool {
		_, err := fs.Stat(root, path.Clean(at))
		return at != "" && err == nil
	}
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		at := strings.TrimSuffix(m[1], "/")
		goal := makeGoal.FindStringSubmatch(at)
		switch {
		case goal != nil && !strings.Contains("\n"+string(makefile), "\n"+goal[1]+":"):
			lost = append(lost, "the Makefile has no target "+goal[1])
		case goal == nil && there(topOf.FindString(at)) && !there(at):
			lost = append(lost, "there is no "+at)
		}
	}
	for _, name := range anyTest.FindAllString(text, -1) {
		lost = append(lost, fmt.Sprintf("it names a test (%s…), which a mark is to name", name))
	}
	return lost
}
