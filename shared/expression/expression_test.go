package expression_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"pgregory.net/rapid"

	"punctual/shared/expression"
)

// facts are the variables of the tests, as JSON.
const facts = `{"n":3,"u":"https://example.com/a b","ratio":0.5,"zero":0,"list":[3,1,2],"empty":[],` +
	`"none":null,"yes":true,` +
	`"words":["b","a",""],"deep":{"x":[1,2.5,null,true,{"y":"z"}],"m":{"a":1,"b":{"c":"d"}}},` +
	`"at":"2027-03-28T01:02:03.5Z"}`

var variables = map[string]*expression.Type{"p": expression.DynType}

func decode(t testing.TB, raw string) any {
	t.Helper()
	v, err := expression.Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// evaluate returns the value of an expression as JSON, or its error.
func evaluate(t testing.TB, text string) (string, error) {
	t.Helper()
	p, wrong := expression.Compile(text, variables)
	if wrong != nil {
		return "", wrong
	}
	v, err := p.Eval(context.Background(), map[string]any{"p": decode(t, facts)}, nil)
	if err != nil {
		return "", err
	}
	out, err := expression.AppendJSON(nil, v, 1<<20)
	return string(out), err
}

// reference evaluates with cel-go.
type reference struct {
	env   *cel.Env
	facts map[string]any
}

func newReference(t testing.TB) reference {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("p", cel.DynType), cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(facts))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return reference{env, map[string]any{"p": native(v)}}
}

func native(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = native(e)
		}
	case []any:
		for i, e := range v {
			v[i] = native(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

func (r reference) evaluate(text string) (string, error) {
	checked, issues := r.env.Compile(text)
	if issues.Err() != nil {
		return "", issues.Err()
	}
	program, err := r.env.Program(checked, cel.CostLimit(10_000))
	if err != nil {
		return "", err
	}
	v, _, err := program.Eval(r.facts)
	if err != nil {
		return "", err
	}
	out, err := expression.AppendJSON(nil, ours(v), 1<<20)
	return string(out), err
}

// ours converts cel-go's lists, maps and null.
func ours(v ref.Val) any {
	switch v := v.(type) {
	case traits.Lister:
		items := []any{}
		for it := v.Iterator(); it.HasNext().Value() == true; {
			items = append(items, ours(it.Next()))
		}
		return expression.NewList(items)
	case traits.Mapper:
		fields := map[string]any{}
		for it := v.Iterator(); it.HasNext().Value() == true; {
			k := it.Next()
			fields[fmt.Sprint(k.Value())] = ours(v.Get(k))
		}
		return expression.NewMap(fields)
	}
	if v.Type().TypeName() == "null_type" {
		return expression.Null{}
	}
	return v
}

// disagreement returns how the two differ, "" if they agree. Where cel-go fails, this must fail too.
func disagreement(t testing.TB, r reference, text string) string {
	t.Helper()
	want, fails := r.evaluate(text)
	if fails != nil && (strings.Contains(fails.Error(), "cost limit") || errors.Is(fails, expression.ErrTooLong)) {
		return ""
	}
	got, err := evaluate(t, text)
	if (err != nil) != (fails != nil) || err == nil && got != want {
		return fmt.Sprintf("%s\n got %s, %v\nwant %s, %v", text, got, err, want, fails)
	}
	return ""
}

func TestProgram_GivesWhatCELGives(t *testing.T) {
	t.Parallel()
	r := newReference(t)
	for text := range strings.Lines(cases) {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if wrong := disagreement(t, r, text); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

const cases = `
1 + 2 * 3 - 4 / 2 % 3
-p.n
-(-9223372036854775808)
9223372036854775807 + 1
18446744073709551615u + 1u
1u - 2u
7 / 0
7 % 0
7.0 / 0.0 > 1.0
1.5 + 2.5
1 + 1.0
p.n + 1.0
p.n + 1
'a' + 'b' + p.u
b'a' + b'\xff'
[1] + [2, 3] + p.list
[1] + ['a']
p.list + ['a']
1 == 1.0
p.n == 3.0
p.n == 3u
'1' == p.n
[1, 2.0] == [1.0, 2]
{'a': 1} == {'a': 1.0}
{'a': 1} != {'b': 1}
p.none == null
p.deep == p.deep
p.deep.x[4] == {'y': 'z'}
1 < 1.5
p.n < 3.5 && p.n <= 3 && p.n > 2u && p.n >= 3
'a' < 'b'
'a' < 1
b'a' < b'b'
false < true
p.list < p.list
1 in [1, 2]
1.0 in p.list
'a' in p.words
'x' in p.deep
1 in {1: 2}
1 in p
'a' in 'abc'
p.list[0]
p.list[1.0]
p.list[1.5]
p.list[-1]
p.list[3]
p['n']
p.deep['m'].b['c']
p.deep.m.nope
p.none.x
p.n.x
{1: 'a', 2u: 'b', true: 'c'}
{1: 'a', 1: 'b'}
{'a': 1, 'a': 2}
{1: 'a'}[2]
{'a': [1, {'b': null}]}.a[1].b
has(p.n)
has(p.nope)
has(p.deep.m.b)
has(p.none.x)
has(p.nope.x)
has(p)
true ? 1 : 2
true ? 1 : 'a'
p.n ? 1 : 2
p.yes ? p.n : p.u
false && p.nope
p.nope && false
true && p.nope
p.nope || true
true || p.nope
p.n || true
p.n && true
p.nope || p.nope
!p.yes
!p.n
!!true
[1, 2, 3].all(x, x > 0)
[1, 2, 3].all(x, x > 1)
p.list.all(x, x > 'a')
p.list.all(x, x == 1 || x.y)
p.list.exists(x, x == 2)
p.list.exists(x, x.y || x == 2)
p.list.exists(x, x.y)
p.list.exists_one(x, x == 2)
p.list.exists_one(x, x > 1)
p.list.exists_one(x, x.y)
p.empty.all(x, x.y)
p.empty.exists(x, x.y)
p.list.map(x, x * 2)
p.list.map(x, x > 1, x * 2)
p.list.filter(x, x > 1)
p.list.filter(x, x)
p.list.map(x, p.list.map(y, x * y))
p.list.map(x, [x].map(x, x + 1))
{'a': 1, 'b': 2}.map(k, k).size()
{'a': 1}.all(k, k == 'a')
p.n.map(x, x)
'abc'.map(x, x)
p.list.map(1, 2)
[[1], [2]].map(x, x[0])
[1].map(x, x + 'a')
size('Ünal')
size(b'ab')
size(p.list)
size(p.deep)
size(p.n)
p.u.size()
p.list.size()
size(1)
int('12')
int('x')
int(' 1')
int(1.9)
int(-1.9)
int(1e30)
int(3u)
int(p.n)
int(timestamp('2027-01-01T00:00:00Z'))
int(true)
int(p.yes)
uint(3)
uint(-1)
uint('7')
uint(2.5)
double('1.5')
double(3)
double('x')
bool('true')
bool('T')
bool('x')
bool(1)
bytes('é')
string(1)
string(1.5)
string(1e30)
string(true)
string(b'abc')
string(b'\xff')
string(timestamp('2027-01-01T00:00:00.5Z'))
string(duration('90s'))
string(p.list)
string(p.none)
string([1])
string(p.n) + 'x'
timestamp('2027-01-01T00:00:00Z') + duration('1h')
timestamp('2027-01-01T00:00:00Z') - timestamp('2026-01-01T00:00:00Z')
timestamp('2027-01-01T00:00:00Z') - duration('1h')
duration('1h') + duration('1s')
duration('1h') - duration('1s')
duration('1h') + timestamp('2027-01-01T00:00:00Z')
duration('1h') < duration('2h')
timestamp(p.at) < timestamp('2028-01-01T00:00:00Z')
timestamp('x')
timestamp('2027-13-01T00:00:00Z')
timestamp(0)
duration('x')
duration('1h30m')
timestamp(p.at).getFullYear()
timestamp(p.at).getMonth()
timestamp(p.at).getDate()
timestamp(p.at).getDayOfMonth()
timestamp(p.at).getDayOfWeek()
timestamp(p.at).getDayOfYear()
timestamp(p.at).getHours()
timestamp(p.at).getHours('Europe/Berlin')
timestamp(p.at).getHours('+05:30')
timestamp(p.at).getHours('No/Zone')
timestamp(p.at).getMinutes()
timestamp(p.at).getSeconds()
timestamp(p.at).getMilliseconds()
duration('90m').getHours()
duration('90m').getMinutes()
duration('90m').getSeconds()
duration('1.5s').getMilliseconds()
duration('90m').getFullYear()
p.n.getHours()
'abc'.contains('b')
'abc'.startsWith('ab')
'abc'.endsWith('bc')
p.u.contains('example')
p.n.contains('a')
'abc'.contains(1)
'abc'.matches('^a.c$')
matches('abc', 'b+')
p.u.matches('^https?://')
type(1) == int
type(p.n) == int
type(p.u) == string
type(p.list) == list
type(p.deep) == map
type(p.none) == null_type
type(1.0) == double
type(type(1)) == type
type(1)
dyn(1) == 'a'
dyn([1]).map(x, x + 1)
r'\d' + '\u00e9\n\x41\101'
"""a'b"""
'''a"b'''
0x1F + 0xA
1e3
.5
-.5
1.
1 +
(1
a
a.b
foo(1)
p.foo()
p.n.size(1)
size()
nope.encode('a')
1 == 'a'
'a' == null
1 in ['a']
[1, 'a', null]
[1, 2,]
[]
{}
[] == []
[] == [1]
[[]] == [[1]]
[].map(x, x)
'a' * 2
!1
-'a'
-1u
1 ? 2 : 3
Foo{}
p.x.y.z
[1, 2][0] + 'a'
[[1]][0][0] + 1
1 < 2 == true
1 // comment
true && 1
p.words.exists(w, w == '')
p.deep.x.exists(v, v == null)
p.deep.x.map(v, v == 2.5)
double(p.n) * p.ratio
p.ratio * 2.0
p.n / 2
p.n % 2
p.n / p.zero
`

func TestProgram_DiffersFromCELInFewThings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{1: 'a'}[1u]":  `"a"`,   // keys of maps have no static type
		"1u in {1: 2}":  `true`,  // the same
		"1.5 in {1: 2}": `false`, // the same
		"{1.5: 1}": "line 1, column 2: " +
			"the key of a map is text, an int, a uint or a boolean, and this is a double",
		"Foo{}": "line 1, column 4: " +
			`messages are not known here; write a map, such as {"key": value}`,
		"p.u.matches('(ab{9}){100}')": "line 1, column 12: " +
			"the pattern of matches is too large: it takes 5400 steps; at most 1000 are allowed",
		"p.u.matches(p.u)": `line 1, column 12: the pattern of matches is written out as a string`,
		"p.list.map(p, 1)": `line 1, column 11: "p" already has a meaning; ` +
			`name the variable differently`,
		"json('{\"a\": [1, 2.50]}').a":    `[1,2.50]`,
		"json('{')":                       `line 1, column 5: the text is not valid JSON`,
		"json(b'1')":                      `1`,
		"json(p.n)":                       `line 1, column 5: ` + "the values have types that do not fit the operation",
		"'a,b,,c'.split(',')":             `["a","b","","c"]`,
		"split('añb', '')":                `["a","ñ","b"]`,
		"['a', 'b'].join('-')":            `"a-b"`,
		"join(['a', 'b'])":                `"ab"`,
		"p.list.join(',')":                `line 1, column 12: the values have types that do not fit the operation`,
		"p.words.join(',').split(',')[1]": `"a"`,
		"url.encode('a b/ü?&=+~')":        `"a%20b%2F%C3%BC%3F%26%3D%2B~"`,
		"base64.decode('aMOk')":           `"hä"`,
		"base64.decode('aGk')":            `"hi"`,
		"base64.decode('_-8')":            `line 1, column 14: the base64 holds bytes that are no text`,
		"base64.decode('a b')":            `line 1, column 14: the text is not base64`,
		"url.decode('a')":                 `line 1, column 1: there is no variable "url"; known are p`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := evaluate(t, text)
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestProgram_GivesWhatCELGivesForAnyExpression compares random expressions.
//
//proof:of F60
func TestProgram_GivesWhatCELGivesForAnyExpression(t *testing.T) {
	t.Parallel()
	r := newReference(t)
	rapid.Check(t, func(rt *rapid.T) {
		if wrong := disagreement(t, r, anyExpression(3, "").Draw(rt, "expression")); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// anyExpression draws an expression; variable is that of a macro around it.
func anyExpression(depth int, variable string) *rapid.Generator[string] {
	leaves := []string{"1", "2", "0", "-3", "7u", "1.5", "'a'", "'ab'", "''", "b'a'", "true", "false", "null",
		"p.n", "p.u",
		"p.ratio", "p.list", "p.words", "p.deep", "p.deep.x", "p.none", "p.nope", "p.yes", "[]", "[1, 2]", "{'a': 1}",
		"p.empty", "timestamp(p.at)", "duration('1m')", "type(1)"}
	if variable != "" {
		leaves = append(leaves, variable, variable, variable+".y")
	}
	leaf := rapid.SampledFrom(leaves)
	if depth == 0 {
		return leaf
	}
	sub := func() *rapid.Generator[string] { return anyExpression(depth-1, variable) }
	return rapid.OneOf(leaf,
		rapid.Custom(func(t *rapid.T) string {
			op := rapid.SampledFrom(
				[]string{"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"},
			)
			return fmt.Sprintf("(%s %s %s)", sub().Draw(t, "left"), op.Draw(t, "operator"), sub().Draw(t, "right"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("(%s ? %s : %s)", sub().Draw(t, "test"), sub().Draw(t, "then"), sub().Draw(t, "else"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			f := rapid.SampledFrom([]string{"size", "int", "uint", "double", "string", "bool", "bytes", "dyn", "!", "-",
				"timestamp", "duration"})
			return fmt.Sprintf("%s(%s)", f.Draw(t, "function"), sub().Draw(t, "argument"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			macro := rapid.SampledFrom([]string{"all", "exists", "exists_one", "map", "filter"}).Draw(t, "macro")
			name := "v" + fmt.Sprint(depth)
			return fmt.Sprintf("(%s).%s(%s, %s)", sub().Draw(t, "over"), macro, name,
				anyExpression(depth-1, name).Draw(t, "body"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("(%s)[%s]", sub().Draw(t, "of"), sub().Draw(t, "index"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("[%s, %s]", sub().Draw(t, "first"), sub().Draw(t, "second"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("{'k': %s, %s: %s}", sub().Draw(t, "value"), rapid.SampledFrom([]string{"'a'", "1",
				"p.u", "p.n", "p.nope", "true"}).Draw(t, "key"), sub().Draw(t, "other"))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("(%s).%s(%s)", sub().Draw(t, "text"), rapid.SampledFrom([]string{"contains",
				"startsWith", "endsWith", "getHours"}).Draw(t, "function"), sub().Draw(t, "part"))
		}),
	)
}
