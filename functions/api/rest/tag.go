package rest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/contract"
	"punctual/shared/tenant"
)

// tagPrefix begins the name of a query parameter that filters by a tag.
const tagPrefix = "tag."

// TagFilters are the query parameters tag.NAME=VALUE of a list.
type TagFilters struct {
	Tags map[string]string
}

// Prepare reads the parameters.
func (t *TagFilters) Prepare(ctx context.Context, _ tenant.Identity) error {
	for name, given := range requestOf(ctx).http.URL.Query() {
		if tag, is := strings.CutPrefix(name, tagPrefix); is {
			if t.Tags == nil {
				t.Tags = map[string]string{}
			}
			t.Tags[tag] = given[0]
		}
	}
	return nil
}

// texts returns the filters in a fixed order, for a cursor.
func (t TagFilters) texts() (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Tags)) {
		texts = append(texts, tagPrefix+name, t.Tags[name])
	}
	return texts
}

// describeTags documents the parameters: an object whose properties are parameters of their own.
func (s *Router) describeTags(r Route) {
	op := Operations(s.api.OpenAPI().Paths[r.path])[r.method]
	explode := true
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "tags", In: "query", Style: "form", Explode: &explode,
		Schema: &huma.Schema{
			Type:        huma.TypeObject,
			Description: "Filters by tags: parameters named tag.NAME, each with the value of that tag",
			AdditionalProperties: &huma.Schema{Type: huma.TypeString, MinLength: new(1),
				MaxLength: new(contract.MaxTagValue)},
			MaxProperties: new(contract.MaxSearchTags),
			Extensions: map[string]any{"propertyNames": map[string]any{
				"pattern": `^tag\..`, "maxLength": len(tagPrefix) + contract.MaxTagKey}},
			Examples: []any{map[string]any{"tag.customer": "42"}},
		},
	})
}
