package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// source is a Go file, read but not type-checked.
type source struct {
	dir    string // slash-separated, relative to the root; "." for the root
	name   string
	pkg    string // as its package clause says, so "job_test" for an external test
	doc    string // its package comment
	syntax *ast.File
	fset   *token.FileSet // shared by all files of one read
}

// path names the file, relative to the root.
func (s source) path() string { return path.Join(s.dir, s.name) }

// test reports whether the file is compiled into tests only.
func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// read parses every Go file below root. As the go command does, it ignores testdata and folders
// whose names begin with a dot or underscore.
func read(root fs.FS) ([]source, error) {
	var found []source
	fset := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if at != "." && isIgnored(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(at, ".go") || strings.HasPrefix(entry.Name(), "_") ||
			strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		text, err := fs.ReadFile(root, at)
		if err != nil {
			return err
		}
		s, err := parse(fset, at, text)
		if err != nil {
			return err
		}
		found = append(found, s)
		return nil
	})
	return found, err
}

func isIgnored(folder string) bool {
	return folder == "testdata" || folder == "node_modules" || folder == "cdk.out" ||
		strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

func parse(fset *token.FileSet, at string, text []byte) (source, error) {
	file, err := parser.ParseFile(
		fset,
		filepath.FromSlash(at),
		text,
		parser.ParseComments|parser.SkipObjectResolution,
	)
	if err != nil {
		return source{}, fmt.Errorf("reading the layout of %s: %w", at, err)
	}
	return source{
		dir: path.Dir(at), name: path.Base(at), pkg: file.Name.Name, doc: file.Doc.Text(), syntax: file, fset: fset,
	}, nil
}
