package schema

import (
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	keyword "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"punctual/shared/fault"
	"punctual/shared/text"
)

// The codes of violations, as REST gives them.
const (
	codeInvalidValue = "invalid_value"
	codeMissingField = "missing_field"
	codeOutOfRange   = "out_of_range"
)

// violation is one way in which a value does not fit a schema, in words for the person who sent it.
// It says what the schema wants, and never what is there.
type violation struct {
	property string // below the value, where one is missing or must not be there; "" is the value itself
	code     string
	detail   string
	allowed  string
}

// violationsOf says what one keyword of a schema found.
func violationsOf(found jsonschema.ErrorKind) []violation {
	missing := func(names []string, why string) (all []violation) {
		for _, name := range names[:min(len(names), maxViolations)] {
			all = append(all, violation{name, codeMissingField, text.Quoted(name) + " is missing" + why, ""})
		}
		return all
	}
	one := func(code, detail, allowed string, args ...any) []violation {
		return []violation{{"", code, detail, fmt.Sprintf(allowed, args...)}}
	}
	switch k := found.(type) {
	case *keyword.Required:
		return missing(k.Missing, "")
	case *keyword.DependentRequired:
		return missing(k.Missing, ", which goes with "+text.Quoted(k.Prop))
	case *keyword.Dependency:
		return missing(k.Missing, ", which goes with "+text.Quoted(k.Prop))
	case *keyword.AdditionalProperties:
		var all []violation
		for _, name := range k.Properties[:min(len(k.Properties), maxViolations)] {
			all = append(all, violation{name, codeInvalidValue, "no property " + text.Quoted(name) +
				" is allowed here", ""})
		}
		return all
	case *keyword.PropertyNames:
		return []violation{{k.Property, codeInvalidValue, "this is not a name that a property may have here", ""}}
	case *keyword.FalseSchema:
		return one(codeInvalidValue, "nothing is allowed here", "")
	case *keyword.Type:
		return one(codeInvalidValue, "the value is of another type", "%s", strings.Join(k.Want, " or "))
	case *keyword.Enum:
		return one(codeInvalidValue, "this is not one of the values that are allowed", "%s", words(k.Want))
	case *keyword.Const:
		return one(codeInvalidValue, "only one value is allowed here", "%s", words([]any{k.Want}))
	case *keyword.Pattern:
		return one(codeInvalidValue, "the text does not match the pattern", "pattern %s", shortened(k.Want))
	case *keyword.Format:
		if k.Want == "regex" {
			return one(codeInvalidValue, "this is not a regular expression", "RE2 syntax")
		}
		return one(codeInvalidValue, "the text is not of this format", "format %s", shortened(k.Want))
	case *keyword.Minimum:
		return one(codeInvalidValue, "the number is too small", "minimum %s", decimal(k.Want))
	case *keyword.ExclusiveMinimum:
		return one(codeInvalidValue, "the number is too small", "more than %s (exclusiveMinimum)", decimal(k.Want))
	case *keyword.Maximum:
		return one(codeInvalidValue, "the number is too large", "maximum %s", decimal(k.Want))
	case *keyword.ExclusiveMaximum:
		return one(codeInvalidValue, "the number is too large", "less than %s (exclusiveMaximum)", decimal(k.Want))
	case *keyword.MultipleOf:
		return one(codeInvalidValue, "the number is no multiple", "multipleOf %s", decimal(k.Want))
	case *keyword.MinLength:
		return one(codeInvalidValue, "the text is too short", "minLength %d", k.Want)
	case *keyword.MaxLength:
		return one(codeInvalidValue, "the text is too long", "maxLength %d", k.Want)
	case *keyword.MinItems:
		return one(codeInvalidValue, "there are too few items", "minItems %d", k.Want)
	case *keyword.MaxItems:
		return one(codeInvalidValue, "there are too many items", "maxItems %d", k.Want)
	case *keyword.MinProperties:
		return one(codeInvalidValue, "there are too few properties", "minProperties %d", k.Want)
	case *keyword.MaxProperties:
		return one(codeInvalidValue, "there are too many properties", "maxProperties %d", k.Want)
	case *keyword.UniqueItems:
		detail := fmt.Sprintf("items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
		return one(codeInvalidValue, detail, "items that differ (uniqueItems)")
	case *keyword.OneOf:
		if len(k.Subschemas) > 1 {
			return one(codeInvalidValue, "the value fits more than one of the forms of which it must fit one",
				"oneOf")
		}
	}
	name := strings.Join(found.KeywordPath(), "/")
	return one(codeInvalidValue, "the value does not fit "+text.Quoted(name)+" of the schema", "")
}

// words lists values that a schema names, as long as they are short.
func words(values []any) string {
	var all []string
	for _, v := range values {
		word, ok := v.(string)
		if !ok {
			word = string(text.MustJSON(v)) // it was JSON
		}
		all = append(all, text.CutName(word))
	}
	return shortened(strings.Join(all, ", "))
}

func shortened(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// decimal writes a bound as people do.
func decimal(bound *big.Rat) string {
	const digits, bits = 10, 512
	if bound.IsInt() && bound.Num().BitLen() <= bits {
		return shortened(bound.Num().String())
	}
	f, _ := bound.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// blames are the violations of a value as they are found.
type blames struct{ fault.Violations }

// maxViolations is how many violations are reported; no person mends more at once.
const maxViolations = 50

// add notes a violation; beyond maxViolations nothing is noted.
func (b *blames) add(pointer, code, allowed, detail string, args ...any) {
	if len(b.Violations) >= maxViolations {
		return
	}
	b.Violations = append(b.Violations, fault.Field{
		Pointer: pointer, Code: code, Allowed: allowed, Detail: fmt.Sprintf(detail, args...),
	})
}

// addEach blames each part of a value that does not fit a schema.
func (b *blames) addEach(of string, e *jsonschema.ValidationError) {
	if len(b.Violations) >= maxViolations {
		return
	}
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			b.addEach(of, cause)
		}
		return
	}
	pointer := pointerTo(e.InstanceLocation)
	for _, m := range violationsOf(e.ErrorKind) {
		at := pointer
		if m.property != "" {
			at += "/" + text.EscapePointer(m.property)
		}
		b.add(at, m.code, m.allowed, "%s (%s)", m.detail, of)
	}
}

// maxPointer is where a pointer ends that is too long for anybody to read; more is cut by those who show it.
const maxPointer = 1024

func pointerTo(path []string) string {
	var b strings.Builder
	for _, part := range path {
		if b.Len() > maxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(text.EscapePointer(part))
	}
	return b.String()
}

// mixedWord is a long word of letters and digits: it may be a secret.
var mixedWord = regexp.MustCompile(
	`[a-zA-Z_-]*[0-9][a-zA-Z0-9_-]*[a-zA-Z][a-zA-Z0-9_-]*|[a-zA-Z][a-zA-Z0-9_-]*[0-9][a-zA-Z0-9_-]*`)

// quotedReference names a reference inside a schema, unless something in it may be a secret.
func quotedReference(fragment string) string {
	for _, word := range mixedWord.FindAllString(fragment, -1) {
		if len(word) >= 8 {
			return "a reference"
		}
	}
	return text.Quoted("#" + fragment)
}

// uncompiled blames a schema that does not compile: where, and why.
func (b *blames) uncompiled(err error) {
	const allowed = "a JSON Schema without references to other documents"
	var (
		meta      *jsonschema.SchemaValidationError
		unfit     *jsonschema.ValidationError
		regex     *jsonschema.InvalidRegexError
		nowhere   *jsonschema.JSONPointerNotFoundError
		noAnchor  *jsonschema.AnchorNotFoundError
		noPointer *jsonschema.InvalidJsonPointerError
		elsewhere *jsonschema.LoadURLError
		noURL     *jsonschema.ParseURLError
		twice     *jsonschema.DuplicateIDError
		noDraft   *jsonschema.UnsupportedDraftError
		noMeta    *jsonschema.InvalidMetaSchemaURLError
	)
	blame := func(at, why string, args ...any) {
		b.add(at, codeInvalidValue, allowed, "the schema does not compile: "+why, args...)
	}
	switch {
	case errors.As(err, &meta) && errors.As(meta.Err, &unfit):
		b.addEach("JSON Schema", unfit)
	case errors.As(err, &regex):
		blame(fragment(regex.URL), "this is not a regular expression: %s", shortened(regex.Err.Error()))
	case errors.As(err, &nowhere):
		blame("", "%s points to nothing in it", quotedReference(fragment(nowhere.URL)))
	case errors.As(err, &noAnchor):
		blame("", "%s points to nothing in it", quotedReference(fragment(noAnchor.URL)))
	case errors.As(err, &noPointer):
		blame("", "%s is not a JSON pointer", quotedReference(fragment(noPointer.URL)))
	case errors.As(err, &noDraft), errors.As(err, &noMeta):
		blame("/$schema", "this is not a draft that is known here")
	case errors.As(err, &elsewhere):
		blame("", "it refers to another document, %s", text.Quoted(elsewhere.URL))
	case errors.As(err, &noURL):
		blame("", "%s is not a URL", text.Quoted(noURL.URL))
	case errors.As(err, &twice):
		blame("", "an $id is given more than once")
	default:
		blame("", "it cannot be understood")
	}
}

// fragment is where within a schema a URL of the compiler's points to.
func fragment(at string) string {
	_, where, _ := strings.Cut(at, "#")
	if plain, err := url.PathUnescape(where); err == nil {
		return plain
	}
	return where
}
