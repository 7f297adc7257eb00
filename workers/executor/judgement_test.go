package executor

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSameHost_ComparesNamePortAndScheme(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"http://a.test/", "http://a.test/x?y", true},
		{"http://a.test/", "http://A.TEST:80/", true},
		{"https://a.test:443/", "https://a.test./", true},
		{"http://a.test/", "https://a.test/", true}, // a step up
		{"http://a.test:80/", "https://a.test:443/", true},
		{"https://a.test/", "http://a.test/", false}, // a step down
		{"http://a.test:8080/", "https://a.test/", false},
		{"http://a.test/", "https://a.test:8443/", false},
		{"https://a.test/", "https://a.test:8443/", false},
		{"https://a.test/", "https://b.test/", false},
		{"https://a.test/", "https://sub.a.test/", false},
		{"https://sub.a.test/", "https://a.test/", false},
		{"https://a.test/", "https://a.test.evil.test/", false},
	} {
		from, _ := url.Parse(c.from)
		to, _ := url.Parse(c.to)
		if got := sameHost(from, to); got != c.want {
			t.Errorf("from %s to %s stays with the host: %v; want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestFitting_IsTheLongestBeginningThatFits(t *testing.T) {
	t.Parallel()
	quoted := func(s string) int {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
		return b.Len() - len("\"\"\n")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(rapid.StringOf(rapid.OneOf(rapid.Rune(),
			rapid.RuneFrom([]rune("\x00\b\f\n\"\\<>&\u2028\x7fü😀")))).Draw(t, "text"), "")
		room := rapid.IntRange(0, 40).Draw(t, "room")
		got := fitting(text, room)
		if !strings.HasPrefix(text, got) || quoted(got) > room {
			t.Fatalf("%q does not fit into %d", got, room)
		}
		if rest := text[len(got):]; rest != "" {
			_, size := utf8.DecodeRuneInString(rest)
			if next := text[:len(got)+size]; quoted(next) <= room {
				t.Fatalf("%q would fit into %d, too", next, room)
			}
		}
	})
}

// Read once per process by net/http, so that no test could set the environment in time.
func TestGuard_UsesNoProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	if (guard{}).transport().Proxy != nil {
		t.Error("a proxy would be connected to instead of the target")
	}
}
