package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/shared/item"
	"punctual/shared/text"
)

// The body of a record of format 3 is its facts, one after the other: a letter for the kind of a fact, then its values.
// A number is written in decimal digits and ends with a semicolon. A text is its length in bytes, a colon and its
// bytes.
//
//	r4:jobs6:acme#17:01J…3;2:pk6:acme#1…
//
// No byte of a body is below a space: a text with such a byte has an exclamation mark for the colon, and is escaped.
// So a line feed ends a record, and a reader finds the next record whatever the bytes before it are. A fact that is
// written once in a file is JSON, as in the formats before: each version can say which format it does not read.
const (
	rowKind     = 'r'
	removedKind = 'd' // of a row
	changeKind  = 'c'
	readKind    = 'h'
	messageKind = 'm'
	timerKind   = 't'
	firedKind   = 'f' // of a timer
	blobKind    = 'b'
	goneKind    = 'g' // of a blob
)

// What is set in a message's fact.
const (
	messageGone = 1 << iota
	messageSent
	messageVisible
)

// encoded appends the body of a record to b.
func encoded(b []byte, facts []kept) ([]byte, error) {
	for _, k := range facts {
		switch {
		case k.Row != nil && k.Row.Item == nil:
			b = putTexts(append(b, removedKind), k.Row.Table, k.Row.PK, k.Row.SK)
		case k.Row != nil:
			b = putItem(putTexts(append(b, rowKind), k.Row.Table, k.Row.PK, k.Row.SK), k.Row.Item)
		case k.Change != nil:
			b = putItem(putItem(putTime(append(b, changeKind), k.Change.At), k.Change.Old), k.Change.Next)
		case k.Read > 0:
			b = putNumber(append(b, readKind), k.Read)
		case k.Message != nil:
			b = putMessage(append(b, messageKind), k.Message)
		case k.Timer != nil && k.Timer.At == nil:
			b = putText(append(b, firedKind), k.Timer.Name)
		case k.Timer != nil:
			b = putTime(putTexts(append(b, timerKind), k.Timer.Name, k.Timer.Body), *k.Timer.At)
			b = putNumber(b, int64(k.Timer.MaxAge))
		case k.Blob != nil && k.Blob.Gone:
			b = putText(append(b, goneKind), k.Blob.Key)
		case k.Blob != nil:
			b = putText(putText(append(b, blobKind), k.Blob.Key), string(k.Blob.Body))
		case len(facts) > 1:
			return nil, fmt.Errorf("writing %+v: it is a record of its own", k)
		default:
			return text.JSON(facts)
		}
	}
	return b, nil
}

func putNumber(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 10), ';') }

// putTime keeps the instant, not the zone.
func putTime(b []byte, t time.Time) []byte {
	return putNumber(putNumber(b, t.Unix()), int64(t.Nanosecond()))
}

func putText(b []byte, s string) []byte {
	mark := byte(':')
	for n := range len(s) {
		if s[n] < ' ' {
			s, mark = escape(s), '!'
			break
		}
	}
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), mark), s...)
}

func putTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = putText(b, s)
	}
	return b
}

// putItem writes the number of attributes, -1 for no item, and each attribute.
func putItem(b []byte, i keptItem) []byte {
	if i == nil {
		return putNumber(b, -1)
	}
	b = putNumber(b, int64(len(i)))
	for name, v := range i {
		b = putText(b, name)
		switch v := v.(type) {
		case string:
			b = putText(b, v)
		case int64:
			b = putNumber(b, v)
		default:
			panic(fmt.Sprintf("attribute %s is a %T, which no table takes", name, v))
		}
	}
	return b
}

func putMessage(b []byte, m *keptMessage) []byte {
	set := int64(0)
	if m.Gone {
		set |= messageGone
	}
	if m.Sent != nil {
		set |= messageSent
	}
	if m.Visible != nil {
		set |= messageVisible
	}
	b = putNumber(putTexts(b, m.Queue, m.ID), set)
	if m.Gone {
		return b
	}
	b = putNumber(putTexts(b, m.Body, m.Group, m.Source), int64(m.Receives))
	if m.Sent != nil {
		b = putTime(b, *m.Sent)
	}
	if m.Visible != nil {
		b = putTime(b, *m.Visible)
	}
	return b
}

// escapeByte precedes an escaped byte: one below a space, or itself.
const escapeByte = 0x7f

func escape(s string) string {
	b := make([]byte, 0, len(s)+len(s)/8)
	for n := range len(s) {
		if s[n] < ' ' || s[n] == escapeByte {
			b = append(b, escapeByte, s[n]^0x40)
			continue
		}
		b = append(b, s[n])
	}
	return string(b)
}

func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for n := 0; n < len(s); n++ {
		if s[n] == escapeByte && n+1 < len(s) {
			n++
			b = append(b, s[n]^0x40)
			continue
		}
		b = append(b, s[n])
	}
	return string(b)
}

// decoder reads bodies of records. After an error it returns zero values.
type decoder struct {
	text string // what is left
	err  error
	// names are the names of attributes and tables that were read: each is kept once, however many items have it.
	names map[string]string
}

var errBody = errors.New("its facts cannot be read")

// decode returns the facts of a body.
func (d *decoder) decode(body []byte) (facts []kept, err error) {
	if bytes.HasPrefix(body, []byte{'['}) {
		err = json.Unmarshal(body, &facts)
		return facts, err
	}
	for d.text, d.err = string(body), nil; d.text != "" && d.err == nil; {
		facts = append(facts, d.fact())
	}
	if d.err != nil {
		return nil, d.err
	}
	return facts, nil
}

func (d *decoder) fact() kept {
	kind := d.text[0]
	d.text = d.text[1:]
	switch kind {
	case rowKind:
		return kept{Row: &keptRow{Table: d.name(), PK: d.string(), SK: d.string(), Item: d.item()}}
	case removedKind:
		return kept{Row: &keptRow{Table: d.name(), PK: d.string(), SK: d.string()}}
	case changeKind:
		return kept{Change: &keptChange{At: d.time(), Old: d.item(), Next: d.item()}}
	case readKind:
		return kept{Read: d.number()}
	case messageKind:
		return kept{Message: d.message()}
	case timerKind:
		t := &keptTimer{Name: d.string(), Body: d.string()}
		at := d.time()
		t.At, t.MaxAge = &at, time.Duration(d.number())
		return kept{Timer: t}
	case firedKind:
		return kept{Timer: &keptTimer{Name: d.string()}}
	case blobKind:
		return kept{Blob: &keptBlob{Key: d.string(), Body: []byte(d.string())}}
	case goneKind:
		return kept{Blob: &keptBlob{Key: d.string(), Gone: true}}
	}
	d.err = errBody
	return kept{}
}

func (d *decoder) message() *keptMessage {
	m := &keptMessage{Queue: d.name(), ID: d.string()}
	set := d.number()
	if m.Gone = set&messageGone != 0; m.Gone {
		return m
	}
	m.Body, m.Group, m.Source, m.Receives = d.string(), d.string(), d.string(), int(d.number())
	if set&messageSent != 0 {
		at := d.time()
		m.Sent = &at
	}
	if set&messageVisible != 0 {
		at := d.time()
		m.Visible = &at
	}
	return m
}

func (d *decoder) item() keptItem {
	n := d.number()
	if n > int64(len(d.text)) { // each attribute takes more than a byte
		d.err = errBody
	}
	if n < 0 || d.err != nil {
		return nil
	}
	i := make(item.Item, n)
	for range n {
		name := d.name()
		if v := d.value(); d.err == nil {
			i[name] = v
		}
	}
	return keptItem(i)
}

// value reads a text or a number.
func (d *decoder) value() any {
	n, mark := d.lead()
	if mark == ';' {
		return n
	}
	return d.rest(n, mark)
}

func (d *decoder) number() int64 {
	n, mark := d.lead()
	if mark != ';' {
		d.err = errBody
	}
	return n
}

func (d *decoder) string() string { return d.rest(d.lead()) }

// name is a text that many records have.
func (d *decoder) name() string {
	s := d.string()
	known, ok := d.names[s]
	if !ok {
		known = strings.Clone(s)
		d.names[known] = known
	}
	return known
}

func (d *decoder) time() time.Time { return time.Unix(d.number(), d.number()).UTC() }

// lead reads decimal digits and the mark that ends them.
func (d *decoder) lead() (n int64, mark byte) {
	const longest = 20 // of a number, with its sign
	at := 0
	for at < min(len(d.text), longest) && (d.text[at] == '-' || '0' <= d.text[at] && d.text[at] <= '9') {
		at++
	}
	n, err := strconv.ParseInt(d.text[:at], 10, 64)
	if at == len(d.text) || err != nil || d.err != nil {
		d.err, d.text = errBody, ""
		return 0, 0
	}
	mark = d.text[at]
	d.text = d.text[at+1:]
	return n, mark
}

// rest reads the bytes of a text.
func (d *decoder) rest(n int64, mark byte) string {
	if n < 0 || n > int64(len(d.text)) || mark != ':' && mark != '!' || d.err != nil {
		d.err, d.text = errBody, ""
		return ""
	}
	s := d.text[:n]
	d.text = d.text[n:]
	if mark == '!' {
		return unescape(s)
	}
	return s
}
