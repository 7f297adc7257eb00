package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// lists are the documents that say what shows each promise and each case.
var lists = []string{"integration/CHECKLIST.md", "integration/CASES.md"}

var (
	span     = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^([a-z0-9/_]+)\.((?:Test|Benchmark|Fuzz)[A-Za-z0-9_]*)(?:/(.+))?$`)
	bareTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9_]*`)
	target   = regexp.MustCompile(`(?m)^([a-z-]+):`)
	topOf    = regexp.MustCompile(`^[A-Za-z.]+`)
)

// shown is what a document may name.
type shown struct {
	root    fs.FS
	funcs   map[string]bool // folder.TestName
	strings map[string]bool // folder/string literal of its Go files
	targets map[string]bool // of the Makefile
}

func shownIn(root fs.FS) (shown, error) {
	s := shown{root: root, funcs: map[string]bool{}, strings: map[string]bool{}, targets: map[string]bool{}}
	files, err := read(root)
	if err != nil {
		return s, err
	}
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && f.test() {
				s.funcs[f.dir+"."+fn.Name.Name] = true
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					s.strings[f.dir+"/"+text] = true
				}
			}
			return true
		})
	}
	makefile, err := fs.ReadFile(root, "Makefile")
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		s.targets[m[1]] = true
	}
	return s, err
}

// product is all of this repository, read once.
var product = sync.OnceValues(func() (shown, error) { return shownIn(os.DirFS(root)) })

// missing returns a sentence when what a code span names does not exist, "" when it does. runs
// reports whether the span names something that runs: a test, a make target or a go command.
func (s shown) missing(what string) (problem string, runs bool) {
	if m := testName.FindStringSubmatch(what); m != nil {
		dir, name, sub := m[1], m[2], m[3]
		switch {
		case !s.funcs[dir+"."+name]:
			return fmt.Sprintf("%s has no %s", dir, name), true
		case sub != "" && !s.strings[dir+"/"+sub]:
			return fmt.Sprintf("%s of %s has no %q", name, dir, sub), true
		}
		return "", true
	}
	if args, ok := strings.CutPrefix(what, "make "); ok {
		name, _, _ := strings.Cut(args, " ")
		if !s.targets[name] {
			return "the Makefile has no target " + name, true
		}
		return "", true
	}
	if strings.HasPrefix(what, "go ") {
		for _, arg := range strings.Fields(what) {
			if at, ok := strings.CutPrefix(arg, "./"); ok && !s.there(strings.TrimSuffix(at, "/...")) {
				return "there is no " + at, true
			}
		}
		return "", true
	}
	if at := strings.TrimSuffix(what, "/"); s.there(topOf.FindString(at)) && !s.there(at) {
		return "there is no " + at, false
	}
	return "", false
}

func (s shown) there(at string) bool {
	_, err := fs.Stat(s.root, path.Clean(at))
	return at != "" && err == nil
}

// lost returns a sentence for each name in text that does not exist.
func (s shown) lost(text string) []string {
	var all []string
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		if problem, _ := s.missing(m[1]); problem != "" {
			all = append(all, problem)
		}
	}
	outside := span.ReplaceAllStringFunc(text, func(m string) string {
		if testName.MatchString(strings.Trim(m, "`")) {
			return ""
		}
		return m
	})
	for _, name := range bareTest.FindAllString(outside, -1) {
		all = append(all, name+" is named without its package")
	}
	return all
}

// proved reports whether text names something that runs.
func (s shown) proved(text string) bool {
	return slices.ContainsFunc(span.FindAllStringSubmatch(text, -1), func(m []string) bool {
		_, runs := s.missing(m[1])
		return runs
	})
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(os.DirFS(root), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the cells of all table rows whose first cell matches first.
func rows(text string, first *regexp.Regexp) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, " |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if first.MatchString(cells[0]) {
			all = append(all, cells)
		}
	}
	return all
}

func TestLists_NameOnlyWhatExists(t *testing.T) {
	t.Parallel()
	s, err := product()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		text := document(t, name)
		if !s.proved(text) {
			t.Errorf("%s names no test: this test reads the wrong file", name)
		}
		for _, problem := range s.lost(text) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestChecklist_AnswersEachLineOnce(t *testing.T) {
	t.Parallel()
	const lines = 205
	s, err := product()
	if err != nil {
		t.Fatal(err)
	}
	got := rows(document(t, lists[0]), regexp.MustCompile(`^\d+$`))
	if len(got) != lines {
		t.Errorf("%d lines are answered, %d were promised", len(got), lines)
	}
	answers := map[string]bool{"**built**": true, "**another way**": true, "**declined**": false, "**later**": false}
	for i, cells := range got {
		if cells[0] != strconv.Itoa(i+1) {
			t.Fatalf("line %s is where %d is expected", cells[0], i+1)
		}
		if len(cells) != 4 {
			t.Errorf("line %s has %d cells; want number, promise, answer, what shows it", cells[0], len(cells))
			continue
		}
		shows, ok := answers[cells[2]]
		if !ok {
			t.Errorf("line %s is answered %q", cells[0], cells[2])
		}
		if shows && !s.proved(cells[3]) {
			t.Errorf("line %s is built, but names nothing that runs", cells[0])
		}
		if len(cells[3]) < 10 {
			t.Errorf("line %s says no more than %q", cells[0], cells[3])
		}
	}
}

func TestCases_AreAnsweredOnceAndListedWhenUntested(t *testing.T) {
	t.Parallel()
	const cases = 49
	s, err := product()
	if err != nil {
		t.Fatal(err)
	}
	text := document(t, lists[1])
	_, end, found := strings.Cut(text, "\n## No test yet\n")
	if !found {
		t.Fatal("the section of cases without a test is missing")
	}
	open := map[string]bool{}
	for _, id := range regexp.MustCompile(`(?m)^- (S\d\d)`).FindAllStringSubmatch(end, -1) {
		open[id[1]] = true
	}
	got := rows(text, regexp.MustCompile(`^S\d\d$`))
	if len(got) != cases {
		t.Errorf("%d cases are answered, there are %d", len(got), cases)
	}
	for i, cells := range got {
		if want := fmt.Sprintf("S%02d", i+1); cells[0] != want {
			t.Fatalf("case %s is where %s is expected", cells[0], want)
		}
		if len(cells) != 4 {
			t.Errorf("case %s has %d cells; want id, fault, what prevents it, test", cells[0], len(cells))
			continue
		}
		without := strings.Contains(cells[3], "no test yet")
		if !without && !s.proved(cells[3]) {
			t.Errorf("case %s names no test and does not say so", cells[0])
		}
		if without != open[cells[0]] {
			t.Errorf("case %s: without a test: %v; in the list of those: %v", cells[0], without, open[cells[0]])
		}
	}
}

// statuses reads the names of a job's statuses from the source, so that this package compiles
// without the product.
func statuses(t *testing.T) []string {
	t.Helper()
	const at = "shared/job/status.go"
	s, err := parse(at, []byte(document(t, at)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Status" {
			if name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err == nil {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

func TestStatusMap_CoversEachStatus(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(document(t, lists[0]), "\n## The map of status names\n")
	if !found {
		t.Fatal("the map of status names is missing")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	ours, name := statuses(t), regexp.MustCompile("`([A-Z]+)`")
	if len(ours) < 5 {
		t.Fatalf("only %d statuses found: this test reads the wrong file", len(ours))
	}
	reached := map[string]bool{}
	for _, cells := range rows(text, name) {
		for _, m := range name.FindAllStringSubmatch(cells[0], -1) {
			if !slices.Contains(ours, m[1]) {
				t.Errorf("%s is no status of a job", m[1])
			}
			reached[m[1]] = true
		}
	}
	for _, name := range ours {
		if !reached[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

func TestLists_ReportMissingNames(t *testing.T) {
	t.Parallel()
	s, err := shownIn(fstest.MapFS{
		"Makefile": {Data: []byte("bench: ## Measure\n\tgo test\nGO ?= go\n")},
		"functions/api/a_test.go": {Data: []byte("package api\n\nimport \"testing\"\n\n" +
			"func TestA(t *testing.T) { t.Run(\"a sentence\", nil) }\nfunc helper() {}\n")},
		"functions/api/a.go": {Data: []byte("package api\n\nfunc TestB() {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"`functions/api.TestA`":                  "",
		"`functions/api.TestA/a sentence`":       "",
		"`functions/api.TestA/another`":          `TestA of functions/api has no "another"`,
		"`functions/api.TestB`":                  "functions/api has no TestB",
		"`functions/status.TestA`":               "functions/status has no TestA",
		"`make bench`":                           "",
		"`make coffee`":                          "the Makefile has no target coffee",
		"`go test ./functions/api/...`":          "",
		"`go test ./functions/gone`":             "there is no functions/gone",
		"`functions/api/a.go`":                   "",
		"`functions/api/b.go`":                   "there is no functions/api/b.go",
		"`GET /v1/jobs`, `run_at`, `shared`":     "",
		"TestA":                                  "TestA is named without its package",
		"`TestA`":                                "TestA is named without its package",
		"`functions/api.TestA` and `TestA/deep`": "TestA is named without its package",
	} {
		if got := strings.Join(s.lost(text), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if s.proved("`functions/api/a.go` and words") || !s.proved("see `make bench`") {
		t.Error("a file was taken for something that runs, or a command was not")
	}
}
