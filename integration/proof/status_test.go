package proof

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func content(t *testing.T, at string) string {
	t.Helper()
	text, err := fs.ReadFile(os.DirFS(root), at)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// statuses reads the names of a job's statuses from the source, so that this package compiles
// without the product.
func statuses(t *testing.T) []string {
	t.Helper()
	const at = "shared/job/status.go"
	syntax, err := parser.ParseFile(token.NewFileSet(), at, content(t, at), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(syntax, func(n ast.Node) bool {
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

//proof:of 53 54 57 61
func TestStatusMap_CoversEachStatus(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(content(t, lists[0].document), "\n## The map of status names\n")
	if !found {
		t.Fatal("the map of status names is missing")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	ours, name := statuses(t), regexp.MustCompile("`([A-Z]+)`")
	if len(ours) < 5 {
		t.Fatalf("only %d statuses found: this test reads the wrong file", len(ours))
	}
	reached := map[string]bool{}
	for line := range strings.Lines(text) {
		cells, ok := cellsOf(strings.TrimSpace(line))
		if !ok {
			continue
		}
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
