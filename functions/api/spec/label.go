package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/job"
	"punctual/shared/text"
)

// TagsView shows tags.
type TagsView struct {
	Tags map[string]string `json:"tags,omitempty"`
}

// MetadataView shows metadata.
type MetadataView struct {
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"Metadata as given, its names sorted"`
}

// LabelsView shows all labels.
type LabelsView struct {
	TagsView
	MetadataView
}

// Labels reads the labels of a job.
func Labels(r *rest.Reader, f rest.Fields) (l job.Labels) {
	var tags map[string]string
	if Tags.Into(r, f, &tags); len(tags) > 0 {
		l.Tags = string(text.MustJSON(tags))
	}
	Metadata.Into(r, f, &l.Metadata)
	return l
}

// readMetadata reads any JSON object; "" for an empty one. It sorts the names: equal objects have the same text.
func readMetadata(r *rest.Reader, v rest.Value) (metadata string, ok bool) {
	if !r.Is(v, document.KindObject) {
		return "", true
	}
	raw := r.Doc.Compact(v.Node)
	if len(raw) > contract.MaxMetadata {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d bytes", contract.MaxMetadata),
			"the metadata has %d bytes", len(raw))
		return "", true
	}
	if TooDeep(r, v, "the metadata is") {
		return "", true
	}
	r.AllDuplicates(v.Node)
	var read map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps numbers as they were written
	if err := d.Decode(&read); err != nil || len(read) == 0 {
		return "", true // {}; an error cannot happen, because the document was read before
	}
	noControls(r, read, v.Pointer)
	return string(text.MustJSON(read)), true
}

// noControls reports control characters in the names and strings of metadata.
func noControls(r *rest.Reader, v any, pointer string) {
	blame := func(pointer, what, s string) {
		if strings.ContainsFunc(s, text.Hidden) {
			r.Violation(pointer, rest.CodeInvalidValue, "characters that can be seen, and spaces",
				"%s in the metadata has control characters, or characters that change the direction of text", what)
		}
	}
	switch v := v.(type) {
	case string:
		blame(pointer, "a string", v)
	case []any:
		for n, each := range v {
			noControls(r, each, pointer+"/"+strconv.Itoa(n))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := pointer + "/" + text.EscapePointer(name)
			blame(at, "a name", name)
			noControls(r, v[name], at)
		}
	}
}

// noSecretLabels reports labels that look like secrets. allowed are the pointers of those that are none.
func noSecretLabels(r *rest.Reader, f rest.Fields, allowed []string) {
	for _, name := range LabelFields {
		if v, ok := f[name]; ok {
			r.NoSecrets(v, allowed)
		}
	}
}

// ViewLabels shows the labels of a job.
func ViewLabels(l job.Labels) (v LabelsView) {
	if l.Tags != "" {
		_ = json.Unmarshal([]byte(l.Tags), &v.Tags) // we wrote it; unreadable tags are no reason for an error
	}
	v.Metadata = json.RawMessage(l.Metadata)
	return v
}

// readTags reads tags.
func readTags(r *rest.Reader, v rest.Value) (tags map[string]string, ok bool) {
	if !r.IsObject(v, "an object of strings") {
		return nil, true
	}
	r.AllDuplicates(v.Node)
	tags = map[string]string{}
	count := 0
	for name, at := range r.Members(v) {
		if count++; count > contract.MaxTags {
			r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d", contract.MaxTags),
				"there are more than %d tags", contract.MaxTags)
			return nil, true
		}
		if runes(name) < 1 || runes(name) > contract.MaxTagKey {
			r.Violation(at.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d characters", contract.MaxTagKey),
				"the name of a tag is too long, or empty")
		}
		if strings.ContainsFunc(name, text.Hidden) {
			r.Violation(at.Pointer, rest.CodeInvalidValue, "characters that can be seen, and spaces",
				"the name of a tag has control characters, or characters that change the direction of text")
		}
		if s, ok := r.Text(at); ok {
			if runes(s) > contract.MaxTagValue {
				r.Violation(at.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d characters", contract.MaxTagValue),
					"the value of the tag has %d characters", runes(s))
			}
			if strings.ContainsFunc(s, text.Hidden) {
				r.Violation(at.Pointer, rest.CodeInvalidValue, "characters that can be seen, and spaces",
					"the value of the tag has control characters, or characters that change the direction of text")
			}
			tags[name] = s
		}
	}
	return tags, true
}

// runes returns how many characters a text has.
func runes(s string) int { return utf8.RuneCountInString(s) }
