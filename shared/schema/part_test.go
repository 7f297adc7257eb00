package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// spent is what checking a value by a schema costs, in units of work, and how many violations are reported.
func spent(t *testing.T, schema, value string) (units, wrong int) {
	t.Helper()
	c := NewCache()
	p, err := c.compile(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	least, most := 0, WorkPerValue*10
	for least < most { // the meter is gone once the value has been checked, so the least work that is enough is sought
		middle := (least + most) / 2
		instance := decoded(t, value)
		if err := p.validate(t.Context(), instance, middle, 1); err == errTooMuchWork { //nolint:errorlint // as it is
			least = middle + 1
		} else {
			most = middle
		}
	}
	u := Use{Schema: json.RawMessage(schema), Owner: "task", Field: "payload_schema"}
	return least, len(violationsIn(t, c.Validate(t.Context(), []byte(value), u)))
}

func decoded(t *testing.T, value string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func listOf(n int, each string) string { return "[" + strings.Repeat(each+",", n-1) + each + "]" }

func objectOf(n int, value string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"name%d":%s`, i, value))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// What is paid for a value that does not fit must not grow with its length once enough violations are known.
func TestParts_StopAtTheMistakesThatAreReported(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, schema, part string }{
		{"items of another type", `{"items":{"type":"string"}}`, `1`},
		{"items that are not allowed", `{"items":false}`, `1`},
		{"items of no form", `{"items":{"anyOf":[{"type":"string"},{"minimum":5}]}}`, `1`},
		{"items in lists", `{"items":{"items":{"minimum":5}}}`, `[1,1]`},
		{"items under a reference", `{"$defs":{"a":{"enum":[2]}},"items":{"$ref":"#/$defs/a"}}`, `1`},
		{"items of an old draft", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"minimum":5}}`, `1`},
		{"additional items", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[true],"additionalItems":{"minimum":5}}`, `1`},
		{"items after the first", `{"prefixItems":[true,true],"items":{"minimum":5}}`, `1`},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			less, wrong := spent(t, x.schema, listOf(1000, x.part))
			more, _ := spent(t, x.schema, listOf(10_000, x.part))
			if wrong != maxViolations || more > 2*less {
				t.Errorf("%d mistakes for %d units, and ten times as many items for %d", wrong, less, more)
			}
		})
	}
}

func TestParts_PayInProportionToTheParts(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, schema string
		value        func(n int) string
		least        int // units for each part
	}{
		{"items that fit", `{"items":{"minimum":1}}`, func(n int) string { return listOf(n, "1") }, 8},
		{"properties that fit", `{"additionalProperties":{"minimum":1}}`,
			func(n int) string { return objectOf(n, "1") }, 10},
		{"names that fit", `{"propertyNames":{"minLength":1}}`, func(n int) string { return objectOf(n, "1") }, 8},
		{"items that differ", `{"uniqueItems":true}`, func(n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprint(i))
			}
			return "[" + strings.Join(all, ",") + "]"
		}, 5},
		{"items that nothing else looks at", `{"unevaluatedItems":{"type":"string"}}`,
			func(n int) string { return listOf(n, "1") }, 12},
		{"properties that nothing else looks at", `{"unevaluatedProperties":{"type":"string"}}`,
			func(n int) string { return objectOf(n, "1") }, 12},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			const n = 2000
			units, _ := spent(t, x.schema, x.value(n))
			if units < n*x.least || units > 2*n*(x.least+2) {
				t.Errorf("%d parts cost %d units, want about %d for each", n, units, x.least)
			}
		})
	}
}

// Applying the keywords for parts here must find what the library finds.
func TestParts_FindWhatTheirKeywordsSay(t *testing.T) {
	t.Parallel()
	const old = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, x := range []struct {
		schema, value string
		want          []string // pointers
	}{
		{`{"prefixItems":[true],"items":{"type":"string"}}`, `[1,2,"a",3]`, []string{"/1", "/3"}},
		{`{` + old + `"items":[{"type":"string"}],"additionalItems":{"type":"string"}}`, `[1,2,"a"]`,
			[]string{"/0", "/1"}},
		{`{` + old + `"items":{"type":"string"},"additionalItems":false}`, `[1,"a"]`, []string{"/0"}},
		{`{` + old + `"items":[true],"additionalItems":false}`, `[1,"a"]`, []string{""}},
		{`{` + old + `"additionalItems":{"type":"string"}}`, `[1,"a"]`, nil},
		{`{"properties":{"a":{"type":"string"}},"patternProperties":{"^[ab]":{"minimum":5}},` +
			`"additionalProperties":{"type":"boolean"}}`, `{"a":1,"b":2,"c":3,"d":true}`,
			[]string{"/a", "/a", "/b", "/c"}},
		{`{"properties":{"a":true},"patternProperties":{"^b":true},"additionalProperties":false}`,
			`{"a":1,"bb":2,"d":4,"c":3}`, []string{"/c", "/d"}},
		{`{"additionalProperties":true,"patternProperties":{"^b":false}}`, `{"a":1,"b":2}`, []string{"/b"}},
		{`{"propertyNames":{"maxLength":1,"pattern":"^a"}}`, `{"a":1,"bb":2}`, []string{"/bb"}},
		{`{"patternProperties":{"^a":true},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{"/b"}},
		{`{"allOf":[{"additionalProperties":true}],"unevaluatedProperties":false}`, `{"a":1}`, nil},
		{`{"allOf":[{"patternProperties":{"^a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{"/b"}},
		{`{"allOf":[{"additionalProperties":{"minimum":1}}],"unevaluatedProperties":false}`, `{"a":1}`, nil},
		{`{"allOf":[{"items":{"minimum":1}}],"unevaluatedItems":false}`, `[1,2]`, nil},
		{`{"allOf":[{"prefixItems":[true]}],"unevaluatedItems":false}`, `[1,2]`, []string{"/1"}},
		{`{"contains":{"minimum":2},"unevaluatedItems":false}`, `[1,2]`, []string{"/0"}},
		{`{"not":{"items":{"type":"string"}}}`, `["a"]`, []string{""}},
		{`{"not":{"items":{"type":"string"}}}`, `["a",1]`, nil},
		{`{"oneOf":[{"items":{"type":"string"}},{"items":{"type":"number"}}]}`, `[1]`, nil},
		{`{"if":{"additionalProperties":{"type":"string"}},"then":false}`, `{"a":1}`, nil},
		{`{"items":{"items":{"type":"string"}}}`, `[["a",1],[2]]`, []string{"/0/1", "/1/0"}},
		{`{"uniqueItems":true}`, `[[1,2],[12],["1","2"],{"a":1},[1.0,2]]`, []string{""}},
		{`{"uniqueItems":true}`, `[[1,2],[12],["1","2"],{"a":1},["1:2"],["1","\"1:2"]]`, nil},
	} {
		var got []string
		u := Use{Schema: json.RawMessage(x.schema), Owner: "task", Field: "payload_schema"}
		for _, m := range violationsIn(t, NewCache().Validate(t.Context(), []byte(x.value), u)) {
			pointer, _, _ := strings.Cut(m, " ")
			got = append(got, pointer)
		}
		slices.Sort(got)
		if !slices.Equal(got, x.want) {
			t.Errorf("%s by %s: %q, want %q", x.value, x.schema, got, x.want)
		}
	}
}

func TestViolations_EndAPointerThatIsTooLongToRead(t *testing.T) {
	t.Parallel()
	path := slices.Repeat([]string{strings.Repeat("~/", 50_000)}, 60)
	got := pointerTo(path)
	if len(got) > 2*maxPointer || !strings.HasPrefix(got, "/~0~1~0~1") {
		t.Errorf("a pointer of %d bytes: %.20s", len(got), got)
	}
	if got := pointerTo([]string{"a", "0", "~/"}); got != "/a/0/~0~1" {
		t.Errorf("a short pointer is %s", got)
	}
}
