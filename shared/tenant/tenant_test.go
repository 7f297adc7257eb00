package tenant_test

import (
	"strings"
	"testing"

	"punctual/shared/tenant"
)

func TestParse_AcceptsWhatIsSafeInEveryKey(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"acme", "ACME-1", "a.b_c", ".hidden", "a..b", "-", "7", strings.Repeat("a", 64)} {
		if id, err := tenant.Parse(s); err != nil || string(id) != s {
			t.Errorf("%q: %q, %v", s, id, err)
		}
	}
}

//proof:of F34
func TestParse_RefusesWhatWouldBreakAKey(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", ".", "..", "...", strings.Repeat(".", 64), "a/b", "../a", "a#b", "a b", "a\n", "*",
		"a*", "é", "a\x00", "a%2e", strings.Repeat("a", 65)} {
		if id, err := tenant.Parse(s); err == nil {
			t.Errorf("%q was taken as %q", s, id)
		}
	}
}
