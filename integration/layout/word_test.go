package layout

import (
	_ "embed"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed words.txt
var words string

func TestWords_NoNameAndNoDescriptionUsesOneThatGoes(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	list := readWords(words)
	for _, f := range files {
		for _, n := range slices.Concat(list.names(f), list.texts(f)) {
			t.Errorf("%s: %s", n.where, n.why)
		}
		for _, n := range list.comments(f) {
			t.Errorf("%s: the comment %s", n.where, n.why)
		}
	}
}

func TestWords_NoDocumentUsesOneThatGoes(t *testing.T) {
	t.Parallel()
	list := readWords(words)
	var pages []string
	for _, pattern := range documents {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is named %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(quoted.ReplaceAllString(string(text), "x"), "\n") {
			if why, found := list.prose(line); found {
				t.Errorf("%s, line %d without its blocks of code: %s", page, n+1, why)
			}
		}
	}
}

func TestWords_FindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	list := readWords(words)
	for name, c := range map[string]struct{ at, text, want string }{
		"a function":            {"shared/job/a.go", "func JudgeRow() {}", "shared/job JudgeRow"},
		"an inflection":         {"shared/job/a.go", "var wasJudged bool", "shared/job wasJudged"},
		"a method":              {"shared/job/a.go", "type T int\nfunc (T) tellAll() {}", "shared/job tellAll"},
		"a type":                {"shared/job/a.go", "type Misfit int", "shared/job Misfit"},
		"a field":               {"shared/job/a.go", "type T struct{ owes int }", "shared/job owes"},
		"a parameter":           {"shared/job/a.go", "func F(again int) {}", "shared/job again"},
		"a local variable":      {"shared/job/a.go", "func F() { place := 1; _ = place }", "shared/job place"},
		"a word of a range":     {"shared/job/a.go", "func F() { for look := range 3 {} }", "shared/job look"},
		"a file":                {"shared/job/misfit.go", "", "shared/job misfit"},
		"two words":             {"shared/job/a.go", "const PutOffBy = 1", "shared/job PutOffBy"},
		"a word in its meaning": {"shared/run/a.go", "const inLine = 1", "shared/run inLine"},
		"that word elsewhere":   {"shared/text/a.go", "const line = 1", ""},
		"the subject of a test": {"shared/job/a_test.go", "func TestJudge_Judges() {}", "shared/job TestJudge_Judges"},
		"a test's sentence":     {"shared/job/a_test.go", "func TestRow_IsReadAgain() {}", ""},
		"a part of a word":      {"shared/job/a.go", "var inPlacement, handler, hotel, action int", ""},
		"a product's name":      {"infra/a.go", "var CloudWatchAlarm int", ""},
		"a doc tag": {"functions/api/jobs/a.go", "type T struct{ A int `doc:\"Time of the last look\"` }",
			"functions/api/jobs/a.go"},
		"a dangling doc tag": {"functions/api/jobs/a.go", "type T struct{ A int `doc:\"Of its job\"` }",
			"functions/api/jobs/a.go"},
		"a good doc tag": {"functions/api/jobs/a.go", "type T struct{ A int `doc:\"Time at which it began\"` }", ""},
		"a dangling description": {"functions/api/jobs/a.go", `var f = field.Text("name", "What is " + "sent", nil)`,
			"functions/api/jobs/a.go"},
		"a comment": {"shared/job/a.go", "// Row is what\n// a worker has told.\ntype Row int", "shared/job/a.go"},
		"a comment beside a statement": {"shared/job/a.go", "var n int // put off",
			"shared/job/a.go"},
		"a good comment": {"shared/job/a.go", "// Row looks like a line of text, in place.", ""},
		"a dangling summary": {"functions/api/jobs/a.go", `var r = Route{Summary: "Those that ended"}`,
			"functions/api/jobs/a.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := c.at[:strings.LastIndex(c.at, "/")]
			text := "package " + dir[strings.LastIndex(dir, "/")+1:] + "\n" + c.text + "\n"
			f, err := parse(token.NewFileSet(), c.at, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range slices.Concat(list.names(f), list.texts(f), list.comments(f)) {
				got = append(got, n.where)
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
				t.Errorf("found %q, want only %q", got, c.want)
			}
		})
	}
}
