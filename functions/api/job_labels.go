package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/text"
)

// LabelsRequest holds the labels in a request that makes a job.
type LabelsRequest struct {
	Tags     map[string]string `json:"tags,omitempty" doc:"Up to {=tags}, names up to {=tag_key} and values up to {=tag_value} characters, none of them control characters, or characters that change the direction of text"`
	Metadata wire.Anything     `json:"metadata,omitempty" doc:"An object for whoever looks at the job: shown with it, in lists and in its dead letter, kept by redrives, and never acted on"`
}

// TagsView shows tags.
type TagsView struct {
	Tags map[string]string `json:"tags,omitempty"`
}

// MetadataView shows metadata.
type MetadataView struct {
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"As it was given, its names in order"`
}

// LabelsView shows all labels.
type LabelsView struct {
	TagsView
	MetadataView
}

// literalFields are the fields of a job's PATCH to which allow_literals applies.
var literalFields = []string{"payload", "metadata"}

// labelBounds are the bounds of the fields of LabelsRequest.
var labelBounds = fieldBounds{"tags": tagsForm, "metadata": func(s *huma.Schema) {
	s.Type, s.AdditionalProperties = huma.TypeObject, true
	s.Description += fmt.Sprintf(
		"; up to %d bytes of compact JSON, without control characters, or characters that change the direction of text",
		contract.MaxMetadata,
	)
}}

var labelFields = wire.NamesOf[LabelsRequest]()

// labels reads the labels of a job.
func (r *reader) labels(f wire.Fields) (l job.Labels) {
	if v, ok := f["tags"]; ok {
		if tags := r.tags(v); len(tags) > 0 {
			l.Tags = string(text.MustJSON(tags))
		}
	}
	if v, ok := f["metadata"]; ok {
		l.Metadata = r.metadata(v)
	}
	return l
}

// metadata reads any JSON object; "" for an empty one. It sorts the names, so that equal objects have the same text.
func (r *reader) metadata(v wire.Value) string {
	if !r.Is(v, wire.KindObject) {
		return ""
	}
	raw := r.Doc.Compact(v.Node)
	if len(raw) > contract.MaxMetadata {
		r.Mistake(v.Pointer, wire.CodeOutOfRange, fmt.Sprintf("at most %d bytes", contract.MaxMetadata),
			"the metadata has %d bytes", len(raw))
		return ""
	}
	if r.tooDeep(v, "the metadata is") {
		return ""
	}
	r.AllDuplicates(v.Node)
	var read map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps numbers as they were written
	if err := d.Decode(&read); err != nil || len(read) == 0 {
		return "" // {}; an error cannot happen, because the document was read before
	}
	r.noControls(read, v.Pointer)
	return string(text.MustJSON(read))
}

// noControls reports control characters in the names and strings of metadata.
func (r *reader) noControls(v any, pointer string) {
	blame := func(pointer, what, s string) {
		if strings.ContainsFunc(s, text.Hidden) {
			r.Mistake(pointer, wire.CodeInvalidValue, "characters that can be seen, and spaces",
				"%s in the metadata has control characters, or characters that change the direction of text", what)
		}
	}
	switch v := v.(type) {
	case string:
		blame(pointer, "a string", v)
	case []any:
		for n, each := range v {
			r.noControls(each, pointer+"/"+itoa(n))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := pointer + "/" + text.EscapePointer(name)
			blame(at, "a name", name)
			r.noControls(v[name], at)
		}
	}
}

// noSecretLabels reports labels that look like secrets. allowed are the pointers of those that are none.
func (r *reader) noSecretLabels(f wire.Fields, allowed []string) {
	for _, name := range labelFields {
		if v, ok := f[name]; ok {
			r.NoSecrets(v, allowed)
		}
	}
}

func viewLabels(l job.Labels) (v LabelsView) {
	if l.Tags != "" {
		_ = json.Unmarshal([]byte(l.Tags), &v.Tags) // we wrote it; unreadable tags are no reason for an error
	}
	v.Metadata = json.RawMessage(l.Metadata)
	return v
}

// label adds the labels of a job to its detailed view.
func (v *JobView) label(l job.Labels) {
	shown := viewLabels(l)
	v.TagsView, v.MetadataView = shown.TagsView, shown.MetadataView
}

// asked adds the contents of a request to the view of its job.
func (v *JobView) asked(c job.Contents) {
	if v.JobDetail == nil {
		v.JobDetail = &JobDetail{}
	}
	v.label(c.Labels)
	if len(c.Payload) <= contract.MaxItem {
		v.Payload = c.Payload
	}
}
