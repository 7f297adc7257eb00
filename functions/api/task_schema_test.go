package api_test

import (
	"fmt"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/process"
)

func list(n int, each func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = each(i)
	}
	return strings.Join(all, ",")
}

// doubling returns a schema in which every level applies the next one twice to the same value.
func doubling(levels int) string {
	return fmt.Sprintf(`{"$defs":{%s,"a%d":{"type":"object"}},"$ref":"#/$defs/a0"}`, list(levels, func(i int) string {
		return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i+1, i+1)
	}), levels)
}

//proof:of F32
func TestPutTask_RefusesSchemasThatCostTooMuch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct{ schema, allowed string }{
		"applies 2^20 subschemas to one value": {doubling(20), "at most 10000"},
		"applies 2^40 subschemas to one value": {doubling(40), "at most 10000"},
		"applies itself to the same value":     {`{"$ref":"#"}`, "references that lead into a part of the value"},
		"applies itself through oneOf":         {`{"$defs":{"a":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "references that lead into a part of the value"},
		"applies itself by dependentSchemas": {`{"dependentSchemas":{"a":{"$ref":"#"}}}`,
			"references that lead into a part of the value"},
		"hides itself below a property": {`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"allOf":[{"$ref":"#/$defs/x"}]}}}`, "references that lead into a part of the value"},
		"has a dynamic reference": {`{"$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}}}`,
			"$ref"},
		"has a long chain of references": {`{"$defs":{` + list(100,
			func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1) }) +
			`,"a100":{}},"$ref":"#/$defs/a0"}`, "at most 64"},
		"has a pattern of many instructions": {`{"pattern":"(a|b|[a-c]){1000}x$"}`,
			"at most 2500 instructions a pattern"},
		"has a pattern of millions of them": {`{"pattern":"` + strings.Repeat("a{1000}", 3000) + `"}`,
			"at most 2500 instructions a pattern"},
		"has a large name by pattern": {`{"patternProperties":{"a{1000}b{1000}c{1000}":true}}`,
			"at most 2500 instructions a pattern"},
		"has many patterns": {`{"allOf":[` + list(600,
			func(i int) string { return fmt.Sprintf(`{"pattern":"(a|b){9}%d"}`, i) }) + `]}`,
			"at most 10000 instructions in all patterns"},
		"has many subschemas": {`{"allOf":[` + strings.Repeat("true,", 3000) + `true]}`,
			"at most 2000 objects and booleans"},
		"has many references": {`{"enum":[` + strings.Repeat("{},", 800) + `{}],"properties":{` + list(800,
			func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/enum/%d"}`, i, i) }) + `}}`,
			"fewer references, or a smaller schema"},
		"is nested deep": {strings.Repeat(`{"items":`, 101) + "true" + strings.Repeat("}", 101),
			"at most 100 levels"},
		"has long names on many levels": {`{"properties":{"` + strings.Repeat("a", 10_000) + `":{"properties":{` +
			list(500, func(i int) string { return fmt.Sprintf(`"a%d":true`, i) }) + `}}}}`,
			"shorter names, or fewer levels"},
		"has a step next to nothing": {`{"multipleOf":1e-9999999}`,
			"at most 400 digits, and an exponent from -400 to 400"},
		"has an endless maximum": {`{"maximum":1e9999999}`,
			"at most 400 digits, and an exponent from -400 to 400"},
		"has a number of many digits": {`{"enum":[` + strings.Repeat("1", 401) + `]}`,
			"at most 400 digits, and an exponent from -400 to 400"},
		"has a length that is no integer": {`{"maxLength":1e20}`, "0 to 2147483648"},
		"is long": {`{"title":"` + strings.Repeat("a", 33<<10) + `"}`,
			"at most 32768 bytes"},
	} {
		t.Run("refuses a schema that "+name, func(t *testing.T) {
			t.Parallel()
			r := b.do(t, "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":`+c.schema+`}`)
			requireRefused(t, b, wrong{status: 400, code: "out_of_range", pointer: "/payload_schema"}, r)
			if !strings.Contains(r.text, `"allowed":"`+c.allowed) {
				t.Errorf("the problem does not say %q: %.300s", c.allowed, r.text)
			}
		})
	}
}

//proof:of F32
func TestPutTask_TakesSchemasOfTheUsualSize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, schema := range map[string]string{
		"a tree":          `{"$defs":{"n":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"}`,
		"2^11 subschemas": doubling(11),
		"600 properties": `{"properties":{` +
			list(600, func(i int) string { return fmt.Sprintf(`"a%d":{"type":"string"}`, i) }) + `}}`,
		"300 references": `{"$defs":{"s":{"type":"string"}},"properties":{` +
			list(300, func(i int) string { return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/s"}`, i) }) + `}}`,
		"a pattern of an e-mail": `{"pattern":"^[a-zA-Z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[a-zA-Z0-9-]{1,63}(\\.[a-zA-Z0-9-]{1,63}){1,8}$"}`,
		"large numbers":          `{"minimum":-1e308,"maximum":1e308,"multipleOf":0.01}`,
	} {
		if r := b.do(t, "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":`+schema+`}`); r.status >= 300 {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}

func within(open, inner, shut string, levels int) string {
	return strings.Repeat(open, levels) + inner + strings.Repeat(shut, levels)
}

// PUT accepts each of these schemas, and each payload would take minutes to years to check.
//
//proof:of F32
func TestCreateJob_RefusesPayloadsThatTakeTooMuchWorkToCheck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct{ schema, payload string }{
		"a property that is checked twice a level": {`{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, within(`{"a":`, `1`, `}`, 90)},
		"the same under not": {`{"$defs":{"n":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"patternProperties":{"a":{"$ref":"#/$defs/n"}}}},"not":{"$ref":"#/$defs/n"}}`,
			within(`{"a":`, `{}`, `}`, 90)},
		"items that contains checks too": {`{"$defs":{"n":{"type":"array","minContains":0,"contains":{"$ref":"#/$defs/n"},"items":{"$ref":"#/$defs/n"}}},"not":{"$ref":"#/$defs/n"}}`, within(`[`, ``, `]`, 90)},
		"items of an old draft": {`{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{"n":{"type":"array","items":{"anyOf":[{"$ref":"#/definitions/n"},{"$ref":"#/definitions/n"},{"$ref":"#/definitions/n"}]},"minItems":1}},"$ref":"#/definitions/n"}`,
			within(`[`, ``, `]`, 90)},
		"a slow pattern": {`{"pattern":"(a|b|[a-c]){400}x$"}`, `"` + strings.Repeat("abc", 50_000) + `"`},
		"many patterns": {`{"items":{"anyOf":[` + list(200,
			func(i int) string { return fmt.Sprintf(`{"pattern":"(a|b)+%d$"}`, i) }) + `,true]}}`,
			`[` + list(5000, func(int) string { return `"abababababab"` }) + `]`},
		"names by patterns": {`{"patternProperties":{` + list(200,
			func(i int) string { return fmt.Sprintf(`"(a|b)+%d$":true`, i) }) + `}}`,
			`{` + list(10_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		"unevaluated properties": {`{"unevaluatedProperties":false,"allOf":[` + list(900,
			func(int) string { return `{"maxProperties":90000}` }) + `]}`,
			`{` + list(30_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`},
		"uniqueness of long texts on every level": {`{"$defs":{"n":{"uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}}},"$ref":"#/$defs/n"}`,
			within(`[1,`, `"`+strings.Repeat("a", 900_000)+`"`, `]`, 90)},
		"many fields that are missing": {`{"items":{"anyOf":[{"required":[` + list(2000,
			func(i int) string { return fmt.Sprintf(`"a%d"`, i) }) + `]},true]}}`,
			`[` + list(50_000, func(int) string { return `{}` }) + `]`},
	} {
		t.Run("refuses a payload of "+name, func(t *testing.T) {
			t.Parallel()
			task := strings.ReplaceAll(name, " ", "-")
			b.want(t, 201, "PUT", "/v1/tasks/"+task, `{"executor":"go","payload_schema":`+c.schema+`}`)
			r := b.do(t, "POST", "/v1/jobs", `{"task":"`+task+`","payload":`+c.payload+`}`)
			requireRefused(t, b, wrong{status: 400, code: "out_of_range", pointer: "/payload"}, r)
		})
	}
}

// Items whose bytes are the same when written one after the other had the same hash in the library.
func TestCreateJob_ChecksUniquenessInLinearTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/u", `{"executor":"go","payload_schema":{"items":{"uniqueItems":true}}}`)
	split := func(i int) string {
		text := `"x`
		for bit := range 14 {
			if i>>bit&1 == 1 {
				text += `","x`
			} else {
				text += `\u0004x`
			}
		}
		return "[" + text + `"]`
	}
	all := list(1<<13, split)
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"u","payload":[[`+all+`]]}`)
	b.want(t, 400, "POST", "/v1/jobs", `{"task":"u","payload":[[`+all+`,`+split(7)+`]]}`)
}

func TestCreateJob_ComparesEnumConstAndUniqueItemsByMeaning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, c := range []struct {
		schema, payload string
		status          int
	}{
		{`{"enum":[1,"1",{"a":[1,2],"b":null}]}`, `1.0`, 202},
		{`{"enum":[1,"1",{"a":[1,2],"b":null}]}`, `10e-1`, 202},
		{`{"enum":[1,"1",{"a":[1,2],"b":null}]}`, `{"b":null,"a":[1,2.0]}`, 202},
		{`{"enum":[1,"1",{"a":[1,2],"b":null}]}`, `{"a":[1,2]}`, 400},
		{`{"enum":[1,"1"]}`, `true`, 400},
		{`{"enum":["true"]}`, `true`, 400},
		{`{"const":9007199254740993}`, `9007199254740992`, 400},
		{`{"const":{"a":""}}`, `{"a":""}`, 202},
		{`{"const":[[],[]]}`, `[[[]]]`, 400},
		{`{"not":{"const":1}}`, `1`, 400},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"}}}]}`, `{"k":"b"}`, 202},
		{`{"uniqueItems":true}`, `[1,1.0]`, 400},
		{`{"uniqueItems":true}`, `[1,-1,"1",[1],{"1":1},true,null]`, 202},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1}]`, 400},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"("`, 400},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `"2027-02-30"`, 400},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"(a)"`, 202},
		{`{"format":"date"}`, `"2027-02-30"`, 400},
		{`{"format":"email"}`, `"ada@example.com"`, 202},
		{`{"format":"email"}`, `"ada"`, 400},
		{`{"format":"int32"}`, `"ada"`, 202},
		{`{"pattern":"^\\S+$"}`, `"a\u00a0b"`, 400},
	} {
		task := fmt.Sprint("t", i)
		b.want(t, 201, "PUT", "/v1/tasks/"+task, `{"executor":"go","payload_schema":`+c.schema+`}`)
		if r := b.do(t, "POST", "/v1/jobs", `{"task":"`+task+`","payload":`+c.payload+`}`); r.status != c.status {
			t.Errorf("%s by %s: %d, want %d: %s", c.payload, c.schema, r.status, c.status, r.text)
		}
	}
}

func TestTask_NotesFormatsThatAreNotChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const body = `{"executor":"go","payload_schema":{"properties":{"n":{"format":"int32"},"on":{"format":"date"}}}}`
	want := `"notes":["the format \"int32\" is not known and not checked"]`
	for _, r := range []reply{b.want(t, 201, "PUT", "/v1/tasks/t", body), b.want(t, 200, "PUT", "/v1/tasks/t", body),
		b.want(t, 200, "GET", "/v1/tasks/t", "")} {
		if !strings.Contains(r.text, want) {
			t.Errorf("answered %s", r.text)
		}
	}
	if r := b.want(t, 200, "GET", "/v1/tasks/echo", ""); strings.Contains(r.text, "notes") {
		t.Errorf("a task without a schema: %s", r.text)
	}
}

func TestDag_NotesFormatsThatAreNotChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const (
		nodes  = `{"nodes":{"a":{"task":"echo"}}`
		body   = nodes + `,"params":{"n":1},"params_schema":{"properties":{"n":{"format":"int32"}}}}`
		schema = `{"executor":"go","payload_schema":{"properties":{"n":{"format":"int32"}}}}`
	)
	want := b.want(t, 201, "PUT", "/v1/tasks/t", schema).at("notes")
	for _, r := range []reply{
		b.want(t, 200, "POST", "/v1/dags/validate", body), b.want(t, 201, "PUT", "/v1/dags/d", body),
		b.want(t, 200, "GET", "/v1/dags/d", ""),
	} {
		if !strings.Contains(want, "int32") || r.at("notes") != want {
			t.Errorf("answered %s", r.text)
		}
	}
	for _, r := range []reply{b.want(t, 200, "POST", "/v1/dags/validate", nodes+"}"),
		b.want(t, 201, "PUT", "/v1/dags/e", nodes+"}")} {
		if strings.Contains(r.text, `"notes"`) {
			t.Errorf("a dag without a schema: %s", r.text)
		}
	}
}

//proof:of F32
func TestBatch_GivesEachJobItsShareOfTheWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/t",
		`{"executor":"go","payload_schema":{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}}`)
	heavy := `{"task":"t","payload":` + within(`{"a":`, `1`, `}`, 90) + `}`
	r := b.want(t, 200, "POST", "/v1/jobs/batch",
		`{"jobs":[`+list(60, func(int) string { return heavy })+`,{"task":"t","payload":{"b":1}}]}`)
	if !strings.Contains(r.text, `"accepted":1,"refused":60`) {
		t.Errorf("answered %.300s", r.text)
	}
}

func TestBatch_CompilesABoundedNumberOfSchemas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	large := func(i int) string {
		return fmt.Sprintf(`{"title":"%d","description":"%s","properties":{"a":{"type":"string"}}}`, i,
			strings.Repeat("x", 30<<10))
	}
	for i := range 20 {
		b.want(t, 201, "PUT", fmt.Sprint("/v1/tasks/t", i), `{"executor":"go","payload_schema":`+large(i)+`}`)
	}
	batch := `{"jobs":[` + list(20, func(i int) string { return fmt.Sprintf(`{"task":"t%d","payload":{}}`, i) }) + `]}`
	// The new process has compiled none of them.
	b.handler = api.New(api.Deps{Store: b.Store, Queues: b.World.Queues(), Timers: b.World.Timers(),
		Base: process.Base{Clock: b.clock}})
	if r := b.want(t, 200, "POST", "/v1/jobs/batch", batch); !strings.Contains(r.text, `"refused":12`) {
		t.Errorf("answered %.300s", r.text)
	}
}
