package expression

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// function is a function or an operator. Member functions are named with a dot before them; the value that they are
// called on is their first argument.
type function struct {
	overloads []overload
	typed     func(args []*Type) (*Type, bool)   // in place of overloads
	prepare   func(n *node, args []*node) string // says why a call is refused
	run       func(m *machine, n *node, args []any) (any, error)
}

func (f *function) check(args []*Type) (*Type, bool) {
	if f.typed != nil {
		return f.typed(args)
	}
	return resultOf(f.overloads, args)
}

// functions are all that an expression can call. Macros, logic and indexes are parts of the language.
var functions = map[string]*function{}

func init() {
	arithmetic()
	comparison()
	conversions()
	texts()
	times()
	additions()
}

func define(name string, run func(*machine, *node, []any) (any, error), overloads ...overload) {
	functions[name] = &function{overloads: overloads, run: run}
}

// plainFailure returns a failure without the values that cel-go's messages may quote.
func plainFailure(message string) string {
	for _, known := range []struct{ part, plain string }{
		{"division by zero", "division by zero"},
		{"divide by zero", "division by zero"},
		{"modulus by zero", "modulus by zero"},
		{"overflow", "the number is too large"},
		{"range", "the number is too large"},
		{"no such overload", noOverload},
		{"conversion", noConversion},
		{"parsing", noConversion},
		{"invalid", noConversion},
	} {
		if strings.Contains(message, known.part) {
			return known.plain
		}
	}
	return "the expression cannot be evaluated with these values"
}

// operator defines an operator on single values.
func operator(name string, apply func(a, b ref.Val) (ref.Val, bool), overloads ...overload) {
	define(name, func(_ *machine, n *node, args []any) (any, error) {
		a, ok := plain(args[0]).(ref.Val)
		b, other := plain(args[1]).(ref.Val)
		if !ok || !other {
			return nil, n.unfit(args...)
		}
		v, ok := apply(a, b)
		if !ok {
			return nil, n.unfit(args...)
		}
		return n.single(v)
	}, overloads...)
}

func arithmetic() {
	operator(operators.Subtract, func(a, b ref.Val) (ref.Val, bool) {
		x, ok := a.(traits.Subtractor)
		if !ok {
			return nil, false
		}
		return x.Subtract(b), true
	}, over(IntKind, IntKind, IntKind), over(UintKind, UintKind, UintKind), over(DoubleKind, DoubleKind, DoubleKind),
		over(DurationKind, TimestampKind, TimestampKind), over(TimestampKind, TimestampKind, DurationKind),
		over(DurationKind, DurationKind, DurationKind))
	numbers := []overload{over(IntKind, IntKind, IntKind), over(UintKind, UintKind, UintKind),
		over(DoubleKind, DoubleKind, DoubleKind)}
	operator(operators.Multiply, func(a, b ref.Val) (ref.Val, bool) {
		x, ok := a.(traits.Multiplier)
		if !ok {
			return nil, false
		}
		return x.Multiply(b), true
	}, numbers...)
	operator(operators.Divide, func(a, b ref.Val) (ref.Val, bool) {
		x, ok := a.(traits.Divider)
		if !ok {
			return nil, false
		}
		return x.Divide(b), true
	}, numbers...)
	operator(operators.Modulo, func(a, b ref.Val) (ref.Val, bool) {
		x, ok := a.(traits.Modder)
		if !ok {
			return nil, false
		}
		return x.Modulo(b), true
	}, numbers[:2]...)
	define(operators.Negate, func(_ *machine, n *node, args []any) (any, error) {
		switch x := plain(args[0]).(type) {
		case types.Int:
			return n.single(x.Negate())
		case types.Double:
			return n.single(x.Negate())
		}
		return nil, n.unfit(args...)
	}, over(IntKind, IntKind), over(DoubleKind, DoubleKind))
	define(operators.LogicalNot, func(_ *machine, n *node, args []any) (any, error) {
		if x, ok := args[0].(types.Bool); ok {
			return !x, nil
		}
		return nil, n.unfit(args...)
	}, over(BoolKind, BoolKind))
	functions[operators.Add] = &function{run: add, typed: typeOfSum}
}

var sums = append([]overload{over(IntKind, IntKind, IntKind), over(UintKind, UintKind, UintKind),
	over(DoubleKind, DoubleKind, DoubleKind), over(StringKind, StringKind, StringKind)},
	over(BytesKind, BytesKind, BytesKind), over(ListKind, ListKind, ListKind),
	over(TimestampKind, TimestampKind, DurationKind), over(TimestampKind, DurationKind, TimestampKind),
	over(DurationKind, DurationKind, DurationKind))

func typeOfSum(args []*Type) (*Type, bool) {
	if args[0].Kind == ListKind && args[1].Kind == ListKind {
		return unify(args[0], args[1])
	}
	return resultOf(sums, args)
}

func add(m *machine, n *node, args []any) (any, error) {
	switch a := plain(args[0]).(type) {
	case *List:
		b, ok := args[1].(*List)
		if !ok {
			return nil, n.unfit(args...)
		}
		size := len(a.items) + len(b.items)
		if err := m.afford(n, size/4, listWeight+elementWeight*size); err != nil {
			return nil, err
		}
		items := append(append(make([]any, 0, size), a.items...), b.items...)
		return &List{items: items, weight: a.weight + b.weight - listWeight}, nil
	case traits.Adder:
		b, ok := plain(args[1]).(ref.Val)
		if !ok {
			return nil, n.unfit(args...)
		}
		size := Weight(a) + Weight(b)
		if err := m.afford(n, size/64, size); err != nil {
			return nil, err
		}
		return n.single(a.Add(b))
	}
	return nil, n.unfit(args...)
}

// afford takes steps and bytes from the budget.
func (m *machine) afford(n *node, steps, bytes int) error {
	if err := m.pay(n, steps); err != nil {
		return err
	}
	return m.allocate(n, bytes)
}

func comparison() {
	for name, holds := range map[string]func(order types.Int) bool{
		operators.Less:          func(o types.Int) bool { return o < 0 },
		operators.LessEquals:    func(o types.Int) bool { return o <= 0 },
		operators.Greater:       func(o types.Int) bool { return o > 0 },
		operators.GreaterEquals: func(o types.Int) bool { return o >= 0 },
	} {
		all := []overload{}
		for _, k := range []Kind{BoolKind, StringKind, BytesKind, TimestampKind, DurationKind} {
			all = append(all, over(BoolKind, k, k))
		}
		for _, a := range []Kind{IntKind, UintKind, DoubleKind} {
			for _, b := range []Kind{IntKind, UintKind, DoubleKind} {
				all = append(all, over(BoolKind, a, b))
			}
		}
		define(name, func(m *machine, n *node, args []any) (any, error) {
			a, ok := plain(args[0]).(traits.Comparer)
			b, other := plain(args[1]).(ref.Val)
			if !ok || !other {
				return nil, n.unfit(args...)
			}
			if err := m.pay(n, min(Weight(args[0]), Weight(args[1]))/64); err != nil {
				return nil, err
			}
			order, err := n.single(a.Compare(b))
			if err != nil {
				return nil, err
			}
			o, ok := order.(types.Int)
			return types.Bool(ok && holds(o)), nil
		}, all...)
	}
	alike := func(args []*Type) (*Type, bool) {
		_, ok := unify(args[0], args[1])
		return BoolType, ok
	}
	functions[operators.Equals] = &function{typed: alike, run: func(m *machine, n *node, args []any) (any, error) {
		same, err := m.equal(n, args[0], args[1])
		return types.Bool(same), err
	}}
	functions[operators.NotEquals] = &function{typed: alike, run: func(m *machine, n *node, args []any) (any, error) {
		same, err := m.equal(n, args[0], args[1])
		return types.Bool(!same), err
	}}
	functions[operators.In] = &function{typed: func(args []*Type) (*Type, bool) {
		switch args[1].Kind {
		case ListKind:
			_, ok := unify(args[0], args[1].Elem)
			return BoolType, ok
		case MapKind, Dyn:
			return BoolType, true
		}
		return BoolType, false
	}, run: contains}
}

// equal compares two values. Each part that is compared is paid for.
func (m *machine) equal(n *node, a, b any) (bool, error) {
	if err := m.pay(n, 1); err != nil {
		return false, err
	}
	a, b = plain(a), plain(b)
	switch x := a.(type) {
	case Null:
		_, ok := b.(Null)
		return ok, nil
	case typeValue:
		return a == b, nil
	case *List:
		y, ok := b.(*List)
		if !ok || len(x.items) != len(y.items) {
			return false, nil
		}
		for i := range x.items {
			if same, err := m.equal(n, x.items[i], y.items[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Map:
		y, ok := b.(*Map)
		if !ok || x.Len() != y.Len() {
			return false, nil
		}
		return m.equalMaps(n, x, y)
	case ref.Val:
		y, ok := b.(ref.Val)
		if !ok {
			return false, nil
		}
		if err := m.pay(n, min(Weight(a), Weight(b))/64); err != nil {
			return false, err
		}
		return x.Equal(y) == types.True, nil
	}
	return false, nil
}

func (m *machine) equalMaps(n *node, x, y *Map) (bool, error) {
	for i, f := range x.fields {
		if i >= len(y.fields) || y.fields[i].name != f.name {
			return false, m.pay(n, i)
		}
		if same, err := m.equal(n, f.value, y.fields[i].value); !same || err != nil {
			return false, err
		}
	}
	for k, v := range x.others {
		other, ok := y.others[k]
		if !ok {
			return false, m.pay(n, 1)
		}
		if same, err := m.equal(n, v, other); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// contains is the operator in.
func contains(m *machine, n *node, args []any) (any, error) {
	switch in := args[1].(type) {
	case *List:
		for _, item := range in.items {
			if same, err := m.equal(n, item, args[0]); same || err != nil {
				return types.Bool(same), err
			}
		}
		return types.False, nil
	case *Map:
		_, ok := in.get(args[0])
		return types.Bool(ok), nil
	}
	return nil, n.unfit(args...)
}

func conversions() {
	for name, to := range map[string]struct {
		typ  ref.Type
		from []Kind
	}{
		"int":       {types.IntType, []Kind{IntKind, UintKind, DoubleKind, StringKind, TimestampKind}},
		"uint":      {types.UintType, []Kind{UintKind, IntKind, DoubleKind, StringKind}},
		"double":    {types.DoubleType, []Kind{DoubleKind, IntKind, UintKind, StringKind}},
		"bool":      {types.BoolType, []Kind{BoolKind, StringKind}},
		"bytes":     {types.BytesType, []Kind{BytesKind, StringKind}},
		"timestamp": {types.TimestampType, []Kind{TimestampKind, StringKind, IntKind}},
		"duration":  {types.DurationType, []Kind{DurationKind, StringKind, IntKind}},
		"string": {types.StringType, []Kind{StringKind, BoolKind, IntKind, UintKind, DoubleKind, BytesKind,
			TimestampKind, DurationKind}},
	} {
		result := map[ref.Type]Kind{types.IntType: IntKind, types.UintType: UintKind, types.DoubleType: DoubleKind,
			types.BoolType: BoolKind, types.BytesType: BytesKind, types.TimestampType: TimestampKind,
			types.DurationType: DurationKind, types.StringType: StringKind}[to.typ]
		all := []overload{}
		for _, k := range to.from {
			all = append(all, over(result, k))
		}
		define(name, func(m *machine, n *node, args []any) (any, error) {
			x, ok := plain(args[0]).(ref.Val)
			if !ok || !slices.Contains(to.from, kindOf(x)) {
				return nil, n.unfit(args...)
			}
			if err := m.afford(n, Weight(x)/32, Weight(x)); err != nil {
				return nil, err
			}
			v, err := n.single(x.ConvertToType(to.typ))
			if number, ok := args[0].(*Number); ok && result == StringKind && err == nil {
				if s, ok := v.(types.String); ok && !sameNumber(string(s), number.text) {
					return types.String(number.text), nil
				}
			}
			return v, err
		}, all...)
	}
	define("dyn", func(_ *machine, _ *node, args []any) (any, error) { return args[0], nil }, over(Dyn, Dyn))
	define("type", func(_ *machine, _ *node, args []any) (any, error) { return typeValue(kindOf(args[0])), nil },
		over(TypeKind, Dyn))
	size := func(m *machine, n *node, args []any) (any, error) {
		switch x := args[0].(type) {
		case types.String:
			if err := m.pay(n, len(x)/32); err != nil {
				return nil, err
			}
			return types.Int(utf8.RuneCountInString(string(x))), nil
		case types.Bytes:
			return types.Int(len(x)), nil
		case *List:
			return types.Int(len(x.items)), nil
		case *Map:
			return types.Int(x.Len()), nil
		}
		return nil, n.unfit(args...)
	}
	for _, name := range []string{"size", ".size"} {
		define(name, size, over(IntKind, StringKind), over(IntKind, BytesKind), over(IntKind, ListKind),
			over(IntKind, MapKind))
	}
}

// ofTexts defines a function of two texts.
func ofTexts(name string, result Kind, run func(m *machine, n *node, a, b string) (any, error)) {
	define(name, func(m *machine, n *node, args []any) (any, error) {
		a, ok := args[0].(types.String)
		b, other := args[1].(types.String)
		if !ok || !other {
			return nil, n.unfit(args...)
		}
		if err := m.pay(n, (len(a)+len(b))/16); err != nil {
			return nil, err
		}
		return run(m, n, string(a), string(b))
	}, over(result, StringKind, StringKind))
}

func texts() {
	for name, holds := range map[string]func(s, part string) bool{
		".contains": strings.Contains, ".startsWith": strings.HasPrefix, ".endsWith": strings.HasSuffix,
	} {
		ofTexts(
			name,
			BoolKind,
			func(_ *machine, _ *node, a, b string) (any, error) { return types.Bool(holds(a, b)), nil },
		)
	}
	for _, name := range []string{"matches", ".matches"} {
		functions[name] = &function{
			overloads: []overload{over(BoolKind, StringKind, StringKind)}, prepare: preparePattern, run: matches,
		}
	}
}

// pattern is a regular expression that is checked.
type pattern struct {
	matcher *regexp.Regexp
	steps   int // of its program
}

// Limits of a regular expression.
const (
	maxPattern      = 256 // bytes
	maxPatternSteps = 1_000
)

// preparePattern checks a regular expression. It must be a literal, so that its cost is known before anything runs. The
// size of the program is estimated before it is made: counted repetitions multiply.
func preparePattern(n *node, args []*node) string {
	text, ok := args[1].value.(types.String)
	if !ok || args[1].op != opValue {
		return "the pattern of matches is written out as a string"
	}
	if len(text) > maxPattern {
		return fmt.Sprintf("the pattern of matches has %d bytes; at most %d are allowed", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(string(text), syntax.Perl)
	if err != nil {
		return "the pattern of matches is not a regular expression (RE2)"
	}
	steps := patternSteps(parsed)
	if steps > maxPatternSteps {
		return fmt.Sprintf("the pattern of matches is too large: it takes %d steps; at most %d are allowed", steps,
			maxPatternSteps)
	}
	matcher, err := regexp.Compile(string(text))
	if err != nil {
		return "the pattern of matches is not a regular expression (RE2)"
	}
	n.value = pattern{matcher, steps}
	return ""
}

// patternSteps returns at most how many steps the program of a regular expression has.
func patternSteps(r *syntax.Regexp) int {
	const most = 1 << 20
	steps := 2 + len(r.Rune)
	if r.Op == syntax.OpCharClass {
		steps = 2 + len(r.Rune)/64
	}
	for _, sub := range r.Sub {
		steps = min(steps+patternSteps(sub), most)
	}
	if r.Op == syntax.OpRepeat {
		steps = min(steps*max(r.Min, r.Max, 1), most)
	}
	return steps
}

func matches(m *machine, n *node, args []any) (any, error) {
	s, ok := args[0].(types.String)
	p, known := n.value.(pattern)
	if !ok || !known {
		return nil, n.unfit(args[0])
	}
	if err := m.afford(n, 20+len(s)*(p.steps+8)/8, 64*p.steps); err != nil {
		return nil, err
	}
	return types.Bool(p.matcher.MatchString(string(s))), nil
}

// times defines the parts of timestamps and durations.
func times() {
	for _, name := range []string{"getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds"} {
		all := []overload{over(IntKind, TimestampKind), over(IntKind, TimestampKind, StringKind)}
		if strings.HasSuffix(name, "s") {
			all = append(all, over(IntKind, DurationKind))
		}
		define("."+name, func(m *machine, n *node, args []any) (any, error) {
			const readingZone = 1_000 // steps
			var rest []ref.Val
			for _, a := range args[1:] {
				zone, ok := a.(types.String)
				if !ok {
					return nil, n.unfit(args...)
				}
				if err := m.pay(n, readingZone); err != nil {
					return nil, err
				}
				rest = append(rest, zone)
			}
			x, ok := args[0].(traits.Receiver)
			if !ok {
				return nil, n.unfit(args...)
			}
			return n.single(x.Receive(name, "", rest))
		}, all...)
	}
}

// additions defines the functions that CEL does not have.
func additions() {
	define("json", parseJSON, over(Dyn, StringKind), over(Dyn, BytesKind))
	for _, name := range []string{"split", ".split"} {
		ofTexts(name, ListKind, split)
		functions[name].typed = func(args []*Type) (*Type, bool) {
			_, ok := resultOf([]overload{over(ListKind, StringKind, StringKind)}, args)
			return containerOf(ListKind, StringType), ok
		}
	}
	for _, name := range []string{"join", ".join"} {
		define(name, join, over(StringKind, ListKind), over(StringKind, ListKind, StringKind))
	}
	define("url.encode", func(m *machine, n *node, args []any) (any, error) {
		s, ok := args[0].(types.String)
		if !ok {
			return nil, n.unfit(args...)
		}
		if err := m.afford(n, len(s)/8, 6*len(s)); err != nil {
			return nil, err
		}
		return types.String(strings.ReplaceAll(url.QueryEscape(string(s)), "+", "%20")), nil
	}, over(StringKind, StringKind))
	define("base64.decode", decodeBase64, over(StringKind, StringKind))
}

func parseJSON(m *machine, n *node, args []any) (any, error) {
	var text string
	switch x := args[0].(type) {
	case types.String:
		text = string(x)
	case types.Bytes:
		text = string(x)
	default:
		return nil, n.unfit(args...)
	}
	if err := m.payForJSON(n, text); err != nil {
		return nil, err
	}
	v, ok := readJSON(text)
	if !ok {
		return nil, n.fail("the text is not valid JSON")
	}
	return v, nil
}

// split returns the parts of a text between separators; with an empty one, its characters.
func split(m *machine, n *node, s, sep string) (any, error) {
	parts := strings.Count(s, sep) + 1
	if err := m.afford(n, parts, listWeight+4*elementWeight*parts); err != nil {
		return nil, err
	}
	found := strings.Split(s, sep)
	items := make([]any, len(found))
	for i, p := range found {
		items[i] = types.String(p)
	}
	return NewList(items), nil
}

// join returns the texts of a list with a separator between them.
func join(m *machine, n *node, args []any) (any, error) {
	list, ok := args[0].(*List)
	sep := types.String("")
	if ok && len(args) > 1 {
		sep, ok = args[1].(types.String)
	}
	if !ok {
		return nil, n.unfit(args...)
	}
	size := 0
	parts := make([]string, 0, min(len(list.items), 1_000))
	if err := m.afford(n, len(list.items), elementWeight*len(list.items)); err != nil {
		return nil, err
	}
	for _, item := range list.items {
		s, ok := item.(types.String)
		if !ok {
			return nil, n.unfit(item)
		}
		size += len(s) + len(sep)
		parts = append(parts, string(s))
	}
	if err := m.afford(n, size/32, size); err != nil {
		return nil, err
	}
	return types.String(strings.Join(parts, string(sep))), nil
}

// standardAlphabet replaces the two characters in which the alphabet of URLs differs.
var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// decodeBase64 returns the text that base64 encodes, with or without padding, in the standard or the URL's alphabet.
func decodeBase64(m *machine, n *node, args []any) (any, error) {
	s, ok := args[0].(types.String)
	if !ok {
		return nil, n.unfit(args...)
	}
	if err := m.afford(n, len(s)/8, 3*len(s)); err != nil {
		return nil, err
	}
	raw, err := base64.RawStdEncoding.DecodeString(standardAlphabet.Replace(strings.TrimRight(string(s), "=")))
	switch {
	case err != nil:
		return nil, n.fail("the text is not base64")
	case !utf8.Valid(raw):
		return nil, n.fail("the base64 holds bytes that are no text")
	}
	return types.String(raw), nil
}
