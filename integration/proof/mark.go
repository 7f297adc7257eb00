package proof

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// directive begins a mark. gofmt leaves comments of this form as they are.
const directive = "//proof:of "

// mark says which test shows the line with an id.
type mark struct {
	id   string
	test string // folder.Function, or folder.Function/sentence
	at   string // file:line
}

var testFunction = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)[A-Z]`)

// readMarks returns the marks of all tests below root, and a sentence for each that belongs to no test.
func readMarks(root fs.FS) (marks []mark, problems []string, err error) {
	err = fs.WalkDir(root, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && at != "." && isIgnored(entry.Name()) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(at, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(root, at)
		if err != nil || !strings.Contains(string(text), directive) {
			return err
		}
		f := testFile{root: root, at: at, set: token.NewFileSet()}
		f.syntax, err = parser.ParseFile(f.set, at, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the marks of %s: %w", at, err)
		}
		found, bad := f.marks()
		marks, problems = append(marks, found...), append(problems, bad...)
		return nil
	})
	return marks, problems, err
}

// isIgnored reports whether the go command ignores a folder, or a tool wrote it.
func isIgnored(folder string) bool {
	return folder == "testdata" || folder == "node_modules" || folder == "cdk.out" ||
		strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

// testFile is a file that has marks.
type testFile struct {
	root   fs.FS
	at     string
	set    *token.FileSet
	syntax *ast.File
}

func (f testFile) line(at token.Pos) int { return f.set.Position(at).Line }

// marks returns the marks of the file, and a sentence for each that belongs to no test.
func (f testFile) marks() (marks []mark, problems []string) {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			text, found := strings.CutPrefix(c.Text, directive)
			if !found {
				continue
			}
			at := fmt.Sprintf("%s:%d", f.at, f.line(c.Pos()))
			ids, sentence, _ := strings.Cut(text, " by ")
			test, problem := f.test(group, sentence)
			if problem != "" {
				problems = append(problems, fmt.Sprintf("%s: the mark %q %s", at, c.Text, problem))
			}
			for _, id := range strings.Fields(ids) {
				marks = append(marks, mark{id: id, test: test, at: at})
			}
		}
	}
	return marks, problems
}

// test returns the test that a mark in group belongs to, or what is wrong with the mark. sentence is the subtest that
// the mark names itself, "" for none.
func (f testFile) test(group *ast.CommentGroup, sentence string) (test, problem string) {
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !testFunction.MatchString(fn.Name.Name) {
			continue
		}
		name := path.Dir(f.at) + "." + fn.Name.Name
		switch {
		case fn.Doc == group && sentence == "":
			return name, ""
		case fn.Doc == group && f.holds(sentence):
			return name + "/" + sentence, ""
		case fn.Doc == group:
			return "", fmt.Sprintf("names a subtest that no file of %s has", path.Dir(f.at))
		case fn.Pos() < group.Pos() && group.End() < fn.End():
			if next := f.sentenceAt(fn, f.line(group.End())+1); next != "" {
				return name + "/" + next, ""
			}
			return "", "is above no sentence of a subtest"
		}
	}
	return "", "belongs to no test"
}

// sentenceAt returns the first string on a line of fn, "" for none.
func (f testFile) sentenceAt(fn *ast.FuncDecl, line int) (sentence string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		if ok && l.Kind == token.STRING && f.line(l.Pos()) == line && sentence == "" {
			sentence, _ = strconv.Unquote(l.Value) // what was parsed can be unquoted
		}
		return true
	})
	return sentence
}

// holds reports whether a Go file in the folder has the sentence as a string.
func (f testFile) holds(sentence string) bool {
	files, _ := fs.Glob(f.root, path.Dir(f.at)+"/*.go") // the pattern is good
	for _, at := range files {
		if text, err := fs.ReadFile(f.root, at); err == nil && strings.Contains(string(text), strconv.Quote(sentence)) {
			return true
		}
	}
	return false
}
