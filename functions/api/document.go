package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

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
	spaced     bool // white space stands between the bytes of this value
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
	s := scanner{text: text, doc: &document{text: text, nodes: make([]node, 0, len(text)/16+8)}}
	if !utf8.Valid(text) {
		return nil, &syntaxError{codeInvalidJSON, invalidAt(text), "the text is not valid UTF-8"}
	}
	s.space()
	if err := s.value(1); err != nil {
		return nil, err
	}
	s.space()
	if s.at < len(text) {
		return nil, s.fail("something follows the end of the JSON value")
	}
	return s.doc, nil
}

func invalidAt(text []byte) int {
	at := 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at
}

type scanner struct {
	text   []byte
	at     int
	spaces int // bytes of white space passed so far
	doc    *document
}

func (s *scanner) fail(why string) error {
	return &syntaxError{codeInvalidJSON, s.at, why}
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
			s.spaces++
		default:
			return
		}
	}
}

// open starts a node and returns its index.
func (s *scanner) open(k kind) int {
	s.doc.nodes = append(s.doc.nodes, node{start: int32(s.at), kind: k})
	return len(s.doc.nodes) - 1
}

func (s *scanner) close(index int) {
	n := &s.doc.nodes[index]
	n.end, n.next = int32(s.at), int32(len(s.doc.nodes))
}

func (s *scanner) value(depth int) error {
	if s.at >= len(s.text) {
		return s.fail("the text ends where a value should begin")
	}
	switch c := s.text[s.at]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.str()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true", kindBool)
	case c == 'f':
		return s.word("false", kindBool)
	case c == 'n':
		return s.word("null", kindNull)
	}
	return s.fail("a value should begin here")
}

func (s *scanner) word(word string, k kind) error {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return s.fail("a value should begin here")
	}
	n := s.open(k)
	s.at += len(word)
	s.close(n)
	return nil
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scanner) number() error {
	n := s.open(kindNumber)
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return s.fail("a number needs digits here")
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return s.fail("a number needs digits after its point")
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return s.fail("a number needs digits in its exponent")
		}
	}
	s.close(n)
	return nil
}

func (s *scanner) str() error {
	n := s.open(kindString)
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			s.close(n)
			return nil
		case c < 0x20:
			return s.fail("a control character stands in a string; write it as an escape")
		case c != '\\':
			s.at++
		default:
			s.doc.nodes[n].escaped = true
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.fail("the text ends inside a string")
}

func (s *scanner) escape() error {
	if s.at+1 >= len(s.text) {
		return s.fail("the text ends inside a string")
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return nil
	case 'u':
		u, ok := hex4(s.text, s.at)
		if !ok {
			return s.fail(`\u needs four hexadecimal digits`)
		}
		if 0xD800 <= u && u < 0xE000 { // half of a pair: only a high one with its low one is a character
			low, ok := hex4(s.text, s.at+6)
			if u >= 0xDC00 || !ok || low < 0xDC00 || low >= 0xE000 {
				return s.fail("a lone surrogate is no character")
			}
			s.at += 6
		}
		s.at += 6
		return nil
	}
	return s.fail("no such escape")
}

// hex4 reads the \uXXXX at that place.
func hex4(text []byte, at int) (rune, bool) {
	if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range text[at+2 : at+6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) deeper(depth int) error {
	if depth > maxNesting {
		return &syntaxError{codeOutOfRange, s.at, fmt.Sprintf("values are nested more than %d levels deep", contract.MaxDepth)}
	}
	return nil
}

func (s *scanner) array(depth int) error {
	if err := s.deeper(depth); err != nil {
		return err
	}
	n, spaces := s.open(kindArray), s.spaces
	s.at++
	s.space()
	for first := true; ; first = false {
		switch {
		case s.at >= len(s.text):
			return s.fail("the text ends inside an array")
		case s.text[s.at] == ']' && first:
		default:
			if err := s.value(depth + 1); err != nil {
				return err
			}
			s.space()
		}
		done, err := s.separator(']', "an array")
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	s.doc.nodes[n].spaced = s.spaces > spaces
	s.close(n)
	return nil
}

// separator passes a comma, or the end of what is being read.
func (s *scanner) separator(end byte, of string) (done bool, err error) {
	switch {
	case s.at >= len(s.text):
		return false, s.fail("the text ends inside " + of)
	case s.text[s.at] == end:
		s.at++
		return true, nil
	case s.text[s.at] == ',':
		s.at++
		s.space()
		return false, nil
	}
	return false, s.fail("a comma or the end of " + of + " should stand here")
}

// few is how many fields an object may have before a map pays for finding duplicates.
const few = 16

func (s *scanner) object(depth int) error {
	if err := s.deeper(depth); err != nil {
		return err
	}
	n, spaces := s.open(kindObject), s.spaces
	s.at++
	s.space()
	var keys [few]int32
	var seen map[string]struct{}
	for count := 0; ; count++ {
		switch {
		case s.at >= len(s.text):
			return s.fail("the text ends inside an object")
		case s.text[s.at] == '}' && count == 0:
		case s.text[s.at] != '"':
			return s.fail("the name of a field should stand here, in double quotes")
		default:
			key := int32(len(s.doc.nodes))
			if err := s.str(); err != nil {
				return err
			}
			if count < few {
				for _, k := range keys[:count] {
					if s.sameKey(k, key) {
						s.doc.twice = append(s.doc.twice, key)
						break
					}
				}
				keys[count] = key
			} else {
				if seen == nil {
					seen = make(map[string]struct{}, 2*few)
					for _, k := range keys {
						seen[s.doc.string(int(k))] = struct{}{}
					}
				}
				name := s.doc.string(int(key))
				if _, again := seen[name]; again {
					s.doc.twice = append(s.doc.twice, key)
				}
				seen[name] = struct{}{}
			}
			s.space()
			if s.at >= len(s.text) || s.text[s.at] != ':' {
				return s.fail("a colon should follow the name of a field")
			}
			s.at++
			s.space()
			if err := s.value(depth + 1); err != nil {
				return err
			}
			s.space()
		}
		done, err := s.separator('}', "an object")
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	s.doc.nodes[n].spaced = s.spaces > spaces
	s.close(n)
	return nil
}

func (s *scanner) sameKey(a, b int32) bool {
	x, y := s.doc.nodes[a], s.doc.nodes[b]
	if !x.escaped && !y.escaped {
		return bytes.Equal(s.text[x.start:x.end], s.text[y.start:y.end])
	}
	return s.doc.string(int(a)) == s.doc.string(int(b))
}

// raw is the text of a value as it was written.
func (d *document) raw(n int) []byte { return d.text[d.nodes[n].start:d.nodes[n].end] }

// compact is the text of a value without white space between its parts.
func (d *document) compact(n int) []byte {
	if !d.nodes[n].spaced {
		return d.raw(n)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, d.raw(n)); err != nil { // what we took, encoding/json takes
		return d.raw(n)
	}
	return b.Bytes()
}

// string is the value of a string node.
func (d *document) string(n int) string {
	raw := d.raw(n)
	raw = raw[1 : len(raw)-1]
	if !d.nodes[n].escaped {
		return string(raw)
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, _ := hex4(raw, i-1)
			if 0xD800 <= r && r < 0xDC00 {
				low, _ := hex4(raw, i+5)
				r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
				i += 6
			}
			b.WriteRune(r)
			i += 4
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
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
