package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"punctual/shared/text"
)

// exact judges enum, const and uniqueItems in the library's place: by what values say, in time
// that grows with their length. The library compares each with each, and numbers by parsing
// both every time.
type exact struct {
	program *program
	enum    map[string]bool // nil for none
	longest int             // of enum and fixed
	fixed   string          // "" for no const
	unique  bool
	misfit  jsonschema.ErrorKind // of enum
	other   jsonschema.ErrorKind // of const
}

// newExact takes the three keywords out of a schema; nil if it has none.
func newExact(p *program, s *jsonschema.Schema) *exact {
	if s.Enum == nil && s.Const == nil && !s.UniqueItems {
		return nil
	}
	e := &exact{program: p, unique: s.UniqueItems}
	if s.Enum != nil {
		e.enum, e.misfit = map[string]bool{}, &schemakind.Enum{Want: s.Enum.Values}
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
	var b strings.Builder
	writeExact(&b, v, MaxText*2, func(int) {})
	return b.String()
}

// Validate is called by the library after all other keywords.
func (e *exact) Validate(ctx *jsonschema.ValidatorContext, v any) {
	if e.enum != nil || e.fixed != "" {
		var b strings.Builder
		whole := writeExact(&b, v, e.longest, e.program.spend)
		if e.enum != nil && !(whole && e.enum[b.String()]) {
			ctx.AddError(e.misfit)
		}
		if e.fixed != "" && !(whole && e.fixed == b.String()) {
			ctx.AddError(e.other)
		}
	}
	items, _ := v.([]any)
	if !e.unique || len(items) < 2 {
		return
	}
	first := map[string]int{}
	for i, item := range items {
		var b strings.Builder
		writeExact(&b, item, maxExact, e.program.spend)
		if j, again := first[b.String()]; again {
			ctx.AddError(&schemakind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		first[b.String()] = i
	}
}

// maxExact is more than any payload says.
const maxExact = 1 << 30

// writeExact writes what a value says, so that two values are equal exactly if their texts are.
// It returns false, having written a part, when that takes more than limit bytes.
func writeExact(b *strings.Builder, v any, limit int, spend func(int)) bool {
	if b.Len() > limit {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		spend(1 + 2*len(v))
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(b, "{%d:", len(v))
		for _, name := range names {
			if !writeExact(b, name, limit, spend) || !writeExact(b, v[name], limit, spend) {
				return false
			}
		}
	case []any:
		spend(2)
		fmt.Fprintf(b, "[%d:", len(v))
		for _, item := range v {
			if !writeExact(b, item, limit, spend) {
				return false
			}
		}
	case string:
		spend(1 + len(v)/256)
		if b.Len()+len(v) > limit {
			return false
		}
		fmt.Fprintf(b, "\"%d:%s", len(v), v)
	case json.Number:
		spend(2)
		b.WriteString(text.CanonicalNumber(v.String()))
		b.WriteByte(';')
	default:
		spend(1)
		fmt.Fprintf(b, "%v;", v)
	}
	return b.Len() <= limit
}
