package schema

import "strings"

// checkedFormats are the formats that the library checks, and regex, which is checked here. A text of any other format
// passes: JSON Schema lets a schema name what it likes.
var checkedFormats = map[string]bool{
	"date": true, "date-time": true, "duration": true, "email": true, "hostname": true, "ipv4": true, "ipv6": true,
	"iri": true, "iri-reference": true, "json-pointer": true, "period": true, "regex": true,
	"relative-json-pointer": true, "semver": true, "time": true, "uri": true, "uri-reference": true,
	"uri-template": true, "uuid": true,
}

func unchecked(any) error { return nil }

// formatsIn returns the texts that are called format in a schema, and perhaps some that are none.
func formatsIn(doc any) map[string]bool {
	names := map[string]bool{}
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if name, ok := v["format"].(string); ok {
				names[name] = true
			}
			for _, part := range v {
				visit(part)
			}
		case []any:
			for _, part := range v {
				visit(part)
			}
		}
	}
	visit(doc)
	return names
}

// formatPrice is what checking a text costs besides its length, in units of about 100 ns; BenchmarkFormat measures it.
func formatPrice(name, text string) int {
	switch name {
	case "regex": // it is parsed into a tree
		return 5 + 16*len(text)
	case "uri", "uri-reference", "iri", "iri-reference", "uri-template":
		return 5 + 2*len(text)
	}
	if checkedFormats[name] {
		return 2 + len(text)/2
	}
	return 0
}

// What \s and \S of ECMA-262 match, as parts of a class: Go's match ASCII alone.
const (
	space = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	other = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// asECMA returns a pattern for package regexp in which \s and \S match what they match in ECMA-262, the language of a
// schema's patterns.
func asECMA(pattern string) string {
	if !strings.Contains(pattern, `\s`) && !strings.Contains(pattern, `\S`) {
		return pattern
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '\\' || i+1 == len(pattern) {
			switch {
			case c == '[' && !class:
				class = true
				b.WriteByte(c)
				if strings.HasPrefix(pattern[i+1:], "^") {
					b.WriteByte('^')
					i++
				}
				if strings.HasPrefix(pattern[i+1:], "]") { // Go takes it as the first of the class
					b.WriteByte(']')
					i++
				}
				continue
			case class && strings.HasPrefix(pattern[i:], "[:"): // a class of Go's own, such as [:alpha:]
				if end := strings.Index(pattern[i:], ":]"); end > 0 {
					b.WriteString(pattern[i : i+end+1])
					i += end + 1
					c = ']'
				}
			case c == ']':
				class = false
			}
			b.WriteByte(c)
			continue
		}
		i++
		part := map[byte]string{'s': space, 'S': other}[pattern[i]]
		switch {
		case part == "":
			b.WriteString(pattern[i-1 : i+1])
		case class:
			b.WriteString(part)
		default:
			b.WriteString("[" + part + "]")
		}
	}
	return b.String()
}
