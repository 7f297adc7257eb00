package layout

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// module is the name that our own import paths begin with.
const module = "punctual"

// judge returns a sentence for each rule that a file breaks, sorted.
func judge(files []source) []string {
	var breaches []string
	for _, f := range files {
		breaches = append(breaches, judgePlace(f)...)
		for _, to := range f.imports {
			breaches = append(breaches, judgeImport(f, to)...)
		}
		breaches = append(breaches, judgePurity(f)...)
		breaches = append(breaches, judgeDoor(f)...)
	}
	breaches = append(breaches, judgeOneRoom(files)...)
	breaches = append(breaches, judgeIntroductions(files)...)
	slices.Sort(breaches)
	return breaches
}

// judgePlace holds that every file stands in a room, under a name that says what it is.
func judgePlace(f source) []string {
	if roomOf(f.dir) == nowhere {
		return []string{fmt.Sprintf("%s stands in no room: one sentence finds a line's home, does it judge, act, wire, agree or prove? (a new room is a line in integration/layout/rooms.go)", f.path())}
	}
	pkg := strings.TrimSuffix(f.pkg, "_test")
	if slices.Contains([]string{"base", "common", "helper", "helpers", "misc", "models", "shared", "types", "util", "utils"}, pkg) {
		return []string{fmt.Sprintf("%s: package %s says where its lines were put, not what they are for: name it after what it knows", f.path(), pkg)}
	}
	if folder := f.dir[strings.LastIndex(f.dir, "/")+1:]; pkg != "main" && pkg != folder {
		return []string{fmt.Sprintf("%s: package %s stands in folder %s: a reader finds a package by its folder", f.path(), pkg, folder)}
	}
	return nil
}

// judgeImport holds the table of rooms and the doors of the foreign libraries.
func judgeImport(f source, to string) []string {
	from := roomOf(f.dir)
	first, rest, _ := strings.Cut(to, "/")
	switch {
	case from == nowhere: // said by judgePlace
		return nil
	case first == module:
		if mayImport(f.dir, rest, f.test()) {
			return nil
		}
		return []string{fmt.Sprintf("%s (%s) imports %s: %s", f.path(), from, rest, rules[from].reason)}
	case !strings.Contains(first, "."):
		return judgeStandard(f, to)
	}
	l, known := libraryOf(to)
	if !known {
		return []string{fmt.Sprintf("%s imports %s, which has no door: every foreign library has one, with its reason (integration/layout/libraries.go)", f.path(), to)}
	}
	if !l.admits(f.dir, f.test()) {
		return []string{fmt.Sprintf("%s (%s) imports %s, whose door is %s: %s", f.path(), from, to, l.where(), l.reason)}
	}
	return nil
}

// judgeStandard holds what of the standard library a room must do without.
func judgeStandard(f source, to string) []string {
	below := func(path string) bool { return to == path || strings.HasPrefix(to, path+"/") }
	switch {
	case f.test():
		return nil
	case roomOf(f.dir) == core && slices.ContainsFunc(impure, below) && !slices.Contains(pure, to):
		return []string{fmt.Sprintf("%s (core) imports %s: a decision is a value; no clock, no dice, no input or output, the caller acts", f.path(), to)}
	case below("testing") && !proves(f):
		return []string{fmt.Sprintf("%s imports %s outside tests: the program would carry the test framework and its flags", f.path(), to)}
	}
	return nil
}

// proves reports whether f is there for tests although its name does not say so.
func proves(f source) bool {
	r := roomOf(f.dir)
	return r == proof || r == conformance || strings.HasSuffix(f.pkg, "test")
}

// judgePurity holds that the core never looks at the clock: time is handed in.
func judgePurity(f source) []string {
	if roomOf(f.dir) != core || f.test() {
		return nil
	}
	var breaches []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if p, ok := s.X.(*ast.Ident); ok && p.Name == "time" && slices.Contains(clockCalls, s.Sel.Name) {
			breaches = append(breaches, fmt.Sprintf("%s (core) uses time.%s: time is handed in, so that the same facts always give the same answer", f.path(), s.Sel.Name))
		}
		return true
	})
	return breaches
}

// judgeDoor holds that a Lambda's door decides nothing.
func judgeDoor(f source) []string {
	if roomOf(f.dir) != door || f.test() {
		return nil
	}
	var breaches []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SelectStmt:
			breaches = append(breaches, fmt.Sprintf("%s (door) decides something: a door is short and straight, since no test reaches it; what it decides belongs into its stage", f.path()))
			return false
		}
		return true
	})
	return slices.Compact(breaches)
}

// judgeOneRoom holds that a library without a fixed door is used from one folder.
func judgeOneRoom(files []source) []string {
	rooms := map[string][]string{}
	for _, f := range files {
		for _, to := range f.imports {
			if l, known := libraryOf(to); known && l.oneRoom && !slices.Contains(rooms[l.path], f.dir) {
				rooms[l.path] = append(rooms[l.path], f.dir)
			}
		}
	}
	var breaches []string
	for _, l := range libraries {
		if at := rooms[l.path]; len(at) > 1 {
			slices.Sort(at)
			breaches = append(breaches, fmt.Sprintf("%s is imported in %s: %s", l.path, strings.Join(at, " and "), l.reason))
		}
	}
	return breaches
}

// judgeIntroductions holds that every package but a program says in its doc.go
// what it is for.
func judgeIntroductions(files []source) []string {
	introduced := map[string]bool{}
	for _, f := range files {
		if f.pkg == "main" || f.pkg == "main_test" {
			continue
		}
		introduced[f.dir] = introduced[f.dir] || f.name == "doc.go" && strings.HasPrefix(f.doc, "Package "+f.pkg+" ")
	}
	var breaches []string
	for dir, ok := range introduced {
		if !ok {
			breaches = append(breaches, fmt.Sprintf("%s has no doc.go that begins \"Package %s …\": a room introduces itself, what it is for, what always holds, how it fails", dir, dir[strings.LastIndex(dir, "/")+1:]))
		}
	}
	return breaches
}

// topLevel is all that the root holds, dot files apart.
var topLevel = []string{
	"functions", "infra", "shared", "workers", "integration",
	"cdk.json", "package.json", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md",
}

// judgeTop holds that the root stays what a reader can take in at a glance.
func judgeTop(names []string) []string {
	var breaches []string
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			breaches = append(breaches, fmt.Sprintf("%s stands at the top, which is fixed (%s): it belongs into one of the rooms", name, strings.Join(topLevel, " ")))
		}
	}
	return breaches
}
