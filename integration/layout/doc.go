// Package layout holds the shape of the repository as a test, as far as a
// linter cannot: the fixed top level, the list of folders, a doc.go in every
// package, no waiting while a lock is held, files that use each
// other in one direction, ports that are declared once, writes that no other
// package names by a text, names and descriptions without the words of
// words.txt, and decisions that are listed. What a linter can hold is a rule in
// .golangci.yml.
//
// It reads source text only (go/parser) and so needs no build and no network.
// A folder that does not exist yet breaks no rule.
//
// A breach names the file, what it did, and the reason of the rule, so that
// a reader can see whether the line or the rule is wrong.
package layout
