package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"punctual/shared/text"
)

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
