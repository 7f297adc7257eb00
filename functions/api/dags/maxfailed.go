package dags

import (
	"fmt"
	"regexp"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/text"
)

// sharePattern matches a share of the items, in whole percent.
const sharePattern = `^(0|[1-9][0-9]?|100)%$`

// moreThanAll matches shares that are in the right form, and over 100%.
var moreThanAll = regexp.MustCompile(`^[1-9][0-9]{2,}%$`)

// maxFailedSchema documents a number of items, or their share.
func maxFailedSchema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeInteger, Format: "int64", Minimum: new(0.0), Maximum: new(float64(dag.MaxItems))},
		{Type: huma.TypeString, Pattern: sharePattern, MinLength: new(2), MaxLength: new(4)},
	}}
}

// readMaxFailed reads a number of items, or their share.
func readMaxFailed(r *rest.Reader, v rest.Value) (m dag.MaxFailed) {
	const allowed = `a number of items from 0 to %d, or a share from "0%%" to "100%%"`
	switch r.Doc.Kind(v.Node) {
	case document.KindNumber:
		m.Count, _ = r.Whole(v, 0, dag.MaxItems)
	case document.KindString:
		s, ok := r.Text(v)
		if !ok {
			return m
		}
		if m, ok = dag.PercentFailed(s); ok {
			return m
		}
		code := rest.CodeInvalidValue
		if moreThanAll.MatchString(s) {
			code = rest.CodeOutOfRange
		}
		r.Violation(v.Pointer, code, fmt.Sprintf(allowed, dag.MaxItems), "the text is no share in whole percent")
	default:
		r.Violation(v.Pointer, rest.CodeInvalidValue, fmt.Sprintf(allowed, dag.MaxItems),
			"the value is neither a number nor a text")
	}
	return m
}

// maxFailedView shows it as a user writes it.
type maxFailedView dag.MaxFailed

// MarshalJSON writes a number of items, or their share as a text.
func (m maxFailedView) MarshalJSON() ([]byte, error) {
	if m.Percent > 0 {
		return text.JSON(dag.MaxFailed(m).String())
	}
	return text.JSON(m.Count)
}

// Schema documents it.
func (maxFailedView) Schema(r huma.Registry) *huma.Schema { return maxFailedSchema(r) }
