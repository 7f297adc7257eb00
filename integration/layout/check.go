package layout

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// check returns a sentence for each rule that a file breaks, sorted.
func check(files []source) []string {
	var breaches []string
	for _, f := range files {
		breaches = append(breaches, checkFolder(f)...)
		breaches = append(breaches, checkPurity(f)...)
		breaches = append(breaches, checkMain(f)...)
		breaches = append(breaches, checkLocks(f)...)
		breaches = append(breaches, checkClock(f)...)
	}
	breaches = append(breaches, checkIntroductions(files)...)
	slices.Sort(breaches)
	return slices.Compact(breaches)
}

// emptyNames are package names that say nothing about their contents.
var emptyNames = []string{
	"base", "common", "helper", "helpers", "misc", "models", "shared", "types", "util", "utils",
}

// checkFolder checks that every file is in a known folder, in a package whose name says what it is.
func checkFolder(f source) []string {
	if !inAny(folders, f.dir) {
		return []string{fmt.Sprintf("%s is in no known folder: does it decide, act, wire, define or prove? "+
			"A new folder is a line in integration/layout/folders.go", f.path())}
	}
	pkg := strings.TrimSuffix(f.pkg, "_test")
	if slices.Contains(emptyNames, pkg) {
		return []string{fmt.Sprintf("%s: package name %s does not say what the package is for", f.path(), pkg)}
	}
	if folder := path.Base(f.dir); pkg != "main" && pkg != folder {
		return []string{fmt.Sprintf("%s: package %s is in folder %s: a reader finds a package by its folder",
			f.path(), pkg, folder)}
	}
	return nil
}

// checkPurity checks that the core never reads the clock: time is handed in.
func checkPurity(f source) []string {
	if !inAny(core, f.dir) || f.test() {
		return nil
	}
	var breaches []string
	for _, name := range timeCalls(f, clockCalls) {
		breaches = append(breaches, fmt.Sprintf("%s (core) uses time.%s: time is handed in, "+
			"so that the same facts always give the same answer", f.path(), name))
	}
	return breaches
}

// timeCalls returns the names among these that a file uses of package time, once for each use.
func timeCalls(f source, names []string) (used []string) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "time" && slices.Contains(names, s.Sel.Name) {
				used = append(used, s.Sel.Name)
			}
		}
		return true
	})
	return used
}

// ownTime lists the files outside of the core that may read the machine's clock, and why.
var ownTime = map[string]string{
	"functions/api/proxy.go":        "CloudWatch dates metrics by the machine's clock",
	"shared/memory/log.go":          "it counts how long ago it looked at the disk",
	"functions/engine/scan/time.go": "a context's deadline is a time of the machine's clock",
}

// checkClock checks that what goes by a clock that it is handed (a laptop may be set to another time, the simulation's
// clocks differ) does not read the machine's as well.
func checkClock(f source) []string {
	if !inAny(clocked, f.dir) || f.test() || inAny(mains, f.dir) || ownTime[f.path()] != "" {
		return nil
	}
	var breaches []string
	for _, name := range timeCalls(f, machineTime) {
		breaches = append(breaches, fmt.Sprintf("%s uses time.%s: it is handed a clock, and two clocks in one "+
			"decision disagree", f.path(), name))
	}
	return breaches
}

// checkMain checks that a Lambda's program decides nothing.
func checkMain(f source) []string {
	if !inAny(mains, f.dir) || f.test() {
		return nil
	}
	var breaches []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SelectStmt:
			breaches = append(breaches, fmt.Sprintf("%s (main) decides something: no test reaches a main; "+
				"what it decides belongs into its stage", f.path()))
			return false
		}
		return true
	})
	return slices.Compact(breaches)
}

// checkIntroductions checks that every package but a program says in its doc.go what it is for.
func checkIntroductions(files []source) []string {
	introduced := map[string]bool{}
	for _, f := range files {
		if f.pkg == "main" || f.pkg == "main_test" {
			continue
		}
		begins := strings.HasPrefix(f.doc, "Package "+f.pkg+" ")
		introduced[f.dir] = introduced[f.dir] || f.name == "doc.go" && begins
	}
	var breaches []string
	for dir, ok := range introduced {
		if !ok {
			breaches = append(breaches, fmt.Sprintf("%s has no doc.go that begins \"Package %s …\": "+
				"it says what the package is for, what always holds, how it fails", dir, path.Base(dir)))
		}
	}
	return breaches
}

// topLevel is all that the root holds, dot files apart.
var topLevel = []string{
	"functions", "infra", "shared", "workers", "integration",
	"cdk.json", "package.json", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md",
	"CONTRIBUTING.md",
}

// checkTop checks that the root holds only what is listed.
func checkTop(names []string) []string {
	var breaches []string
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			breaches = append(breaches, fmt.Sprintf("%s is at the top level, which is fixed (%s): "+
				"it belongs into one of the folders", name, strings.Join(topLevel, " ")))
		}
	}
	return breaches
}
