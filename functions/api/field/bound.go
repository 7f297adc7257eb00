package field

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/span"
)

// Bound narrows a schema to what its reader accepts.
type Bound func(*huma.Schema)

// All applies several bounds to one value.
func All(bounds ...Bound) Bound {
	return func(s *huma.Schema) {
		for _, b := range bounds {
			b(s)
		}
	}
}

// OneOf bounds a text to a list.
func OneOf[T ~string](list []T) Bound {
	return func(s *huma.Schema) {
		s.Enum = nil
		for _, w := range list {
			s.Enum = append(s.Enum, string(w))
		}
	}
}

// Matching bounds a text to 1 to most characters that match a pattern; with most 0 only the pattern limits it.
func Matching(pattern string, most int) Bound {
	return func(s *huma.Schema) {
		if s.Pattern, s.MinLength = pattern, new(1); most > 0 {
			s.MaxLength = &most
		}
	}
}

// Characters bounds a text to least to most characters.
func Characters(least, most int) Bound {
	return func(s *huma.Schema) { s.MinLength, s.MaxLength = &least, &most }
}

// from bounds a number.
func from(least, most float64) Bound {
	return func(s *huma.Schema) { s.Minimum, s.Maximum = &least, &most }
}

// WholeParameter bounds a whole number in a parameter, which the reader sees as text.
func WholeParameter(least, most int) Bound {
	return All(from(float64(least), float64(most)), func(s *huma.Schema) {
		s.Type, s.Pattern, s.Examples = huma.TypeInteger, "", nil
	})
}

// Default states the default of a parameter.
func Default(value int) Bound { return func(s *huma.Schema) { s.Default = value } }

// Lasting bounds a duration. JSON Schema has no keywords for that, so the description says it.
func Lasting(least, most time.Duration) Bound {
	return func(s *huma.Schema) {
		s.Type, s.Pattern, s.MaxLength = huma.TypeString, contract.DurationPattern, new(span.MaxText)
		s.Examples = []any{span.Format(max(least, min(most, 30*time.Second)))}
		s.Extensions = map[string]any{"x-minimum": span.Format(least), "x-maximum": span.Format(most)}
		s.Description = strings.TrimLeft(s.Description+"; ", "; ") + rest.Between(span.Format(least), span.Format(most))
	}
}

// Formatted bounds a text to a named format, which says more than its pattern.
func Formatted(format, pattern string, most int) Bound {
	return All(Matching(pattern, most), func(s *huma.Schema) { s.Format = format })
}

// AnyCase returns a pattern for these words in small or capital letters.
func AnyCase(words []string) string {
	var b strings.Builder
	for i, w := range words {
		b.WriteString(map[bool]string{true: "^(", false: "|"}[i == 0])
		for _, c := range w {
			fmt.Fprintf(&b, "[%c%c]", unicode.ToUpper(c), c)
		}
	}
	return b.String() + ")$"
}

// Nullable returns a schema that also accepts null.
func Nullable(s huma.Schema) huma.Schema {
	if s.Nullable = true; s.Enum != nil {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	return s
}
