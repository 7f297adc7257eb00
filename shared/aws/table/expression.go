package table

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// expression gathers the aliases of one request. Every name gets one (#a0, #a1, …), since
// DynamoDB reserves hundreds of words, "status" and "owner" among them; every value, too (:v0, …).
// The same write always makes the same text.
type expression struct {
	names  map[string]string // alias → attribute
	values map[string]types.AttributeValue
	alias  map[string]string // attribute → alias
	err    error             // the first value that cannot be said
}

func (e *expression) name(attr string) string {
	if a, ok := e.alias[attr]; ok {
		return a
	}
	if e.alias == nil {
		e.alias, e.names = map[string]string{}, map[string]string{}
	}
	a := "#a" + strconv.Itoa(len(e.names))
	e.alias[attr], e.names[a] = a, attr
	return a
}

func (e *expression) value(v any) string {
	encoded, err := encodeValue(v)
	if err != nil {
		e.fail(err)
	}
	if e.values == nil {
		e.values = map[string]types.AttributeValue{}
	}
	a := ":v" + strconv.Itoa(len(e.values))
	e.values[a] = encoded
	return a
}

func (e *expression) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// maxIn is how many values DynamoDB takes in one IN.
const maxIn = 100

func (e *expression) cond(c item.Cond) string {
	n := e.name(c.Attr)
	switch c.Op {
	case item.Exists:
		return "attribute_exists(" + n + ")"
	case item.Missing:
		return "attribute_not_exists(" + n + ")"
	case item.In:
		list, ok := c.Value.([]string)
		if !ok || len(list) == 0 || len(list) > maxIn {
			e.fail(fault.New(fault.Invalid, nil, "condition on %s wants 1 to %d strings", c.Attr, maxIn))
			return ""
		}
		values := make([]string, len(list))
		for i, v := range list {
			values[i] = e.value(v)
		}
		return n + " IN (" + strings.Join(values, ", ") + ")"
	case item.Eq, item.Ne, item.Lt, item.Le, item.Gt, item.Ge: // written as DynamoDB writes them
		return n + " " + string(c.Op) + " " + e.value(c.Value)
	}
	e.fail(fault.New(fault.Invalid, nil, "condition on %s: comparison %q is unknown", c.Attr, c.Op))
	return ""
}

// when is the condition that one of the alternatives holds; nil if there are none.
func (e *expression) when(alternatives []item.All) *string {
	if len(alternatives) == 0 {
		return nil
	}
	either := make([]string, len(alternatives))
	for i, all := range alternatives {
		if len(all) == 0 {
			e.fail(fault.New(fault.Invalid, nil, "an alternative of the condition is empty"))
			return nil
		}
		conds := make([]string, len(all))
		for j, c := range all {
			conds[j] = e.cond(c)
		}
		either[i] = strings.Join(conds, " AND ")
		if len(alternatives) > 1 {
			either[i] = "(" + either[i] + ")"
		}
	}
	return aws.String(strings.Join(either, " OR "))
}

// update is the change that Set and Add make; nil if they are empty.
func (e *expression) update(set map[string]any, add map[string]int64) *string {
	var sets, removes, adds []string
	for _, attr := range slices.Sorted(maps.Keys(set)) {
		if set[attr] == nil {
			removes = append(removes, e.name(attr))
		} else {
			sets = append(sets, e.name(attr)+" = "+e.value(set[attr]))
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(add)) {
		adds = append(adds, e.name(attr)+" "+e.value(add[attr]))
	}
	var clauses []string
	for _, c := range []struct {
		word  string
		parts []string
	}{{"SET ", sets}, {"REMOVE ", removes}, {"ADD ", adds}} {
		if len(c.parts) > 0 {
			clauses = append(clauses, c.word+strings.Join(c.parts, ", "))
		}
	}
	if len(clauses) == 0 {
		return nil
	}
	return aws.String(strings.Join(clauses, " "))
}
