package schedules

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/schedule"
	"punctual/shared/text"
)

// A PATCH of a schedule is a merge patch (RFC 7396): objects are merged at every depth, null removes, and any other
// value replaces. It is merged into the schedule in the form of a PUT, and the parts that it names are then read like
// those of a PUT.

// taskSettings are the fields of a job that come from its task when the job leaves them out.
var taskSettings = []string{"pool", "priority", "timeout", "retry", "limits"}

// mergedSchedule returns the parts of a schedule that a patch names, after the patch. It also finds errors that only
// the patch shows, such as repeated fields.
func (s *Handler) mergedSchedule(
	ctx context.Context, old schedule.Schedule, patch *document.Document,
) (*document.Document, error) {
	if err := checkPatch(patch); err != nil {
		return nil, err
	}
	parts, ok := document.Fields(patch.Raw(0))
	if !ok { // readSchedule reports it
		return patch, nil
	}
	base, err := s.scheduleParts(ctx, old, parts)
	if err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	for name, part := range parts {
		if document.IsNull(part) {
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
		merged[name] = document.Merge(base[name], part)
	}
	whole := document.EncodeObject(merged)
	doc, err := document.Read(whole)
	if err != nil { // each was JSON, but the result may be too deep
		return nil, rest.Unreadable(whole, err)
	}
	// A schedule needs one of each of these pairs. A patch may replace one by the other.
	for _, one := range [][2]string{
		{"calendar", "calendars"}, {"calendars", "calendar"}, {"job", "dag"}, {"dag", "job"},
	} {
		name, other := one[0], one[1]
		if part, named := parts[name]; named && document.IsNull(part) && merged[other] == nil {
			return nil, rest.OneViolation("/"+name, rest.CodeMissingField, name+" or "+other, "a schedule needs "+name+
				" or "+other)
		}
	}
	return doc, nil
}

// patchDefaults are the values of removed fields.
var patchDefaults = map[string]string{"overlap": `"allow"`, "catch_up": `{}`, "pause_after_failures": `0`}

// patchedObjects are the objects of a schedule in the order in which their errors are reported. The first error gives
// an answer its code, so the order is the same each time.
var patchedObjects = []struct {
	name   string
	object *field.Object
}{
	{"calendar", calendarRequest},
	{"job", jobTemplateRequest},
	{"dag", dagTemplateRequest},
	{"catch_up", catchUpRequest},
}

// checkPatch reports unknown and repeated fields, by their pointers in the patch.
func checkPatch(patch *document.Document) error {
	r := spec.NewReader(patch)
	f := patchedFields.Body(r)
	for _, part := range patchedObjects {
		v, ok := f[part.name]
		if !ok || patch.Kind(v.Node) != document.KindObject {
			continue
		}
		inner := part.object.Read(r, v)
		for _, deep := range slices.Concat([]string{"retry"}, spec.LabelFields, []string{"payload", "params"}) {
			if v, ok := inner[deep]; ok {
				r.AllDuplicates(v.Node)
			}
		}
	}
	return r.Wrong.Err()
}

// scheduleParts returns the parts of a schedule that a patch names, in the form of a PUT.
func (s *Handler) scheduleParts(
	ctx context.Context, old schedule.Schedule, parts map[string]json.RawMessage,
) (map[string]json.RawMessage, error) {
	v := viewSchedule(old, s.Now())
	base := map[string]json.RawMessage{"calendar": text.MustJSON(v.Calendar), "catch_up": text.MustJSON(v.CatchUp)}
	kind, contents, template := "job", "payload", text.MustJSON(v.Job)
	if v.Dag != nil {
		kind, contents, template = "dag", "params", text.MustJSON(v.Dag)
	}
	if _, ok := parts[kind]; !ok { // the new kind begins empty
		return base, nil
	}
	payload, err := s.Store.SchedulePayload(ctx, old)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	fields, _ := document.Fields(template)
	delete(fields, "payload_size")
	if _, ok := fields[spec.Limits.Name()]; !ok && v.Job != nil { // left out, they would be those of the task
		fields[spec.Limits.Name()] = json.RawMessage("[]")
	}
	if payload != nil {
		fields[contents] = payload
	}
	base[kind] = document.EncodeObject(fields)
	return base, nil
}

// withoutOtherForms removes the fields of the old form from a calendar if the patch gives it another form.
func withoutOtherForms(calendar, patch json.RawMessage) json.RawMessage {
	fields, ok := document.Fields(patch)
	base, _ := document.Fields(calendar)
	named := slices.IndexFunc(calendarForms, func(form calendarForm) bool {
		v, given := fields[form.own[0]]
		return given && !document.IsNull(v)
	})
	if !ok || named < 0 {
		return calendar
	}
	for _, name := range calendarForms[named].others() {
		delete(base, name)
	}
	return document.EncodeObject(base)
}

// withoutOtherTask removes from a job what came from its task if the patch names another task.
func withoutOtherTask(job, patch json.RawMessage) json.RawMessage {
	fields, _ := document.Fields(patch)
	base, _ := document.Fields(job)
	if task, ok := fields["task"]; !ok || bytes.Equal(bytes.TrimSpace(task), base["task"]) {
		return job
	}
	for _, name := range taskSettings {
		delete(base, name)
	}
	return document.EncodeObject(base)
}
