package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const ownSecret = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/t-AbCdEf"

//proof:of F35
func TestCreateJob_RefusesSecretsOverPlainHTTP(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]struct{ payload, pointer string }{
		"a bearer token": {`"auth":{"bearer":"` + ownSecret + `"}`, "/payload/auth/bearer"},
		"a header":       {`"headers":{"X-Api-Key":"` + ownSecret + `"}`, "/payload/headers/X-Api-Key"},
	} {
		t.Run("refuses to send a secret over plain HTTP: "+name, func(t *testing.T) {
			t.Parallel()
			deployed, laptop := setup(t), setup(t, allow("127.0.0.0/8", "::1/128", "10.0.0.0/8"))
			post := func(b *bench, url string) reply {
				return b.do(t, "POST", "/v1/jobs", `{"task":"http","payload":{"url":"`+url+`",`+field.payload+`}}`)
			}
			for _, url := range []string{"http://example.com/", "http://example.com:443/", "HTTP://example.com/"} {
				requireRefused(t, deployed, wrong{status: 400, code: "conflicting_fields", pointer: field.pointer},
					post(deployed, url))
			}
			requireRefused(t, laptop, wrong{status: 400, code: "conflicting_fields", pointer: field.pointer},
				post(laptop, "http://10.0.0.1/"))
			for _, url := range []string{"https://example.com/", "http://localhost:9/", "http://127.0.0.1:9/",
				"http://[::1]:9/"} {
				if r := post(laptop, url); r.status != 202 {
					t.Errorf("%s on the laptop: %s", url, r.text)
				}
			}
		})
	}
	b := setup(t) // a signature reveals nothing of its key
	b.want(t, 202, "POST", "/v1/jobs",
		`{"task":"http","payload":{"url":"http://example.com/","sign_with":"`+ownSecret+`"}}`)
}

//proof:of F35
func TestAPI_RefusesSecretsInEveryStoredField(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3", 12)
	job := func(field string) string { return `{"task":"echo",` + field + `}` }
	schedule := func(calendar, job string) string {
		return `{"calendar":{` + calendar + `},"job":{"task":"echo"` + job + `}}`
	}
	for name, c := range map[string]struct{ method, path, body, pointer string }{
		"a tag's value": {"POST", "/v1/jobs", job(`"tags":{"team":"` + token + `"}`), "/tags/team"},
		"a tag's name":  {"POST", "/v1/jobs", job(`"tags":{"` + token + `":"a"}`), "/tags"},
		"a tag that is a password": {"POST", "/v1/jobs", job(`"tags":{"dbPassword":"` + sentinel + `"}`),
			"/tags/dbPassword"},
		"a URL's password": {"POST", "/v1/jobs",
			job(`"payload":{"db":"postgres://app:` + sentinel + `@db/x"}`), "/payload/db"},
		"a URL's parameter": {"POST", "/v1/jobs",
			`{"task":"http","payload":{"url":"https://example.com/?api_key=` + sentinel + `"}}`, "/payload/url"},
		"a tag of a schedule's job": {"PUT", "/v1/schedules/s",
			schedule(`"cron":"0 9 * * *"`, `,"tags":{"a":"`+token+`"}`), "/job/tags/a"},
		"a time zone": {"PUT", "/v1/schedules/s",
			schedule(`"cron":"0 9 * * *","timezone":"`+token+`"`, ``), "/calendar/timezone"},
		"a cron expression": {"PUT", "/v1/schedules/s", schedule(`"cron":"0 9 * * `+token+`"`, ``),
			"/calendar/cron"},
		"a time zone to preview": {"POST", "/v1/schedules/preview",
			`{"calendar":{"cron":"0 9 * * *","timezone":"` + token + `"}}`, "/calendar/timezone"},
		"an exclusion's day": {"PUT", "/v1/exclusions/x", `{"weekly":["` + token + `"]}`, "/weekly/0"},
		"an exclusion's time zone": {"PUT", "/v1/exclusions/x", `{"weekly":["sat"],"timezone":"` + token + `"}`,
			"/timezone"},
		"a pause's reason": {"PUT", "/v1/pauses/all", `{"reason":"because of ` + token + `"}`, "/reason"},
	} {
		t.Run("refuses a secret in "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.do(t, c.method, c.path, c.body)
			requireRefused(t, b, wrong{status: 400, code: "secret_in_payload", pointer: c.pointer}, r)
			if strings.Contains(r.text+b.log.String(), token[:20]) {
				t.Errorf("the secret came back: %s", r.text)
			}
		})
	}
	b := setup(t)
	b.want(t, 202, "POST", "/v1/jobs",
		job(`"tags":{"dbPassword":"`+sentinel+`"},"allow_literals":["/tags/dbPassword"]`))
}

// A value in the wrong field may be a secret in any form.
//
//proof:of F35
func TestProblems_DoNotRepeatValuesThatMayBeSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	values := []string{sentinel, "ghp_" + strings.Repeat("aB3", 12), strings.Repeat("x", 50) + "-AKIA" +
		strings.Repeat("A", 16)}
	for _, value := range values {
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/v1/jobs", `{"task":"echo","priority":"%s"}`},
			{"POST", "/v1/jobs", `{"task":"echo","pool":"%s"}`},
			{"POST", "/v1/jobs", `{"task":"echo","run_at":"%s"}`},
			{"POST", "/v1/jobs", `{"task":"echo","delay":"%s"}`},
			{"POST", "/v1/jobs", `{"task":"http","payload":{"url":"%s"}}`},
			{"POST", "/v1/jobs", `{"task":"http","payload":{"url":"https://example.com","method":"%s"}}`},
			{"POST", "/v1/jobs", `{"task":"lambda","payload":{"function":"%s!"}}`},
			{"POST", "/v1/jobs", `{"task":"echo","payload":{"sleep":"%s"}}`},
			{"PUT", "/v1/tasks/t", `{"executor":"%s"}`},
			{"PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":{"type":"%s"}}`},
			{"PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":{"$ref":"#/%s"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","timezone":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * %s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"every":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"rrule":"FREQ=%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"dates":["%s"]},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","start_at":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","spread":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","missing_hour":"%s"},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","exclude":["%s"]},"job":{"task":"echo"}}`},
			{"PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo"},"overlap":"%s"}`},
			{"PUT", "/v1/schedules/s",
				`{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo"},"catch_up":{"policy":"%s"}}`},
			{"PUT", "/v1/exclusions/x", `{"dates":["%s"]}`},
			{"PUT", "/v1/exclusions/x", `{"yearly":["%s"]}`},
			{"PUT", "/v1/exclusions/x", `{"weekly":["%s"]}`},
			{"PUT", "/v1/exclusions/x", `{"weekly":["sat"],"move":"%s"}`},
			{"PUT", "/v1/exclusions/x", `{"ranges":[{"from":"%s","to":"2027-01-01"}]}`},
			{"PUT", "/v1/pauses/all", `{"missed":"%s"}`},
			{"PUT", "/v1/pauses/all", `{"until":"%s"}`},
			{"POST", "/v1/dead-letters/redrive", `{"job_ids":["%s"]}`},
			{"POST", "/v1/dead-letters/redrive", `{"filter":{"dead_after":"%s"}}`},
		} {
			r := b.do(t, c.method, c.path, fmt.Sprintf(c.body, value))
			if r.status < 400 && !strings.Contains(c.body, "job_ids") {
				t.Errorf("%s %s was taken", c.path, c.body)
			} else if part := value[len(value)-14:]; r.status >= 400 && strings.Contains(r.text+b.log.String(), part) {
				t.Errorf("%s %s came back: %s", c.path, c.body, r.text)
			}
		}
	}
}
