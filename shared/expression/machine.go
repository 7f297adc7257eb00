package expression

import (
	"context"
	"errors"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Limits of an evaluation. A step takes less than 100 ns on the processors of Lambda.
const (
	MaxWork   = 500_000  // steps of one expression: less than 100 ms
	MaxMemory = 32 << 20 // bytes that one expression allocates, and the weight of each value
)

// Meter bounds the steps of several evaluations together. It is not safe for concurrent use.
type Meter struct{ left int }

// NewMeter returns a meter of that many steps.
func NewMeter(steps int) *Meter { return &Meter{left: steps} }

// Left returns how many steps may still be done.
func (m *Meter) Left() int { return m.left }

// Record is a variable whose members are computed when they are named. Its error becomes the cause of an *Error.
type Record interface {
	Member(name string) (any, error)
}

// Details of errors. None shows a value.
const (
	noField      = "there is no such field"
	noIndex      = "the list has no such index"
	noOverload   = "the values have types that do not fit the operation"
	noConversion = "the value cannot be converted"
	tooCostly    = "the expression costs too much"
	tooLarge     = "the expression makes a value that is too large"
)

// machine evaluates one expression once.
type machine struct {
	ctx       context.Context // of one call
	variables map[string]any
	slots     []any
	work      int // steps left
	memory    int // bytes left
	unchecked int // steps since the context was looked at
	parsed    map[*answer]bool
}

// Eval evaluates the program with its variables, which are values or Records. The steps are taken from the meter, if
// there is one. The error is an *Error, or the context's.
func (p *Program) Eval(ctx context.Context, variables map[string]any, meter *Meter) (v any, err error) {
	m := &machine{ctx: ctx, variables: variables, slots: make([]any, p.slots), work: MaxWork, memory: MaxMemory}
	if meter != nil {
		m.work = min(m.work, meter.left)
	}
	before := m.work
	defer func() {
		if meter != nil {
			meter.left -= min(before-m.work, meter.left)
		}
		if recover() != nil {
			v, err = nil, p.root.fail("the expression cannot be evaluated with these values")
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.eval(p.root)
}

// pay takes steps from the budget.
func (m *machine) pay(n *node, steps int) error {
	if m.work -= steps; m.work < 0 {
		m.work = 0
		return n.finally(tooCostly)
	}
	const often = 4_096
	if m.unchecked += steps; m.unchecked >= often {
		m.unchecked = 0
		return m.ctx.Err()
	}
	return nil
}

// allocate takes bytes from the budget.
func (m *machine) allocate(n *node, bytes int) error {
	if m.memory -= bytes; m.memory < 0 {
		return n.finally(tooLarge)
	}
	return nil
}

func (n *node) finally(detail string) *Error {
	e := n.fail(detail)
	e.final = true
	return e
}

// absorbed reports whether another operand can make up for an error.
func absorbed(err error) bool {
	e := new(Error)
	return errors.As(err, &e) && !e.final && e.Cause == nil
}

// unfit is the error of an operation that does not take its operands.
func (n *node) unfit(args ...any) *Error {
	for _, a := range args {
		if null, ok := a.(Null); ok && null.Why != "" {
			return n.fail(null.Why)
		}
	}
	return n.fail(noOverload)
}

// bounded refuses a value that is too heavy.
func (m *machine) bounded(n *node, v any, err error) (any, error) {
	if err == nil && Weight(v) > MaxMemory {
		err = n.finally(tooLarge)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// stepsOf is what the parts of an expression cost, before what they do.
var stepsOf = [...]int{opValue: 1, opVariable: 1, opSlot: 1, opSelect: 1, opHas: 1, opIndex: 1, opList: 2, opMap: 3,
	opAnd: 1, opOr: 1, opChoose: 1, opCall: 2, opAll: 1, opExists: 1, opExistsOne: 1, opFilter: 1, opMapItems: 1}

func (m *machine) eval(n *node) (any, error) {
	if err := m.pay(n, stepsOf[n.op]); err != nil {
		return nil, err
	}
	switch n.op {
	case opValue:
		return n.value, nil
	case opVariable:
		return From(m.variables[n.name]), nil
	case opSlot:
		return m.slots[n.slot], nil
	case opSelect, opHas, opIndex:
		v, err := m.part(n)
		return m.bounded(n, v, err)
	case opList:
		return m.list(n)
	case opMap:
		return m.mapping(n)
	case opAnd, opOr:
		return m.logic(n)
	case opChoose:
		test, err := m.eval(n.args[0])
		if err != nil {
			return nil, err
		}
		switch test {
		case types.True:
			return m.eval(n.args[1])
		case types.False:
			return m.eval(n.args[2])
		}
		return nil, n.unfit(test)
	case opCall:
		args, err := m.evalAll(n.args)
		if err != nil {
			return nil, err
		}
		v, err := n.fn.run(m, n, args)
		return m.bounded(n, v, err)
	}
	return m.macro(n)
}

func (m *machine) evalAll(nodes []*node) ([]any, error) {
	values := make([]any, len(nodes))
	for i, x := range nodes {
		var err error
		if values[i], err = m.eval(x); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// part evaluates the selection of a field or an element.
func (m *machine) part(n *node) (any, error) {
	of, err := m.eval(n.args[0])
	if err != nil {
		return nil, err
	}
	if n.op == opIndex {
		key, err := m.eval(n.args[1])
		if err != nil {
			return nil, err
		}
		return m.index(n, of, key)
	}
	switch of := of.(type) {
	case *Map:
		v, err := m.member(n, of, n.name)
		if n.op == opHas && (err == nil || absorbed(err)) {
			return types.Bool(err == nil), nil
		}
		return v, err
	case Record:
		v, err := of.Member(n.name)
		if err != nil {
			e := n.finally(err.Error())
			e.Cause = err
			return nil, e
		}
		if n.op == opHas {
			return types.True, nil
		}
		return From(v), nil
	case Null:
		if n.op == opHas {
			return types.False, nil
		}
		if of.Why != "" {
			return nil, n.fail(of.Why)
		}
		return nil, n.fail(noField + ": the value before it is null")
	}
	return nil, n.fail(noField)
}

func (m *machine) index(n *node, of, key any) (any, error) {
	switch of := of.(type) {
	case *List:
		i, ok := wholeKey(plain(key)).(types.Int)
		switch {
		case !ok:
			return nil, n.unfit(key)
		case i < 0 || int64(i) >= int64(len(of.items)):
			return nil, n.fail(noIndex)
		}
		return of.items[i], nil
	case *Map:
		if name, ok := key.(types.String); ok {
			return m.member(n, of, string(name))
		}
		v, ok := of.get(key)
		if !ok {
			return nil, n.fail(noField)
		}
		return v, nil
	}
	return nil, n.unfit(of, key)
}

func (m *machine) list(n *node) (any, error) {
	if err := m.allocate(n, listWeight+elementWeight*len(n.args)); err != nil {
		return nil, err
	}
	items, err := m.evalAll(n.args)
	if err != nil {
		return nil, err
	}
	return m.bounded(n, NewList(items), nil)
}

func (m *machine) mapping(n *node) (any, error) {
	if err := m.allocate(n, mapWeight+otherWeight*len(n.args)); err != nil {
		return nil, err
	}
	values, err := m.evalAll(n.args)
	if err != nil {
		return nil, err
	}
	fields, others := make([]field, 0, len(values)/2), map[any]any(nil)
	for i := 0; i < len(values); i += 2 {
		switch k := plain(values[i]).(type) {
		case types.String:
			fields = append(fields, field{string(k), values[i+1]})
		case types.Bool, types.Int, types.Uint:
			if others == nil {
				if err := m.allocate(n, othersWeight); err != nil {
					return nil, err
				}
				others = map[any]any{}
			}
			others[wholeKey(k)] = values[i+1]
		default:
			return nil, n.args[i].unfit(k)
		}
	}
	return m.bounded(n, newMap(fields, others), nil)
}

// logic evaluates && and ||: one operand that decides makes up for an error of the other.
func (m *machine) logic(n *node) (any, error) {
	decides := types.Bool(n.op == opOr)
	var failed error
	for _, x := range n.args {
		v, err := m.eval(x)
		switch {
		case err != nil && !absorbed(err):
			return nil, err
		case err == nil && v == decides:
			return decides, nil
		case err == nil && v != !decides:
			err = n.unfit(v)
		}
		if failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return nil, failed
	}
	return !decides, nil
}

// macro evaluates a macro over the elements of a list or the keys of a map.
func (m *machine) macro(n *node) (any, error) {
	over, err := m.eval(n.args[0])
	if err != nil {
		return nil, err
	}
	var items []any
	switch over := over.(type) {
	case *List:
		items = over.items
	case *Map:
		if err := errors.Join(m.pay(n, 8*over.Len()), m.allocate(n, elementWeight*over.Len())); err != nil {
			return nil, err
		}
		items = over.keys()
	default:
		return nil, n.unfit(over)
	}
	if n.op == opFilter || n.op == opMapItems {
		return m.collect(n, items)
	}
	return m.quantify(n, items)
}

// quantify evaluates all, exists and exists_one.
func (m *machine) quantify(n *node, items []any) (any, error) {
	var failed error
	found := 0
	for _, item := range items {
		m.slots[n.slot] = item
		v, err := m.eval(n.args[1])
		if err == nil && v != types.True && v != types.False {
			err = n.unfit(v)
		}
		switch {
		case err != nil && (n.op == opExistsOne || !absorbed(err)):
			return nil, err
		case err != nil:
			if failed == nil {
				failed = err
			}
		case n.op == opAll && v == types.False:
			return types.False, nil
		case n.op == opExists && v == types.True:
			return types.True, nil
		case v == types.True:
			found++
		}
	}
	if failed != nil {
		return nil, failed
	}
	return types.Bool(n.op == opAll || n.op == opExistsOne && found == 1), nil
}

// collect evaluates filter and map.
func (m *machine) collect(n *node, items []any) (any, error) {
	weight := listWeight
	test, value := n.args[1], (*node)(nil)
	if n.op == opMapItems {
		value = n.args[len(n.args)-1]
		if len(n.args) == 2 {
			test = nil
		}
	}
	memory := elementWeight * len(items)
	if test != nil {
		memory = 0
	}
	if err := m.allocate(n, memory); err != nil {
		return nil, err
	}
	out := make([]any, 0, memory/elementWeight)
	for _, item := range items {
		m.slots[n.slot] = item
		if test != nil {
			switch v, err := m.eval(test); {
			case err != nil:
				return nil, err
			case v == types.False:
				continue
			case v != types.True:
				return nil, n.unfit(v)
			}
		}
		v := item
		if value != nil {
			m.slots[n.slot] = item
			var err error
			if v, err = m.eval(value); err != nil {
				return nil, err
			}
		}
		if test != nil {
			if err := m.allocate(n, 3*elementWeight); err != nil { // append copies
				return nil, err
			}
		}
		if weight += elementWeight + Weight(v); weight > MaxMemory {
			return nil, n.finally(tooLarge)
		}
		out = append(out, v)
	}
	return &List{items: out, weight: weight}, nil
}

// single returns the result of cel-go's operation on single values.
func (n *node) single(v ref.Val) (any, error) {
	wrong, ok := v.(*types.Err)
	if !ok {
		return v, nil
	}
	return nil, n.fail(plainFailure(wrong.Error()))
}
