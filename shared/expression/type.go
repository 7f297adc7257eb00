package expression

import (
	"cel.dev/cel-go/common/types"
)

// Kind is the kind of a value, as far as it is known before evaluation.
type Kind uint8

// The kinds; Dyn is any of them.
const (
	Dyn Kind = iota
	NullKind
	BoolKind
	IntKind
	UintKind
	DoubleKind
	StringKind
	BytesKind
	ListKind
	MapKind
	TimestampKind
	DurationKind
	TypeKind
	RecordKind
)

var kindNames = [...]string{"any value", "null", "a boolean", "an int", "a uint", "a double", "text", "bytes", "a list",
	"a map", "a timestamp", "a duration", "a type", "a record"}

func (k Kind) String() string { return kindNames[k] }

// Type is what is known of a value before evaluation.
type Type struct {
	Kind    Kind
	Elem    *Type // of a list's elements or a map's values
	Members Members
	depth   int
}

// Members are the fields of a variable that are known by name. A record's have to be named; a map can also be used as a
// whole.
type Members interface {
	// Member returns the type of a field; otherwise problem says why it cannot be named. test says that the
	// expression only asks whether there is one.
	Member(name string, test bool) (t *Type, problem string)
	// Unnamed says how a field is named, for a record that is used in another way.
	Unnamed() string
}

// Types without elements.
var (
	DynType       = &Type{Kind: Dyn}
	BoolType      = &Type{Kind: BoolKind}
	IntType       = &Type{Kind: IntKind}
	StringType    = &Type{Kind: StringKind}
	nullType      = &Type{Kind: NullKind}
	uintType      = &Type{Kind: UintKind}
	doubleType    = &Type{Kind: DoubleKind}
	bytesType     = &Type{Kind: BytesKind}
	timestampType = &Type{Kind: TimestampKind}
	durationType  = &Type{Kind: DurationKind}
	typeType      = &Type{Kind: TypeKind}
	kindTypes     = [...]*Type{DynType, nullType, BoolType, IntType, uintType, doubleType, StringType, bytesType,
		{Kind: ListKind, Elem: DynType}, {Kind: MapKind, Elem: DynType}, timestampType, durationType, typeType}
)

// maxTypeDepth bounds a type: elements further inside may be of any type.
const maxTypeDepth = 4

func containerOf(k Kind, elem *Type) *Type {
	if elem.depth >= maxTypeDepth {
		elem = DynType
	}
	return &Type{Kind: k, Elem: elem, depth: elem.depth + 1}
}

// Could reports whether a value of the type can be of kind k.
func (t *Type) Could(k Kind) bool { return t.Kind == k || t.Kind == Dyn }

func (t *Type) numeric() bool { return t.Kind == IntKind || t.Kind == UintKind || t.Kind == DoubleKind }

// unify returns the type of a value that is one of two types, and whether CEL lets both be one type.
func unify(a, b *Type) (*Type, bool) {
	switch {
	case a.Kind == Dyn || b.Kind == Dyn:
		return DynType, true
	case a.Kind == b.Kind && (a.Kind == ListKind || a.Kind == MapKind):
		elem, ok := unify(a.Elem, b.Elem)
		return containerOf(a.Kind, elem), ok
	case a.Kind == b.Kind:
		return a, a.Kind != RecordKind
	}
	return DynType, false
}

// overload is one way to call a function.
type overload struct {
	args   []Kind
	result Kind
}

func over(result Kind, args ...Kind) overload { return overload{args, result} }

// resultOf returns the type that a call gives; false if no overload takes the arguments.
func resultOf(all []overload, args []*Type) (*Type, bool) {
	found, result := false, Dyn
	for _, o := range all {
		if len(o.args) != len(args) {
			continue
		}
		fits := true
		for i, k := range o.args {
			fits = fits && (k == Dyn || args[i].Could(k))
		}
		switch {
		case !fits:
		case !found:
			found, result = true, o.result
		case result != o.result:
			result = Dyn
		}
	}
	return kindTypes[result], found
}

// kindOf returns the kind of a value.
func kindOf(v any) Kind {
	switch plain(v).(type) {
	case Null:
		return NullKind
	case types.Bool:
		return BoolKind
	case types.Int:
		return IntKind
	case types.Uint:
		return UintKind
	case types.Double:
		return DoubleKind
	case types.String:
		return StringKind
	case types.Bytes:
		return BytesKind
	case *List:
		return ListKind
	case *Map:
		return MapKind
	case types.Timestamp:
		return TimestampKind
	case types.Duration:
		return DurationKind
	case typeValue:
		return TypeKind
	}
	return RecordKind
}

// typeValue is the value of type(x).
type typeValue Kind

// typeNames are the names by which expressions compare types.
var typeNames = map[string]Kind{
	"null_type": NullKind, "bool": BoolKind, "int": IntKind, "uint": UintKind, "double": DoubleKind,
	"string": StringKind, "bytes": BytesKind, "list": ListKind, "map": MapKind, "type": TypeKind,
}
