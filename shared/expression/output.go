package expression

import (
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"punctual/shared/text"
)

// ErrTooLong says that a value is longer than its bound.
var ErrTooLong = errors.New("it is too long")

var (
	errNoJSON     = errors.New("it gives something that JSON does not have")
	errJSONNumber = errors.New("it gives a number that JSON does not have")
)

// AppendJSON appends a value as JSON to b, in at most that many bytes; else the error is ErrTooLong. Another error says
// that JSON has no such value.
func AppendJSON(b []byte, v any, most int) ([]byte, error) {
	w := &output{out: b, left: most}
	err := w.value(v)
	return w.out, err
}

// Text returns a value as it is written inside a longer text, in at most that many bytes.
func Text(v any, most int) (string, error) {
	w := &output{left: most}
	switch v := v.(type) {
	case types.String:
		if len(v) > most {
			return "", ErrTooLong
		}
		return string(v), nil
	case types.Double:
		return plainDouble(v)
	case *Number:
		return v.plainText(), nil
	}
	err := w.value(v)
	return string(w.out), err
}

// plainText returns the number as a double is written inside a text, unless that would lose a digit.
func (n *Number) plainText() string {
	if d, ok := n.value.(types.Double); ok {
		if s, err := plainDouble(d); err == nil && sameNumber(s, n.text) {
			return s
		}
	}
	return n.text
}

// sameNumber reports whether two JSON numbers are equal digit by digit.
func sameNumber(a, b string) bool {
	digits, exponent := significant(a)
	others, other := significant(b)
	return digits == others && (exponent == other || digits == "")
}

// significant returns the digits of a JSON number without zeros at both ends, with its sign, and the power of ten of
// the last digit.
func significant(s string) (digits string, exponent int) {
	s, sign := strings.CutPrefix(s, "-")
	if mantissa, e, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		s = mantissa
		exponent, _ = strconv.Atoi(e)
	}
	whole, fraction, _ := strings.Cut(s, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if sign && short != "" {
		short = "-" + short
	}
	return short, exponent
}

// output writes JSON up to a bound.
type output struct {
	out  []byte
	left int
}

func (w *output) raw(s string) error {
	if w.left -= len(s); w.left < 0 {
		return ErrTooLong
	}
	w.out = append(w.out, s...)
	return nil
}

func (w *output) string(s string) error {
	if len(s) > w.left {
		return ErrTooLong
	}
	return w.raw(string(text.MustJSON(s)))
}

func (w *output) value(v any) error {
	switch v := v.(type) {
	case Null:
		return w.raw("null")
	case types.Bool:
		return w.raw(strconv.FormatBool(bool(v)))
	case types.Int:
		return w.raw(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return w.raw(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		s, err := w.double(v)
		if err != nil {
			return err
		}
		return w.raw(s)
	case *Number:
		return w.raw(v.text)
	case types.String:
		return w.string(string(v))
	case types.Bytes:
		if len(v) > w.left {
			return ErrTooLong
		}
		return w.string(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		return w.string(v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return w.string(v.Duration.String())
	case *List:
		return w.list(v)
	case *Map:
		return w.mapping(v)
	}
	return errNoJSON
}

// double returns a double as JSON. A whole one keeps a fraction, so that it is a double for who reads it next.
func (w *output) double(v types.Double) (string, error) {
	s, err := plainDouble(v)
	if err == nil && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s, err
}

// plainDouble returns a double as JSON, whole ones without a fraction.
func plainDouble(v types.Double) (string, error) {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", errJSONNumber
	}
	return string(text.MustJSON(f)), nil
}

func (w *output) list(l *List) error {
	if err := w.raw("["); err != nil {
		return err
	}
	for i, v := range l.items {
		if i > 0 {
			if err := w.raw(","); err != nil {
				return err
			}
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	return w.raw("]")
}

func (w *output) mapping(m *Map) error {
	if m.Len() > w.left {
		return ErrTooLong
	}
	fields := m.fields
	if len(m.others) > 0 {
		fields = slices.Clone(fields)
		for _, k := range m.keys()[len(fields):] {
			fields = append(fields, field{keyText(k), m.others[k]})
		}
		slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	}
	if err := w.raw("{"); err != nil {
		return err
	}
	for i, f := range fields {
		if i > 0 {
			if err := w.raw(","); err != nil {
				return err
			}
		}
		if err := w.string(f.name); err != nil {
			return err
		}
		if err := w.raw(":"); err != nil {
			return err
		}
		if err := w.value(f.value); err != nil {
			return err
		}
	}
	return w.raw("}")
}
