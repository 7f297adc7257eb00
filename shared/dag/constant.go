package dag

import (
	"slices"
	"strings"

	"punctual/shared/expression"
)

// Constant is a text that a template or an expression of a definition holds, or that its constant parts make.
type Constant struct {
	Node    string
	Pointer string // of the string that contains it, below the definition
	expression.Constant
}

// Constants returns the texts of all templates and expressions, so that a check can look into them. Constant parts of a
// template that follow each other are one text.
func (g *Graph) Constants() (all []Constant) {
	for _, name := range g.names {
		x := g.exprs[name]
		if x == nil { // there are too many violations
			continue
		}
		for field, e := range map[string]*expr{"when": x.when, "for_each": x.forEach} {
			if e == nil || e.program == nil {
				continue
			}
			found, _, _ := e.program.Constants()
			for _, c := range found {
				all = append(all, Constant{Node: name, Pointer: pointer("nodes", name, field), Constant: c})
			}
		}
		for below, t := range x.payload {
			at := pointer("nodes", name, "payload") + below
			for _, c := range t.constants() {
				all = append(all, Constant{name, at, c})
			}
		}
		for n, t := range x.limits {
			for _, c := range t.constants() {
				all = append(all, Constant{name, limitKeyPointer(name, n), c})
			}
		}
	}
	slices.SortFunc(all, func(a, b Constant) int { return strings.Compare(a.Pointer, b.Pointer) })
	return all
}

// constants returns the texts of a template.
func (t *pattern) constants() (all []expression.Constant) {
	var run strings.Builder
	flush := func() {
		if run.Len() > 0 {
			all = append(all, expression.Constant{Text: run.String()})
			run.Reset()
		}
	}
	for _, p := range t.parts {
		if p.expr == nil {
			run.WriteString(p.literal)
			continue
		}
		if p.expr.program == nil {
			flush()
			continue
		}
		found, whole, ok := p.expr.program.Constants()
		all = append(all, found...)
		if ok {
			run.WriteString(whole)
		} else {
			flush()
		}
	}
	flush()
	return all
}
