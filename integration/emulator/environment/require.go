package environment

import (
	"os"
	"strconv"
	"testing"
)

// SkipOrFail ends t because something that it needs is missing: it skips on a developer's machine,
// and fails where CI is true, so that no skip can hide a gap there.
func SkipOrFail(t testing.TB, reason string) {
	t.Helper()
	skipOrFail(t, os.Getenv("CI"), reason)
}

func skipOrFail(t testing.TB, ci, reason string) {
	t.Helper()
	if must, err := strconv.ParseBool(ci); err == nil && must {
		t.Fatalf("needed where CI=true: %s", reason)
	}
	t.Skip(reason)
}
