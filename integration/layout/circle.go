package layout

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// downward lists the folders in whose packages files use each other in one direction only: a reader who follows a call
// goes down and comes back with a value. The compiler holds this between packages only.
var downward = []string{"functions/engine", "workers/worker"}

// checkCircles checks that no files of the packages in downward use each other in a circle.
func checkCircles(files []source) []string {
	packages := map[string][]source{}
	for _, f := range files {
		if inAny(downward, f.dir) && !f.test() {
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	var breaches []string
	for dir, files := range packages {
		uses := usesIn(dir, files)
		for _, circle := range circlesIn(uses) {
			breaches = append(breaches, fmt.Sprintf("%s: %s use each other in a circle (%s): move what both need into "+
				"a file below, or return a value to the caller", dir, strings.Join(circle, ", "), links(uses, circle)))
		}
	}
	return breaches
}

// usage is which definitions of other files the files of a package use: the user, the definer, the names.
type usage map[string]map[string]map[string]bool

// usesIn finds the uses between the files of a package. Imports are not read, so a field or method that is reached
// through a value of another package is not seen.
func usesIn(dir string, files []source) usage {
	var syntax []*ast.File
	for _, f := range files {
		syntax = append(syntax, f.syntax)
	}
	fset := files[0].fset
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}} // what needs an import is an error
	pkg, _ := config.Check(dir, fset, syntax, &info)
	uses := usage{}
	for name, object := range info.Uses {
		if object.Pkg() != pkg || isLocal(object) {
			continue
		}
		user := filepath.Base(fset.Position(name.Pos()).Filename)
		definer := filepath.Base(fset.Position(object.Pos()).Filename)
		if user == definer {
			continue
		}
		if uses[user] == nil {
			uses[user] = map[string]map[string]bool{}
		}
		if uses[user][definer] == nil {
			uses[user][definer] = map[string]bool{}
		}
		uses[user][definer][object.Name()] = true
	}
	return uses
}

// isLocal says that a definition is seen in its own file only: a variable of a function, or the name of an import.
func isLocal(object types.Object) bool {
	if v, ok := object.(*types.Var); ok && v.IsField() {
		return false
	}
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		return false
	}
	return object.Parent() != object.Pkg().Scope()
}

// noImports imports nothing.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not read")
}

// circlesIn returns the files that use each other in a circle, each circle once and sorted.
func circlesIn(uses usage) (circles [][]string) {
	reached := map[string]map[string]bool{}
	var reach func(from, at string)
	reach = func(from, at string) {
		for next := range uses[at] {
			if !reached[from][next] {
				reached[from][next] = true
				reach(from, next)
			}
		}
	}
	for file := range uses {
		reached[file] = map[string]bool{}
		reach(file, file)
	}
	seen := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if seen[file] || !reached[file][file] {
			continue
		}
		circle := []string{file}
		for _, other := range slices.Sorted(maps.Keys(reached[file])) {
			if other != file && reached[other][file] {
				circle = append(circle, other)
				seen[other] = true
			}
		}
		circles = append(circles, circle)
	}
	return circles
}

// links names what the files of a circle use of each other.
func links(uses usage, circle []string) string {
	var list []string
	for _, user := range circle {
		for _, definer := range circle {
			if names := slices.Sorted(maps.Keys(uses[user][definer])); len(names) > 0 {
				list = append(list, fmt.Sprintf("%s uses %s of %s", user, strings.Join(names, ", "), definer))
			}
		}
	}
	return strings.Join(list, "; ")
}
