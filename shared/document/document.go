package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"punctual/shared/contract"
	"punctual/shared/text"
)

// Kind is the kind of a JSON value. Its text fits "%s is given where …".
type Kind uint8

// The kinds of JSON values.
const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is one value of a document. Children come after their parent; in an object, keys and values alternate.
type node struct {
	start, end int32 // bytes of the text
	next       int32 // index of the first node after this one and its children
	kind       Kind
	escaped    bool // a string with a backslash in it
}

// Document is a JSON text that was read strictly: valid UTF-8 without lone surrogates, one value, not nested too
// deeply. Repeated fields are recorded, and the reader of their object reports them. Values are named by their index; 0
// is the whole text.
type Document struct {
	text  []byte
	nodes []node
	twice []int32 // indexes of keys that repeat a key of their object, ascending
}

// envelope is how many levels a body may have around a payload: jobs, the item, the payload, and what the http executor
// adds.
const envelope = 8

// maxNesting is where reading stops. The limit of a payload is checked with the payload.
const maxNesting = contract.MaxDepth + envelope

// Error is where and why a text is not valid. It has nothing of the text.
type Error struct {
	TooDeep bool // the text is valid so far, but values are nested too deeply
	At      int  // byte of the text
	Why     string
}

func (e *Error) Error() string { return e.Why }

// Read reads a JSON text in one pass. Its error is an *Error. The document keeps text.
func Read(text []byte) (*Document, error) {
	// Most values are longer than 16 bytes with their key. For a text like "[[[[" the slice grows.
	s := scanner{doc: &Document{text: text, nodes: make([]node, 0, len(text)/16+8)}}
	s.in = jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if err := s.value(); err != nil {
		return nil, faultOf(err, len(text))
	}
	end := int(s.in.InputOffset())
	if s.in.PeekKind() != 0 {
		end += len(text[end:]) - len(bytes.TrimLeft(text[end:], " \t\r\n"))
		return nil, &Error{false, end, "something follows the end of the JSON value"}
	}
	if _, err := s.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, faultOf(err, len(text))
	}
	return s.doc, nil
}

// faultOf turns an error of the decoder into a Error.
func faultOf(err error, length int) *Error {
	var is *Error
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &is):
		return is
	case errors.As(err, &syntactic) && !errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{false, int(syntactic.ByteOffset), unquoted(syntactic.Err.Error())}
	}
	return &Error{false, length, "the text ends before its JSON value does"}
}

// unquoted returns a decoder's reason without the bytes of an escape, which may be a payload's or a secret's. Of
// anything else it quotes one character at most.
func unquoted(why string) string {
	for _, of := range []string{"invalid escape sequence", "invalid surrogate pair"} {
		if strings.HasPrefix(why, of) {
			return of + " in string"
		}
	}
	return why
}

// scanner records the values that a decoder reads.
type scanner struct {
	in  *jsontext.Decoder
	doc *Document
}

// open records a node that begins length bytes before the decoder, and returns its index.
func (s *scanner) open(k Kind, length int) int {
	s.doc.nodes = append(s.doc.nodes, node{start: int32(s.in.InputOffset()) - int32(length), kind: k})
	return len(s.doc.nodes) - 1
}

func (s *scanner) close(index int) {
	n := &s.doc.nodes[index]
	n.end, n.next = int32(s.in.InputOffset()), int32(len(s.doc.nodes))
}

var kinds = map[jsontext.Kind]Kind{
	'n': KindNull, 't': KindBool, 'f': KindBool, '0': KindNumber, '"': KindString, '[': KindArray, '{': KindObject,
}

// value records the next value with its children.
func (s *scanner) value() error {
	k := s.in.PeekKind()
	if k != '{' && k != '[' {
		raw, err := s.in.ReadValue()
		if err != nil {
			return err
		}
		n := s.open(kinds[k], len(raw))
		s.doc.nodes[n].escaped = k == '"' && bytes.IndexByte(raw, '\\') >= 0
		s.close(n)
		return nil
	}
	if s.in.StackDepth() >= maxNesting {
		return &Error{true, int(s.in.InputOffset()),
			fmt.Sprintf("values are nested more than %d levels deep", contract.MaxDepth)}
	}
	if _, err := s.in.ReadToken(); err != nil {
		return err
	}
	n := s.open(kinds[k], 1)
	fields := names{doc: s.doc}
	for end := k + 2; s.in.PeekKind() != end; { // the code of "]" is that of "[" plus 2, and the same holds for braces
		key := len(s.doc.nodes)
		if err := s.value(); err != nil {
			return err
		}
		if k == '{' {
			fields.add(int32(key))
			if err := s.value(); err != nil {
				return err
			}
		}
	}
	if _, err := s.in.ReadToken(); err != nil {
		return err
	}
	s.close(n)
	return nil
}

// scannedFields is how many fields of an object are compared one by one before a map finds repeated ones.
const scannedFields = 16

// names finds the repeated fields of one object.
type names struct {
	doc   *Document
	keys  [scannedFields]int32
	count int
	seen  map[string]struct{}
}

func (f *names) add(key int32) {
	defer func() { f.count++ }()
	if f.count < scannedFields {
		for _, k := range f.keys[:f.count] {
			if f.doc.sameKey(k, key) {
				f.doc.twice = append(f.doc.twice, key)
				break
			}
		}
		f.keys[f.count] = key
		return
	}
	if f.seen == nil {
		f.seen = make(map[string]struct{}, 2*scannedFields)
		for _, k := range f.keys {
			f.seen[f.doc.Text(int(k))] = struct{}{}
		}
	}
	name := f.doc.Text(int(key))
	if _, repeated := f.seen[name]; repeated {
		f.doc.twice = append(f.doc.twice, key)
	}
	f.seen[name] = struct{}{}
}

func (d *Document) sameKey(a, b int32) bool {
	x, y := d.nodes[a], d.nodes[b]
	if !x.escaped && !y.escaped {
		return bytes.Equal(d.Raw(int(a)), d.Raw(int(b)))
	}
	return d.Text(int(a)) == d.Text(int(b))
}

// Raw returns the text of a value as it was written. The caller must not change it.
func (d *Document) Raw(n int) []byte { return d.text[d.nodes[n].start:d.nodes[n].end] }

// Compact returns the text of a value without white space between tokens.
func (d *Document) Compact(n int) []byte {
	raw := d.Raw(n)
	if !bytes.ContainsAny(raw, " \t\n\r") {
		return raw
	}
	short := jsontext.Value(bytes.Clone(raw))
	if err := short.Compact(jsontext.AllowDuplicateNames(true)); err != nil { // cannot happen: it was read before
		return raw
	}
	return short
}

// Text returns the content of the string at n.
func (d *Document) Text(n int) string {
	raw := d.Raw(n)
	if !d.nodes[n].escaped {
		return string(raw[1 : len(raw)-1])
	}
	plain, _ := jsontext.AppendUnquote(nil, raw) // cannot happen: it was read before
	return string(plain)
}

// Kind returns the kind of the value at n.
func (d *Document) Kind(n int) Kind { return d.nodes[n].kind }

// Size returns the length of the whole text in bytes.
func (d *Document) Size() int { return len(d.text) }

// Strings iterates over all strings at and below a value, with their indexes; names of fields are among them.
func (d *Document) Strings(n int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := n; i < int(d.nodes[n].next); i++ {
			if d.nodes[i].kind == KindString && !yield(i, d.Text(i)) {
				return
			}
		}
	}
}

// Depth returns how many levels of arrays and objects a value has; 0 for any other value.
func (d *Document) Depth(n int) int {
	deepest, level := 0, 0
	var ends []int32 // ends of the enclosing containers
	for i := n; i < int(d.nodes[n].next); i++ {
		for len(ends) > 0 && int32(i) >= ends[len(ends)-1] {
			ends, level = ends[:len(ends)-1], level-1
		}
		if k := d.nodes[i].kind; k == KindArray || k == KindObject {
			ends, level = append(ends, d.nodes[i].next), level+1
			deepest = max(deepest, level)
		}
	}
	return deepest
}

// Members iterates over the names and values of an object in their order; any other value has none.
func (d *Document) Members(n int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		if d.nodes[n].kind != KindObject {
			return
		}
		for i := n + 1; i < int(d.nodes[n].next); i = int(d.nodes[i+1].next) {
			if !yield(d.Text(i), i+1) {
				return
			}
		}
	}
}

// Elements iterates over the positions and values of an array; any other value has none.
func (d *Document) Elements(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		if d.nodes[n].kind != KindArray {
			return
		}
		index := 0
		for i := n + 1; i < int(d.nodes[n].next); i = int(d.nodes[i].next) {
			if !yield(index, i) {
				return
			}
			index++
		}
	}
}

// Pointer returns the JSON pointer of a node. The node may be the key of a field.
func (d *Document) Pointer(target int) string {
	pointer := ""
	for at, found := 0, true; at != target && found; {
		found = false
		for name, v := range d.Members(at) {
			if target == v-1 {
				return pointer + "/" + text.EscapePointer(name)
			}
			if v <= target && target < int(d.nodes[v].next) {
				pointer, at, found = pointer+"/"+text.EscapePointer(name), v, true
				break
			}
		}
		for index, v := range d.Elements(at) {
			if !found && v <= target && target < int(d.nodes[v].next) {
				pointer, at, found = pointer+"/"+strconv.Itoa(index), v, true
				break
			}
		}
	}
	return pointer
}

// Hash returns the SHA-256, in hex, of the meaning of a value. The order of fields, white space, escapes and the
// spelling of numbers do not matter. The field called without is left out at the top level; "" leaves out none.
func (d *Document) Hash(n int, without string) string {
	var b bytes.Buffer
	b.Grow(int(d.nodes[n].end - d.nodes[n].start))
	d.canonical(&b, n, without)
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

func (d *Document) canonical(b *bytes.Buffer, n int, without string) {
	switch d.nodes[n].kind {
	case KindObject:
		type member struct {
			name  string
			value int
		}
		var members []member
		for name, value := range d.Members(n) {
			if without == "" || name != without {
				members = append(members, member{name, value})
			}
		}
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		b.WriteByte('{')
		for _, m := range members {
			writeCounted(b, m.name)
			d.canonical(b, m.value, "")
		}
		b.WriteByte('}')
	case KindArray:
		b.WriteByte('[')
		for _, v := range d.Elements(n) {
			d.canonical(b, v, "")
		}
		b.WriteByte(']')
	case KindString:
		writeCounted(b, d.Text(n))
	case KindNumber:
		b.WriteString(text.CanonicalNumber(string(d.Raw(n))))
		b.WriteByte(';')
	default:
		b.Write(d.Raw(n))
	}
}

// writeCounted writes a string after its length, so that different lists of strings never give the same bytes.
func writeCounted(b *bytes.Buffer, s string) {
	b.WriteString(strconv.Itoa(len(s)))
	b.WriteByte('"')
	b.WriteString(s)
}

// Repeated returns the keys in a node that repeat a key of their object; nil if there are none.
func (d *Document) Repeated(n int) map[int32]bool {
	within := d.RepeatedIn(n)
	if len(within) == 0 {
		return nil
	}
	keys := make(map[int32]bool, len(within))
	for _, key := range within {
		keys[key] = true
	}
	return keys
}

// RepeatedIn is Repeated as a list, in the order of the text.
func (d *Document) RepeatedIn(n int) []int32 {
	from, _ := slices.BinarySearch(d.twice, int32(n+1))
	to, _ := slices.BinarySearch(d.twice, d.nodes[n].next)
	return d.twice[from:to]
}
