package layout

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// check returns a sentence for each rule that a file breaks, sorted.
func check(files []source) []string {
	var breaches []string
	for _, f := range files {
		breaches = append(breaches, checkFolder(f)...)
		breaches = append(breaches, checkLocks(f)...)
	}
	breaches = append(breaches, checkIntroductions(files)...)
	breaches = append(breaches, checkWriteNames(files)...)
	breaches = append(breaches, checkCircles(files)...)
	breaches = append(breaches, checkPorts(files)...)
	slices.Sort(breaches)
	return slices.Compact(breaches)
}

// checkFolder checks that a file is in a known folder.
func checkFolder(f source) []string {
	if inAny(folders, f.dir) {
		return nil
	}
	return []string{fmt.Sprintf("%s is in no known folder: does it decide, act, wire, define or prove? "+
		"A new folder is a line in integration/layout/folders.go", f.path())}
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
