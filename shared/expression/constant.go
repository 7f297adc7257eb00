package expression

import (
	"context"

	"cel.dev/cel-go/common/types"
)

// Constant is a text that an expression holds, or that its constant parts make.
type Constant struct {
	Name string // of the field of a map in the expression that the text is the value of; else empty
	Text string
	// Inner says that the text is no part of the value, such as what the value is compared with.
	Inner bool
}

// Constants returns the texts that the expression holds. whole is the expression's value as a text, if it does not
// depend on a variable.
func (p *Program) Constants() (all []Constant, whole string, isWhole bool) {
	w := &constants{slots: p.slots}
	if !p.texts && !fixed(p.root, 0) {
		return nil, "", false
	}
	w.walk(p.root, "", false, 0)
	if v, ok := w.value(p.root, 0); ok {
		s, err := Text(v, MaxMemory)
		return w.found, s, err == nil
	}
	return w.found, "", false
}

// constants collects the texts of an expression.
type constants struct {
	slots int
	found []Constant
	// added are the lists and maps whose texts are found: parts of a value that it holds many times are visited once.
	added map[addition]bool
}

// addition is a list or a map in its place.
type addition struct {
	value any
	name  string
	inner bool
}

// addOnce reports whether a list or a map has not been added yet, and notes it.
func (w *constants) addOnce(v any, name string, inner bool) bool {
	a := addition{v, name, inner}
	if w.added[a] {
		return false
	}
	if w.added == nil {
		w.added = map[addition]bool{}
	}
	w.added[a] = true
	return true
}

// fixed reports whether a part depends on no variable. depth is the number of macros around it.
func fixed(n *node, depth int) bool {
	if n.op == opVariable || n.op == opSlot && n.slot < depth {
		return false
	}
	for _, a := range n.args {
		if !fixed(a, depth) {
			return false
		}
	}
	return true
}

// value returns the value of a part that depends on no variable.
func (w *constants) value(n *node, depth int) (any, bool) {
	const steps, bytes = 500, 1 << 20 // to join the texts of an expression takes less
	if !fixed(n, depth) {
		return nil, false
	}
	m := &machine{ctx: context.Background(), slots: make([]any, w.slots), work: steps, memory: bytes}
	v, err := m.eval(n)
	return v, err == nil
}

func (w *constants) walk(n *node, name string, inner bool, depth int) {
	if v, ok := w.value(n, depth); ok {
		w.add(v, name, inner)
		w.literals(n)
		return
	}
	for i, a := range n.args {
		part, called := inner, name
		switch n.op {
		case opChoose:
			part = inner || i == 0
		case opList:
		case opCall:
			part = inner || n.fn != functions["_+_"]
		case opMap:
			if key, ok := n.args[i-i%2].value.(types.String); ok {
				called = string(key)
			}
			if part = inner || i%2 == 0; i%2 == 0 {
				called = ""
			}
		default:
			part = true
		}
		below := depth
		if n.op >= opAll && i > 0 {
			below = n.slot + 1
			part = inner || n.op != opMapItems || i != len(n.args)-1
		}
		w.walk(a, called, part, below)
	}
}

// literals collects the texts that are written in a part.
func (w *constants) literals(n *node) {
	for _, a := range n.args {
		if a.op == opValue {
			w.add(a.value, "", true)
		}
		w.literals(a)
	}
}

// add collects the texts of a value.
func (w *constants) add(v any, name string, inner bool) {
	switch v := v.(type) {
	case types.String:
		w.found = append(w.found, Constant{name, string(v), inner})
	case types.Bytes:
		w.found = append(w.found, Constant{name, string(v), inner})
	case *List:
		if !w.addOnce(v, name, inner) {
			return
		}
		for _, e := range v.items {
			w.add(e, name, inner)
		}
	case *Map:
		if !w.addOnce(v, name, inner) {
			return
		}
		for _, f := range v.fields {
			w.add(types.String(f.name), "", true)
			w.add(f.value, f.name, inner)
		}
	}
}
