package item

import (
	"fmt"
	"maps"
	"sort"
	"time"
)

// Item is what a table holds: attribute name → string or int64. Who has handed one to a table, or got one from it,
// never changes it: a table in memory holds the very same map.
type Item map[string]any

// Str returns a string attribute, "" if absent or of another type.
func (i Item) Str(name string) string { s, _ := i[name].(string); return s }

// Int returns a number attribute, 0 if absent or of another type.
func (i Item) Int(name string) int64 { n, _ := i[name].(int64); return n }

// Time returns an attribute of milliseconds as an instant, the zero time if absent.
func (i Item) Time(name string) time.Time {
	ms, ok := i[name].(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Clone returns a copy.
func (i Item) Clone() Item {
	return maps.Clone(i)
}

// Size returns the number of bytes that DynamoDB counts for the item: names and values in UTF-8,
// numbers at about two digits a byte plus one.
func (i Item) Size() int {
	n := 0
	for k, v := range i {
		n += len(k)
		switch v := v.(type) {
		case string:
			n += len(v)
		case int64:
			n += NumberSize(v)
		}
	}
	return n
}

// NumberSize returns the number of bytes that DynamoDB counts for a number.
func NumberSize(v int64) int {
	digits := 1
	if v < 0 {
		digits++
	}
	for v /= 10; v != 0; v /= 10 {
		digits++
	}
	return (digits+1)/2 + 1
}

// Ref is the key of one item in a logical table of package contract. SK is "" in tables without
// one.
type Ref struct{ Table, PK, SK string }

func (r Ref) String() string { return r.Table + "/" + r.PK + "/" + r.SK }

// Identity distinguishes a table from any other, also from those that had its name before.
type Identity struct {
	ID       string // given to each table when it is made, and to no other
	Restored bool   // it was made from another table's backup
}

// Op is a comparison.
type Op string

// The comparisons. All but Missing fail on an absent attribute.
const (
	Exists  Op = "exists"
	Missing Op = "missing"
	Eq      Op = "="
	Ne      Op = "<>" // also true of an absent attribute, as in DynamoDB
	Lt      Op = "<"
	Le      Op = "<="
	Gt      Op = ">"
	Ge      Op = ">="
	In      Op = "in" // Value is []string
)

// Cond is one condition on the item before a write.
type Cond struct {
	Attr  string
	Op    Op
	Value any // string, int64, or []string for In; ignored by Exists and Missing
}

// All holds when each of its conditions holds.
type All []Cond

// Holds reports whether the condition holds for i; nil is the absent item.
func (c Cond) Holds(i Item) bool {
	v, ok := i[c.Attr]
	switch c.Op {
	case Exists:
		return ok
	case Missing:
		return !ok
	case Ne:
		return !ok || v != c.Value
	case In:
		s, isString := v.(string)
		if !ok || !isString {
			return false
		}
		for _, want := range c.Value.([]string) {
			if s == want {
				return true
			}
		}
		return false
	}
	if !ok {
		return false
	}
	switch want := c.Value.(type) {
	case string:
		have, isString := v.(string)
		return isString && compare(c.Op, have < want, have == want)
	case int64:
		have, isInt := v.(int64)
		return isInt && compare(c.Op, have < want, have == want)
	}
	return false
}

func compare(op Op, less, equal bool) bool {
	switch op {
	case Eq:
		return equal
	case Lt:
		return less
	case Le:
		return less || equal
	case Gt:
		return !less && !equal
	case Ge:
		return !less
	}
	return false
}

// Any reports whether one of the alternatives holds for i; an empty list always does.
func Any(when []All, i Item) bool {
	if len(when) == 0 {
		return true
	}
	for _, all := range when {
		holds := true
		for _, c := range all {
			if !c.Holds(i) {
				holds = false
				break
			}
		}
		if holds {
			return true
		}
	}
	return false
}

// Write is one conditional change of one item: the first that is set of Put, Delete, Check, or an
// update by Set and Add.
type Write struct {
	Ref
	Name   string // the transition's name, for logs, metrics and errors
	Else   error  // the error of a Commit when only this condition does not hold; nil: decide once more
	When   []All  // one of these must hold; none: unconditional
	Put    Item   // replaces the whole item
	Delete bool
	Check  bool             // changes nothing, only When must hold (in a Commit)
	Set    map[string]any   // nil removes the attribute
	Add    map[string]int64 // absent counts as 0
}

// maxAdds is how many attributes one write adds to, at most: an expression of DynamoDB has at most 4 KB.
const maxAdds = 150

// Adding returns writes like w that add these numbers, each to no more attributes than one write can.
func (w Write) Adding(numbers map[string]int64) (writes []Write) {
	var last map[string]int64
	for name, n := range numbers {
		if len(last) == 0 || len(last) == maxAdds {
			last = map[string]int64{}
			w.Add = last
			writes = append(writes, w)
		}
		last[name] = n
	}
	return writes
}

// Applied returns the item that the write makes of old, nil when nothing is left. It ignores When.
// Every table applies writes in this way.
func (w Write) Applied(old Item, pk, sk string) Item {
	switch {
	case w.Put != nil:
		return w.Put
	case w.Delete:
		return nil
	case w.Check:
		return old
	}
	next := old.Clone()
	if next == nil {
		next = Item{pk: w.PK}
		if sk != "" {
			next[sk] = w.SK
		}
	}
	for name, v := range w.Set {
		if v == nil {
			delete(next, name)
		} else {
			next[name] = v
		}
	}
	for name, n := range w.Add {
		next[name] = next.Int(name) + n
	}
	return next
}

// Refused says which writes' conditions did not hold, and which items they met. Nothing was
// written.
type Refused struct {
	Name string
	Olds map[int]Item // index of the write in the Commit (0 for a single one) → the item, nil if absent
}

func (r *Refused) Error() string {
	at := make([]int, 0, len(r.Olds))
	for i := range r.Olds {
		at = append(at, i)
	}
	sort.Ints(at)
	return fmt.Sprintf("%s: condition did not hold (of writes %v)", r.Name, at)
}

// Query reads one partition of a table or index, in the order of the sort key.
// The range is half-open: From ≤ sort key < To; an absent bound (nil) is open.
type Query struct {
	Table, Index string // Index "" reads the table itself
	PK           string
	From, To     any // string or int64, as the sort key is; nil for none
	Descending   bool
	Limit        int    // items of one page; 0 for the adapter's default
	Cursor       string // Page.Cursor of the previous page; "" for the first
	Consistent   bool   // tables only: an index always lags
}

// Page is one page of a query. An empty page with a Cursor is not the end.
type Page struct {
	Items  []Item
	Cursor string // "" at the end
}

// Change is one record of a table's stream, in the order of writes of each item.
type Change struct {
	Seq      string // opaque, ordered within an item
	Old, New Item   // nil: absent before or after
}
