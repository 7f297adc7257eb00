package api_test

import (
	"strings"
	"testing"
)

func TestTexts_RefuseCharactersThatNobodySees(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
	run := b.want(t, 202, "POST", "/v1/dags/d/runs", "").str("run_id")
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	for _, c := range []struct{ method, path, body, at string }{
		{"PUT", "/v1/pauses/all", `{"reason":"?"}`, "/reason"},
		{"POST", "/v1/schedules/s/pause", `{"reason":"?"}`, "/reason"},
		{"POST", "/v1/runs/" + run + "/pause", `{"reason":"?"}`, "/reason"},
		{"POST", "/v1/jobs", `{"task":"echo","tags":{"a":"?"}}`, "/tags/a"},
		{"POST", "/v1/jobs", `{"task":"echo","metadata":{"a":["?"]}}`, "/metadata/a/0"},
	} {
		for _, hidden := range []string{`\u0007`, `\u001b[2J`, `\u0085`, `\u009b`, `\u202e`, `\u2066`, `\u200f`} {
			body := strings.Replace(c.body, "?", "x"+hidden, 1)
			if m := violationOf(b.want(t, 400, c.method, c.path, body)); m["pointer"] != c.at ||
				m["code"] != "invalid_value" {
				t.Errorf("%s %s: %v", c.path, body, m)
			}
		}
	}
	b.want(t, 201, "PUT", "/v1/pauses/all", `{"reason":"Wartung – שלום 漢字 😀"}`)
}
