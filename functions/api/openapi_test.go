package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// served returns the document of a deployment or of a laptop.
func served(t *testing.T, d Deps) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	New(d).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", http.NoBody))
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v", w.Code, err)
	}
	return doc
}

func schemasOf(doc map[string]any) map[string]any {
	return doc["components"].(map[string]any)["schemas"].(map[string]any)
}

// eachOperation iterates over the operations of a document by method and path.
func eachOperation(doc map[string]any) func(yield func(string, map[string]any) bool) {
	return func(yield func(string, map[string]any) bool) {
		for path, item := range doc["paths"].(map[string]any) {
			for method, op := range item.(map[string]any) {
				if !yield(strings.ToUpper(method)+" "+path, op.(map[string]any)) {
					return
				}
			}
		}
	}
}

//proof:of F29
func TestDocument_BoundsEveryValueThatIsRead(t *testing.T) {
	t.Parallel()
	doc := served(t, Deps{Store: &store.Store{}})
	var walk func(at string, v any)
	walk = func(at string, v any) {
		s, ok := v.(map[string]any)
		if !ok {
			return
		}
		has := func(words ...string) bool {
			for _, w := range words {
				if _, ok := s[w]; ok {
					return true
				}
			}
			return false
		}
		switch s["type"] {
		case "string":
			if !has("enum", "pattern", "maxLength") {
				t.Errorf("%s: any text fits", at)
			}
		case "integer", "number":
			if !has("minimum") || !has("maximum") {
				t.Errorf("%s: any number fits", at)
			}
		case "array":
			if !has("maxItems") {
				t.Errorf("%s: a list of any length fits", at)
			}
			walk(at+"/items", s["items"])
		case "object":
			if more, ok := s["additionalProperties"].(map[string]any); ok {
				if !has("maxProperties") || !has("propertyNames") {
					t.Errorf("%s: any names fit", at)
				}
				walk(at+"/*", more)
			}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			walk(at+"/"+name, p)
		}
	}
	for name, s := range schemasOf(doc) {
		if isRead(name) || name == "EchoPayload" {
			walk(name, s)
		}
	}
	for name, op := range eachOperation(doc) {
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			p := p.(map[string]any)
			walk(name+" "+p["name"].(string), p["schema"])
		}
	}
}

func TestDocument_HasEveryFieldWithBounds(t *testing.T) {
	t.Parallel()
	doc := served(t, Deps{Store: &store.Store{}})
	schemas := schemasOf(doc)
	for name, fields := range bounds {
		properties := map[string]any{}
		if s, ok := schemas[name].(map[string]any); ok {
			properties, _ = s["properties"].(map[string]any)
		}
		if len(properties) == 0 {
			t.Errorf("there is no schema %s", name)
		}
		for field := range fields {
			if properties[field] == nil {
				t.Errorf("schema %s has no field %s", name, field)
			}
		}
	}
}

func TestDocument_IsMadeForGeneratedClients(t *testing.T) {
	t.Parallel()
	doc := served(t, Deps{Store: &store.Store{}})
	operation, schema := regexp.MustCompile(`^[a-z]+([A-Z][a-z]*)*$`), regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	seen := map[string]string{}
	for name, op := range eachOperation(doc) {
		id := op["operationId"].(string)
		if !operation.MatchString(id) || seen[id] != "" {
			t.Errorf("%s is called %s, as is %q", name, id, seen[id])
		}
		seen[id] = name
		if about := op["summary"].(string); len(about) > 60 || strings.HasSuffix(about, ".") {
			t.Errorf("%s has the summary %q", name, about)
		}
	}
	for name := range schemasOf(doc) {
		if !schema.MatchString(name) {
			t.Errorf("a schema is called %s", name)
		}
	}
}

func TestDocument_ListsTheStatusesOfSuccess(t *testing.T) {
	t.Parallel()
	for name, op := range eachOperation(served(t, Deps{Store: &store.Store{}})) {
		responses := op["responses"].(map[string]any)
		if _, created := responses["201"]; created != strings.HasPrefix(name, "PUT ") {
			t.Errorf("%s: 201 is documented: %v", name, created)
		}
		if _, absent := responses["404"]; strings.Contains(name, "{") && !absent {
			t.Errorf("%s: 404 is not documented", name)
		}
		if strings.HasSuffix(name, "/jobs/{id}/cancel") && (responses["200"] == nil || responses["202"] == nil) {
			t.Errorf("%s: 200 and 202 are not both documented", name)
		}
	}
}

func TestDocument_AsksForATokenOnlyWhereOneIsNeeded(t *testing.T) {
	t.Parallel()
	text := func(d Deps) string {
		b, err := json.Marshal(served(t, d))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	optional := `"security":[{},{"bearer":["punctual:read"]}]`
	for word, on := range map[string]struct{ deployment, laptop bool }{
		`"securitySchemes"`: {true, true}, `"401"`: {true, false}, optional: {false, true},
	} {
		if strings.Contains(text(Deps{Store: &store.Store{}}), word) != on.deployment {
			t.Errorf("a deployment's document has %s: %v, want %v", word, !on.deployment, on.deployment)
		}
		if strings.Contains(text(Deps{Store: &store.Store{}, NoSignIn: true}), word) != on.laptop {
			t.Errorf("a laptop's document has %s: %v, want %v", word, !on.laptop, on.laptop)
		}
	}
}

//proof:of F29
func TestDocument_AcceptsExactlyWhatTheReadersAccept(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:openapi", any(served(t, Deps{Store: &store.Store{}}))); err != nil {
		t.Fatal(err)
	}
	for _, in := range []struct {
		schema, body string
		fits         bool
	}{
		{"CalendarRequest", `{"cron":"0 9 * * *","missing_hour":"skip"}`, true},
		{"CalendarRequest", `{"every":"5m","phase":"30s"}`, true},
		{"CalendarRequest", `{"dates":["2027-01-01T00:00:00Z"]}`, true},
		{"CalendarRequest", `{"rrule":"FREQ=DAILY"}`, true},
		{"CalendarRequest", `{}`, false},
		{"CalendarRequest", `{"cron":"0 9 * * *","every":"5m"}`, false},
		{"CalendarRequest", `{"cron":"0 9 * * *","phase":"30s"}`, false},
		{"CalendarRequest", `{"every":"5m","missing_hour":"skip"}`, false},
		{"CalendarRequest", `{"dates":[]}`, false},
		{"CalendarRequest", `{"dates":["2027-01-01T00:00:00z"]}`, false},
		{"CalendarRequest", `{"every":"5 minutes"}`, false},
		{"CalendarPatchRequest", `{"timezone":"Europe/Berlin"}`, true},
		{"CalendarPatchRequest", `{"cron":"0 9 * * *","every":null,"phase":null}`, true},
		{"CalendarPatchRequest", `{"phase":"30s"}`, true},
		{"JobTemplatePatchRequest", `{"tags":{"a":null,"b":"c"}}`, true},
		{"SchedulePatchRequest", `{"calendar":null,"calendars":[{"every":"5m"}]}`, true},
		{"SchedulePatchRequest", `{"calendars":[]}`, false},
		{"ScheduleRequest", `{"calendars":[{"every":"5m"},{"cron":"0 9 * * *"}],"job":{"task":"echo"}}`, true},
		{"ScheduleRequest", `{"calendars":[{"every":"5m","cron":"0 9 * * *"}],"job":{"task":"echo"}}`, false},
		{"PreviewRequest", `{"calendars":[{"every":"5m"}]}`, true},
		{"PreviewRequest", `{"calendar":{"every":"5m"},"calendars":[{"every":"5m"}]}`, false},
		{"SchedulePatchRequest", `{"dag":null,"job":{"task":"echo"}}`, true},
		{"SchedulePatchRequest", `{"dag":{"version":null}}`, true},
		{"ScheduleRequest", `{"calendar":{"every":"5m"},"dag":{"name":"etl"}}`, true},
		{"ScheduleRequest", `{"calendar":{"every":"5m"},"job":{"task":"echo"}}`, true},
		{"ScheduleRequest", `{"calendar":{"every":"5m"},"job":{"task":"echo"},"dag":{"name":"etl"}}`, false},
		{"JobRequest", `{"task":"echo","delay":"5s"}`, true},
		{"JobRequest", `{"task":"echo","delay":"5s","run_at":"2027-01-01T00:00:00Z"}`, false},
		{"JobRequest", `{"delay":"5s"}`, false},
		{"JobRequest", `{"task":"echo","run_if":"all_done"}`, false},
		{"JobRequest", `{"task":"echo","Priority":"low"}`, false},
		{"JobRequest", `{"task":"echo","priority":"urgent"}`, false},
		{"JobRequest", `{"task":"a b"}`, false},
		{"JobRequest", `{"task":"echo","tags":{"a":"b"}}`, true},
		{"JobRequest", `{"task":"echo","tags":{"":"b"}}`, false},
		{"JobRequest", `{"task":"echo","tags":{"a":"\u0007"}}`, false},
		{"JobRequest", `{"task":"echo","metadata":{"a":[{}]}}`, true},
		{"JobRequest", `{"task":"echo","metadata":[]}`, false},
		{"JobPatchRequest", `{"allow_literals":["/metadata/a"],"metadata":{"a":1}}`, true},
		{"JobTemplatePatchRequest", `{"metadata":{"a":null}}`, true},
		{"JobTemplatePatchRequest", `{"metadata":null}`, true},
		{"JobRequest", `{"task":"echo","retry":{"max_attempts":51}}`, false},
		{"JobRequest", `{"task":"echo","retry":{"max_attempts":1.5}}`, false},
		{"BatchRequest", `{"jobs":[]}`, false},
		{"JobPatchRequest", `{}`, false},
		{"JobPatchRequest", `{"allow_literals":["/payload"],"payload":1}`, true},
		{"DeadLettersRequest", `{}`, false},
		{"DeadLettersRequest", `{"filter":{},"limit":1}`, true},
		{"DeadLettersRequest", `{"job_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"]}`, true},
		{"DeadLettersRequest", `{"job_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"],"limit":1}`, false},
		{"DeadLettersRequest", `{"job_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"],"filter":{}}`, false},
		{"ExclusionRequest", `{"weekly":["sat","SUN"]}`, true},
		{"ExclusionRequest", `{"dates":[],"yearly":["12-25"]}`, true},
		{"ExclusionRequest", `{"dates":["2027-13-01"]}`, false},
		// the reader refuses it
		{"ExclusionRequest", `{"ranges":[{"from":"2027-12-24","to":"2027-12-24T12:00:00Z"}]}`, true},
		{"HTTPPayload", `{"url":"https://example.com/x?y=1"}`, true},
		{"HTTPPayload", `{"url":"ftp://example.com"}`, false},
		{"HTTPPayload", `{"url":"https://example.com","headers":{"a b":"c"}}`, false},
		{"LambdaPayload", `{"function":"f:live","input":[1]}`, true},
		{"LambdaPayload", `{"function":"f g"}`, false},
		{"EchoPayload", `{"sleep":"2s","more":1}`, true},
		{"SQSPayload", `{"queue":"orders.fifo","message":[1],"group":"g"}`, true},
		{"SQSPayload", `{"queue":"https://sqs/1/orders","message":"m"}`, false},
	} {
		s, err := c.Compile("mem:openapi#/components/schemas/" + in.schema)
		if err != nil {
			t.Fatalf("%s: %v", in.schema, err)
		}
		body, err := jsonschema.UnmarshalJSON(strings.NewReader(in.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(body); (err == nil) != in.fits {
			t.Errorf("%s %s: fits is %v, want %v (%v)", in.schema, in.body, err == nil, in.fits, err)
		}
	}
}

// Generators of clients have no words for such a schema; descriptions say it instead, and the readers refuse it.
func TestDocument_ExcludesNoAlternatives(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(served(t, Deps{Store: &store.Store{}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{`"not":{"anyOf"`, `"not":{"allOf"`, `"not":{"not"`} {
		if strings.Contains(string(text), schema) {
			t.Errorf("the document has %s", schema)
		}
	}
}

func TestAPI_ListsTheMethodsOfAPathWithoutParameters(t *testing.T) {
	t.Parallel()
	h := New(Deps{Store: &store.Store{}})
	who := tenant.Identity{Tenant: "acme", Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	for _, c := range []struct{ method, path, allow string }{
		{"PATCH", "/v1/jobs/batch", "POST"}, {"GET", "/v1/jobs/batch", "POST"},
		{"OPTIONS", "/v1/schedules/preview", "DELETE, GET, HEAD, PATCH, POST, PUT"}, // a schedule may have this name
		{"DELETE", "/v1/jobs", "GET, HEAD, POST"},
		{"POST", "/v1/health", "GET, HEAD"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(rest.WithIdentity(context.Background(), who), c.method, c.path,
			http.NoBody))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != c.allow ||
			!strings.Contains(w.Body.String(), rest.CodeMethodNotAllowed) {
			t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
}

// Executors have codes of their own, because they do not know the API.
func TestCatalogue_HasTheCodesOfExecutors(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		executor.CodeInvalidValue, executor.CodeOutOfRange, executor.CodeDuplicateField, executor.CodeConflictingFields,
		executor.CodeSecretInPayload, executor.CodeTargetRefused,
	} {
		if _, ok := spec.Catalogue.Explain(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

// A limit that is typed into a text is wrong after the contract changes. A name that is misspelled would be served as
// it is.
func TestDocument_TakesItsLimitsFromTheCode(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	New(Deps{Store: &store.Store{}}).ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", http.NoBody))
	if at := strings.Index(w.Body.String(), "{="); at >= 0 {
		t.Errorf("no limit has the name in %.40s", w.Body.String()[at:])
	}
	if want := "Tags by name, up to " + strconv.Itoa(contract.MaxTags); !strings.Contains(w.Body.String(), want) {
		t.Errorf("the document does not say %q", want)
	}
}

func TestLimits_AreSpelledAsSentencesDo(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"":            text.Listed(nil, "and"),
		"a":           text.Listed([]string{"a"}, "and"),
		"a and b":     text.Listed([]string{"a", "b"}, "and"),
		"a, b or c":   text.Listed([]string{"a", "b", "c"}, "or"),
		"five":        text.Spelled(5),
		"12":          text.Spelled(12),
		"a second":    text.SpelledTime(time.Second, time.Second, "a second", "seconds"),
		"two seconds": text.SpelledTime(2*time.Second, time.Second, "a second", "seconds"),
	} {
		if got != want {
			t.Errorf("spelled %q, want %q", got, want)
		}
	}
}
