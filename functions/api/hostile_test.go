package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

// slowBodies are bodies of 1 MiB that what grows with the square of something would take many
// minutes for.
func slowBodies() map[string]string {
	many := func(each func(i int) string, bytes int) string {
		var s strings.Builder
		for i := 0; s.Len() < bytes; i++ {
			if i > 0 {
				s.WriteByte(',')
			}
			s.WriteString(each(i))
		}
		return s.String()
	}
	const size = 1<<20 - 100
	return map[string]string{
		"one field again and again":        `{` + many(func(int) string { return `"a":1` }, size) + `}`,
		"unknown fields":                   `{` + many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size) + `}`,
		"one field of the payload":         `{"task":"echo","payload":{` + many(func(int) string { return `"a":1` }, size) + `}}`,
		"many fields of the payload twice": `{"task":"echo","payload":{` + many(func(i int) string { return fmt.Sprintf(`"%d":1`, i%30000) }, size) + `}}`,
		"many small objects":               `{"task":"echo","payload":[` + many(func(int) string { return `{"a":1,"a":1}` }, size) + `]}`,
		"one header in many cases":         `{"task":"http","payload":{"url":"https://example.com","headers":{` + many(func(i int) string { return fmt.Sprintf(`"x-%d":"1"`, i) }, size) + `}}}`,
		"one header again and again":       `{"task":"http","payload":{"url":"https://example.com","headers":{` + many(func(int) string { return `"a":"1"` }, size) + `}}}`,
		"secrets only":                     `{"task":"echo","payload":[` + many(func(int) string { return `{"password":"12345678"}` }, size) + `]}`,
		"brackets only":                    `{"task":"echo","payload":[` + many(func(int) string { return `[]` }, size) + `]}`,
		"numbers that are too large":       `{"task":"sum","payload":[` + many(func(int) string { return `1e999999` }, size) + `]}`,
		"tags without end":                 `{"task":"echo","tags":{` + many(func(i int) string { return fmt.Sprintf(`"%d":"1"`, i) }, size) + `}}`,
		"almost tokens":                    `{"task":"echo","payload":"` + strings.Repeat("eyJaaaaaaaa.", size/12) + `"}`,
		"escapes only":                     `{"task":"echo","payload":{"password":"` + strings.Repeat(`\u0061`, size/6) + `"}}`,
	}
}

const summing = `{"executor":"go","payload_schema":{"type":"array","items":{"minimum":1,"multipleOf":3}}}`

// How long each takes is BenchmarkSlowBodies; one that took many minutes would end the test.
func TestABodyMadeToBeSlowIsAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/sum", summing)
	for name, body := range slowBodies() {
		if r := b.do(t, "POST", "/v1/jobs", body); r.status >= 500 || len(r.text) > 40_000 {
			t.Errorf("%s: answered %d with %d bytes", name, r.status, len(r.text))
		}
	}
}

func TestANameThatIsASecretIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const token = "AKIAIOSFODNN7EXAMPLE"
	for _, body := range []string{
		`{"task":"echo","` + token + `":1}`, `{"task":"echo","payload":{"` + token + `":1,"` + token + `":1}}`, `{"task":"echo","tags":{"` + token + `":1}}`,
		`{"task":"http","payload":{"url":"https://example.com","headers":{"` + token + `":1}}}`, `{"task":"` + token + `"}`, `{"task":"echo","priority":"` + token + `"}`, `{"task":"echo","delay":"` + token + `"}`,
		`{"task":"echo","run_at":"` + token + `"}`, `{"task":"http","payload":{"url":"https://` + token + `@x/","method":"` + token + `"}}`,
	} {
		if r := b.want(t, 400, "POST", "/v1/jobs", body); strings.Contains(r.text, token) || strings.Contains(b.log.String(), token) {
			t.Errorf("%s came back: %s", body, r.text)
		}
	}
	for _, path := range []string{"/v1/jobs?" + token + "=1", "/v1/jobs?status=" + token, "/v1/jobs/" + token, "/v1/" + token} {
		if r := b.do(t, "GET", path, ""); strings.Contains(r.text, token) {
			t.Errorf("%s came back: %s", path, r.text)
		}
	}
}

func TestStrangeSchemasAreRefusedOrHarmless(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"$ref":"#/nope"}`, `{"$dynamicRef":"#x"}`, `{"$schema":"http://example.com/x"}`, `{"$id":"http://example.com/\u0000"}`, `{"pattern":"("}`, `{"pattern":"(a+)+$"}`, `{"allOf":[{"$ref":"#"}]}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `true`, `false`, `{"enum":[]}`, `{"multipleOf":0}`, `{"multipleOf":1e-9}`, `{"properties":{"a":7}}`, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
	} {
		if r := b.do(t, "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":`+schema+`}`); r.status >= 500 {
			t.Errorf("%s: %s", schema, r.text)
		} else if r.status == 400 {
			continue
		}
		if r := b.do(t, "POST", "/v1/jobs", `{"task":"t","payload":{"a":[1,"x",`+text(100)+`]}}`); r.status >= 500 {
			t.Errorf("a payload by %s: %s", schema, r.text)
		}
	}
}

func TestAnAnswerThatAClientDoesNotAskForIsJSONAllTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, accept := range []string{"text/html,application/xhtml+xml,*/*;q=0.8", "application/cbor", "nonsense", "application/json;q=0"} {
		if r := b.want(t, 200, "GET", "/v1/jobs", "", "Accept", accept); r.header.Get("Content-Type") != "application/json" {
			t.Errorf("Accept %q: %s", accept, r.header.Get("Content-Type"))
		}
		if r := b.want(t, 404, "GET", "/v1/jobs/x", "", "Accept", accept); r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("Accept %q: %s", accept, r.header.Get("Content-Type"))
		}
	}
}

func TestABatchHasNoKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.do(t, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo"}]}`, "Idempotency-Key", "k")
	requireRefused(t, b, wrong{status: 400, code: "unknown_field", pointer: "Idempotency-Key"}, r)
}

// repeating does writes of that name twice and answers with the second, as a client below us
// does that lost the first answer.
type repeating struct {
	store.Table
	name string
}

func (r repeating) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if w.Name == r.name {
		_, _ = r.Table.Write(ctx, w)
	}
	return r.Table.Write(ctx, w)
}

func (r repeating) Commit(ctx context.Context, writes ...item.Write) error {
	if writes[0].Name == r.name {
		_ = r.Table.Commit(ctx, writes...)
	}
	return r.Table.Commit(ctx, writes...)
}

func TestAWriteThatWasRepeatedBelowUsIsStillOurs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write, method, path, body string
		status                    int
		headers                   []string
	}{
		{"row.accept", "POST", "/v1/jobs", `{"task":"echo"}`, 202, nil},
		{"row.accept", "POST", "/v1/jobs", `{"task":"echo"}`, 202, []string{"Idempotency-Key", "k"}},
		{"row.forget", "DELETE", "/v1/jobs/{finished}", "", 204, nil},
		{"row.stop", "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{"claim.fence", "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{"row.finish_stop", "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{"task.put", "PUT", "/v1/tasks/new", `{"executor":"go"}`, 200, nil},
	} {
		b := setup(t)
		finished, waiting := b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo","delay":"1h"}`)
		b.end(t, finished, job.Outcome{Kind: job.OutcomeSucceeded})
		b.sent(t, contract.FiringQueue("short", "normal"))
		b.handler = api.New(api.Deps{Store: store.New(repeating{b.world.Table(), c.write}, b.world.Blobs()), Queues: b.world.Queues(), Timers: b.world.Timers(), Clock: b.clock})
		path := strings.NewReplacer("{finished}", finished, "{waiting}", waiting).Replace(c.path)
		r := b.want(t, c.status, c.method, path, c.body, c.headers...)
		if r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: the first answer says that it is a later one", c.write)
		}
		if fired := len(b.sent(t, contract.FiringQueue("short", "normal"))); c.write == "row.accept" && fired != 1 {
			t.Errorf("%s: %d firings", c.write, fired)
		}
	}
}
