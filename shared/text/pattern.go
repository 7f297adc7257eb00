package text

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first asked for, and panics then if it cannot be.
// It is for those with long repetitions: each takes up to a millisecond, which every start of a function and of the
// command line would wait for.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
