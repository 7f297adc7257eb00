package api_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/store"
)

// slowBody is a request that is made to be slow.
type slowBody struct{ method, path, body string }

// slowTasks returns the schemas of the tasks in some of the slow bodies.
func slowTasks() map[string]string {
	return map[string]string{
		"sum":      `{"type":"array","items":{"minimum":1,"multipleOf":3}}`,
		"texts":    `{"type":"object","additionalProperties":{"items":{"type":"number"}}}`,
		"twice":    `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`,
		"pattern":  `{"items":{"pattern":"(a|b|[a-c]){400}x$"}}`,
		"unique":   `{"uniqueItems":true,"items":{"uniqueItems":true}}`,
		"enum":     `{"items":{"enum":[` + list(4000, func(i int) string { return fmt.Sprint(i + 10) }) + `]}}`,
		"doubling": doubling(11),

		"unevaluated": `{"unevaluatedProperties":{"type":"string"}}`,
		"names":       `{"propertyNames":{"minLength":50}}`,
	}
}

// slowBodies returns requests of about that size, at least one for each reader. An algorithm in quadratic time would
// take many minutes for them.
func slowBodies(bytes int) map[string]slowBody {
	many := func(each func(i int) string, bytes int) string { return repeated(bytes, each) }
	size := bytes - 100
	item := size/100 - 100 // bytes of each item of a full batch
	longName := size * 2 / 5
	job := func(body string) slowBody { return slowBody{"POST", "/v1/jobs", body} }
	payload := func(task, payload string) slowBody { return job(`{"task":"` + task + `","payload":` + payload + `}`) }
	jobs := func(number int, each string) slowBody {
		return slowBody{"POST", "/v1/jobs/batch", `{"jobs":[` + strings.Repeat(each+",", number-1) + each + `]}`}
	}
	secrets := many(func(int) string { return `"aaaaaaaa"` }, size-longName-100)
	all := map[string]slowBody{
		"one field many times": job(`{` + many(func(int) string { return `"a":1` }, size) + `}`),
		"a webhook with many events": {"PUT", "/v1/webhooks/x", `{"url":"https://example.com","events":[` +
			many(func(int) string { return `"job.*"` }, size) + `]}`},
		"operations with unknown fields": {"POST", "/v1/operations", `{"filter":{` +
			many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size-100) + `}}`},
		"limits with unknown fields": {"PUT", "/v1/limits/x", `{` +
			many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size) + `}`},
		"many limits of a job": job(`{"task":"echo","limits":[` +
			many(func(int) string { return `{"name":"x"}` }, size) + `]}`),
		"unknown fields": job(`{` +
			many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size) + `}`),
		"one field of the payload": payload("echo",
			`{`+many(func(int) string { return `"a":1` }, size)+`}`),
		"many fields of the payload twice": payload("echo",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%d":1`, i%30000) }, size)+`}`),
		"many small objects": payload("echo",
			`[`+many(func(int) string { return `{"a":1,"a":1}` }, size)+`]`),
		"one header in many cases": payload("http",
			`{"url":"https://example.com","headers":{`+many(func(i int) string { return fmt.Sprintf(`"x-%d":"1"`, i) },
				size)+`}}`),
		"one header many times": payload("http",
			`{"url":"https://example.com","headers":{`+many(func(int) string { return `"a":"1"` }, size)+`}}`),
		"secrets only": payload("echo",
			`[`+many(func(int) string { return `{"password":"12345678"}` }, size)+`]`),
		"secrets under one long name": payload("echo",
			`{"secret`+strings.Repeat("~", longName)+`":[`+secrets+`]}`),
		"secrets under one long name, some allowed": job(
			`{"task":"echo","allow_literals":["/payload/secret"],"payload":{"secret` + strings.Repeat("~", longName) +
				`":[` + secrets + `]}}`),
		"long names of many fields": payload("echo",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%s%d":1`, strings.Repeat("aB-", 600), i) }, size)+`}`),
		"names in many cases": payload("echo",
			`{`+many(func(i int) string { return fmt.Sprintf(`"aBcDeFgH%d":"12345678"`, i) }, size)+`}`),
		"URLs with many parameters": payload("echo",
			`"https://example.com/?`+strings.Repeat("aB=12345678&", size/12)+`"`),
		"many URLs in one text": payload("echo", `"`+strings.Repeat("a://", size/4)+`"`),
		"beginnings of all tokens": payload("echo",
			`"`+strings.Repeat("-eyJ-SG.-ghp_-dapi-xoxb-Q~", size/26)+`"`),
		"brackets only": payload("echo",
			`[`+many(func(int) string { return `[]` }, size)+`]`),
		"numbers that are too large": payload("sum",
			`[`+many(func(int) string { return `1e999999` }, size)+`]`),
		"tags without end": job(`{"task":"echo","tags":{` +
			many(func(i int) string { return fmt.Sprintf(`"%d":"1"`, i) }, size) + `}}`),
		"tags with long names": job(`{"task":"echo","tags":{` +
			list(9, func(i int) string { return fmt.Sprintf(`"%d%s":1`, i, strings.Repeat("/", size/9-20)) }) + `}}`),
		"almost tokens": payload("echo", `"`+strings.Repeat("eyJaaaaaaaa.", size/12)+`"`),
		"escapes only": payload("echo",
			`{"password":"`+strings.Repeat(`\u0061`, size/6)+`"}`),
		"numbers that do not fit": payload("sum",
			`[`+many(func(int) string { return `5` }, size)+`]`),
		"values that do not fit under a long name": payload("texts",
			`{"`+strings.Repeat("~", longName)+`":[`+many(func(int) string { return `""` }, size-longName-100)+`]}`),
		"a property that is judged twice a level": payload("twice", within(`{"a":`, `1`, `}`, 90)),
		"a slow pattern": payload("pattern",
			`[`+many(func(int) string { return `"` + strings.Repeat("abc", 1000) + `"` }, size-10_000)+`]`),
		"uniqueness": payload("unique",
			`[[`+many(func(i int) string { return fmt.Sprint(i) }, size/2)+`],[`+
				many(func(i int) string { return fmt.Sprintf(`[%d]`, i) }, size/2)+`]]`),
		"values of no enum": payload("enum",
			`[`+many(func(int) string { return `5` }, size)+`]`),
		"a payload for many subschemas": payload("doubling",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%d":1`, i) }, size)+`}`),

		"uniqueness of numbers": payload("unique",
			`[`+many(func(i int) string { return fmt.Sprint(i + 100_000) }, size)+`]`),
		"values of another type under a long name of escapes": payload("texts",
			`{"`+strings.Repeat("~/", longName/2)+`":[`+many(func(int) string { return `""` }, size-longName-100)+`]}`),
		"properties under long names of escapes": payload("texts",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%s%d":[""]`, strings.Repeat("~/", 9_000), i) },
				size-20_000)+`}`),
		"properties that nothing else looks at": payload("unevaluated",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%d":1`, i) }, size)+`}`),
		"names that do not fit": payload("names",
			`{`+many(func(i int) string { return fmt.Sprintf(`"%d":1`, i) }, size)+`}`),

		"a batch of jobs with many violations": jobs(100,
			`{"task":"echo",`+many(func(i int) string { return fmt.Sprintf(`"\u0001field%d":1`, i) }, item)+`}`),
		"a batch of small jobs": jobs(100,
			`{"task":"echo","tags":{"a":"`+strings.Repeat("\u2028", 256)+`"}}`),
		"a batch of fields twice": jobs(100,
			`{"task":"echo","payload":{`+many(func(int) string { return `"a":1` }, item)+`}}`),
		"a batch of payloads that do not fit": jobs(100,
			`{"task":"sum","payload":[`+many(func(int) string { return `1` }, item)+`]}`),
		"a batch of payloads judged twice": jobs(100,
			`{"task":"twice","payload":`+within(`{"a":`, `1`, `}`, 90)+`}`),
		"a batch of large payloads judged twice": jobs(100,
			`{"task":"twice","payload":`+within(`{"a":`, `"`+strings.Repeat("a", item-700)+`"`, `}`, 90)+`}`),
		"a batch of secrets below many names of secrets": jobs(96, `{"task":"echo","payload":`+
			within(`{"secret`+strings.Repeat("s", max(item/110-20, 1))+`":`, `[`+list(60,
				func(int) string { return `"aaaaaaaa"` })+`]`, `}`, 90)+`}`),
		"names of secrets that are permitted": job(`{"task":"echo","allow_literals":[` + list(50, func(i int) string {
			return fmt.Sprintf(`"/payload/%s/%d"`, strings.Repeat("secret", 100), i)
		}) + `],"payload":{"` + strings.Repeat("secret", 100) + `":[` + secrets + `]}}`),
		"a batch of too many jobs": jobs(300_000, `{}`),
		"a schema of many patterns": {"PUT", "/v1/tasks/x",
			`{"executor":"go","payload_schema":{"allOf":[` + list(900,
				func(i int) string { return fmt.Sprintf(`{"pattern":"(a|b){999}%d"}`, i) }) + `]}}`},
		"a schema of one endless pattern": {"PUT", "/v1/tasks/x",
			`{"executor":"go","payload_schema":{"pattern":"` + strings.Repeat("a{1000}", 4500) + `"}}`},
		"a schema of many references": {"PUT", "/v1/tasks/x",
			`{"executor":"go","payload_schema":{"enum":[` + strings.Repeat("{},", 480) + `{}],"properties":{` +
				list(480, func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/enum/%d"}`, i, i) }) + `}}}`},
		"a schema that applies itself twice": {"PUT", "/v1/tasks/x", `{"executor":"go","payload_schema":` +
			doubling(100) + `}`},
		"a schema of 1 MB": {"PUT", "/v1/tasks/x",
			`{"executor":"go","payload_schema":{"allOf":[` + many(func(int) string { return `{}` }, size) + `]}}`},
		"a calendar of too many dates": {"PUT", "/v1/schedules/x",
			`{"job":{"task":"echo"},"calendar":{"dates":[` + many(func(int) string { return `"2027-03-03T00:00:00Z"` },
				size) + `]}}`},
		"a calendar of a very long expression": {"PUT", "/v1/schedules/x",
			`{"job":{"task":"echo"},"calendar":{"cron":"` + strings.Repeat("1,", size/2) + `1 * * * *"}}`},
		"a schedule of unknown fields": {"PUT", "/v1/schedules/x", `{` +
			many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size) + `}`},
		"an exclusion of too many ranges": {"PUT", "/v1/exclusions/x", `{"ranges":[` +
			many(func(int) string { return `{"from":"2027-01-01","to":"2027-01-02"}` }, size) + `]}`},
		"an exclusion of a long time zone": {"PUT", "/v1/exclusions/x", `{"weekly":["sat"],"timezone":"` +
			strings.Repeat("Europe/", size/7) + `"}`},
		"a pause with a long reason": {"PUT", "/v1/pauses/all", `{"reason":"` +
			strings.Repeat("why?a=1&", size/8) + `"}`},
		"a redrive of too many": {"POST", "/v1/dead-letters/redrive", `{"job_ids":[` +
			many(func(int) string { return `"x"` }, size) + `]}`},
		"a body where none belongs": {"POST", "/v1/jobs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/cancel", `{` +
			many(func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }, size) + `}`},
		"parameters without end": {"GET", "/v1/jobs?" +
			strings.ReplaceAll(many(func(i int) string { return fmt.Sprintf("%%01a%d=1", i) }, 60_000), ",", "&"), ""},
	}
	maps.Copy(all, slowDags(min(size, dag.MaxDefinition-1_000)))
	maps.Copy(all, slowChanges(size))
	return all
}

// slowChanges returns bodies of about that size for the requests that change or try what is there.
func slowChanges(size int) map[string]slowBody {
	const run = "/v1/runs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9"
	unknown := `{` + repeated(size, func(i int) string { return fmt.Sprintf(`"fie%dld":1`, i) }) + `}`
	escapes := `{` + repeated(size, func(i int) string {
		return fmt.Sprintf(`"%s%d":1`, strings.Repeat("~/", 5_000), i)
	}) + `}`
	all := map[string]slowBody{}
	for name, s := range map[string]slowBody{
		"a change of a job":      {"PATCH", "/v1/jobs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9", `{"payload":%s}`},
		"a pause of a job":       {"POST", "/v1/jobs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/pause", `%s`},
		"a corrected redrive":    {"POST", "/v1/jobs/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/redrive", `{"payload_patch":%s}`},
		"a change of a schedule": {"PATCH", "/v1/schedules/there", `{"job":{"payload":%s}}`},
		"a schedule to try":      {"POST", "/v1/schedules/there/dry-run", `{"job":{"task":"echo","payload":%s}}`},
		"a preview":              {"POST", "/v1/schedules/preview", `{"calendar":%s}`},
		"a pause of a schedule":  {"POST", "/v1/schedules/there/pause", `%s`},
		"a resume of a schedule": {"POST", "/v1/schedules/there/resume", `%s`},
		"a backfill":             {"POST", "/v1/schedules/there/backfills", `%s`},
		"a schedule to run now":  {"POST", "/v1/schedules/there/run-now", `%s`},
		"a payload to run now":   {"POST", "/v1/schedules/there/run-now", `{"payload_patch":%s}`},
		"a purge":                {"POST", "/v1/dead-letters/purge", `{"filter":%s}`},
		"a run of a dag":         {"POST", "/v1/dags/there/runs", `{"params":%s}`},
		"a pause of a run":       {"POST", run + "/pause", `%s`},
		"a resume of a run":      {"POST", run + "/resume", `%s`},
		"a cancel of a run":      {"POST", run + "/cancel", `%s`},
		"a retry of a run":       {"POST", run + "/retry", `%s`},
		"a retry of a node":      {"POST", run + "/nodes/a/retry", `%s`},
		"a skip of a node":       {"POST", run + "/nodes/a/skip", `%s`},
		"a result of a node":     {"POST", run + "/nodes/a/complete", `{"result":%s}`},
	} {
		for kind, inner := range map[string]string{"unknown fields": unknown, "long names of escapes": escapes} {
			all[name+" with "+kind] = slowBody{s.method, s.path, fmt.Sprintf(s.body, inner)}
		}
	}
	return all
}

// repeated lists parts until they have about that many bytes.
func repeated(bytes int, each func(i int) string) string {
	var s strings.Builder
	for i := 0; s.Len() < bytes; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(each(i))
	}
	return s.String()
}

// A route that takes a body must have one among the slow bodies, which the benchmark measures.
func TestAPI_HasASlowBodyForEachRouteThatTakesOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	paths := b.want(t, 200, "GET", "/v1/openapi.json", "").body["paths"].(map[string]any)
	bodies := slowBodies(maxAnswer / 4)
	names := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			if op.(map[string]any)["requestBody"] == nil {
				continue
			}
			route := regexp.MustCompile("^" + names.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
			found := false
			for _, s := range bodies {
				literal := strings.Contains(path, "{") && paths[s.path] != nil // a route of its own goes first
				found = found || s.method == strings.ToUpper(method) && route.MatchString(s.path) && !literal
			}
			if !found {
				t.Errorf("%s %s takes a body, and none of slowBodies is for it", strings.ToUpper(method), path)
			}
		}
	}
}

// slowDags returns definitions of about that size, for each request that takes one. Their names begin with "a dag".
func slowDags(size int) map[string]slowBody {
	const ofNode = 40 // bytes around an expression
	definition := func(node, expression string) string {
		n := max(min(size/(len(node)+len(expression)+ofNode), dag.MaxNodes), 1)
		return `{"params":{"n":1,"list":[1,2]},"nodes":{` + list(n, func(i int) string {
			return fmt.Sprintf(`"n%d":{"task":"echo",`+node+`}`, i, expression)
		}) + `}}`
	}
	repeat := strings.Repeat
	all := map[string]slowBody{}
	for name, d := range map[string]string{
		"doubled types":     definition(`"when":"%s"`, `[1]`+repeat(".map(a,{a:a})", 50)+`==[]`),
		"shared lists":      definition(`"when":"%s"`, `2 in [[1]]`+repeat(".map(a,a+a+a+a)", 31)),
		"shared items":      definition(`"for_each":"${%s}"`, `[dyn([1])]`+repeat(".map(a,[a,a])", 18)),
		"macros in macros":  definition(`"when":"%s"`, repeat("params.list.all(a,", 40)+"true"+repeat(")", 40)),
		"many operators":    definition(`"when":"%s"`, repeat("1<2||", 45)+"true"),
		"long lists":        definition(`"payload":"${%s}"`, `[`+repeat("1,", 450)+`1]`),
		"parentheses":       definition(`"when":"%s"`, repeat("(", 400)+"true"+repeat(")", 400)),
		"unclosed braces":   definition(`"when":"%s"`, repeat("a{", 500)),
		"patterns":          definition(`"when":"%s"`, `'a'.matches('`+repeat("(?i)[\\\\pL\\\\pN]", 15)+`')`),
		"counted patterns":  definition(`"when":"%s"`, `'a'.matches('(((a{9}){9}){9})`+repeat("x{999}", 30)+`')`),
		"small expressions": definition(`"payload":"%s"`, repeat("${params.n + 1}", 4)),
		"unknown names":     definition(`"payload":"%s"`, repeat("${params.nope}", 4)),
	} {
		all["a dag of "+name] = slowBody{"PUT", "/v1/dags/slow", d}
		all["a dag of "+name+" to validate"] = slowBody{"POST", "/v1/dags/validate", d}
		all["a dag of "+name+" to run"] = slowBody{"POST", "/v1/runs", `{"dag":` + d + `}`}
	}
	return all
}

// maxAnswer is the limit of every answer, in bytes.
const maxAnswer = 1 << 20

// BenchmarkSlowBodies measures each body; one that took minutes would end this test.
//
//proof:of F33
func TestAPI_AnswersBodiesMadeToBeSlowQuickly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, schema := range slowTasks() {
		b.want(t, 201, "PUT", "/v1/tasks/"+name, `{"executor":"go","payload_schema":`+schema+`}`)
	}
	size := maxAnswer / 4
	if testing.Short() {
		size /= 2 // quadratic time would still be many seconds for each
	}
	for name, s := range slowBodies(size) {
		r := b.do(t, s.method, s.path, s.body)
		most := 100_000
		if r.status < 300 { // an accepted dag is shown with its definition, a job with its payload
			most += size
		}
		if r.status >= 500 || len(r.text) > most && !strings.HasPrefix(name, "a batch") || len(r.text) > maxAnswer {
			t.Errorf("%s: answered %d with %d bytes", name, r.status, len(r.text))
		}
	}
}

//proof:of F33
func TestBatch_AcknowledgesAcceptedJobsDespiteManyMistakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bad := `{"task":"echo",` +
		list(60, func(i int) string { return fmt.Sprintf(`"%d%s":1`, i, strings.Repeat(`\u0001`, 20)) }) + `}`
	good := `{"task":"echo","tags":{` + list(10, func(i int) string {
		return fmt.Sprintf(`"%d":"%s"`, i,
			strings.Repeat("\u2028", 100))
	}) + `},"payload":"` + strings.Repeat("a", 1000) + `"}`
	r := b.want(t, 200, "POST", "/v1/jobs/batch",
		`{"jobs":[`+strings.Repeat(bad+",", 70)+strings.Repeat(good+",", 29)+good+`]}`)
	if r.body["accepted"] != 30.0 || r.body["refused"] != 70.0 || len(r.text) > maxAnswer/2 {
		t.Fatalf("accepted %v and refused %v in %d bytes", r.body["accepted"], r.body["refused"], len(r.text))
	}
	for i, item := range r.body["items"].([]any) {
		if i < 70 {
			p := item.(map[string]any)["problem"].(map[string]any)
			if len(p["errors"].([]any)) != 2 || !strings.HasPrefix(p["detail"].(string), "50 errors") {
				t.Fatalf("item %d: %v", i, p)
			}
		} else if item.(map[string]any)["job"].(map[string]any)["job_id"] == "" {
			t.Fatalf("item %d: %v", i, item)
		}
	}
}

//proof:of F33
func TestLists_EndAPageBeforeItIsTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const items = 60
	for i := range items {
		name := fmt.Sprintf("n%02d", i)
		b.want(t, 201, "PUT", "/v1/tasks/"+name,
			`{"executor":"go","payload_schema":{"title":"`+strings.Repeat("a", 30_000)+`"}}`)
		b.want(t, 201, "PUT", "/v1/schedules/"+name, `{"job":{"task":"echo"},"calendar":{"dates":[`+list(1000,
			func(i int) string { return fmt.Sprintf(`"2027-04-01T%02d:%02d:00.000Z"`, i/60, i%60) })+`]}}`)
	}
	for path, own := range map[string]int{"/v1/tasks": items + 4, "/v1/schedules": items} {
		seen := map[string]bool{}
		for next := "?limit=200"; next != ""; {
			r := b.want(t, 200, "GET", path+next, "")
			if len(r.text) > maxAnswer {
				t.Fatalf("%s answered %d bytes", path, len(r.text))
			}
			for _, item := range r.body["items"].([]any) {
				seen[item.(map[string]any)["name"].(string)] = true
			}
			next = ""
			if c, ok := r.body["next_cursor"].(string); ok {
				next = "?limit=200&cursor=" + c
			}
		}
		if len(seen) != own {
			t.Errorf("%s listed %d of %d", path, len(seen), own)
		}
	}
}

func TestAPI_DoesNotRepeatANameThatIsASecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const token = "AKIAIOSFODNN7EXAMPLE"
	for _, body := range []string{
		`{"task":"echo","` + token + `":1}`, `{"task":"echo","payload":{"` + token + `":1,"` + token + `":1}}`,
		`{"task":"echo","tags":{"` + token + `":1}}`,
		`{"task":"http","payload":{"url":"https://example.com","headers":{"` + token + `":1}}}`, `{"task":"` + token +
			`"}`, `{"task":"echo","priority":"` + token + `"}`, `{"task":"echo","delay":"` + token + `"}`,
		`{"task":"echo","run_at":"` + token + `"}`, `{"task":"http","payload":{"url":"https://` + token +
			`@x/","method":"` + token + `"}}`,
	} {
		if r := b.want(t, 400, "POST", "/v1/jobs", body); strings.Contains(r.text, token) ||
			strings.Contains(b.log.String(), token) {
			t.Errorf("%s came back: %s", body, r.text)
		}
	}
	for _, path := range []string{"/v1/jobs?" + token + "=1", "/v1/jobs?status=" + token, "/v1/jobs/" + token,
		"/v1/" + token} {
		if r := b.do(t, "GET", path, ""); strings.Contains(r.text, token) {
			t.Errorf("%s came back: %s", path, r.text)
		}
	}
}

func TestPutTask_RefusesOrHandlesStrangeSchemas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"$ref":"#/nope"}`, `{"$dynamicRef":"#x"}`, `{"$schema":"http://example.com/x"}`,
		`{"$id":"http://example.com/\u0000"}`, `{"pattern":"("}`, `{"pattern":"(a+)+$"}`, `{"allOf":[{"$ref":"#"}]}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `true`, `false`,
		`{"enum":[]}`, `{"multipleOf":0}`, `{"multipleOf":1e-9}`, `{"properties":{"a":7}}`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
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

func TestAPI_AnswersJSONWhateverAcceptSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, accept := range []string{"text/html,application/xhtml+xml,*/*;q=0.8", "application/cbor", "nonsense",
		"application/json;q=0"} {
		if r := b.want(t, 200, "GET", "/v1/jobs", "", "Accept",
			accept); r.header.Get("Content-Type") != "application/json" {
			t.Errorf("Accept %q: %s", accept, r.header.Get("Content-Type"))
		}
		if r := b.want(t, 404, "GET", "/v1/jobs/x", "", "Accept",
			accept); r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("Accept %q: %s", accept, r.header.Get("Content-Type"))
		}
	}
}

func TestBatch_HasNoKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.do(t, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo"}]}`, "Idempotency-Key", "k")
	requireRefused(t, b, wrong{status: 400, code: "unknown_field", pointer: "Idempotency-Key"}, r)
}

// repeating commits each write of that name twice and answers with the second result, like an SDK that lost the first
// answer.
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

func TestAPI_RecognizesItsOwnRepeatedWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write, method, path, body string
		status                    int
		headers                   []string
	}{
		{job.WriteAccept, "POST", "/v1/jobs", `{"task":"echo"}`, 202, nil},
		{job.WriteAccept, "POST", "/v1/jobs", `{"task":"echo"}`, 202, []string{"Idempotency-Key", "k"}},
		{job.WriteForget, "DELETE", "/v1/jobs/{finished}", "", 204, nil},
		{job.WriteStop, "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{job.WriteClaimFence, "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{job.WriteFinishStop, "POST", "/v1/jobs/{waiting}/cancel", "", 200, nil},
		{store.WriteTaskPut, "PUT", "/v1/tasks/new", `{"executor":"go"}`, 201, nil},
	} {
		b := setup(t)
		finished, waiting := b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo","delay":"1h"}`)
		b.end(t, finished, job.Outcome{Kind: job.OutcomeSucceeded})
		b.Received(stagetest.FiringQueue)
		b.handler = api.New(api.Deps{Store: store.New(repeating{b.World.Table(), c.write}, b.World.Blobs()),
			Queues: b.World.Queues(), Timers: b.World.Timers(), Base: process.Base{Clock: b.clock}})
		path := strings.NewReplacer("{finished}", finished, "{waiting}", waiting).Replace(c.path)
		r := b.want(t, c.status, c.method, path, c.body, c.headers...)
		if r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: the first answer says that it is a later one", c.write)
		}
		if fired := len(b.Received(stagetest.FiringQueue)); c.write == job.WriteAccept && fired != 1 {
			t.Errorf("%s: %d firings", c.write, fired)
		}
	}
}
