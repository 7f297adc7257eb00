package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"punctual/shared/text"
)

func TestRead_RefusesInvalidJSONWithItsPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		at   int
	}{
		{"", 0}, {" ", 1}, {"nul", 3}, {"NaN", 0}, {"Infinity", 0}, {"-Infinity", 1}, {"undefined", 0}, {"'a'", 0},
		{"+1", 0}, {".5", 0}, {"01", 1}, {"1.", 2}, {"1e", 2}, {"-", 1}, {"0x10", 1},
		{`{`, 1}, {`{"a"`, 4}, {`{"a":`, 5}, {`{"a":1`, 6}, {`{"a":1,`, 7}, {`{"a":1,}`, 6}, {`{,}`, 1}, {`{a:1}`, 1},
		{`{"a" 1}`, 5}, {`{"a":1 "b":2}`, 7},
		{`[`, 1}, {`[1`, 2}, {`[1,`, 3}, {`[1,]`, 2}, {`[,1]`, 1}, {`[1 2]`, 3},
		{`"a`, 2}, {"\"a\nb\"", 2}, {"\"\x00\"", 1}, {`"\x"`, 1}, {`"\u12g4"`, 1}, {`"\u12"`, 1}, {`"\`, 2},
		{`"\ud800"`, 1}, {`"\udc00"`, 1}, {`"\ud800\ud800"`, 1}, {`"\ud83dx"`, 1}, {`"\uD83D\n"`, 1},
		{"\"\xff\"", 1}, {"\"\xc3\"", 1}, {"\"\xed\xa0\x80\"", 1}, {"{\"\xfe\":1}", 2},
		{`{} {}`, 3}, {`1 2`, 2}, {`{}x`, 2}, {"\ufeff{}", 0}, {`/*x*/1`, 0}, {`1//x`, 1},
	} {
		_, err := Read([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q was taken (%v)", c.text, err)
			continue
		}
		if e.TooDeep || e.At != c.at {
			t.Errorf("%q: at %d, want %d (%s)", c.text, e.At, c.at, e.Why)
		}
	}
}

func TestDocument_ReadsTheEscapesOfStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"plain"`: "plain", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u0041\u00e9"`: "Aé",
		`"\ud83d\ude00!"`: "😀!",
		`"😀"`:             "😀", `"\u0000"`: "\x00", `""`: "",
	} {
		d, err := Read([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := d.Text(0); got != want {
			t.Errorf("%s reads as %q, want %q", text, got, want)
		}
	}
}

func TestRead_BoundsNesting(t *testing.T) {
	t.Parallel()
	for _, ends := range []string{"[]", "{}"} {
		nest := func(levels int) []byte {
			first := map[string]string{"[]": "[", "{}": `{"a":`}[ends]
			return []byte(strings.Repeat(first, levels) + "1" + strings.Repeat(ends[1:], levels))
		}
		if _, err := Read(nest(maxNesting)); err != nil {
			t.Errorf("%s: %d levels were refused: %v", ends, maxNesting, err)
		}
		var e *Error
		if _, err := Read(nest(maxNesting + 1)); !errors.As(err, &e) || !e.TooDeep {
			t.Errorf("%s: %d levels: %v", ends, maxNesting+1, err)
		}
		if _, err := Read(nest(1 << 20)); err == nil {
			t.Errorf("%s: a million levels were taken", ends)
		}
	}
}

func TestRead_FindsDuplicatesInAnySpelling(t *testing.T) {
	t.Parallel()
	many := func(extra string) string {
		var b strings.Builder
		b.WriteString(`{"n0":0`)
		for i := 1; i < 100; i++ {
			b.WriteString(`,"n` + strconv.Itoa(i) + `":0`)
		}
		return b.String() + extra + "}"
	}
	for text, want := range map[string][]string{
		`{"a":1,"a":2}`:      {"/a"},
		`{"a":1,"\u0061":2}`: {"/a"},
		`{"a":1,"A":2}`:      nil,
		`{"a":{"b":1,"b":1},"c":[{"x":{},"x":[]}]}`: {"/a/b", "/c/0/x"},
		`[{"a":1},{"a":1}]`:                         nil,
		`{"a":1,"a":1,"a":1}`:                       {"/a", "/a"},
		`{"a~/b":1,"a~/b":1}`:                       {"/a~0~1b"},
		many(""):                                    nil,
		many(`,"n3":1`):                             {"/n3"},
		many(`,"n\u0039\u0039":1,"n1":2`):           {"/n99", "/n1"},
	} {
		d, err := Read([]byte(text))
		if err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
		var got []string
		for _, n := range d.twice {
			got = append(got, d.Pointer(int(n)))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%.60s: %v, want %v", text, got, want)
		}
	}
}

func TestHash_IgnoresSpellingAndNothingElse(t *testing.T) {
	t.Parallel()
	hash := func(text string) string {
		d, err := Read([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return d.Hash(0, "key")
	}
	same := [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1 } `, `{"\u0061":1.0,"b":[true,null]}`,
			`{"a":10e-1,"b":[true,null],"key":"x"}`},
		{`0`, `-0`, `0.000`, `0e99`}, {`150`, `1.5e2`, `15E+1`, `150.0`, `0.0150e4`}, {`"é"`, `"\u00e9"`},
		{`-1e-3`, `-0.001`},
	}
	seen := map[string]string{}
	for _, group := range same {
		for _, text := range group {
			if hash(text) != hash(group[0]) {
				t.Errorf("%s and %s differ", text, group[0])
			}
		}
		seen[hash(group[0])] = group[0]
	}
	for _, text := range []string{
		`{"a":1,"b":[null,true]}`, `{"a":"1","b":[true,null]}`, `{"a":1,"b":[true,null],"c":{}}`, `{"a":{"key":1}}`,
		`{"a":{}}`, `{}`, `[]`, `[[]]`, `[[],[]]`, `["",""]`, `["ab","c"]`, `["a","bc"]`,
		`9007199254740993`, `9007199254740992`, `1e400`, `1e401`, `-1`, `1`, `true`, `"true"`, `null`, `"1"`,
		`"1e0;"`, `15`, `{"a":1,"b":2}`, `{"a":2,"b":1}`,
	} {
		if other, clash := seen[hash(text)]; clash {
			t.Errorf("%s and %s are taken for the same", text, other)
		}
		seen[hash(text)] = text
	}
}

func TestNearest_FindsTheNameThatWasMeant(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"Task": "task", "taks": "task", "priorty": "priority",
		"runAt": "run_at", "payloads": "payload", "x": "", "something": "", "": ""} {
		if got := text.Nearest(word, []string{"task", "payload", "run_at", "delay", "priority", "pool"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// Whatever encoding/json accepts is accepted, except what is refused on purpose. An accepted text means the same.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"task":"echo","payload":{"a":[1,-2.5e3,true,null,"\ud83d\ude00\u0000"]}}`, `{"a":1,"a":2}`, `[[[]]]`,
		`"\ud800"`, "\"\xff\"", ` { } `, `-0.0e-0`, `{"":{"":""}}`, `[1,]`, "\ufeff1", `1 2`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Read(bytes.Clone(text))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.At < 0 || e.At > len(text) {
				t.Fatalf("an error without a position: %v", err)
			}
			if json.Valid(text) && utf8.Valid(text) && !e.TooDeep &&
				!strings.Contains(e.Why, "surrogate") {
				t.Fatalf("refused what is JSON: %q: %v", text, err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatalf("took what is no JSON: %q", text)
		}
		if len(d.twice) > 0 {
			return // encoding/json takes the last one
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := d.decoded(0); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q reads as %#v, want %#v", text, got, want)
		}
		if compact := d.Compact(0); !json.Valid(compact) || len(compact) > len(text) {
			t.Fatalf("%q made compact is %q", text, compact)
		}
		compact, err := Read(d.Compact(0))
		if err != nil || compact.Hash(0, "") != d.Hash(0, "") {
			t.Fatalf("%q made compact says something else", text)
		}
	})
}

func FuzzCanonicalNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0.10e1", "123.4500e-7", "1e9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Read([]byte(s))
		if err != nil || d.nodes[0].kind != KindNumber || len(s) > 12 || strings.ContainsAny(s, " \t\r\n") {
			return
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 4 {
			return // too large to compute here
		}
		got, ok := new(big.Rat).SetString(text.CanonicalNumber(s))
		want, ok2 := new(big.Rat).SetString(s)
		if !ok || !ok2 || got.Cmp(want) != 0 {
			t.Fatalf("%s is written as %s", s, text.CanonicalNumber(s))
		}
	})
}

// decoded returns a node in the form of encoding/json.
func (d *Document) decoded(n int) any {
	switch d.nodes[n].kind {
	case KindObject:
		m := map[string]any{}
		for name, v := range d.Members(n) {
			m[name] = d.decoded(v)
		}
		return m
	case KindArray:
		list := []any{}
		for _, v := range d.Elements(n) {
			list = append(list, d.decoded(v))
		}
		return list
	case KindString:
		return d.Text(n)
	case KindNumber:
		return json.Number(d.Raw(n))
	case KindBool:
		return d.Raw(n)[0] == 't'
	}
	return nil
}

func BenchmarkReadBatchOf100(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"jobs":[`)
	for i := range 100 {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(`{"task":"echo","payload":{"n":` + strconv.Itoa(i) +
			`,"text":"some words of a payload"},"priority":"high","delay":"5s"}`)
	}
	text.WriteString(`]}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read([]byte(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRead_QuotesNothingOfABrokenEscape(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"a":"\ud800hunter2"}`, `{"a":"\ud800\uhunter2"}`, `{"a":"\ud800\u0041unter2"}`, `{"a":"\uhunter2"}`,
		`{"a":"\hunter2"}`, `{"\udc00hunter2":1}`, `{"a":"\ud800hun`, `{"a":"\ud800 hu` + "\u00e9" + `nter2"}`,
	} {
		_, err := Read([]byte(text))
		if err == nil {
			t.Errorf("%s is read", text)
			continue
		}
		if why := err.Error(); strings.Contains(why, "hu") || strings.ContainsAny(why, "`\\") {
			t.Errorf("%s: %s", text, why)
		}
	}
}
