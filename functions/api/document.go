package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"punctual/shared/contract"
)

// kind is what a JSON value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is one value of a document. Children follow their parent; an object's are a key and a
// value in turn.
type node struct {
	start, end int32 // bytes of the text
	next       int32 // index of the node after this one and all that it holds
	kind       kind
	escaped    bool // a string with a backslash in it
}

// document is a JSON text that was read strictly: valid UTF-8 without lone surrogates, exactly
// one value, not nested too deeply. Duplicate fields are noted, not refused, so that each
// reader can blame the part that they stand in.
type document struct {
	text  []byte
	nodes []node
	twice []int32 // indexes of keys that repeat one of the same object, ascending
}

// envelope is how deep a payload may lie in a body: jobs, the item, payload, and what http adds.
const envelope = 8

// maxNesting stops the reader; a payload's own limit is looked at where the payload is read.
const maxNesting = contract.MaxDepth + envelope

// syntaxError says where and why a text is not what we read. It holds nothing of the text.
type syntaxError struct {
	code string // of the catalogue
	at   int
	why  string
}

func (e *syntaxError) Error() string { return e.why }

// readDocument reads a JSON text in one pass. The error is a *syntaxError. The document goes on
// using text.
func readDocument(text []byte) (*document, error) {
	// Most values are longer than 16 bytes with their key; a text of "[[[[" grows this as needed.
	s := scanner{doc: &document{text: text, nodes: make([]node, 0, len(text)/16+8)}}
	s.in = jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if err := s.value(); err != nil {
		return nil, faultOf(err, len(text))
	}
	end := int(s.in.InputOffset())
	if s.in.PeekKind() != 0 {
		end += len(text[end:]) - len(bytes.TrimLeft(text[end:], " \t\r\n"))
		return nil, &syntaxError{codeInvalidJSON, end, "something follows the end of the JSON value"}
	}
	if _, err := s.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, faultOf(err, len(text))
	}
	return s.doc, nil
}

// faultOf is an error of the decoder in our words.
func faultOf(err error, length int) *syntaxError {
	var is *syntaxError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &is):
		return is
	case errors.As(err, &syntactic) && !errors.Is(err, io.ErrUnexpectedEOF):
		return &syntaxError{codeInvalidJSON, int(syntactic.ByteOffset), syntactic.Err.Error()}
	}
	return &syntaxError{codeInvalidJSON, length, "the text ends before its JSON value does"}
}

// scanner notes the values that a decoder passes.
type scanner struct {
	in  *jsontext.Decoder
	doc *document
}

// open starts a node that begins so many bytes before where the decoder is, and returns its index.
func (s *scanner) open(k kind, length int) int {
	s.doc.nodes = append(s.doc.nodes, node{start: int32(s.in.InputOffset()) - int32(length), kind: k})
	return len(s.doc.nodes) - 1
}

func (s *scanner) close(index int) {
	n := &s.doc.nodes[index]
	n.end, n.next = int32(s.in.InputOffset()), int32(len(s.doc.nodes))
}

var kinds = map[jsontext.Kind]kind{
	'n': kindNull, 't': kindBool, 'f': kindBool, '0': kindNumber, '"': kindString, '[': kindArray, '{': kindObject,
}

// value notes the next value with all that it holds.
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
		return &syntaxError{codeOutOfRange, int(s.in.InputOffset()), fmt.Sprintf("values are nested more than %d levels deep", contract.MaxDepth)}
	}
	if _, err := s.in.ReadToken(); err != nil {
		return err
	}
	n := s.open(kinds[k], 1)
	fields := names{doc: s.doc}
	for end := k + 2; s.in.PeekKind() != end; { // "[" and "]" stand two apart, and so do the braces
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

// few is how many fields an object may have before a map pays for finding duplicates.
const few = 16

// names finds the fields of one object that repeat an earlier one.
type names struct {
	doc   *document
	keys  [few]int32
	count int
	seen  map[string]struct{}
}

func (f *names) add(key int32) {
	defer func() { f.count++ }()
	if f.count < few {
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
		f.seen = make(map[string]struct{}, 2*few)
		for _, k := range f.keys {
			f.seen[f.doc.string(int(k))] = struct{}{}
		}
	}
	name := f.doc.string(int(key))
	if _, again := f.seen[name]; again {
		f.doc.twice = append(f.doc.twice, key)
	}
	f.seen[name] = struct{}{}
}

func (d *document) sameKey(a, b int32) bool {
	x, y := d.nodes[a], d.nodes[b]
	if !x.escaped && !y.escaped {
		return bytes.Equal(d.raw(int(a)), d.raw(int(b)))
	}
	return d.string(int(a)) == d.string(int(b))
}

// raw is the text of a value as it was written.
func (d *document) raw(n int) []byte { return d.text[d.nodes[n].start:d.nodes[n].end] }

// compact is the text of a value without white space between its parts.
func (d *document) compact(n int) []byte {
	raw := d.raw(n)
	if !bytes.ContainsAny(raw, " \t\n\r") {
		return raw
	}
	short := jsontext.Value(bytes.Clone(raw))
	if err := short.Compact(jsontext.AllowDuplicateNames(true)); err != nil { // it was read, so it can be read
		return raw
	}
	return short
}

// string is the value of a string node.
func (d *document) string(n int) string {
	raw := d.raw(n)
	if !d.nodes[n].escaped {
		return string(raw[1 : len(raw)-1])
	}
	plain, _ := jsontext.AppendUnquote(nil, raw) // it was read, so it can be read
	return string(plain)
}

// members iterates over an object's fields in their order.
func (d *document) members(n int) func(yield func(name string, value int) bool) {
	return func(yield func(string, int) bool) {
		if d.nodes[n].kind != kindObject {
			return
		}
		for i := n + 1; i < int(d.nodes[n].next); i = int(d.nodes[i+1].next) {
			if !yield(d.string(i), i+1) {
				return
			}
		}
	}
}

// elements iterates over an array's values.
func (d *document) elements(n int) func(yield func(index, value int) bool) {
	return func(yield func(int, int) bool) {
		if d.nodes[n].kind != kindArray {
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

// pointer is the JSON pointer of a node, or of the field of which it is the key.
func (d *document) pointer(target int) string {
	var b strings.Builder
	at := 0
	for at != target {
		found := false
		switch d.nodes[at].kind {
		case kindObject:
			for i := at + 1; i < int(d.nodes[at].next); i = int(d.nodes[i+1].next) {
				if target == i || i < target && target < int(d.nodes[i+1].next) {
					b.WriteString("/" + escapePointer(d.string(i)))
					if target == i {
						return b.String()
					}
					at, found = i+1, true
					break
				}
			}
		case kindArray:
			for index, v := range d.elements(at) {
				if v <= target && target < int(d.nodes[v].next) {
					fmt.Fprintf(&b, "/%d", index)
					at, found = v, true
					break
				}
			}
		}
		if !found {
			break
		}
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// lookedAt is how much of a long name is looked at before its beginning is shown: more than any
// token that begins there needs to be known.
const lookedAt = 512

// escapePointer writes a name as a part of a JSON pointer. Names come from strangers: long ones
// are cut, and one that looks like a secret is not shown.
func escapePointer(name string) string {
	const limit = 128
	switch {
	case tokenShaped(name[:min(len(name), lookedAt)]):
		return "…"
	case len(name) > limit:
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return pointerEscapes.Replace(name)
}
