package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestDocument_FitsTheAnswersAboutSchedules(t *testing.T) {
	t.Parallel()
	b, _ := history(t)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sat"],"ranges":[{"from":"2027-12-24","to":"2027-12-26"}]}`)
	text := b.want(t, 200, "GET", "/v1/openapi.json", "").text
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema := func(path, method string, status int) *jsonschema.Schema {
		t.Helper()
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		if err := c.AddResource("mem:openapi", document); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile(fmt.Sprintf("mem:openapi#/paths/%s/%s/responses/%d/content/application~1json/schema",
			escaped, strings.ToLower(method), status))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		method, path, document, body string
		status                       int
	}{
		{"PUT", "/v1/schedules/full", "/v1/schedules/{name}",
			`{"calendar":{"cron":"0 0 13 * 5","timezone":"Europe/Berlin","exclude":["x"],"spread":"5m"},"job":{"task":"echo","payload":{"a":[1]},"tags":{"a":"b"},"metadata":{"a":[1]},"start_within":"1m"},"overlap":"skip"}`, 200},
		{"POST", "/v1/jobs", "/v1/jobs", `{"task":"echo","tags":{"a":"b"},"metadata":{"a":[1]}}`, 202},
		{"GET", "/v1/jobs", "/v1/jobs", "", 200},
		{"PUT", "/v1/schedules/s", "/v1/schedules/{name}", daily, 200},
		{"GET", "/v1/schedules/s", "/v1/schedules/{name}", "", 200},
		{"GET", "/v1/schedules", "/v1/schedules", "", 200},
		{"GET", "/v1/schedules/s/occurrences", "/v1/schedules/{name}/occurrences", "", 200},
		{"GET", "/v1/schedules/full/preview", "/v1/schedules/{name}/preview", "", 200},
		{"POST", "/v1/schedules/preview", "/v1/schedules/preview",
			`{"calendar":{"cron":"30 2 * * *","timezone":"Europe/Berlin","missing_hour":"skip"},"after":"2027-03-27T12:00:00Z"}`, 200},
		{"PATCH", "/v1/schedules/s", "/v1/schedules/{name}", `{"overlap":"skip"}`, 200},
		{"PATCH", "/v1/schedules/s?dry_run=true", "/v1/schedules/{name}", `{"calendar":{"cron":"0 11 * * 1-5"}}`, 200},
		{"POST", "/v1/schedules/s/pause", "/v1/schedules/{name}/pause",
			`{"reason":"why","until":"2027-03-03T00:00:00Z"}`, 200},
		{"POST", "/v1/schedules/s/resume", "/v1/schedules/{name}/resume", "", 200},
		{"POST", "/v1/schedules/s/run-now", "/v1/schedules/{name}/run-now", "", 202},
		{"GET", "/v1/exclusions/x", "/v1/exclusions/{name}", "", 200},
		{"GET", "/v1/exclusions", "/v1/exclusions", "", 200},
		{"GET", "/v1/health", "/v1/health", "", 200},
	} {
		r := b.do(t, c.method, c.path, c.body)
		if r.status >= 300 {
			t.Errorf("%s %s answered %d %s", c.method, c.path, r.status, r.text)
			continue
		}
		if err := schema(c.document, c.method, c.status).Validate(any(r.body)); err != nil {
			t.Errorf("%s %s: %v\n%s", c.method, c.path, err, r.text)
		}
	}
}
