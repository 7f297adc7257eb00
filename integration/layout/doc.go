// Package layout holds the shape of the repository as a test: the fixed top
// level, the list of folders, a core without a clock, mains without decisions,
// a doc.go in every package, names and descriptions without the words of
// words.txt, and decisions that are listed. Import rules are depguard's, in
// .golangci.yml.
//
// It reads source text only (go/parser) and so needs no build and no network.
// A folder that does not exist yet breaks no rule.
//
// A breach names the file, what it did, and the reason of the rule, so that
// a reader can see whether the line or the rule is wrong.
package layout
