package api

import (
	"encoding/json"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/text"
)

// LabelsRequest is how every request that makes a job names its labels.
type LabelsRequest struct {
	Tags map[string]string `json:"tags,omitempty" doc:"Up to 10, names up to 64 and values up to 256 characters, none of them control characters"`
}

// TagsView is tags as they are shown.
type TagsView struct {
	Tags map[string]string `json:"tags,omitempty"`
}

// LabelsView is all labels as they are shown.
type LabelsView struct{ TagsView }

// literalFields are the fields of a PATCH of a job whose strings allow_literals speaks of.
var literalFields = []string{"payload"}

// labelBounds are those of LabelsRequest's fields.
var labelBounds = fieldBounds{"tags": tagsForm}

var labelFields = namesOf[LabelsRequest]()

// labels reads the labels of a job.
func (r *reader) labels(f fields) (l job.Labels) {
	if v, ok := f["tags"]; ok {
		if tags := r.tags(v); len(tags) > 0 {
			l.Tags = string(text.MustJSON(tags))
		}
	}
	return l
}

// noSecretLabels blames what looks like a secret in them; allowed are the pointers of what is none.
func (r *reader) noSecretLabels(f fields, allowed []string) {
	for _, name := range labelFields {
		if v, ok := f[name]; ok {
			r.noSecrets(v, allowed)
		}
	}
}

// restated reads the contents of a request that was accepted before as it stands.
func (r *reader) restated(f fields) (c job.Contents) {
	if v, ok := f["payload"]; ok && r.doc.nodes[v.node].kind != kindNull {
		c.Payload = r.doc.compact(v.node)
	}
	c.Labels = r.labels(f)
	return c
}

func viewLabels(l job.Labels) (v LabelsView) {
	if l.Tags != "" {
		_ = json.Unmarshal([]byte(l.Tags), &v.Tags) // we wrote it; unreadable tags are not worth an error
	}
	return v
}

// label adds the labels of its job to a view that has a detail.
func (v *JobView) label(l job.Labels) {
	v.TagsView = viewLabels(l).TagsView
}

// asked adds the contents of a request to the view of its job, as detail reads them.
func (v *JobView) asked(c job.Contents) {
	if v.JobDetail == nil {
		v.JobDetail = &JobDetail{}
	}
	v.label(c.Labels)
	if len(c.Payload) <= contract.MaxItem {
		v.Payload = c.Payload
	}
}
