package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"punctual/functions/api/wire"
	"punctual/shared/fault"
	"punctual/shared/schedule"
	"punctual/shared/text"
)

// A PATCH of a schedule is a merge patch (RFC 7396): objects merge at every depth, null removes,
// everything else replaces. It is merged into the schedule as a PUT would write it, and the parts
// that it names are then read as those of a PUT.

// taskSettings are the fields of a job that its task gives when the job does not.
var taskSettings = []string{"pool", "priority", "timeout", "retry"}

// mergedSchedule is the parts of a schedule that a patch names, as the patch leaves them. Mistakes
// that only the patch can show, such as fields that are repeated, are found here.
func (s *stage) mergedSchedule(
	ctx context.Context, old schedule.Schedule, patch *wire.Document,
) (*wire.Document, error) {
	if err := checkPatch(patch); err != nil {
		return nil, err
	}
	parts, ok := asObject(patch.Raw(0))
	if !ok { // said by readSchedule
		return patch, nil
	}
	base, err := s.scheduleParts(ctx, old, parts)
	if err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	for name, part := range parts {
		if isNull(part) {
			if value, ok := patchDefaults[name]; ok {
				merged[name] = json.RawMessage(value)
			}
			continue
		}
		if name == "calendar" {
			base[name] = withoutOtherForms(base[name], part)
		}
		if name == "job" {
			base[name] = withoutOtherTask(base[name], part)
		}
		merged[name] = merge(base[name], part)
	}
	text := encodeObject(merged)
	doc, err := wire.ReadDocument(text)
	if err != nil { // both halves were JSON, but together they may be too deep
		return nil, wire.Unreadable(text, err)
	}
	// A schedule needs a calendar, and a job or a dag; one of these may give way to the other.
	for name, other := range map[string]string{"calendar": "", "job": "dag", "dag": "job"} {
		if part, named := parts[name]; named && isNull(part) && merged[other] == nil {
			return nil, wire.OneMistake("/"+name, wire.CodeMissingField, "an object", "a schedule needs a "+name)
		}
	}
	return doc, nil
}

// patchDefaults are what removing a field means.
var patchDefaults = map[string]string{"overlap": `"allow"`, "catch_up": `{}`, "pause_after_failures": `0`}

// checkPatch finds unknown and repeated fields, by their pointers in the patch.
func checkPatch(patch *wire.Document) error {
	r := newReader(patch)
	f := r.Object(0, "", scheduleFields)
	for name, known := range map[string][]string{"calendar": calendarFields, "job": templateFields,
		"dag": dagTemplateFields, "catch_up": catchUpFields} {
		v, ok := f[name]
		if !ok || patch.Kind(v.Node) != wire.KindObject {
			continue
		}
		inner := r.Object(v.Node, v.Pointer, known)
		for _, deep := range slices.Concat([]string{"retry"}, labelFields, []string{"payload", "params"}) {
			if v, ok := inner[deep]; ok {
				r.AllDuplicates(v.Node)
			}
		}
	}
	return r.Wrong.Err()
}

// scheduleParts writes the parts of a schedule that a patch names as a PUT would have them.
func (s *stage) scheduleParts(
	ctx context.Context, old schedule.Schedule, parts map[string]json.RawMessage,
) (map[string]json.RawMessage, error) {
	v := viewSchedule(old, s.now())
	base := map[string]json.RawMessage{"calendar": encode(v.Calendar), "catch_up": encode(v.CatchUp)}
	kind, contents, template := "job", "payload", encode(v.Job)
	if v.Dag != nil {
		kind, contents, template = "dag", "params", encode(v.Dag)
	}
	if _, ok := parts[kind]; !ok { // what takes the other's place begins from nothing
		return base, nil
	}
	payload, err := s.Store.SchedulePayload(ctx, old)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	fields, _ := asObject(template)
	delete(fields, "payload_size")
	if payload != nil {
		fields[contents] = payload
	}
	base[kind] = encodeObject(fields)
	return base, nil
}

// withoutOtherForms leaves out of a calendar what belongs to the form that a patch replaces by another.
func withoutOtherForms(calendar, patch json.RawMessage) json.RawMessage {
	fields, ok := asObject(patch)
	base, _ := asObject(calendar)
	named := slices.IndexFunc(calendarForms, func(form calendarForm) bool {
		v, given := fields[form.own[0]]
		return given && !isNull(v)
	})
	if !ok || named < 0 {
		return calendar
	}
	for _, name := range calendarForms[named].others() {
		delete(base, name)
	}
	return encodeObject(base)
}

// withoutOtherTask leaves out of a job what its task gave, if a patch names another task.
func withoutOtherTask(job, patch json.RawMessage) json.RawMessage {
	fields, _ := asObject(patch)
	base, _ := asObject(job)
	if task, ok := fields["task"]; !ok || bytes.Equal(bytes.TrimSpace(task), base["task"]) {
		return job
	}
	for _, name := range taskSettings {
		delete(base, name)
	}
	return encodeObject(base)
}

// merge is RFC 7396 over JSON texts; what it does not touch stays byte for byte.
func merge(base, patch json.RawMessage) json.RawMessage {
	changes, ok := asObject(patch)
	if !ok {
		return patch
	}
	fields, ok := asObject(base)
	if !ok {
		fields = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if isNull(change) {
			delete(fields, name)
			continue
		}
		fields[name] = merge(fields[name], change)
	}
	return encodeObject(fields)
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// asObject reads the fields of a JSON object; false for any other value.
func asObject(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return map[string]json.RawMessage{}, false
	}
	return fields, true
}

// encodeObject writes fields in the order of their names, and their values as they are.
func encodeObject(fields map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for n, name := range slices.Sorted(maps.Keys(fields)) {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(name))
		b.WriteByte(':')
		b.Write(fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode writes what cannot fail to be written.
func encode(v any) json.RawMessage {
	return text.MustJSON(v)
}
