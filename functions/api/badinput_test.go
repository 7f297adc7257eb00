package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"punctual/shared/executor"
)

// wrong is a request that must be refused, with its status, code and first pointer.
type wrong struct {
	name, body string
	status     int
	code       string
	pointer    string // of the first violation; "-": no violation is listed
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func text(bytes int) string { return `"` + strings.Repeat("a", bytes-2) + `"` }

func tags(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// sentinel is in values that no answer may repeat.
const sentinel = "hunter2hunter2"

func TestCreateJob_RefusesBadJobsWithCodeAndPointer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	with := func(field, value string) string { return `{"task":"echo","` + field + `":` + value + `}` }
	cases := []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"broken JSON", `{"task":`, 400, "invalid_json", ""},
		{"trailing data", `{"task":"echo"}{}`, 400, "invalid_json", ""},
		{"NaN", with("payload", "NaN"), 400, "invalid_json", ""},
		{"invalid UTF-8", with("payload", "\"\xff\""), 400, "invalid_json", ""},
		{"a lone surrogate", with("payload", `"\ud800"`), 400, "invalid_json", ""},
		{"a raw NUL", with("payload", "\"\x00\""), 400, "invalid_json", ""},
		{"an array", `[]`, 400, "invalid_value", ""},
		{"null", `null`, 400, "invalid_value", ""},
		{"an unknown field", with("colour", `"red"`), 400, "unknown_field", "/colour"},
		//proof:of S39
		{"somebody else's tenant", with("tenant_id", `"globex"`), 400, "unknown_field", "/tenant_id"},
		{"a case variant", `{"Task":"echo","task":"echo"}`, 400, "unknown_field", "/Task"},
		{"a field twice", `{"task":"echo","task":"http"}`, 400, "duplicate_field", "/task"},
		{"a field twice in the payload", with("payload", `{"a":{"b":1,"b":2}}`), 400, "duplicate_field",
			"/payload/a/b"},
		{"a batch's field", with("idempotency_key", `"k"`), 400, "unknown_field", "/idempotency_key"},
		{"no task", `{}`, 400, "missing_field", "/task"},
		{"a task that is a number", `{"task":7}`, 400, "invalid_value", "/task"},
		{"a task that is null", `{"task":null}`, 400, "invalid_value", "/task"},
		{"a task that is no name", `{"task":"a b"}`, 400, "invalid_value", "/task"},
		{"an unknown task", `{"task":"ehco"}`, 400, "unknown_task", "/task"},
		{"an unknown pool", with("pool", `"huge"`), 400, "unknown_pool", "/pool"},
		{"an unknown priority", with("priority", `"urgent"`), 400, "invalid_value", "/priority"},
		{"a priority of the wrong type", with("priority", `1`), 400, "invalid_value", "/priority"},

		{"run_at and delay", `{"task":"echo","run_at":"2027-03-01T12:00:05Z","delay":"5s"}`, 400,
			"conflicting_fields", "/delay"},
		{"run_at without a zone", with("run_at", `"2027-03-01T12:00:05"`), 400, "invalid_value", "/run_at"},
		{"run_at as a number", with("run_at", `1803902405`), 400, "invalid_value", "/run_at"},
		{"run_at an hour ago", with("run_at", `"2027-03-01T11:00:00Z"`), 400, "in_the_past", "/run_at"},
		//proof:of S12
		{"run_at 61 s ago", with("run_at", `"2027-03-01T11:58:59Z"`), 400, "in_the_past", "/run_at"},
		{"run_at in 2020", with("run_at", `"2020-01-01T00:00:00Z"`), 400, "in_the_past", "/run_at"},
		{"run_at 2 years and 1 s ahead", with("run_at", `"2029-03-01T12:00:01Z"`), 400, "out_of_range", "/run_at"},
		{"run_at in the year 10000", with("run_at", `"10000-01-01T00:00:00Z"`), 400, "invalid_value", "/run_at"},
		{"run_at in a leap second", with("run_at", `"2027-06-30T23:59:60Z"`), 400, "invalid_value", "/run_at"},
		{"run_at on 30 February", with("run_at", `"2028-02-30T00:00:00Z"`), 400, "invalid_value", "/run_at"},
		{"run_at with a comma", with("run_at", `"2027-03-01T12:00:05,5Z"`), 400, "invalid_value", "/run_at"},
		{"run_at with a zone of 25 h", with("run_at", `"2027-03-01T12:00:05+25:00"`), 400, "invalid_value", "/run_at"},
		{"run_at with a zone of 24 h", with("run_at", `"2027-03-01T12:00:05+24:00"`), 400, "invalid_value", "/run_at"},
		{"run_at with a zone of 60 min", with("run_at", `"2027-03-01T12:00:05+01:60"`), 400, "invalid_value", "/run_at"},
		{"an empty run_at", with("run_at", `""`), 400, "invalid_value", "/run_at"},
		{"a negative delay", with("delay", `"-5s"`), 400, "invalid_value", "/delay"},
		{"a delay without unit", with("delay", `"5"`), 400, "invalid_value", "/delay"},
		{"a delay as a number", with("delay", `5`), 400, "invalid_value", "/delay"},
		{"a fractional delay", with("delay", `"1.5s"`), 400, "invalid_value", "/delay"},
		{"an overflowing delay", with("delay", `"99999999999999999999h"`), 400, "invalid_value", "/delay"},
		{"a delay that overflows by its unit", with("delay", `"9223372036854775807d"`), 400, "invalid_value", "/delay"},
		{"a delay over 2 years", with("delay", `"732d"`), 400, "out_of_range", "/delay"},
		{"an old name of delay", with("delay_seconds", `5`), 400, "unknown_field", "/delay_seconds"},

		{"a timeout of nothing", with("timeout", `"0s"`), 400, "out_of_range", "/timeout"},
		{"a timeout over 12 h", with("timeout", `"12h1ms"`), 400, "out_of_range", "/timeout"},
		{"a timeout over 24 h in pool long", `{"task":"echo","pool":"long","timeout":"1d1s"}`, 400, "out_of_range",
			"/timeout"},
		{"start_within of nothing", with("start_within", `"0s"`), 400, "out_of_range", "/start_within"},
		{"start_within over 30 d", with("start_within", `"31d"`), 400, "out_of_range", "/start_within"},
		{"expire_after under 1 s", with("expire_after", `"999ms"`), 400, "out_of_range", "/expire_after"},
		{"retry that is a number", with("retry", `3`), 400, "invalid_value", "/retry"},
		{"an unknown field of retry", with("retry", `{"attempts":3}`), 400, "unknown_field", "/retry/attempts"},
		{"no attempts", with("retry", `{"max_attempts":0}`), 400, "out_of_range", "/retry/max_attempts"},
		//proof:of 112
		{"51 attempts", with("retry", `{"max_attempts":51}`), 400, "out_of_range", "/retry/max_attempts"},
		{"half an attempt", with("retry", `{"max_attempts":1.5}`), 400, "invalid_value", "/retry/max_attempts"},
		{"attempts as text", with("retry", `{"max_attempts":"3"}`), 400, "invalid_value", "/retry/max_attempts"},
		{"attempts beyond counting", with("retry", `{"max_attempts":1e999}`), 400, "out_of_range",
			"/retry/max_attempts"},
		{"an initial delay over 1 h", with("retry", `{"initial_delay":"1h1s"}`), 400, "out_of_range",
			"/retry/initial_delay"},
		{"a factor under 1", with("retry", `{"factor":0.5}`), 400, "out_of_range", "/retry/factor"},
		{"a factor over 10", with("retry", `{"factor":10.01}`), 400, "out_of_range", "/retry/factor"},
		{"max_delay over 24 h", with("retry", `{"max_delay":"25h"}`), 400, "out_of_range", "/retry/max_delay"},
		{"max_delay of nothing", with("retry", `{"max_delay":"0s"}`), 400, "out_of_range", "/retry/max_delay"},
		{"jitter over 1", with("retry", `{"jitter":1.1}`), 400, "out_of_range", "/retry/jitter"},
		{"negative jitter", with("retry", `{"jitter":-0.1}`), 400, "out_of_range", "/retry/jitter"},

		{"11 tags", with("tags", tags(11)), 400, "out_of_range", "/tags"},
		{"a long tag name", with("tags", `{"`+strings.Repeat("k", 65)+`":"v"}`), 400, "out_of_range", "/tags/" +
			strings.Repeat("k", 65)},
		{"an empty tag name", with("tags", `{"":"v"}`), 400, "out_of_range", "/tags/"},
		{"a long tag value", with("tags", `{"k":"`+strings.Repeat("v", 257)+`"}`), 400, "out_of_range", "/tags/k"},
		{"a tag that is a number", with("tags", `{"k":1}`), 400, "invalid_value", "/tags/k"},
		{"tags in a list", with("tags", `["k"]`), 400, "invalid_value", "/tags"},
		{"a tag twice", with("tags", `{"k":"a","k":"b"}`), 400, "duplicate_field", "/tags/k"},

		{"a payload over 1 MiB", with("payload", text(1<<20+1)), 413, "too_large", "/payload"},
		{"a body over its limit", with("payload", text(1<<20+70000)), 413, "too_large", "-"},
		{"a payload 101 levels deep", with("payload", nested(101)), 400, "out_of_range", "/payload"},
		{"a payload 10,000 levels deep", with("payload", nested(10000)), 400, "out_of_range", ""},
		{"a bad sleep", with("payload", `{"sleep":"-2s"}`), 400, "invalid_value", "/payload/sleep"},
		{"a sleep as a number", with("payload", `{"sleep":2}`), 400, "invalid_value", "/payload/sleep"},
		{"a negative fail", with("payload", `{"fail":-1}`), 400, "out_of_range", "/payload/fail"},
		{"allow_literals of the wrong type", with("allow_literals", `{"x":1}`), 400, "invalid_value",
			"/allow_literals"},
		{"allow_literals that is no pointer", with("allow_literals", `["payload"]`), 400, "invalid_value",
			"/allow_literals/0"},
	}
	for _, c := range cases {
		t.Run("refuses a job: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", c.body))
		})
	}
	t.Cleanup(func() {
		if n := b.Meter.Total("jobs_accepted_total"); n != 0 {
			t.Errorf("%v of the bad jobs were accepted", n)
		}
	})
}

func requireRefused(t *testing.T, b *bench, c wrong, r reply) {
	t.Helper()
	if r.status != c.status || r.str("code") != c.code {
		t.Fatalf("answered %d %s, want %d %s\n%.500s", r.status, r.str("code"), c.status, c.code, r.text)
	}
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q", got)
	}
	if r.str("type") != "/v1/problems/"+c.code || r.str("title") == "" || r.str("detail") == "" ||
		r.body["status"] != float64(c.status) || r.str("request_id") != r.header.Get("X-Request-Id") {
		t.Errorf("the problem is not whole: %s", r.text)
	}
	pointer := "-"
	if errs, _ := r.body["errors"].([]any); len(errs) > 0 {
		first := errs[0].(map[string]any)
		pointer = first["pointer"].(string)
		if first["code"] != c.code || first["detail"] == "" {
			t.Errorf("the first violation is %v", first)
		}
	}
	if pointer != c.pointer {
		t.Errorf("the first pointer is %q, want %q\n%.500s", pointer, c.pointer, r.text)
	}
	if strings.Contains(r.text, sentinel) || strings.Contains(b.log.String(), sentinel) {
		t.Errorf("a value came back: %s", r.text)
	}
	if len(r.text) > 3000 {
		t.Errorf("a problem of %d bytes", len(r.text))
	}
}

func TestCreateJob_NamesAllMistakesOfABodyTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 400, "POST", "/v1/jobs",
		`{"taks":"echo","delay":"soon","retry":{"factor":11,"jitter":2},"priority":"urgent","payload":1}`)
	var got []string
	for _, e := range r.body["errors"].([]any) {
		m := e.(map[string]any)
		got = append(got, fmt.Sprint(m["pointer"], " ", m["code"]))
	}
	want := "[/taks unknown_field /task missing_field /delay invalid_value /priority invalid_value /retry/factor " +
		"out_of_range /retry/jitter out_of_range]"
	if fmt.Sprint(got) != want {
		t.Errorf("violations: %v\nwant %s", got, want)
	}
	if !strings.Contains(r.text, `did you mean \"task\"?`) {
		t.Errorf("nothing was suggested: %s", r.text)
	}
	if r := b.want(t, 400, "POST", "/v1/jobs", `{"task":"ehco"}`); !strings.Contains(r.text, `did you mean \"echo\"?`) {
		t.Errorf("no task was suggested: %s", r.text)
	}
}

//proof:of S38
func TestHTTPPayload_IsCheckedWhenAJobIsMadeAndChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	later := b.want(t, 202, "POST", "/v1/jobs",
		`{"task":"http","payload":{"url":"https://example.com/hook"},"delay":"1h"}`)
	url := func(u string) string { return `{"url":"` + u + `"}` }
	also := func(field, value string) string {
		return `{"url":"https://example.com/","` + field + `":` + value + `}`
	}
	cases := []wrong{
		{"no payload", `null`, 400, "missing_field", "/payload"},
		{"a payload that is text", `"https://example.com"`, 400, "invalid_value", "/payload"},
		{"no url", `{"method":"GET"}`, 400, "missing_field", "/payload/url"},
		{"an unknown field", also("uri", `"x"`), 400, "unknown_field", "/payload/uri"},
		{"a method that is none", also("method", `"FETCH"`), 400, "invalid_value", "/payload/method"},
		{"CONNECT", also("method", `"CONNECT"`), 400, "invalid_value", "/payload/method"},
		{"a url that is a number", `{"url":1}`, 400, "invalid_value", "/payload/url"},
		{"a relative url", url("/hook"), 400, "invalid_value", "/payload/url"},
		{"a url without a host", url("http:///x"), 400, "invalid_value", "/payload/url"},
		{"a url with spaces", url("http://exa mple.com/"), 400, "invalid_value", "/payload/url"},
		{"a url with a bad port", url("http://example.com:99999/"), 400, "invalid_value", "/payload/url"},
		{"a url in other digits", url("http://１２７.０.０.１/"), 400, "invalid_value", "/payload/url"},
		{"file", url("file:///etc/passwd"), 400, "target_refused", "/payload/url"},
		{"gopher", url("gopher://example.com/"), 400, "target_refused", "/payload/url"},
		{"a user", url("https://user@example.com/"), 400, "target_refused", "/payload/url"},
		{"a user and a password", url("https://u:" + sentinel + "@example.com/"), 400, "target_refused",
			"/payload/url"},
		{"a user that looks like a host", url("https://example.com@169.254.169.254/"), 400, "target_refused",
			"/payload/url"},
		{"headers in a list", also("headers", `[]`), 400, "invalid_value", "/payload/headers"},
		{"Host", also("headers", `{"Host":"x"}`), 400, "invalid_value", "/payload/headers/Host"},
		{"Content-Length", also("headers", `{"content-length":"0"}`), 400, "invalid_value",
			"/payload/headers/content-length"},
		{"Idempotency-Key", also("headers", `{"Idempotency-Key":"x"}`), 400, "invalid_value",
			"/payload/headers/Idempotency-Key"},
		{"webhook-id", also("headers", `{"Webhook-Id":"x"}`), 400, "invalid_value", "/payload/headers/Webhook-Id"},
		{"Punctual-Token", also("headers", `{"punctual-token":"9"}`), 400, "invalid_value",
			"/payload/headers/punctual-token"},
		{"a header twice in two cases", also("headers", `{"X-A":"1","x-a":"2"}`), 400, "duplicate_field",
			"/payload/headers/x-a"},
		{"a header with a line end", also("headers", `{"X-A":"1\r\nX-B: 2"}`), 400, "invalid_value",
			"/payload/headers/X-A"},
		{"a header name with a space", also("headers", `{"X A":"1"}`), 400, "invalid_value", "/payload/headers/X A"},
		{"a header that is a number", also("headers", `{"X-A":1}`), 400, "invalid_value", "/payload/headers/X-A"},
		{"a plain token where the ARN belongs", also("auth", `{"bearer":"`+sentinel+`"}`), 400, "secret_in_payload",
			"/payload/auth/bearer"},
		{"another tenant's secret",
			also("auth", `{"bearer":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/globex/x"}`), 400,
			"invalid_value", "/payload/auth/bearer"},
		{"a secret that is not ours",
			also("sign_with", `"arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/db"`), 400,
			"invalid_value", "/payload/sign_with"},
		{"another deployment's secret",
			also("auth", `{"bearer":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual-dev/acme/x"}`),
			400, "invalid_value", "/payload/auth/bearer"},
		{"another tenant's secret in a header",
			also("headers",
				`{"Authorization":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/globex/x"}`), 400,
			"invalid_value", "/payload/headers/Authorization"},
		{"a key that signs, in the clear", also("sign_with", `"`+sentinel+`"`), 400, "secret_in_payload",
			"/payload/sign_with"},
		{"a plain Authorization", also("headers", `{"Authorization":"Bearer `+sentinel+`"}`), 400,
			"secret_in_payload", "/payload/headers/Authorization"},
		{"an api key in a header", also("headers", `{"X-Api-Key":"`+sentinel+`"}`), 400, "secret_in_payload",
			"/payload/headers/X-Api-Key"},
		{"a password in the body", also("body", `{"user":{"password":"`+sentinel+`"}}`), 400, "secret_in_payload",
			"/payload/body/user/password"},
	}
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2130706433", "0x7f000001",
		"127.1", "0177.0.0.1", "localhost", "LOCALHOST.", "api.localhost",
		"10.0.0.5", "100.64.0.1", "[::1]", "[64:ff9b::a00:5]", "[2002:a00:5::]", "0", "127.0.0.1.", "255.255.255.255",
		"256.1.1.1", "1.2.3.4.5",
	} {
		for _, scheme := range []string{"http", "https"} {
			cases = append(cases, wrong{scheme + " " + host, url(scheme + "://" + host + ":8080/latest/meta-data/"),
				400, "target_refused", "/payload/url"})
		}
	}
	for _, c := range cases {
		t.Run("refuses an http payload: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", `{"task":"http","payload":`+c.body+`}`))
			requireRefused(t, b, c, b.do(t, "PATCH", "/v1/jobs/"+later.str("job_id"), `{"payload":`+c.body+`}`))
		})
	}
}

func TestHTTPPayload_MayNameRangesThatTheDeploymentOpens(t *testing.T) {
	t.Parallel()
	b := setup(t, allow("127.0.0.0/8", "10.1.0.0/16"))
	for host, status := range map[string]int{"127.0.0.1": 202, "2130706433": 202, "localhost": 202, "10.1.2.3": 202,
		"10.2.0.1": 400, "[::1]": 400, "169.254.169.254": 400} {
		b.want(t, status, "POST", "/v1/jobs", `{"task":"http","payload":{"url":"http://`+host+`/"}}`)
	}
}

func TestLambdaPayload_IsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []wrong{
		{"no function", `{"input":{}}`, 400, "missing_field", "/payload/function"},
		{"no payload", `null`, 400, "missing_field", "/payload"},
		{"an unknown field", `{"function":"f","args":1}`, 400, "unknown_field", "/payload/args"},
		{"a path", `{"function":"../f"}`, 400, "invalid_value", "/payload/function"},
		{"an ARN of something else", `{"function":"arn:aws:s3:::bucket"}`, 400, "invalid_value", "/payload/function"},
	} {
		requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", `{"task":"lambda","payload":`+c.body+`}`))
	}
	for _, f := range []string{"report", "report:live", "report:$LATEST",
		"arn:aws:lambda:eu-central-1:123456789012:function:report:7"} {
		b.want(t, 202, "POST", "/v1/jobs", `{"task":"lambda","payload":{"function":"`+f+`","input":[1]}}`)
	}
}

func TestSQSPayload_IsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/queue", `{"executor":"sqs"}`)
	large := strings.Repeat("x", executor.MaxMessage-1)
	for _, c := range []wrong{
		{"no payload", `null`, 400, "missing_field", "/payload"},
		{"no queue", `{"message":"m"}`, 400, "missing_field", "/payload/queue"},
		{"no message", `{"queue":"q"}`, 400, "missing_field", "/payload/message"},
		{"an unknown field", `{"queue":"q","message":"m","delay":"1s"}`, 400, "unknown_field", "/payload/delay"},
		{"a URL", `{"queue":"https://sqs.eu-central-1.amazonaws.com/1/q","message":"m"}`, 400, "invalid_value",
			"/payload/queue"},
		{"an ARN", `{"queue":"arn:aws:sqs:eu-central-1:1:q","message":"m"}`, 400, "invalid_value", "/payload/queue"},
		{"a name that is too long", `{"queue":"` + strings.Repeat("q", 81) + `","message":"m"}`, 400, "invalid_value",
			"/payload/queue"},
		{"a FIFO name that is too long", `{"queue":"` + strings.Repeat("q", 76) + `.fifo","message":"m"}`, 400,
			"invalid_value", "/payload/queue"},
		{"an empty message", `{"queue":"q","message":""}`, 400, "invalid_value", "/payload/message"},
		{"a control character", `{"queue":"q","message":"a\u0000b"}`, 400, "invalid_value", "/payload/message"},
		{"a text that is too long", `{"queue":"q","message":"` + large + `xx"}`, 400, "out_of_range",
			"/payload/message"},
		{"a JSON that is too long", `{"queue":"q","message":["` + large + `"]}`, 400, "out_of_range",
			"/payload/message"},
		{"a group with a space", `{"queue":"q","message":"m","group":"a b"}`, 400, "invalid_value", "/payload/group"},
		{"an empty group", `{"queue":"q","message":"m","group":""}`, 400, "invalid_value", "/payload/group"},
	} {
		t.Run("refuses an sqs payload: "+c.name, func(t *testing.T) {
			requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", `{"task":"queue","payload":`+c.body+`}`))
		})
	}
	for _, payload := range []string{
		`{"queue":"orders","message":"paid"}`, `{"queue":"orders.fifo","message":{"id":1},"group":"customer:7"}`,
		`{"queue":"q","message":null}`, `{"queue":"q","message":["\uffff"]}`, `{"queue":"q","message":"` + large + `"}`,
	} {
		b.want(t, 202, "POST", "/v1/jobs", `{"task":"queue","payload":`+payload+`}`)
	}
}

//proof:of 48 187 S41
func TestCreateJob_RefusesSecretsAndNeverRepeatsThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	arn := "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/x"
	for name, c := range map[string]struct{ payload, pointer string }{
		"password":         {`{"password":"` + sentinel + `"}`, "/payload/password"},
		"a part of a name": {`{"dbPasswordOld":"` + sentinel + `"}`, "/payload/dbPasswordOld"},
		"with hyphens":     {`{"api-key":"` + sentinel + `"}`, "/payload/api-key"},
		"at any depth":     {`[{"x":[{"client_secret":"` + sentinel + `"}]}]`, "/payload/0/x/0/client_secret"},
		"in a list":        {`{"passwd":["` + sentinel + `"]}`, "/payload/passwd/0"},
		"escaped":          {`{"p\u0061ssword":"h\u0075nter2hunter2"}`, "/payload/password"},
		"an AWS key":       {`{"x":"AKIAIOSFODNN7EXAMPLE"}`, "/payload/x"},
		"a GitHub token":   {`"see ghp_abcdefghijklmnopqrstuvwxyz0123456789"`, "/payload"},
		"a Slack token":    {`{"x":"xoxb-` + `123456789012-abcdef"}`, "/payload/x"},
		"a Stripe key":     {`{"x":"sk_live` + `_abcdefghijklmnop"}`, "/payload/x"},
		"a JWT":            {`{"x":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc"}`, "/payload/x"},
		"a PEM":            {`{"x":"-----BEGIN RSA PRIVATE KEY-----\nMIIE"}`, "/payload/x"},
		"as a name":        {`{"AKIAIOSFODNN7EXAMPLE":1}`, "/payload"},
		"authorization":    {`{"authorization":"Basic aHVudGVyMg=="}`, "/payload/authorization"},
	} {
		t.Run("refuses a secret: "+name, func(t *testing.T) {
			t.Parallel()
			r := b.do(t, "POST", "/v1/jobs", `{"task":"echo","payload":`+c.payload+`}`)
			requireRefused(t, b, wrong{"", "", 400, "secret_in_payload", c.pointer}, r)
			if strings.Contains(r.text, "AKIA") || strings.Contains(r.text, "ghp_") || strings.Contains(r.text, "eyJ") {
				t.Errorf("a secret came back: %s", r.text)
			}
		})
	}
	for name, payload := range map[string]string{
		"a short one": `{"password":"1234567"}`, "a number": `{"password":12345678}`, "an ARN": `{"password":"` +
			arn + `"}`, "another name": `{"passage":"` + sentinel + `"}`, "words": `{"x":"ghost story"}`,
	} {
		if r := b.do(t, "POST", "/v1/jobs", `{"task":"echo","payload":`+payload+`}`); r.status != 202 {
			t.Errorf("%s was refused: %s", name, r.text)
		}
	}
	t.Run("accepts what looks like a secret only where it is declared a literal", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.want(t, 202, "POST", "/v1/jobs",
			`{"task":"echo","payload":{"secret":"`+sentinel+`"},"allow_literals":["/payload/secret"]}`)
		r := b.want(t, 400, "POST", "/v1/jobs",
			`{"task":"echo","payload":{"secret":"`+sentinel+`","password":"`+sentinel+
				`"},"allow_literals":["/payload/secret"]}`)
		requireRefused(t, b, wrong{"", "", 400, "secret_in_payload", "/payload/password"}, r)
		batch := b.want(t, 200, "POST", "/v1/jobs/batch",
			`{"jobs":[{"task":"echo"},{"task":"echo","payload":{"secret":"`+sentinel+
				`"},"allow_literals":["/payload/secret"]}]}`)
		if batch.body["accepted"] != 2.0 {
			t.Errorf("in a batch: %s", batch.text)
		}
		if !strings.Contains(b.log.String(), "declared literals") {
			t.Error("it was not recorded")
		}
	})
}

func TestAPI_RefusesBadRequestsBeforeTheirBodies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","delay":"1h"}`).str("job_id")
	long := strings.Repeat("k", 257)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, pointer            string
	}{
		{"no Content-Type", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Content-Type", ""}, 415,
			"unsupported_media_type", "-"},
		{"a form", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Content-Type", "", "Content-Type",
			"application/x-www-form-urlencoded"}, 415, "unsupported_media_type", "-"},
		{"text", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Content-Type", "", "Content-Type", "text/plain"},
			415, "unsupported_media_type", "-"},
		{"another charset", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Content-Type", "", "Content-Type",
			"application/json; charset=latin1"}, 415, "unsupported_media_type", "-"},
		{"compressed", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Content-Encoding", "gzip"}, 415,
			"unsupported_media_type", "-"},
		{"a form where nothing is expected", "POST", "/v1/jobs/" + id + "/cancel", `a=b`, []string{"Content-Type", "",
			"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", "-"},
		{"a field where nothing is expected", "POST", "/v1/jobs/" + id + "/cancel", `{"reason":"x"}`, nil, 400,
			"unknown_field", "/reason"},
		{"an empty key", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Idempotency-Key", " "}, 400,
			"invalid_value", "Idempotency-Key"},
		{"a long key", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Idempotency-Key", long}, 400, "invalid_value",
			"Idempotency-Key"},
		{"a key that is not ASCII", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Idempotency-Key", "schlüssel"},
			400, "invalid_value", "Idempotency-Key"},
		{"two keys", "POST", "/v1/jobs", `{"task":"echo"}`, []string{"Idempotency-Key", "a", "Idempotency-Key", "b"},
			400, "duplicate_field", "Idempotency-Key"},
		{"an unknown parameter", "GET", "/v1/jobs?state=DEAD", "", nil, 400, "unknown_field", "state"},
		{"a parameter in capitals", "GET", "/v1/jobs?Status=DEAD", "", nil, 400, "unknown_field", "Status"},
		{"a parameter twice", "GET", "/v1/jobs?status=DEAD&status=RUNNING", "", nil, 400, "duplicate_field", "status"},
		{"a parameter without a value", "GET", "/v1/jobs?status=", "", nil, 400, "invalid_value", "status"},
		{"a query that is none", "GET", "/v1/jobs?task=%zz", "", nil, 400, "invalid_value", "query"},
		{"a parameter on POST", "POST", "/v1/jobs?dry_run=1", `{"task":"echo"}`, nil, 400, "unknown_field", "dry_run"},
		{"two statuses", "GET", "/v1/jobs?status=DEAD,RUNNING", "", nil, 400, "invalid_value", "status"},
		{"a limit of nothing", "GET", "/v1/jobs?limit=0", "", nil, 400, "out_of_range", "limit"},
		{"a limit of 201", "GET", "/v1/jobs?limit=201", "", nil, 400, "out_of_range", "limit"},
		{"a limit in words", "GET", "/v1/jobs?limit=ten", "", nil, 400, "invalid_value", "limit"},
		{"a negative limit", "GET", "/v1/jobs?limit=-1", "", nil, 400, "invalid_value", "limit"},
		{"a cursor that is none", "GET", "/v1/jobs?cursor=xyz", "", nil, 400, "invalid_cursor", "cursor"},
		{"a time without a zone", "GET", "/v1/jobs?created_after=2027-01-01T00:00:00", "", nil, 400, "invalid_value",
			"created_after"},
		{"a range backwards", "GET", "/v1/jobs?created_after=2027-01-02T00:00:00Z&created_before=2027-01-01T00:00:00Z",
			"", nil, 400, "conflicting_fields", "created_before"},
		{"a task that is no name", "GET", "/v1/jobs?task=a%20b", "", nil, 400, "invalid_value", "task"},
		{"a wait that is none", "GET", "/v1/jobs/" + id + "?wait=long", "", nil, 400, "invalid_value", "wait"},
		{"a wait of 26 s", "GET", "/v1/jobs/" + id + "?wait=26s", "", nil, 400, "out_of_range", "wait"},
		{"nothing to change", "PATCH", "/v1/jobs/" + id, `{}`, nil, 400, "missing_field", ""},
		{"null to change", "PATCH", "/v1/jobs/" + id, `null`, nil, 400, "invalid_value", ""},
		{"no change at all", "PATCH", "/v1/jobs/" + id, "", nil, 400, "missing_field", ""},
		{"a field that cannot be changed", "PATCH", "/v1/jobs/" + id, `{"task":"http"}`, nil, 400, "unknown_field",
			"/task"},
		{"a change to the past", "PATCH", "/v1/jobs/" + id, `{"run_at":"2020-01-01T00:00:00Z"}`, nil, 400,
			"in_the_past", "/run_at"},
		{"both times", "PATCH", "/v1/jobs/" + id, `{"run_at":"2027-03-02T00:00:00Z","delay":"1s"}`, nil, 400,
			"conflicting_fields", "/delay"},
		{"an If-Match without quotes", "PATCH", "/v1/jobs/" + id, `{"delay":"1s"}`, []string{"If-Match", "1"}, 400,
			"invalid_value", "If-Match"},
		{"a weak If-Match", "PATCH", "/v1/jobs/" + id, `{"delay":"1s"}`, []string{"If-Match", `W/"1"`}, 400,
			"invalid_value", "If-Match"},
		{"a stale If-Match", "PATCH", "/v1/jobs/" + id, `{"delay":"1s"}`, []string{"If-Match", `"2"`}, 412,
			"stale_version", "-"},
		{"an id that is none", "GET", "/v1/jobs/1", "", nil, 404, "not_found", "-"},
		{"an id in small letters", "GET", "/v1/jobs/" + strings.ToLower(id), "", nil, 404, "not_found", "-"},
		{"an id of nobody", "GET", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", nil, 404, "not_found", "-"},
		{"a path that is none", "GET", "/v1/nothing", "", nil, 404, "not_found", "-"},
		{"the root", "GET", "/", "", nil, 404, "not_found", "-"},
		{"a slash too many", "POST", "/v1//jobs", `{"task":"echo"}`, nil, 404, "not_found", "-"},
		{"a slash at the end", "GET", "/v1/jobs/", "", nil, 404, "not_found", "-"},
		{"the wrong method", "PUT", "/v1/jobs", `{}`, nil, 405, "method_not_allowed", "-"},
		{"a page of documentation", "GET", "/docs", "", nil, 404, "not_found", "-"},
		{"a code that is none", "GET", "/v1/problems/nonsense", "", nil, 404, "not_found", "-"},
		{"an unfinished job", "DELETE", "/v1/jobs/" + id, "", nil, 409, "not_finished", "-"},
		{"a job that is not dead", "POST", "/v1/jobs/" + id + "/redrive", "", nil, 409, "not_finished", "-"},
		{"a batch without jobs", "POST", "/v1/jobs/batch", `{"jobs":[]}`, nil, 400, "out_of_range", "/jobs"},
		{"a batch without anything", "POST", "/v1/jobs/batch", `{}`, nil, 400, "missing_field", "/jobs"},
		{"a batch of 101", "POST", "/v1/jobs/batch", `{"jobs":[` + strings.Repeat(`{"task":"echo"},`, 100) +
			`{"task":"echo"}]}`, nil, 400, "out_of_range", "/jobs"},
		{"a batch over 1 MiB", "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo","payload":` + text(1<<20) + `}]}`,
			nil, 413, "too_large", "-"},
		{"no dead letters named", "POST", "/v1/dead-letters/redrive", `{}`, nil, 400, "missing_field", ""},
		{"dead letters named by id and by filter", "POST", "/v1/dead-letters/redrive",
			`{"job_ids":["01ARZ3NDEKTSV4RRFFQ69G5FAV"],"filter":{}}`, nil, 400, "conflicting_fields", "/filter"},
		{"a limit without filter", "POST", "/v1/dead-letters/purge",
			`{"job_ids":["01ARZ3NDEKTSV4RRFFQ69G5FAV"],"limit":1}`, nil, 400, "conflicting_fields", "/limit"},
		{"an id that is none in a list", "POST", "/v1/dead-letters/purge", `{"job_ids":["x"]}`, nil, 400,
			"invalid_value", "/job_ids/0"},
		{"1,001 dead letters", "POST", "/v1/dead-letters/redrive", `{"filter":{},"limit":1001}`, nil, 400, "out_of_range",
			"/limit"},
		{"a filter that is unknown", "POST", "/v1/dead-letters/redrive", `{"filter":{"status":"x"}}`, nil, 400,
			"unknown_field", "/filter/status"},
		{"a filter's time without a zone", "POST", "/v1/dead-letters/redrive",
			`{"filter":{"dead_after":"2027-01-01"}}`, nil, 400, "invalid_value", "/filter/dead_after"},
		{"a task's name", "PUT", "/v1/tasks/a.b", `{"executor":"go"}`, nil, 400, "invalid_value", "name"},
		{"a task without executor", "PUT", "/v1/tasks/t", `{}`, nil, 400, "missing_field", "/executor"},
		{"a task's executor", "PUT", "/v1/tasks/t", `{"executor":"ssh"}`, nil, 400, "invalid_value", "/executor"},
		{"a schema that is none", "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":{"type":"nonsense"}}`, nil,
			400, "invalid_value", "/payload_schema/type"},
		{"a schema that is text", "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":"x"}`, nil, 400,
			"invalid_value", "/payload_schema"},
		{"a schema elsewhere", "PUT", "/v1/tasks/t",
			`{"executor":"go","payload_schema":{"$ref":"http://169.254.169.254/x"}}`, nil, 400, "invalid_value",
			"/payload_schema"},
		{"a schema in a file", "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":{"$ref":"file:///etc/passwd"}}`,
			nil, 400, "invalid_value", "/payload_schema"},
		{"a built-in task", "PUT", "/v1/tasks/http", `{"executor":"go"}`, nil, 409, "wrong_state", "-"},
		{"a built-in task's end", "DELETE", "/v1/tasks/echo", "", nil, 409, "wrong_state", "-"},
		{"a task that is not there", "DELETE", "/v1/tasks/t", "", nil, 404, "not_found", "-"},
		{"a job's pause with a long reason", "POST", "/v1/jobs/" + id + "/pause", `{"reason":` + text(259) + `}`, nil, 400,
			"out_of_range", "/reason"},
		{"a job's pause for a number", "POST", "/v1/jobs/" + id + "/pause", `{"reason":1}`, nil, 400, "invalid_value",
			"/reason"},
		{"a job's pause with an end", "POST", "/v1/jobs/" + id + "/pause", `{"until":"2027-03-02T00:00:00Z"}`, nil, 400,
			"unknown_field", "/until"},
		{"a job's pause for no object", "POST", "/v1/jobs/" + id + "/pause", `[]`, nil, 400, "invalid_value", ""},
		{"a pause of no job", "POST", "/v1/jobs/x/pause", `{}`, nil, 404, "not_found", "-"},
		{"a resume of no job", "POST", "/v1/jobs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/resume", "", nil, 404, "not_found", "-"},
		{"a pause of nothing", "PUT", "/v1/pauses/job:x", `{}`, nil, 400, "invalid_value", "scope"},
		{"a pause that has ended", "PUT", "/v1/pauses/all", `{"until":"2027-03-01T11:59:59Z"}`, nil, 400,
			"in_the_past", "/until"},
		{"a pause's missed", "PUT", "/v1/pauses/all", `{"missed":"some"}`, nil, 400, "invalid_value", "/missed"},
		{"a pause's long reason", "PUT", "/v1/pauses/all", `{"reason":` + text(259) + `}`, nil, 400, "out_of_range",
			"/reason"},
		{"an absent pause", "DELETE", "/v1/pauses/all", "", nil, 404, "not_found", "-"},
		{"a pause by itself", "GET", "/v1/pauses/all", "", nil, 405, "method_not_allowed", "-"},
		{"a dag that is not there", "GET", "/v1/dags/d", "", nil, 404, "not_found", "-"},
	} {
		t.Run("refuses a request: "+c.name, func(t *testing.T) {
			t.Parallel()
			r := b.do(t, c.method, c.path, c.body, c.headers...)
			requireRefused(t, b, wrong{c.name, c.body, c.status, c.code, c.pointer}, r)
			if allow := r.header.Get("Allow"); (c.status == 405) != (allow != "") {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
}

// endless is a body that never ends. Reading far beyond the limit ends the test.
type endless struct {
	t    *testing.T
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read += len(p); e.read > 4<<20 {
		e.t.Error("much more was read than a body may have")
		return 0, io.EOF
	}
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAPI_ReadsABodyOfUnknownLengthToItsLimitOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", &endless{t: t})
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	requireRefused(t, b, wrong{status: 413, code: "too_large", pointer: "-"}, b.ask(t, r))
}

func TestAPI_DoesNotReadABodyThatIsStatedTooLong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := &endless{t: t}
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", body)
	r.ContentLength = 1 << 40
	r.Header.Set("Content-Type", "application/json")
	requireRefused(t, b, wrong{status: 413, code: "too_large", pointer: "-"}, b.ask(t, r))
	if body.read > 0 {
		t.Errorf("%d bytes were read", body.read)
	}
}

func TestBatch_AcceptsGoodItemsDespiteABadOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[
		{"task":"echo"}, 7, {"task":"nope"}, {"task":"echo","task":"echo"},
		{"task":"echo","payload":{"password":"`+sentinel+`"}}, {"task":"echo","retry":{"factor":0}},
		{"task":"echo","idempotency_key":""}, {"task":"echo","payload":{"a":1,"a":2}}, {"task":"echo","delay":"1m"},
		null ]}`)
	if r.body["accepted"] != 2.0 || r.body["refused"] != 8.0 {
		t.Fatalf("the batch: %s", r.text)
	}
	for i, want := range []string{"", "/jobs/1 invalid_value", "/jobs/2/task unknown_task", "/jobs/3/task " +
		"duplicate_field", "/jobs/4/payload/password secret_in_payload", "/jobs/5/retry/factor out_of_range",
		"/jobs/6/idempotency_key invalid_value", "/jobs/7/payload/a duplicate_field", "", "/jobs/9 invalid_value"} {
		item := r.body["items"].([]any)[i].(map[string]any)
		got := ""
		if p, ok := item["problem"].(map[string]any); ok {
			first := p["errors"].([]any)[0].(map[string]any)
			got = fmt.Sprint(first["pointer"], " ", first["code"])
		}
		if got != want || (got == "") != (item["job"] != nil) {
			t.Errorf("item %d: %q, want %q", i, got, want)
		}
	}
	if strings.Contains(r.text, sentinel) {
		t.Error("a secret came back")
	}
}

//proof:of 189
func TestAPI_RefusesACallerWithoutIdentityOrScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Tenant = ""
	r := b.want(t, 401, "POST", "/v1/jobs", `{"task":"echo"}`)
	if r.str("code") != "unauthenticated" || r.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("answered %s with %v", r.text, r.header)
	}
	for _, path := range []string{"/v1/health", "/v1/openapi.json", "/v1/problems", "/v1/problems/not_found"} {
		b.want(t, 200, "GET", path, "")
	}
	b.want(t, 401, "GET", "/v1/ready", "") // the gateway asks for a token, too
	for _, scope := range []string{"read", "write", "admin"} {
		b := setup(t)
		b.who.Scopes = b.who.Scopes[map[string]int{"read": 0, "write": 1, "admin": 2}[scope]:][:1]
		for _, c := range []struct{ method, path, needs string }{
			{"GET", "/v1/jobs", "read"}, {"GET", "/v1/jobs/x", "read"}, {"GET", "/v1/jobs/x/attempts", "read"},
			{"GET", "/v1/tasks", "read"}, {"GET", "/v1/tasks/x", "read"}, {"GET", "/v1/dead-letters", "read"},
			{"GET", "/v1/pauses", "read"}, {"POST", "/v1/jobs", "write"}, {"POST", "/v1/jobs/batch", "write"},
			{"PATCH", "/v1/jobs/x", "write"}, {"DELETE", "/v1/jobs/x", "write"}, {"POST", "/v1/jobs/x/cancel", "write"},
			{"POST", "/v1/jobs/x/pause", "write"}, {"POST", "/v1/jobs/x/resume", "write"},
			{"POST", "/v1/jobs/x/run-now", "write"}, {"POST", "/v1/jobs/x/redrive", "admin"},
			{"PUT", "/v1/tasks/x", "admin"}, {"DELETE", "/v1/tasks/x", "admin"},
			{"POST", "/v1/dead-letters/redrive", "admin"}, {"POST", "/v1/dead-letters/purge", "admin"},
			{"PUT", "/v1/pauses/all", "admin"}, {"DELETE", "/v1/pauses/all", "admin"}, {"GET", "/v1/schedules", "read"},
			{"GET", "/v1/schedules/x", "read"}, {"GET", "/v1/schedules/x/preview", "read"},
			{"GET", "/v1/schedules/x/occurrences", "read"}, {"POST", "/v1/schedules/preview", "read"},
			{"GET", "/v1/exclusions", "read"}, {"GET", "/v1/exclusions/x", "read"}, {"PUT", "/v1/schedules/x", "write"},
			{"PATCH", "/v1/schedules/x", "write"}, {"DELETE", "/v1/schedules/x", "write"},
			{"POST", "/v1/schedules/x/pause", "write"}, {"POST", "/v1/schedules/x/resume", "write"},
			{"POST", "/v1/schedules/x/run-now", "write"}, {"PUT", "/v1/exclusions/x", "write"},
			{"DELETE", "/v1/exclusions/x", "write"},
		} {
			if r := b.do(t, c.method, c.path, ""); (r.status == 403) != (c.needs != scope) {
				t.Errorf("with scope %s, %s %s answered %d", scope, c.method, c.path, r.status)
			}
		}
		b.want(t, 200, "GET", "/v1/whoami", "")
	}
}
