package proof

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

var update = flag.Bool("update", false, "write the documents anew")

//proof:of 205
func TestLists_AreWrittenFromTextsAndMarks(t *testing.T) {
	t.Parallel()
	documents, problems, err := writeAll(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	for at, want := range documents {
		file := filepath.Join(root, filepath.FromSlash(at))
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if string(have) != want {
			t.Errorf("%s is not what texts and marks say: make generate writes it; %s",
				at, firstChange(string(have), want))
		}
	}
}

// firstChange says where two texts begin to differ.
func firstChange(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nand is to be\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("it has %d lines and is to have %d", len(a), len(b))
}

func TestLists_HaveEveryPromiseAndCase(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, l := range lists {
		text, err := fs.ReadFile(os.DirFS(root), l.text)
		if err != nil {
			t.Fatal(err)
		}
		p := page{list: l}
		p.write(string(text))
		ids = append(ids, p.ids...)
	}
	for _, group := range []struct {
		format string
		count  int
	}{{"%d", 205}, {"S%02d", 49}} {
		for n := range group.count {
			if id := fmt.Sprintf(group.format, n+1); !slices.Contains(ids, id) {
				t.Errorf("line %s is missing", id)
			}
		}
	}
}

const (
	plantedText = "# Lists\n\n| # | promise | answer | how |\n|---|---|---|---|\n" +
		"| 1 | One | **built** | As promised |\n| 2 | Two | **declined** | Not wanted |\n" +
		"| 3 | Three | **built** | As promised | `make lint` |\n"
	plantedCases = "# Cases\n\n| case | fault |\n|---|---|\n| S01 | A fault |\n"
	plantedTest  = "package api\n\nimport \"testing\"\n\n//proof:of 1\nfunc TestA_Works(t *testing.T) {\n" +
		"\t//proof:of S01\n\tt.Run(\"a sentence\", nil)\n}\n"
)

func planted(test string) fstest.MapFS {
	return fstest.MapFS{
		"Makefile":                       {Data: []byte("lint: ## Checks\n")},
		"integration/proof/checklist.md": {Data: []byte(plantedText)},
		"integration/proof/cases.md":     {Data: []byte(plantedCases)},
		"functions/api/a_test.go":        {Data: []byte(test)},
		"functions/api/table.go":         {Data: []byte("package api\n\nvar table = []string{\"from a table\"}\n")},
	}
}

func TestLists_NameTheTestsOfEachLine(t *testing.T) {
	t.Parallel()
	documents, problems, err := writeAll(planted(plantedTest))
	if err != nil || len(problems) > 0 {
		t.Fatalf("problems %q, error %v", problems, err)
	}
	for at, wants := range map[string][]string{
		"integration/CHECKLIST.md": {
			"| # | promise | answer | how | what shows it |\n|---|---|---|---|---|\n",
			"| 1 | One | **built** | As promised | `functions/api.TestA_Works` |\n",
			"| 2 | Two | **declined** | Not wanted | — |\n",
			"| 3 | Three | **built** | As promised | `make lint` |\n",
		},
		"integration/CASES.md": {"| S01 | A fault | `functions/api.TestA_Works/a sentence` |\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(documents[at], want) {
				t.Errorf("%s lacks %q:\n%s", at, want, documents[at])
			}
		}
	}
}

func TestLists_RefuseWrongMarksAndTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"an unknown line": {"//proof:of 1\n", "//proof:of 1 7\n", "no line has the id 7"},
		"a line without a mark": {"//proof:of 1\n", "",
			"integration/proof/checklist.md: line 1 has no mark: write //proof:of 1 above"},
		"a mark beside a helper": {"func TestA_Works(", "//proof:of 1\nfunc helper() {}\n\nfunc TestA_Works(",
			"belongs to no test"},
		"a mark above no sentence": {"\tt.Run(", "\tprintln()\n\tt.Run(", "is above no sentence of a subtest"},
		"an unknown subtest": {"//proof:of 1\n", "//proof:of 1 by magic\n",
			"names a subtest that no file of functions/api has"},
		"a subtest of a table": {"//proof:of 1\n", "//proof:of 1 by from a table\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems, err := writeAll(planted(strings.Replace(plantedTest, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(problems, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLostNames_FindsWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"`make lint`":                        "",
		"`make coffee`":                      "the Makefile has no target coffee",
		"`functions/api/table.go`":           "",
		"`functions/api/b.go`":               "there is no functions/api/b.go",
		"`GET /v1/jobs`, `run_at`":           "",
		"`functions/api.TestA_Works` is one": "it names a test",
	} {
		got := strings.Join(lostNames(planted(""), text), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
