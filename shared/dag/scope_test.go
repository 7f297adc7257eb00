package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/fault"
)

// etl returns a graph with last as its last node.
func etl(last dag.Node) dag.Definition {
	last.Task, last.DependsOn = "echo", append(last.DependsOn, "split", "a-b")
	return dag.Definition{
		Nodes: map[string]dag.Node{
			"extract": {Task: "http"}, "split": {Task: "greet", DependsOn: []string{"extract"}},
			"a-b": {Task: "echo"}, "other": {Task: "echo"}, "last": last,
		},
		Params: map[string]json.RawMessage{"n": json.RawMessage("3"),
			"url": json.RawMessage(`"https://example.com"`)},
		ParamsSchema: json.RawMessage(
			`{"properties":{"limit":{"type":"integer"},"digits":{},"ratio":{},"big":{},"list":{},"secret":{}}}`),
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := dag.DecodeResult(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func facts(t *testing.T) dag.Facts {
	return dag.Facts{
		Params: value(t,
			`{"n":3,"url":"https://example.com","ratio":0.5,"big":9007199254740993,`+
				`"list":[1,2,3],"secret":"hunter2",`+
				`"digits":[12345678901234567.89,12345678901234567890123,2.50,1.0,-0,1E400,18446744073709551615]}`),
		Nodes: map[string]dag.NodeFacts{
			"extract": {Result: value(t, `{"rows":7,"name":"Ünal","deep":{"x":[1,2.5,null,true]}}`),
				Status: "SUCCEEDED", Attempt: 2},
			"split": {Result: value(t, `[1,2,3]`), Status: "SUCCEEDED", Attempt: 1},
			"a-b":   {Status: "DEAD", Attempt: 6, Forced: true},
		},
		Run: dag.RunFacts{ID: "01RUN", Dag: "etl", Version: 2, CreatedAt: "2027-01-01T00:00:00.000Z"},
	}
}

func TestPayload_EvaluatesExpressionsInStrings(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"u":"${params.url}"}`:                  `{"u":"https://example.com"}`,
		`{"n":"${params.n}"}`:                    `{"n":3}`,
		`{"n":"${params.n + 1}"}`:                `{"n":4}`,
		`{"n":"n is ${params.n}!"}`:              `{"n":"n is 3!"}`,
		`{"n":" ${params.n}"}`:                   `{"n":" 3"}`,
		`{"n":"${params.n}${params.n}"}`:         `{"n":"33"}`,
		`{"n":"$${params.n}"}`:                   `{"n":"${params.n}"}`,
		`{"n":"costs $5 and $${x} ${params.n}"}`: `{"n":"costs $5 and ${x} 3"}`,
		`"${nodes.extract.result}"`: `{"deep":{"x":[1,2.5,null,true]},` +
			`"name":"Ünal","rows":7}`,
		`["${nodes.extract.result.deep.x}"]`:                                   `[[1,2.5,null,true]]`,
		`"x${nodes.extract.result.deep.x}"`:                                    `"x[1,2.5,null,true]"`,
		`"${nodes.extract.status} ${nodes.extract.attempt}"`:                   `"SUCCEEDED 2"`,
		`"${nodes['a-b'].result}"`:                                             `null`,
		`"${nodes[\"a-b\"].forced ? 'forced' : 'ran'}"`:                        `"forced"`,
		`"${run.id}/${run.dag}/${run.version}"`:                                `"01RUN/etl/2"`,
		`"${run.nominal_at}"`:                                                  `null`,
		`"${params.big}"`:                                                      `9007199254740993`,
		`"${params.ratio}"`:                                                    `0.5`,
		`["${params.ratio * 2.0}", "${[1.0, 1e30, -0.5]}"]`:                    `[1.0,[1.0,1e+30,-0.5]]`,
		`"${params.ratio * 2.0} of ${[1.0]}"`:                                  `"1 of [1.0]"`,
		`"${ {'a': {'b': '}'}} }"`:                                             `{"a":{"b":"}"}}`,
		`"${'it\\'s }' + \"{\"}"`:                                              `"it's }{"`,
		`"${r'\\}'}"`:                                                          `"\\}"`,
		`"${params.list.map(x, x * 2)}"`:                                       `[2,4,6]`,
		`"${size(nodes.split.result) > 2 && nodes.extract.result.rows > 6.5}"`: `true`,
		`"${1 // }\n + 1}"`:                                                    `2`,
		`"${has(params.limit) ? params.limit : 10}"`:                           `10`,
		`"${'<a&b>'}"`:                                                         `"<a&b>"`,
		"\"\\u0024{params.n}\"":                                                `3`,
		`{"${params.n}":1,"z":[{"y":"${params.n}"}]}`:                          `{"${params.n}":1,"z":[{"y":3}]}`,
		`{"exact":1.0,"n":"${params.n}"}`:                                      `{"exact":1.0,"n":3}`,
		`["${params.digits[0]}","${params.digits[1]}"]`: "" +
			`[12345678901234567.89,12345678901234567890123]`,
		`{"all":"${params.digits}"}`: `{"all":[12345678901234567.89,12345678901234567890123,2.50,1.0,-0,1E400,` +
			`18446744073709551615]}`,
		`"${params.digits.map(d, d)[0]} and ${params.digits[2]}, ${params.digits[3]}"`: "" +
			`"12345678901234567.89 and 2.5, 1"`,
		`"${params.digits[2] * 2.0 == 5.0 && string(params.digits[0]) == '12345678901234567.89'}"`: `true`,
	} {
		t.Run(payload, func(t *testing.T) {
			t.Parallel()
			g := mustCompile(t, etl(dag.Node{Payload: json.RawMessage(payload)}))
			got, err := g.Payload(context.Background(), "last", facts(t))
			if err != nil || string(got) != want {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		})
	}
}

func TestCompile_RefusesExpressionsByPosition(t *testing.T) {
	t.Parallel()
	payload := func(s string) dag.Node {
		raw, _ := json.Marshal(map[string]any{"x": []any{map[string]any{"y/z": s}}})
		return dag.Node{Payload: raw}
	}
	const inPayload = "/nodes/last/payload/x/0/y~1z"
	for name, c := range map[string]struct {
		node        dag.Node
		pointer, at string
	}{
		"an unclosed brace":                 {payload("abc ${params.n"), inPayload, "line 1, column 5"},
		"a syntax error on the second line": {payload("ab\nc${1 +}"), inPayload, "line 2, column 7"},
		"an empty expression":               {payload("${}"), inPayload, "line 1, column 3"},
		"an unknown variable":               {payload("${foo}"), inPayload, "line 1, column 3"},
		"an unknown parameter":              {payload("${params.x}"), inPayload, "line 1, column 9"},
		"an unknown node":                   {payload("${nodes.nope.result}"), inPayload, "line 1, column 8"},
		"a node that does not come before":  {payload("${nodes.other.result}"), inPayload, "line 1, column 8"},
		"the node itself":                   {payload("${nodes.last.result}"), inPayload, "line 1, column 8"},
		"an unknown field of a node":        {payload("${nodes.split.rows}"), inPayload, "line 1, column 8"},
		"a node as a whole":                 {payload("${nodes.split}"), inPayload, "line 1, column 8"},
		"all nodes":                         {payload("${size(nodes)}"), inPayload, "line 1, column 8"},
		"a computed node": {payload("${nodes[params.url].result}"), inPayload,
			"line 1, column 3"},
		"an unknown field of the run": {payload("${run.name}"), inPayload, "line 1, column 6"},
		"the run as a whole":          {payload("${ {'r': run} }"), inPayload, "line 1, column 10"},
		"a computed field of the run": {payload("${run[params.url]}"), inPayload, "line 1, column 3"},
		"a type error":                {payload("${1 + 'a'}"), inPayload, "line 1, column 5"},
		"a type error of a node's field": {payload("${nodes.split.attempt + 'a'}"), inPayload,
			"line 1, column 23"},
		"a name with a dash":            {payload("${nodes.a-b.result}"), inPayload, "line 1, column 8"},
		"an item outside a mapped node": {payload("${item}"), inPayload, "line 1, column 3"},
		"a variable that hides nodes":   {payload("${[1].map(nodes, nodes)}"), inPayload, "line 1"},
		"an expression over 1 KB": {payload("${'" + strings.Repeat("x", 1024) + "'}"), inPayload,
			"line 1, column 3"},
		"an expression of too many levels": {payload("${" + strings.Repeat("(", 400) + "1" + strings.Repeat(")",
			400) + "}"), inPayload, "line 1"},
		"a pattern that compiles too large": {payload("${'a'.matches('(a|b|[a-c]){1000}x$')}"), inPayload,
			"line 1"},
		"when with ${}":            {dag.Node{When: "${true}"}, "/nodes/last/when", "line 1, column 1"},
		"when that gives a number": {dag.Node{When: "1 + 1"}, "/nodes/last/when", "line 1, column 1"},
		"when with a syntax error": {dag.Node{When: "a b"}, "/nodes/last/when", "line 1, column 3"},
		"when that looks at an item": {dag.Node{When: "item > 1", ForEach: "${[1]}"}, "/nodes/last/when",
			"line 1, column 1"},
		"for_each that is bare": {dag.Node{ForEach: "nodes.split.result"}, "/nodes/last/for_each",
			"line 1, column 1"},
		"for_each that is text": {dag.Node{ForEach: "a${nodes.split.result}"}, "/nodes/last/for_each",
			"line 1, column 1"},
		"for_each that gives a number": {dag.Node{ForEach: "${1}"}, "/nodes/last/for_each",
			"line 1, column 1"},
		"for_each of a node that is no ancestor": {dag.Node{ForEach: "${nodes.other.result}"}, "/nodes/last/for_each",
			"line 1, column 8"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			t.Parallel()
			m := violationsOf(t, etl(c.node))
			if m[0].Pointer != c.pointer || m[0].Code != "invalid_expression" || !strings.HasPrefix(m[0].Detail,
				c.at) || len(m[0].Detail) > 300 {
				t.Errorf("%s %s: %s", m[0].Pointer, m[0].Code, m[0].Detail)
			}
		})
	}
}

func TestWhen_IsTrueFalseOrAFailure(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"":                                   "true",
		"nodes.extract.result.rows > 0":      "true",
		"nodes['a-b'].status == 'SUCCEEDED'": "false",
		"size(nodes.split.result) == 3":      "true",
		"nodes.extract.result.nope > 0":      "line 1, column 21: there is no such field",
		"nodes.extract.result.rows":          "line 1, column 1: when is true or false, and this gives something else",
		"int(params.url) > 0":                "line 1, column 4: the value cannot be converted",
		"params.n / 0 > 1":                   "line 1, column 10: division by zero",
		"params.n > params.url":              "line 1, column 10: the values have types that do not fit the operation",
		"nodes.split.result[9] > 0":          "line 1, column 19: the list has no such index",
		"[1,2,3].exists(x, x == params.n)":   "true",
		"nodes['a-b'].result.rows > 0":       "line 1, column 20: a-b failed, its result is null",
		"size(nodes['a-b'].result) > 0":      "line 1, column 5: a-b failed, its result is null",
		"nodes['a-b'].result > 0":            "line 1, column 21: a-b failed, its result is null",
		"[params.list" + strings.Repeat(" + params.list", 9) +
			"].all(x, x.all(a, x.all(b, x.all(c, x.all(d, true)))))": "" +
			"the expression costs too much",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			g := mustCompile(t, etl(dag.Node{When: when}))
			got, err := g.When(context.Background(), "last", facts(t))
			if err == nil {
				if fmt.Sprint(got) != want {
					t.Errorf("%v, want %s", got, want)
				}
				return
			}
			failed := new(dag.ExpressionError)
			if !errors.As(err, &failed) || failed.Pointer != "/nodes/last/when" ||
				!strings.HasSuffix(failed.At+": "+failed.Detail, want) {
				t.Errorf("%v, want %s", err, want)
			}
			if strings.Contains(err.Error(), "https://") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message shows a value: %v", err)
			}
		})
	}
}

func TestItems_AreTheElementsOfTheList(t *testing.T) {
	t.Parallel()
	g := mustCompile(t, etl(dag.Node{ForEach: "${nodes.extract.result.deep.x}",
		Payload: json.RawMessage(`{"v":"${item}","at":"${index}"}`), MaxParallel: 2}))
	items, err := g.Items(context.Background(), "last", facts(t))
	if got := fmt.Sprintf("%s", items); err != nil || got != `[1 2.5 null true]` {
		t.Fatalf("%s, %v", got, err)
	}
	f := facts(t)
	f.Item, f.Index = value(t, string(items[1])), 1
	if got, err := g.Payload(context.Background(), "last", f); err != nil || string(got) != `{"at":1,"v":2.5}` {
		t.Errorf("%s, %v", got, err)
	}
	if got := g.Needs("last"); fmt.Sprint(got) != "[extract]" {
		t.Errorf("needs %v", got)
	}
}

func TestItems_FailWhenTheyAreNoListOrTooMany(t *testing.T) {
	t.Parallel()
	long := make([]any, dag.MaxItems+1)
	for i := range long {
		long[i] = int64(i)
	}
	for name, result := range map[string]any{"no list": "abc", "null": nil, "too many": long} {
		g := mustCompile(t, etl(dag.Node{ForEach: "${nodes.extract.result}"}))
		f := facts(t)
		f.Nodes["extract"] = dag.NodeFacts{Result: result}
		failed := new(dag.ExpressionError)
		if _, err := g.Items(context.Background(), "last", f); !errors.As(err, &failed) || failed.Node != "last" ||
			strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayload_NeverGrowsOverItsLimit(t *testing.T) {
	t.Parallel()
	many := make([]string, 1_900)
	for i := range many {
		many[i] = "${nodes.extract.result}"
	}
	raw, _ := json.Marshal(many)
	for name, payload := range map[string]json.RawMessage{
		"as values": raw,
		"as text":   json.RawMessage(`"` + strings.Join(many[:40], "") + `"`),
	} {
		g := mustCompile(t, etl(dag.Node{Payload: payload}))
		f := facts(t)
		f.Nodes["extract"] = dag.NodeFacts{Result: strings.Repeat("x", 250_000)}
		failed := new(dag.ExpressionError)
		if got, err := g.Payload(context.Background(), "last", f); !errors.As(err, &failed) ||
			!strings.Contains(failed.Detail, "1048576 bytes") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestPayload_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	g := mustCompile(t,
		etl(dag.Node{Payload: json.RawMessage(`"${params.list.map(x, params.list.map(y, params.list.map(z, x)))}"`)}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := facts(t)
	list := make([]any, 200)
	for i := range list {
		list[i] = int64(i)
	}
	f.Params = map[string]any{"list": list}
	if _, err := g.Payload(ctx, "last", f); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCompile_BoundsTheExpressionsOfADefinition(t *testing.T) {
	t.Parallel()
	raw, _ := json.Marshal(strings.Repeat("${1}", dag.MaxExpressions+1))
	m := violationsOf(t, etl(dag.Node{Payload: raw}))
	if m[0].Code != "out_of_range" || m[0].Pointer != "/nodes/last/payload" {
		t.Errorf("%v", m)
	}
}

func TestCompile_NamesHowAQuotedNameIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${nodes.a-b.result}":        `there is no node "a"; this name is written nodes["a-b"]`,
		"${nodes.a-b.result.rows-1}": `; this name is written nodes["a-b"]`,
		"${params.two-words}":        `; this name is written params["two-words"]`,
		"${params.2nd}":              `; this name is written params["2nd"]`,
	} {
		d := etl(dag.Node{Payload: json.RawMessage(fmt.Sprintf(`{"x":%q}`, text))})
		d.Params["two-words"], d.Params["2nd"] = json.RawMessage("1"), json.RawMessage("2")
		if m := violationsOf(t, d); !strings.HasSuffix(m[0].Detail, want) {
			t.Errorf("%s: %s", text, m[0].Detail)
		}
	}
	d := etl(
		dag.Node{Payload: json.RawMessage(`{"x":"${nodes['a-b'].result} ${params.n-1} ${nodes.extract.attempt-1}"}`)},
	)
	mustCompile(t, d)
}

func TestPayload_SeesTheJSONOfAnHTTPAnswer(t *testing.T) {
	t.Parallel()
	answer := func(contentType, body string, more ...string) string {
		raw, _ := json.Marshal(
			map[string]any{"status": 200, "body": body, "truncated": false, "content_type": contentType},
		)
		return strings.TrimSuffix(string(raw), "}") + strings.Join(more, "") + "}"
	}
	const use = `"${nodes.extract.result.json.rows[1].id}"`
	for name, c := range map[string]struct{ result, payload, want string }{
		"a body of JSON":           {answer("application/json; charset=utf-8", `{"rows":[{},{"id":7.50}]}`), use, `7.50`},
		"a body of another JSON":   {answer("application/problem+json", `{"rows":[{},{"id":7}]}`), use, `7`},
		"a body that is text":      {answer("text/plain", `{"rows":[]}`), use, "the Content-Type of the answer is not JSON"},
		"an answer without a type": {answer("", `{"rows":[]}`), use, "the answer has no Content-Type"},
		"a body that is no JSON":   {answer("application/json", `{"rows":`), use, "is not valid JSON"},
		"two values":               {answer("application/json", `{} {}`), use, "is not valid JSON"},
		"an empty body":            {answer("application/json", ``), use, "the body of the answer is empty"},
		"bytes":                    {answer("application/json", "aGk=", `,"encoding":"base64"`), use, "is no text"},
		"a cut body": {strings.Replace(answer("application/json", "{}"), "false", "true", 1), use,
			"was cut"},
		"asking whether there is":   {answer("application/json", "{}"), `"${has(nodes.extract.result.json)}"`, "true"},
		"asking where there is not": {answer("text/plain", "{}"), `"${has(nodes.extract.result.json)}"`, "false"},
		"the whole answer":          {answer("a/b", "{}"), `"${size(nodes.extract.result)}"`, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := mustCompile(t, etl(dag.Node{Payload: json.RawMessage(c.payload)}))
			result, err := dag.DecodeAnswer(json.RawMessage(c.result))
			if err != nil {
				t.Fatal(err)
			}
			f := facts(t)
			f.Nodes["extract"] = dag.NodeFacts{Result: result, Status: "SUCCEEDED"}
			got, err := g.Payload(context.Background(), "last", f)
			if err != nil {
				got = []byte(err.Error())
			}
			if !strings.Contains(string(got), c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestItems_ShareTheStepsOfTheirNode(t *testing.T) {
	t.Parallel()
	g := mustCompile(t, etl(dag.Node{ForEach: "${[1]}",
		Payload: json.RawMessage(
			`"${size(params.list.map(a, params.list.map(b, params.list.map(c, params.list))))}"`,
		)}))
	f := facts(t)
	f.Params = map[string]any{"list": make([]any, 30)}
	for items, fails := range map[int]bool{0: false, 1: false, 100: false, dag.MaxItems: true} {
		f.Items = items
		if _, err := g.Payload(context.Background(), "last", f); (err != nil) != fails {
			t.Errorf("of %d items: %v", items, err)
		}
	}
}

func TestCompileContext_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dag.CompileContext(ctx, etl(dag.Node{When: "true"})); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCompile_BoundsTheTokensOfADefinition(t *testing.T) {
	t.Parallel()
	const each = 800 // tokens: 399 numbers, as many commas, and two brackets
	list := "${[" + strings.Repeat("1,", each/2-1) + "]}"
	for n, want := range map[int]int{dag.MaxTokens / each: 0, dag.MaxTokens/each + 2: 2} {
		raw, _ := json.Marshal(slices.Repeat([]string{list}, n))
		_, err := dag.Compile(etl(dag.Node{Payload: raw}))
		m := fault.Violations{}
		if errors.As(err, &m); len(m) != want {
			t.Errorf("%d lists have the violations %v, want %d", n, m, want)
		}
		for _, v := range m {
			if v.Code != dag.CodeInvalidExpression || !strings.Contains(v.Detail, "40000 tokens together") {
				t.Errorf("%+v", v)
			}
		}
		if _, err := dag.Load(context.Background(), etl(dag.Node{Payload: raw})); err != nil {
			t.Errorf("a stored definition of %d lists: %v", n, err)
		}
	}
}

// The largest definition of ordinary expressions has room: as many nodes as there may be, each with a condition and
// three expressions in its payload.
func TestCompile_TakesTheLargestDefinitionOfOrdinaryExpressions(t *testing.T) {
	t.Parallel()
	d := dag.Definition{Params: map[string]json.RawMessage{"day": json.RawMessage(`"x"`)}, Nodes: map[string]dag.Node{}}
	for i := range dag.MaxNodes {
		n := dag.Node{Task: "echo"}
		if i > 0 {
			before := fmt.Sprintf("nodes[\"step-%d\"]", i-1)
			n.DependsOn = []string{fmt.Sprintf("step-%d", i-1)}
			n.When = "size(" + before + `.result.items) > 0 && params.day != "" && ` + before + ".status == 'SUCCEEDED'"
			n.Payload = json.RawMessage(fmt.Sprintf("{\"a\":%q,\"b\":%q}", "${"+before+".result.items.map(x, x.id)}",
				"${params.day} of ${"+before+".result.json.next}"))
		}
		d.Nodes[fmt.Sprintf("step-%d", i)] = n
	}
	if _, err := dag.Compile(d); err != nil {
		t.Error(err)
	}
}

func TestLoad_TakesDefinitionsThatAreRefusedToday(t *testing.T) {
	t.Parallel()
	d := etl(dag.Node{When: "[1]" + strings.Repeat(".map(a,a)", 30) + " == [1]",
		Payload: json.RawMessage(`"${params.n}"`)})
	violationsOf(t, d)
	g, err := dag.Load(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	failed := new(dag.ExpressionError)
	if _, err := g.When(context.Background(), "last", facts(t)); !errors.As(err, &failed) ||
		!strings.Contains(failed.Detail, "more than 20 macros") {
		t.Errorf("%v", err)
	}
	if got, err := g.Payload(context.Background(), "last", facts(t)); string(got) != "3" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestPayload_FailsByNameWhereItReadsAResultThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	g := mustCompile(t, etl(dag.Node{When: "has(nodes.extract.result.rows) || true",
		Payload: json.RawMessage(`"${nodes.extract.status}"`)}))
	if needs, reads := g.Needs("last"), g.ResultsRead("last"); len(needs) != 1 || len(reads) != 1 {
		t.Errorf("it needs %v and reads %v", needs, reads)
	}
	f := facts(t)
	for name, n := range map[string]dag.NodeFacts{
		"unusable": {Unusable: &dag.ResultError{Code: "result_too_large",
			Message: "node extract: it has 300000 bytes"}},
		"too large": {Size: 5 << 20},
	} {
		n.Status = "SUCCEEDED"
		f.Nodes["extract"] = n
		failed := new(dag.ExpressionError)
		if _, err := g.When(context.Background(), "last", f); !errors.As(err, &failed) ||
			failed.Code != "result_too_large" || !strings.Contains(failed.Detail, "node extract") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := g.Payload(context.Background(), "last", f); string(got) != `"SUCCEEDED"` || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
