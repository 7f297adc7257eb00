package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"punctual/shared/fault"
)

// left is the context of a client that has left without anybody having waited for that.
type left struct{ context.Context }

func (left) Err() error { return context.Canceled }

//proof:of F32
func TestProgram_StopsJudgingWhenTheClientHasLeft(t *testing.T) {
	t.Parallel()
	p, err := NewCache().compile(json.RawMessage(`{"items":{"minimum":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	items := make([]any, 50_000)
	for i := range items {
		items[i] = json.Number("5")
	}
	if err := p.validate(left{t.Context()}, items, WorkPerValue, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the judgement ended with %.200v", err)
	}
	if err := p.validate(t.Context(), []any{json.Number("12")}, WorkPerValue, 1); err != nil {
		t.Errorf("the next payload was judged with %v", err)
	}
}

func TestProgram_WaitsNoLongerThanTheClient(t *testing.T) {
	t.Parallel()
	p, err := NewCache().compile(json.RawMessage(`{"minimum":10}`))
	if err != nil {
		t.Fatal(err)
	}
	p.turn <- struct{}{} // another payload is being validated
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := p.validate(ctx, json.Number("12"), WorkPerValue, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the judgement ended with %v", err)
	}
}

//proof:of F32
func TestCache_IsBoundedByWeight(t *testing.T) {
	t.Parallel()
	c := NewCache()
	var texts []json.RawMessage
	sum, kept := 0, 0
	for i := range 100 {
		schema := fmt.Sprintf(`{"title":"%d","allOf":[`, i)
		for n := range 200 {
			schema += fmt.Sprintf(`{"properties":{"some-name-that-is-long-%d":{"minLength":%d}}},`, n, n)
		}
		texts = append(texts, json.RawMessage(schema+`true]}`))
		p, err := c.compile(texts[i])
		if err != nil {
			t.Fatal(err)
		}
		if p.weight < 400_000 {
			t.Fatalf("a schema of 400 subschemas weighs %d bytes", p.weight)
		}
	}
	for _, text := range texts {
		if !c.Has(text) {
			continue
		}
		p, err := c.compile(text)
		if err != nil {
			t.Fatal(err)
		}
		sum, kept = sum+p.weight, kept+1
	}
	if sum > maxCached || sum < maxCached/2 || !c.Has(texts[len(texts)-1]) {
		t.Errorf("%d schemas of %d bytes are kept", kept, sum)
	}
	if p, _ := c.compile(json.RawMessage(`{"title":"0"}`)); p == nil || !c.Has(json.RawMessage(`{"title":"0"}`)) {
		t.Error("nothing can be added any more")
	}
}

// violationsIn are those of an error, each as "pointer code: detail (allowed)".
func violationsIn(t *testing.T, err error) (all []string) {
	t.Helper()
	var wrong fault.Violations
	if err != nil && !errors.As(err, &wrong) {
		t.Fatalf("the error is %v", err)
	}
	for _, m := range wrong {
		all = append(all, fmt.Sprintf("%s %s: %s (%s)", m.Pointer, m.Code, m.Detail, m.Allowed))
	}
	return all
}

func TestCache_ChecksSchemas(t *testing.T) {
	t.Parallel()
	c := NewCache()
	for schema, want := range map[string][]string{
		`{"minimum":1}`:                        nil,
		`true`:                                 nil,
		`{"properties":{"a":{"type":"text"}}}`: {`/properties/a/type invalid_value: `},
		`{"$ref":"https://example.com/a"}`:     {` invalid_value: the schema does not compile: it refers to another document`},
		`{"minimum":1e999}`:                    {` out_of_range: a number in the schema cannot be compared at a fair price`},
		strings.Repeat(" ", MaxText) + `true`:  {` out_of_range: the schema has 32772 bytes (at most 32768 bytes)`},
	} {
		got := violationsIn(t, c.Check(json.RawMessage(schema)))
		if (got == nil) != (want == nil) || want != nil && !strings.HasPrefix(got[0], want[0]) {
			t.Errorf("%.80s: %q, want %q", schema, got, want)
		}
		if c.Has(json.RawMessage(schema)) != (want == nil) {
			t.Errorf("%.80s: kept is %v", schema, want != nil)
		}
	}
}

func TestCache_JudgesByPlaceAndBoundWithoutTheValue(t *testing.T) {
	t.Parallel()
	c := NewCache()
	const token = "AKIAIOSFODNN7EXAMPLE"
	for _, x := range []struct {
		schema, value string
		want          []string
	}{
		{`{"properties":{"n":{"maximum":10}}}`, `{"n":10.0}`, nil},
		{`{"properties":{"n":{"maximum":10}}}`, `{"n":740}`,
			[]string{"/n invalid_value: the number is too large (of the dag's params_schema) (maximum 10)"}},
		{`{"items":{"maxLength":3}}`, `["abcd"]`,
			[]string{"/0 invalid_value: the text is too long (of the dag's params_schema) (maxLength 3)"}},
		{`{"required":["a"]}`, `{}`, []string{`/a missing_field: "a" is missing (of the dag's params_schema) ()`}},
		{`{"additionalProperties":false}`, `{"` + token + `":1}`,
			[]string{`/… invalid_value: no property "…" is allowed here (of the dag's params_schema) ()`}},
		{`true`, `{"b":[1e999],"a":-1e-999}`, []string{
			"/a out_of_range: the number is too large, too long or too near to nothing to be judged by the dag's " +
				"params_schema (at most 400 digits, and an exponent from -400 to 400)",
			"/b/0 out_of_range: the number is too large, too long or too near to nothing to be judged by the dag's " +
				"params_schema (at most 400 digits, and an exponent from -400 to 400)",
		}},
		{`{"minimum":1e999}`, `1`, []string{" out_of_range: the dag's params_schema is not taken any more: a number in the " +
			"schema cannot be compared at a fair price; put the dag again (at most 400 digits, and an exponent from " +
			"-400 to 400)"}},
	} {
		u := Use{Schema: json.RawMessage(x.schema), Owner: "dag", Field: "params_schema"}
		got := violationsIn(t, c.Validate(t.Context(), []byte(x.value), u))
		if !slices.Equal(got, x.want) {
			t.Errorf("%s by %s:\n%q, want\n%q", x.value, x.schema, got, x.want)
		}
	}
	broken := Use{Schema: json.RawMessage(`{"type":"text"}`), Owner: "task", Field: "payload_schema"}
	if err := c.Validate(t.Context(), []byte(`1`), broken); fault.KindOf(err) != fault.Undecodable {
		t.Errorf("a schema that does not compile: %v", err)
	}
}

func TestCache_JudgesWithinTheWorkThatIsAllowed(t *testing.T) {
	t.Parallel()
	c := NewCache()
	u := Use{Schema: json.RawMessage(`{"items":{"maximum":10}}`), Owner: "task", Field: "payload_schema"}
	value := []byte("[1" + strings.Repeat(",1", 999) + "]")
	if got := violationsIn(t, c.Validate(t.Context(), value, u)); got != nil {
		t.Errorf("by default: %q", got)
	}
	u.Work = 1000
	got := violationsIn(t, c.Validate(t.Context(), value, u))
	if len(got) != 1 || !strings.Contains(got[0], "takes more work than is allowed") {
		t.Errorf("with little work: %q", got)
	}
}
