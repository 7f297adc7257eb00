package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// parts applies the schemas of items and of properties in the library's place. The library looks at every part of a
// value, whatever it has found, and keeps a record of each violation until it has seen the last part; parts stops at
// the number of violations that are reported, and pays for each part when it comes to it.
type parts struct {
	program *program

	items     *jsonschema.Schema // of the items from itemsFrom on; nil for none
	itemsFrom int

	names      *jsonschema.Schema // that the names of properties must fit; nil for none
	properties map[string]*jsonschema.Schema
	byPattern  []patternSchema
	others     *jsonschema.Schema // of properties with no schema of their own; nil for none
	noOthers   bool               // there must not be any
}

// patternSchema is the schema of the properties whose names match a pattern.
type patternSchema struct {
	pattern jsonschema.Regexp
	schema  *jsonschema.Schema
}

// newParts takes the keywords for any number of parts out of a schema; nil if it has none. Those that list a schema
// for each part stay, because the length of the schema bounds them.
func newParts(p *program, s *jsonschema.Schema) *parts {
	w := &parts{program: p, names: s.PropertyNames, properties: s.Properties}
	for pattern, each := range s.PatternProperties {
		w.byPattern = append(w.byPattern, patternSchema{pattern, each})
	}
	slices.SortFunc(w.byPattern, func(a, b patternSchema) int {
		return strings.Compare(a.pattern.String(), b.pattern.String())
	})
	s.PropertyNames, s.PatternProperties = nil, nil
	switch others := s.AdditionalProperties.(type) {
	case bool:
		w.noOthers = !others
	case *jsonschema.Schema:
		w.others = others
	}
	if w.noOthers || w.others != nil {
		s.AdditionalProperties = nil
	}
	if s.DraftVersion >= 2020 {
		w.items, w.itemsFrom, s.Items2020 = s.Items2020, len(s.PrefixItems), nil
	} else {
		w.takeOldItems(s)
	}
	if w.items == nil && w.names == nil && !w.ofProperties() {
		return nil
	}
	return w
}

// takeOldItems takes items and additionalItems of the drafts before 2020-12. Where items is one schema,
// additionalItems says nothing.
func (w *parts) takeOldItems(s *jsonschema.Schema) {
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		w.items, s.Items, s.AdditionalItems = items, nil, nil
	case []*jsonschema.Schema:
		if rest, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			w.items, w.itemsFrom, s.AdditionalItems = rest, len(items), nil
		}
	case nil:
		if rest, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			w.items, s.AdditionalItems = rest, nil
		}
	}
}

func (w *parts) ofProperties() bool { return len(w.byPattern) > 0 || w.others != nil || w.noOthers }

// Validate is called by the library after all other keywords but the unevaluated ones.
func (w *parts) Validate(ctx *jsonschema.ValidatorContext, v any) {
	found := findings{ctx: ctx}
	switch v := v.(type) {
	case []any:
		for i := w.itemsFrom; w.items != nil && i < len(v) && !found.enough(); i++ {
			w.program.spend(perPart)
			found.add(ctx.Validate(w.items, v[i], []string{strconv.Itoa(i)}))
		}
	case map[string]any:
		if w.names == nil && !w.ofProperties() {
			return
		}
		// The order of the names makes what is reported, and what is paid until then, the same every time.
		w.program.spend(2 * len(v))
		names := slices.Sorted(maps.Keys(v))
		w.checkNames(&found, names)
		w.checkProperties(&found, v, names)
	}
}

func (w *parts) checkNames(found *findings, names []string) {
	for _, name := range names {
		if w.names == nil || found.enough() {
			return
		}
		w.program.spend(perPart)
		if w.names.Validate(name) != nil {
			found.count++
			found.ctx.AddError(&schemakind.PropertyNames{Property: name})
		}
	}
}

func (w *parts) checkProperties(found *findings, v map[string]any, names []string) {
	if !w.ofProperties() {
		return
	}
	var unknown []string
	for _, name := range names {
		if found.count+len(unknown) >= maxViolations {
			break
		}
		w.program.spend(1 + len(w.byPattern))
		_, known := w.properties[name]
		for _, each := range w.byPattern {
			if each.pattern.MatchString(name) {
				known = true
				w.program.spend(perPart)
				found.add(found.ctx.Validate(each.schema, v[name], []string{name}))
			}
		}
		switch {
		case known || !w.noOthers && w.others == nil:
		case w.noOthers:
			unknown = append(unknown, name)
		default:
			w.program.spend(perPart)
			found.add(found.ctx.Validate(w.others, v[name], []string{name}))
		}
		if known || w.noOthers || w.others != nil {
			found.ctx.EvaluatedProp(name)
		}
	}
	if len(unknown) > 0 {
		found.ctx.AddError(&schemakind.AdditionalProperties{Properties: unknown})
	}
}

// findings counts the violations in the parts of one value.
type findings struct {
	ctx   *jsonschema.ValidatorContext
	count int
}

func (f *findings) enough() bool { return f.count >= maxViolations }

func (f *findings) add(err error) {
	if wrong, ok := err.(*jsonschema.ValidationError); ok && wrong != nil { //nolint:errorlint // it is never wrapped
		f.count += countViolations(wrong, maxViolations-f.count)
		f.ctx.AddErr(err)
	}
}

// countViolations counts what an error says, up to most.
func countViolations(e *jsonschema.ValidationError, most int) int {
	if len(e.Causes) == 0 {
		return 1
	}
	count := 0
	for _, cause := range e.Causes {
		if count >= most {
			break
		}
		count += countViolations(cause, most-count)
	}
	return count
}
