package expression

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// A value is a Null, a *Number, a *List, a *Map or one of cel-go's single values: types.Bool, Int, Uint, Double,
// String, Bytes, Timestamp and Duration, or a typeValue.

// Null is JSON's null.
type Null struct {
	Why string // a sentence about why there is no value, for error messages; may be empty
}

// Number is a JSON number whose text cannot be made anew from its value, such as 2.50 or one with more digits than a
// double has.
type Number struct {
	text  string
	value ref.Val // types.Uint or types.Double
}

// List is a list. It does not change.
type List struct {
	items  []any
	weight int
}

// Len returns the number of elements.
func (l *List) Len() int { return len(l.items) }

// At returns an element.
func (l *List) At(i int) any { return l.items[i] }

// Map is a JSON object, or a map with numbers or booleans among its keys. It does not change.
type Map struct {
	fields []field     // by name
	others map[any]any // by types.Bool, types.Int, or types.Uint where it is no Int
	weight int
	answer *answer // of an HTTP result
}

type field struct {
	name  string
	value any
}

// newMap takes fields in any order. Of several with one name the last counts.
func newMap(fields []field, others map[any]any) *Map {
	byName := func(a, b field) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(fields, byName) {
		slices.SortStableFunc(fields, byName)
	}
	kept := fields[:0]
	for i, f := range fields {
		if i+1 == len(fields) || fields[i+1].name != f.name {
			kept = append(kept, f)
		}
	}
	m := &Map{fields: kept, others: others, weight: mapWeight}
	for _, f := range kept {
		m.weight += fieldWeight + len(f.name) + Weight(f.value)
	}
	if others != nil {
		m.weight += othersWeight
	}
	for _, v := range others {
		m.weight += otherWeight + Weight(v)
	}
	return m
}

// Len returns the number of entries.
func (m *Map) Len() int { return len(m.fields) + len(m.others) }

// Field returns the value of a name.
func (m *Map) Field(name string) (any, bool) {
	at, ok := slices.BinarySearchFunc(m.fields, name, func(f field, name string) int {
		return strings.Compare(f.name, name)
	})
	if !ok {
		return nil, false
	}
	return m.fields[at].value, true
}

// keys returns text keys in order, then booleans and numbers.
func (m *Map) keys() []any {
	keys := make([]any, 0, m.Len())
	for _, f := range m.fields {
		keys = append(keys, types.String(f.name))
	}
	var others []any
	for k := range m.others {
		others = append(others, k)
	}
	slices.SortFunc(others, func(a, b any) int { return strings.Compare(keyText(a), keyText(b)) })
	return append(keys, others...)
}

// get returns the value of a key.
func (m *Map) get(key any) (any, bool) {
	switch k := plain(key).(type) {
	case types.String:
		return m.Field(string(k))
	case types.Bool, types.Int, types.Uint, types.Double:
		if k = wholeKey(k); k == nil || m.others == nil {
			return nil, false
		}
		v, ok := m.others[k]
		return v, ok
	}
	return nil, false
}

// wholeKey returns the one form of a key: 1, 1u and 1.0 are the same. It is nil for a number that is not whole.
func wholeKey(k any) any {
	switch k := k.(type) {
	case types.Uint:
		if k <= math.MaxInt64 {
			return types.Int(k)
		}
	case types.Double:
		switch {
		case float64(k) != math.Trunc(float64(k)):
			return nil
		case k >= math.MinInt64 && k < math.MaxInt64:
			return types.Int(k)
		case k >= 0 && k < math.MaxUint64:
			return types.Uint(k)
		}
		return nil
	}
	return k
}

// keyText returns a key as JSON's objects have it.
func keyText(k any) string {
	switch k := k.(type) {
	case types.String:
		return string(k)
	case types.Bool:
		return strconv.FormatBool(bool(k))
	case types.Int:
		return strconv.FormatInt(int64(k), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(k), 10)
	}
	return ""
}

// Weights in bytes, as a value takes them in memory.
const (
	elementWeight = 16
	listWeight    = 48
	mapWeight     = 64
	fieldWeight   = 32
	othersWeight  = 384
	otherWeight   = 64
)

// Weight returns how many bytes a value takes when each of its parts is counted as often as it occurs.
func Weight(v any) int {
	switch v := v.(type) {
	case types.String:
		return elementWeight + len(v)
	case types.Bytes:
		return elementWeight + len(v)
	case *Number:
		return 2*elementWeight + len(v.text)
	case *List:
		return v.weight
	case *Map:
		return v.weight
	}
	return elementWeight
}

// plain returns the value of a Number, and any other value as it is.
func plain(v any) any {
	if n, ok := v.(*Number); ok {
		return n.value
	}
	return v
}

// From converts what encoding/json decodes: null, booleans, numbers, strings, lists and objects. Values stay as they
// are.
func From(v any) any { return convert(v, false) }

// convert is From; what is decoded for it alone is converted in place.
func convert(v any, own bool) any {
	switch v := v.(type) {
	case nil:
		return Null{}
	case bool:
		return types.Bool(v)
	case int:
		return types.Int(v)
	case int64:
		return types.Int(v)
	case uint64:
		return types.Uint(v)
	case float64:
		return types.Double(v)
	case string:
		return types.String(v)
	case json.Number:
		return number(string(v))
	case []any:
		into := v
		if !own {
			into = make([]any, len(v))
		}
		for i, e := range v {
			into[i] = convert(e, own)
		}
		return NewList(into)
	case map[string]any:
		fields := make([]field, 0, len(v))
		for k, e := range v {
			fields = append(fields, field{k, convert(e, own)})
		}
		return newMap(fields, nil)
	}
	return v
}

// NewList returns a list of values.
func NewList(items []any) *List {
	l := &List{items: items, weight: listWeight}
	for _, v := range items {
		l.weight += elementWeight + Weight(v)
	}
	return l
}

// NewMap returns a map of values.
func NewMap(values map[string]any) *Map {
	fields := make([]field, 0, len(values))
	for k, v := range values {
		fields = append(fields, field{k, v})
	}
	return newMap(fields, nil)
}

// number returns a JSON number: an int, a uint or a double, whichever holds it first. Its text is kept unless it can be
// made anew.
func number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		return types.Int(n)
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return types.Uint(n)
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range it is ±Inf
	if out, err := (&output{left: len(s)}).double(types.Double(f)); err == nil && out == s {
		return types.Double(f)
	}
	return &Number{text: s, value: types.Double(f)}
}

// Decode decodes one JSON value.
func Decode(raw []byte) (any, error) {
	if len(raw) == 0 {
		return Null{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return convert(v, true), nil
}

// Truth returns a boolean; false for any other value.
func Truth(v any) (yes, ok bool) {
	b, ok := v.(types.Bool)
	return bool(b), ok
}
