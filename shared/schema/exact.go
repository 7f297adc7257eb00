package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"punctual/shared/text"
)

// exact checks enum, const and uniqueItems in the library's place: by what values say, in time
// that grows with their length. The library compares each with each, and numbers by parsing
// both every time.
type exact struct {
	program   *program
	enum      map[string]bool // nil for none
	longest   int             // of enum and fixed
	fixed     string          // "" for no const
	unique    bool
	violation jsonschema.ErrorKind // of enum
	other     jsonschema.ErrorKind // of const
}

// newExact takes the three keywords out of a schema; nil if it has none.
func newExact(p *program, s *jsonschema.Schema) *exact {
	if s.Enum == nil && s.Const == nil && !s.UniqueItems {
		return nil
	}
	e := &exact{program: p, unique: s.UniqueItems}
	if s.Enum != nil {
		e.enum, e.violation = map[string]bool{}, &schemakind.Enum{Want: s.Enum.Values}
		for _, v := range s.Enum.Values {
			said := e.said(v)
			e.enum[said], e.longest = true, max(e.longest, len(said))
		}
	}
	if s.Const != nil {
		e.fixed, e.other = e.said(*s.Const), &schemakind.Const{Want: *s.Const}
		e.longest = max(e.longest, len(e.fixed))
	}
	s.Enum, s.Const, s.UniqueItems = nil, nil, false
	return e
}

func (e *exact) weight() int {
	weight := 200 + len(e.fixed)
	for said := range e.enum {
		weight += 50 + len(said)
	}
	return weight
}

// said writes a schema's own value, which is short.
func (e *exact) said(v any) string {
	w := exactWriter{limit: MaxText * 2, spend: func(int) {}}
	w.write(v)
	return string(w.text)
}

// Validate is called by the library after all other keywords.
func (e *exact) Validate(ctx *jsonschema.ValidatorContext, v any) {
	w := exactWriter{spend: e.program.spend}
	if e.enum != nil || e.fixed != "" {
		w.limit = e.longest
		whole := w.write(v)
		if e.enum != nil && !(whole && e.enum[string(w.text)]) {
			ctx.AddError(e.violation)
		}
		if e.fixed != "" && !(whole && e.fixed == string(w.text)) {
			ctx.AddError(e.other)
		}
	}
	items, _ := v.([]any)
	if !e.unique || len(items) < 2 {
		return
	}
	w.limit = maxExact
	first := map[string]int{}
	for i, item := range items {
		w.text = w.text[:0]
		w.write(item)
		e.program.spend(perItemCompared + len(w.text)/32)
		if j, repeated := first[string(w.text)]; repeated {
			ctx.AddError(&schemakind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		first[string(w.text)] = i
	}
}

// perItemCompared is what it costs to look for an item among those before it, and to keep it for those after it, in
// addition to writing it.
const perItemCompared = 3

// maxExact is more than any payload says.
const maxExact = 1 << 30

// exactWriter writes what values say, so that two values are equal exactly if their texts are. It stops at limit
// bytes, and pays for what it writes.
type exactWriter struct {
	text  []byte
	limit int
	spend func(int)
}

// write returns false, having written a part, when a value takes more than the limit.
func (w *exactWriter) write(v any) bool {
	if len(w.text) > w.limit {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		w.spend(1 + 3*len(v))
		w.open('{', len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !w.write(name) || !w.write(v[name]) {
				return false
			}
		}
	case []any:
		w.spend(2)
		w.open('[', len(v))
		for _, item := range v {
			if !w.write(item) {
				return false
			}
		}
	case string:
		w.spend(1 + len(v)/256)
		if len(w.text)+len(v) > w.limit {
			return false
		}
		w.open('"', len(v))
		w.text = append(w.text, v...)
	case json.Number:
		w.spend(2)
		w.text = append(append(w.text, text.CanonicalNumber(v.String())...), ';')
	default:
		w.spend(1)
		w.text = fmt.Appendf(w.text, "%v;", v)
	}
	return len(w.text) <= w.limit
}

// open writes what kind of value begins, and its length, so that no value can be taken for the beginning of another.
func (w *exactWriter) open(kind byte, length int) {
	w.text = append(strconv.AppendInt(append(w.text, kind), int64(length), 10), ':')
}
