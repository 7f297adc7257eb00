package text

import (
	"bytes"
	"encoding/json"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encoding is an encoder with its buffer. It is pooled: three out of four allocations of an encoding are theirs.
type encoding struct {
	to  bytes.Buffer
	enc *json.Encoder
}

var encodings = sync.Pool{New: func() any {
	e := new(encoding)
	e.enc = json.NewEncoder(&e.to)
	e.enc.SetEscapeHTML(false) // would make markup six times as long
	return e
}}

// maxPooled is the largest buffer, in bytes, that is kept for the next encoding.
const maxPooled = 64 << 10

// JSON encodes v in a form that can be stored and sent. It fails only where encoding/json does.
func JSON(v any) ([]byte, error) {
	e := encodings.Get().(*encoding)
	e.to.Reset()
	if err := e.enc.Encode(v); err != nil { // the encoder may remember it
		return nil, err
	}
	b := Sendable(bytes.Clone(bytes.TrimSuffix(e.to.Bytes(), []byte("\n"))))
	if e.to.Cap() <= maxPooled {
		encodings.Put(e)
	}
	return b, nil
}

// MustJSON is JSON for values that cannot fail: strings, numbers, times and structs of these. It
// panics on others.
func MustJSON(v any) []byte {
	b, err := JSON(v)
	if err != nil {
		panic("encoding a value that cannot fail: " + err.Error())
	}
	return b
}

// Read reads into v what JSON wrote. It is as lenient as encoding/json, which takes twice as long, but for names in
// another case.
func Read(b []byte, v any) error {
	return jsonv2.Unmarshal(b, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Sendable returns the valid JSON b with the same values, but without the characters that SQS
// refuses: U+FFFE and U+FFFF are escaped. A byte that is not UTF-8 becomes U+FFFD, as every JSON
// reader would read it. Valid JSON has no raw control characters, and surrogates only as escapes,
// which can be sent.
func Sendable(b []byte) []byte {
	at := unsendable(b)
	if at < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)+16), b[:at]...)
	for _, r := range string(b[at:]) { // an invalid byte is U+FFFD
		switch r {
		case '\uFFFE':
			out = append(out, `\ufffe`...)
		case '\uFFFF':
			out = append(out, `\uffff`...)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// unsendable returns the index of the first byte that must change; -1 if there is none, as in most
// texts.
func unsendable(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == '\uFFFE' || r == '\uFFFF' || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// Allowed reports whether SQS accepts the body: it is not empty, it is UTF-8, and every character
// is U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD or U+10000 to U+10FFFF.
func Allowed(body string) bool {
	if body == "" || !utf8.ValidString(body) { // surrogates are not valid
		return false
	}
	for _, r := range body {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}
