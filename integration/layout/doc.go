// Package layout holds the shape of the repository as a test: the fixed top
// level, which room may import which, which room is the one door of each
// foreign library, and that every room introduces itself.
//
// It reads source text only (go/parser) and so needs no build, no network and
// no compiled dependency; folders that do not exist yet break no rule.
//
// A breach names the file, what it did, and the reason of the rule it broke, so
// that whoever meets it can judge whether the line or the rule is wrong. A new
// room or a new foreign library is a line in rooms.go or libraries.go.
package layout
