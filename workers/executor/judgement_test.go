package executor

import (
	"net/url"
	"testing"
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
