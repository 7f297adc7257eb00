package item

import "time"

// Attribute is one attribute of an encoded value; one without a value is absent from the item.
type Attribute struct {
	Name   string
	text   string
	number int64
}

// Absent reports whether the item lacks the attribute.
func (a Attribute) Absent() bool { return a.text == "" && a.number == 0 }

// Value is a string or an int64.
func (a Attribute) Value() any {
	if a.text == "" {
		return a.number
	}
	return a.text
}

// Codec writes the attributes of a value, or reads them. A type has one function that passes a codec through its
// attributes, so that each is stated once:
//
//	func (r *Row) attributes(c *item.Codec) {
//		c.Text("task", &r.Task)
//		c.Instant("due_at", &r.DueAt)
//	}
//
// A zero value is an absent attribute, and an absent attribute is a zero value.
//
// Its methods are not inlined: sixty of them in one function would take 4 KB of stack, and the stacks of short
// goroutines would grow once more for each job. They are called directly and with pointers to fields, because a table
// of functions would move every value that is encoded to the heap.
type Codec struct {
	list  []Attribute
	from  Item   // nil while writing
	wrong string // the first attribute that could not be read
}

// Writer is a codec that writes. Space has no elements, and room for all attributes; it may be on the caller's stack.
func Writer(space []Attribute) Codec { return Codec{list: space} }

// Reader is a codec that reads an item.
func Reader(i Item) Codec {
	if i == nil {
		i = Item{}
	}
	return Codec{from: i}
}

// Attributes lists what was written, the absent ones too, so that each has the same position in every value of a type.
func (c *Codec) Attributes() []Attribute { return c.list }

// Unreadable names the first attribute that could not be read, "" for none: what should be a number is none, or what
// Coded reads is broken.
func (c *Codec) Unreadable() string { return c.wrong }

// Reading reports whether the codec reads.
func (c *Codec) Reading() bool { return c.from != nil }

// add sets the fields one by one: a copy of the whole costs more while garbage is collected.
//
//go:noinline
func (c *Codec) add(name, text string, number int64) {
	at := len(c.list)
	c.list = c.list[:at+1]
	a := &c.list[at]
	a.Name, a.text, a.number = name, text, number
}

// Write writes a text that is computed from others: it is not read.
func (c *Codec) Write(name, text string) { c.add(name, text, 0) }

// WriteNumber is Write of a number.
func (c *Codec) WriteNumber(name string, number int64) { c.add(name, "", number) }

// Text is an attribute that holds a string.
//
//go:noinline
func (c *Codec) Text(name string, field *string) {
	if c.from == nil {
		c.add(name, *field, 0)
		return
	}
	*field = c.from.Str(name)
}

// Number is an attribute that holds a number.
//
//go:noinline
func (c *Codec) Number(name string, field *int64) {
	if c.from == nil {
		c.add(name, "", *field)
		return
	}
	*field, _ = c.number(name)
}

// number reads a number; false: it is absent.
func (c *Codec) number(name string) (int64, bool) {
	v, there := c.from[name]
	n, ok := v.(int64)
	if there && !ok && c.wrong == "" {
		c.wrong = name
	}
	return n, ok
}

// Int is Number of an int.
//
//go:noinline
func (c *Codec) Int(name string, field *int) {
	if c.from == nil {
		c.add(name, "", int64(*field))
		return
	}
	n, _ := c.number(name)
	*field = int(n)
}

// Flag is an attribute that is there while something holds.
//
//go:noinline
func (c *Codec) Flag(name string, field *bool) {
	switch {
	case c.from != nil:
		*field = c.from.Str(name) != ""
	case *field:
		c.add(name, "1", 0)
	default:
		c.add(name, "", 0)
	}
}

// Instant is a time as milliseconds.
//
//go:noinline
func (c *Codec) Instant(name string, field *time.Time) {
	if c.from == nil {
		ms := int64(0)
		if !field.IsZero() {
			ms = field.UnixMilli()
		}
		c.add(name, "", ms)
		return
	}
	*field = time.Time{}
	if ms, there := c.number(name); there {
		*field = time.UnixMilli(ms).UTC()
	}
}

// Second is a time as seconds, in which the table expects the time when it may forget an item.
//
//go:noinline
func (c *Codec) Second(name string, field *time.Time) {
	if c.from == nil {
		seconds := int64(0)
		if !field.IsZero() {
			seconds = field.Unix()
		}
		c.add(name, "", seconds)
		return
	}
	*field = time.Time{}
	if seconds, there := c.number(name); there {
		*field = time.Unix(seconds, 0).UTC()
	}
}

// Span is a length of time as milliseconds.
//
//go:noinline
func (c *Codec) Span(name string, field *time.Duration) {
	if c.from == nil {
		c.add(name, "", field.Milliseconds())
		return
	}
	ms, _ := c.number(name)
	*field = time.Duration(ms) * time.Millisecond
}

// Coded is an attribute with a text form of its own. Read gets "" for an absent one.
//
//go:noinline
func (c *Codec) Coded(name string, write func() string, read func(string) error) {
	if c.from == nil {
		c.add(name, write(), 0)
		return
	}
	if err := read(c.from.Str(name)); err != nil && c.wrong == "" {
		c.wrong = name
	}
}

// Encoded is an item of these attributes; usual is about how many of them are not absent.
func Encoded(attributes []Attribute, usual int) Item {
	i := make(Item, usual)
	for _, a := range attributes {
		if !a.Absent() {
			i[a.Name] = a.Value()
		}
	}
	return i
}

// SizeOf is the size of an item of these attributes.
func SizeOf(attributes []Attribute) int {
	n := 0
	for _, a := range attributes {
		switch {
		case a.text != "":
			n += len(a.Name) + len(a.text)
		case a.number != 0:
			n += len(a.Name) + NumberSize(a.number)
		}
	}
	return n
}

// Changes is what must be set, and removed (nil), to make before into after, two values of one type. They are compared
// position by position, without maps.
func Changes(before, after []Attribute) map[string]any {
	set := make(map[string]any, 16)
	for n, a := range after {
		switch {
		case a == before[n]:
		case a.Absent():
			set[a.Name] = nil
		default:
			set[a.Name] = a.Value()
		}
	}
	return set
}
