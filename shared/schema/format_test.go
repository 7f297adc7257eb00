package schema

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCache_ChecksFormats(t *testing.T) {
	t.Parallel()
	c := NewCache()
	wrong := map[string]string{"email": "a b", "regex": "(", "uuid": "x", "json-pointer": "a", "semver": "1",
		"relative-json-pointer": "/", "hostname": "-a", "uri-template": "{", "period": "P", "uri-reference": "%zz",
		"iri-reference": "%zz"}
	for format := range checkedFormats {
		value := "no " + format
		if w, ok := wrong[format]; ok {
			value = w
		}
		text, _ := json.Marshal(value)
		u := Use{Schema: json.RawMessage(`{"format":"` + format + `"}`), Owner: "task", Field: "payload_schema"}
		if got := violationsIn(t, c.Validate(t.Context(), text, u)); len(got) != 1 {
			t.Errorf("%s of %s: %q", text, format, got)
		}
		if got := violationsIn(t, c.Validate(t.Context(), []byte(`7`), u)); got != nil {
			t.Errorf("a number of %s: %q", format, got)
		}
		if notes := c.Notes(u.Schema); notes != nil {
			t.Errorf("notes of %s: %q", format, notes)
		}
	}
	for value, good := range map[string]bool{`"2027-02-28"`: true, `"2027-02-29"`: false} {
		u := Use{
			Schema: json.RawMessage(`{"properties":{"on":{"format":"date"}}}`),
			Owner:  "task",
			Field:  "payload_schema",
		}
		if got := violationsIn(t, c.Validate(t.Context(), []byte(`{"on":`+value+`}`), u)); (got == nil) != good {
			t.Errorf("the date %s: %q", value, got)
		}
	}
}

func TestCache_NotesFormatsThatAreNotChecked(t *testing.T) {
	t.Parallel()
	c := NewCache()
	for schema, want := range map[string]string{
		`{"properties":{"n":{"format":"int32"},"m":{"items":{"format":"idn-email"}},"k":{"format":"int32"}}}`: `the format "idn-email" is not known and not checked,the format "int32" is not known and not checked`,
		`{"const":{"format":"int32"},"format":"date"}`:                                                        "",
		`{"properties":{"format":{"type":"string"}}}`:                                                         "",
		`{"$schema":"http://json-schema.org/draft-07/schema#","format":"color"}`:                              `the format "color" is not known and not checked`,
		``: "", `{"type":"no type"}`: "",
	} {
		if got := strings.Join(c.Notes(json.RawMessage(schema)), ","); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
		if schema == "" || strings.Contains(schema, "no type") {
			continue
		}
		u := Use{Schema: json.RawMessage(schema), Owner: "task", Field: "payload_schema"}
		got := violationsIn(t, c.Validate(t.Context(), []byte(`{"n":"x","m":["y"],"format":"int32"}`), u))
		if got != nil &&
			!strings.Contains(schema, "const") {
			t.Errorf("%s: %q", schema, got)
		}
	}
}

func TestPattern_MatchesWhiteSpaceAsECMADoes(t *testing.T) {
	t.Parallel()
	const white = "\t\n\v\f\r \u00a0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	is, not := regexp.MustCompile(asECMA(`^\s$`)), regexp.MustCompile(asECMA(`^\S$`))
	within, without := regexp.MustCompile(asECMA(`^[a\s]$`)), regexp.MustCompile(asECMA(`^[^\S]$`))
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s, want := string(r), strings.ContainsRune(white, r) || r >= 0x2000 && r <= 0x200a
		if is.MatchString(s) != want || not.MatchString(s) == want || within.MatchString(s) != (want || r == 'a') ||
			without.MatchString(s) != want {
			t.Fatalf("%U is white space: %v", r, !want)
		}
	}
	for pattern, want := range map[string]string{
		`a\\s`: `a\\s`, `[]\S]`: `[]` + other + `]`, `\[\s`: `\[[` + space + `]`, `[[:alpha:]\s]x\s`: `[[:alpha:]` + space +
			`]x[` + space + `]`, `[^\s\]]\d`: `[^` + space + `\]]\d`, `a\`: `a\`, `\s\`: `[` + space + `]\`,
	} {
		if got := asECMA(pattern); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

// BenchmarkFormat measures what a unit of a format's price is; it should stay near 100 ns.
func BenchmarkFormat(b *testing.B) {
	c := NewCache()
	for format := range checkedFormats {
		for name, piece := range map[string]string{"letters": "a", "parts": "a.b", "steps": "/a", "groups": "(a",
			"escapes": "~0%20"} {
			b.Run(format+"/"+name, func(b *testing.B) {
				text, _ := json.Marshal(strings.Repeat(piece, 50_000/len(piece)))
				u := Use{Schema: json.RawMessage(`{"format":"` + format + `"}`), Owner: "task", Field: "payload_schema"}
				for b.Loop() {
					_ = c.Validate(b.Context(), text, u)
				}
				b.ReportMetric(
					float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(formatPrice(format, string(text))),
					"ns/unit",
				)
			})
		}
	}
}
