package api_test

import (
	"strings"
	"testing"
)

// Bodies are documented by structs and read by code of their own. A field that only the document has would be accepted
// and ignored. No field accepts a list of an object, so each field must be reported.
func TestDocument_HasNoFieldThatIsNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.want(t, 201, "PUT", "/v1/tasks/queue", `{"executor":"sqs"}`)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"every":"1d"},"job":{"task":"echo"}}`)
	doc := b.want(t, 200, "GET", "/v1/openapi.json", "")
	schemas := doc.body["components"].(map[string]any)["schemas"].(map[string]any)
	for _, c := range []struct{ schema, method, path, around string }{
		{"JobRequest", "POST", "/v1/jobs", `{"task":"echo",%}`},
		{"BatchJobRequest", "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo",%}]}`},
		{"BatchRequest", "POST", "/v1/jobs/batch", `{%}`},
		{"RetryRequest", "POST", "/v1/jobs", `{"task":"echo","retry":{%}}`},
		{"HTTPPayload", "POST", "/v1/jobs", `{"task":"http","payload":{"url":"https://example.com",%}}`},
		{"HTTPAuth", "POST", "/v1/jobs", `{"task":"http","payload":{"url":"https://example.com","auth":{%}}}`},
		{"SQSPayload", "POST", "/v1/jobs", `{"task":"queue","payload":{"queue":"q","message":"m",%}}`},
		{"LambdaPayload", "POST", "/v1/jobs", `{"task":"lambda","payload":{"function":"f",%}}`},
		{"JobPatchRequest", "PATCH", "/v1/jobs/" + id, `{%}`},
		{"JobPauseRequest", "POST", "/v1/jobs/" + id + "/pause", `{%}`},
		{"RedriveRequest", "POST", "/v1/jobs/" + b.dead(t, `{"task":"echo"}`) + "/redrive", `{%}`},
		{"TaskRequest", "PUT", "/v1/tasks/t", `{"executor":"go",%}`},
		{"PauseRequest", "PUT", "/v1/pauses/all", `{%}`},
		{"DeadLettersByIDRequest", "POST", "/v1/dead-letters/redrive", `{%}`},
		{"DeadLettersByFilterRequest", "POST", "/v1/dead-letters/redrive", `{%}`},
		{"DeadLetterFilterRequest", "POST", "/v1/dead-letters/redrive", `{"filter":{%}}`},
		{"PreviewRequest", "POST", "/v1/schedules/preview", `{%}`},
		{"CronCalendarRequest", "POST", "/v1/schedules/preview", `{"calendar":{%}}`},
		{"EveryCalendarRequest", "POST", "/v1/schedules/preview", `{"calendar":{%}}`},
		{"DatesCalendarRequest", "POST", "/v1/schedules/preview", `{"calendar":{%}}`},
		{"RRuleCalendarRequest", "POST", "/v1/schedules/preview", `{"calendar":{%}}`},
		{"ScheduleRequest", "PUT", "/v1/schedules/x", `{%}`},
		{"SchedulePatchRequest", "PATCH", "/v1/schedules/s", `{%}`},
		{"JobTemplateRequest", "PUT", "/v1/schedules/x", `{"job":{"task":"echo",%}}`},
		{"CatchUpRequest", "PUT", "/v1/schedules/x", `{"catch_up":{%}}`},
		{"RunNowRequest", "POST", "/v1/schedules/s/run-now", `{%}`},
		{"ResumeRequest", "POST", "/v1/schedules/s/resume", `{%}`},
		{"ExclusionRequest", "PUT", "/v1/exclusions/x", `{%}`},
		{"ExclusionRangeRequest", "PUT", "/v1/exclusions/x", `{"ranges":[{%}]}`},
	} {
		for field, s := range schemas[c.schema].(map[string]any)["properties"].(map[string]any) {
			if schema := s.(map[string]any); schema["type"] == nil && schema["$ref"] == nil &&
				field != "payload_schema" {
				continue // accepts any value
			}
			// The field comes first. If the body has it already, it is reported as repeated.
			r := b.do(t, c.method, c.path, strings.Replace(c.around, "%", `"`+field+`":[{}]`, 1))
			if !strings.Contains(r.text, `/`+field) || r.status != 400 && r.body["refused"] != 1.0 {
				t.Errorf("%s: the field %s is taken and not read: %d %.300s", c.schema, field, r.status, r.text)
			}
		}
	}
}
