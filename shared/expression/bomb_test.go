package expression_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/expression"
)

// largeFacts are as large as an expression may read.
func largeFacts() map[string]any {
	numbers := make([]any, 100_000)
	for i := range numbers {
		numbers[i] = i % 1_000
	}
	nested := any([]any{})
	for range 200 {
		nested = []any{nested}
	}
	rows := make([]any, 5_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprint("row ", i)}
	}
	return map[string]any{"p": expression.From(map[string]any{
		"s": strings.Repeat("ab,c", 64<<10), "list": numbers, "rows": rows, "nested": nested, "one": []any{1},
		"json": "[" + strings.Repeat("[1],", 60_000) + "[1]]", "text64": strings.Repeat("YWJj", 64<<10),
	})}
}

// steps are what a bomb repeats: each takes what is before it, %s. They double a value by sharing its parts, nest it,
// double a type, lengthen a text, or traverse what has been made.
var steps = []string{
	"%s.map(a,a+a+a+a)", "%s.map(a,[a,a])", "%s.map(a,{'a':a})", "%s.map(a,{a:a})", "%s.map(a,{'a':a,'b':a,'c':a})",
	"[%s,%[1]s]", "{'a':%s,'b':%[1]s}", "%s.map(a,[a,a,a,a,a,a,a,a,a,a])", "(%s+%[1]s)", "(%s+%[1]s+%[1]s+%[1]s)",
	"[%s].map(a,a+a)[0]",
	"[%s].map(a,a+a+a+a+a+a+a+a)[0]", "%s.map(a,a)", "%s.filter(a,a==a)", "%s.map(a,a,[a])", "[%s]", "dyn(%s)",
	"[%s].map(a,a.map(b,b.map(c,[a,b,c])))[0]", "[%s].map(a,[a,a].map(b,[b,b].map(c,[c,c])))",
	"p.list.map(z,%s)", "p.list.filter(z,%s==1)", "p.rows.map(z,[%s,z])", "p.list.map(z,p.list)", "json(%s)",
	"%s.split('')", "%s.split(',')", "%s.join('')", "%s.join(p.s)", "[%s,%[1]s].join(p.s)", "url.encode(%s)",
	"base64.decode(%s)", "string(%s)", "bytes(%s)", "has(p.s)?%s:p.s", "%s.map(a,p.s)", "%s.split('a').map(a,p.s+a)",
}

// ends are what a bomb does at last.
var ends = []string{"%s", "%s==[]", "%s==%[1]s", "2 in %s", "size(%s)", "%s.matches('(a|b|[a-c]){30}x$')",
	"%s.contains('ac')", "%s<%[1]s",
	"%s.exists(a,a==a)", "%s.all(a,a==%[1]s)", "string(%s)", "%s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x')",
	"p.list.all(a,!(a in %s))", "p.list.all(a,%s!=1)", "p.list.all(a,size(%s)>0)", "p.rows.all(a,p.s==%s)"}

var starts = []string{"[1]", "[[1]]", "[dyn([1])]", "p.one", "p.list", "p.rows", "p.nested", "p.s", "'ab'", "[p.s]",
	"p.json",
	"p.text64",
	"json(p.json)", "p", "[p.list,p.list]", "p.s.split(',')", "{'a':p}"}

// bomb draws an expression that grows by repetition.
func bomb(t *rapid.T) string {
	x := rapid.SampledFrom(starts).Draw(t, "start")
	for range rapid.IntRange(1, 3).Draw(t, "kinds") {
		step := rapid.SampledFrom(steps).Draw(t, "step")
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			longer := fmt.Sprintf(step, x)
			if len(longer) > 900 {
				break
			}
			x = longer
		}
	}
	if end := fmt.Sprintf(rapid.SampledFrom(ends).Draw(t, "end"), x); len(end) <= expression.MaxText {
		return end
	}
	return x
}

// explosion is what one expression took.
type explosion struct {
	text    string
	took    time.Duration
	bytes   uint64
	steps   int
	weight  int
	refused bool
	outcome string
}

// explode compiles, evaluates and writes an expression.
func explode(text string, facts map[string]any) explosion {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	x := explosion{text: text, outcome: "a value"}
	p, wrong := expression.Compile(text, variables)
	if wrong == nil {
		meter := expression.NewMeter(2 * expression.MaxWork)
		v, err := p.Eval(context.Background(), facts, meter)
		x.steps = 2*expression.MaxWork - meter.Left()
		if err == nil {
			x.weight = expression.Weight(v)
			_, err = expression.AppendJSON(nil, v, 1<<20)
		}
		if err != nil {
			x.outcome = err.Error()
		}
	} else {
		x.refused, x.outcome = true, wrong.Error()
	}
	x.took = time.Since(start)
	runtime.ReadMemStats(&after)
	x.bytes = after.TotalAlloc - before.TotalAlloc
	return x
}

func (x explosion) tooMuch() string {
	switch {
	case x.steps > expression.MaxWork:
		return fmt.Sprintf("%d steps", x.steps)
	case x.weight > expression.MaxMemory:
		return fmt.Sprintf("a value of %d bytes", x.weight)
	case x.bytes > expression.MaxMemory+8<<20: // the output, and what the parser takes
		return fmt.Sprintf("%d MB allocated", x.bytes>>20)
	case x.took > 5*time.Second: // less than 100 ms on an idle machine
		return x.took.String()
	}
	return ""
}

// TestProgram_IsBoundedWhateverTheText runs alone, because it counts what the process allocates.
//
//proof:of F60
func TestProgram_IsBoundedWhateverTheText(t *testing.T) { //nolint:paralleltest // see above
	facts := largeFacts()
	most := map[string]explosion{}
	keep := func(x explosion) {
		if x.took > most["slowest"].took {
			most["slowest"] = x
		}
		if x.bytes > most["largest"].bytes {
			most["largest"] = x
		}
	}
	for _, text := range []string{
		"[1]" + strings.Repeat(".map(a,{a:a})", 15) + "==[]", "[1]" + strings.Repeat(".map(a,{a:a})", 24) + "==[]",
		"2 in [[1]]" + strings.Repeat(".map(a,a+a+a+a)", 31), "2 in [[1]]" + strings.Repeat(".map(a,a+a+a+a)", 18),
		"[dyn([1])]" + strings.Repeat(".map(a,a+a+a+a)", 16),
		"[[1]]" + strings.Repeat(".map(a,a+a+a+a)", 18) + ".map(a,a+a)[0]",
		"[1]" + strings.Repeat(".map(a,[a,a])", 20), strings.Repeat("[", 49) + "1" + strings.Repeat("]", 49),
		"p.s.matches('" + strings.Repeat("(?i)[\\\\pL\\\\pN]", 16) + "')",
		"[" + strings.Repeat("p.s,", 200) + "p.s].join('')",
	} {
		x := explode(text, facts)
		keep(x)
		if why := x.tooMuch(); why != "" {
			t.Errorf("%s: %s, %s", why, text, x.outcome)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		x := explode(bomb(rt), facts)
		keep(x)
		if why := x.tooMuch(); why != "" {
			rt.Fatalf("%s: %s, %s", why, x.text, x.outcome)
		}
	})
	for name, x := range most {
		t.Logf("%s: %v, %d KB, %d steps: %.300s: %s", name, x.took, x.bytes>>10, x.steps, x.text, x.outcome)
	}
}
