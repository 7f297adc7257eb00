package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/span"
	"punctual/shared/text"
)

// This file makes the OpenAPI document as strict as the readers. Go types define the fields; the tables below define
// what each field may hold, with the constants that the readers use.

// bound narrows a schema to what its reader accepts.
type bound func(*huma.Schema)

// allOf applies several bounds to one field.
func allOf(bounds ...bound) bound {
	return func(s *huma.Schema) {
		for _, b := range bounds {
			b(s)
		}
	}
}

// oneOf is a text from a list.
func oneOf[T ~string](list []T) bound {
	return func(s *huma.Schema) {
		s.Enum = nil
		for _, w := range list {
			s.Enum = append(s.Enum, string(w))
		}
	}
}

// matching is a text that matches a pattern and has 1 to most characters; with most 0 only the pattern limits it.
func matching(pattern string, most int) bound {
	return func(s *huma.Schema) {
		if s.Pattern, s.MinLength = pattern, new(1); most > 0 {
			s.MaxLength = &most
		}
	}
}

// textOf is any text of least to most characters.
func textOf(least, most int) bound {
	return func(s *huma.Schema) { s.MinLength, s.MaxLength = &least, &most }
}

// numberFrom is a number from least to most.
func numberFrom(least, most float64) bound {
	return func(s *huma.Schema) { s.Minimum, s.Maximum = &least, &most }
}

// wholeFrom is a whole number as a parameter. The reader sees a string.
func wholeFrom(least, most int) bound {
	return allOf(numberFrom(float64(least), float64(most)), func(s *huma.Schema) {
		s.Type, s.Pattern, s.Examples = huma.TypeInteger, "", nil
	})
}

// defaulting is the default of a parameter.
func defaulting(value int) bound { return func(s *huma.Schema) { s.Default = value } }

// lasting is a length of time from least to most. JSON Schema has no keywords for that.
func lasting(least, most time.Duration) bound {
	return func(s *huma.Schema) {
		s.Type, s.Pattern, s.MaxLength = huma.TypeString, contract.DurationPattern, new(span.MaxText)
		s.Examples = []any{span.Format(max(least, min(most, 30*time.Second)))}
		s.Extensions = map[string]any{"x-minimum": span.Format(least), "x-maximum": span.Format(most)}
		s.Description = strings.TrimLeft(s.Description+"; ", "; ") + wire.Between(span.Format(least), span.Format(most))
	}
}

// listOf is a list of least to most elements, each within its own bounds.
func listOf(least, most int, each bound) bound {
	return func(s *huma.Schema) {
		if s.MaxItems = &most; least > 0 {
			s.MinItems = &least
		}
		if each != nil {
			each(s.Items)
		}
	}
}

// mapOf is an object of strings with at most that many entries.
func mapOf(most int, name map[string]any, each bound) bound {
	return func(s *huma.Schema) {
		s.MaxProperties = &most
		s.Extensions = map[string]any{"propertyNames": name}
		each(s.AdditionalProperties.(*huma.Schema))
	}
}

// anyCase is a pattern for these words in small or capital letters.
func anyCase(words []string) string {
	var b strings.Builder
	for i, w := range words {
		b.WriteString(map[bool]string{true: "^(", false: "|"}[i == 0])
		for _, c := range w {
			fmt.Fprintf(&b, "[%c%c]", unicode.ToUpper(c), c)
		}
	}
	return b.String() + ")$"
}

// formatted is a text with a named format, which says more than its pattern.
func formatted(format, pattern string, most int) bound {
	return allOf(matching(pattern, most), func(s *huma.Schema) { s.Format = format })
}

const (
	datePattern    = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
	yearlyPattern  = `^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
	jobIDPattern   = `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	keyPattern     = `^[ -~]+$`
	pointerPattern = `^/`
	zonePattern    = `^[A-Za-z0-9_+/-]+$`
	cursorPattern  = `^[A-Za-z0-9_-]+$`
	// without those of text.Hidden
	printable   = "^[^\\x00-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$"
	jobIDLength = 26
	maxTimeText = 35 // 2027-03-28T01:00:00.123456789+02:00
)

var (
	reasonForm  = allOf(textOf(0, contract.MaxReason), func(s *huma.Schema) { s.Pattern = printable })
	nameForm    = matching(contract.NamePattern, contract.MaxName)
	instantForm = formatted("date-time", wire.InstantPattern.String(), maxTimeText)
	keyForm     = matching(keyPattern, contract.MaxIdempotencyKey)
	sizeForm    = matching(resultSizes, len("262144KiB"))
	idForm      = matching(jobIDPattern, jobIDLength)
	scopeForm   = matching("^(all|"+job.PauseTaskPrefix+strings.Trim(contract.NamePattern, "^$")+")$",
		len(job.PauseTaskPrefix)+contract.MaxName)
	zoneForm = formatted("time-zone", zonePattern, 0)
	tagName  = map[string]any{"minLength": 1, "maxLength": contract.MaxTagKey, "pattern": printable}
	tagsForm = mapOf(contract.MaxTags, tagName, func(s *huma.Schema) {
		s.MaxLength, s.Pattern = new(contract.MaxTagValue), printable
	})
	literalsForm = listOf(0, maxLiterals, formatted("json-pointer", pointerPattern, maxLiteral))
	taskForm     = allOf(nameForm, func(s *huma.Schema) {
		s.Description = strings.Join(executor.BuiltIn(), ", ") + ", or one of your own"
	})
	delayForm   = lasting(0, contract.MaxAhead)
	windowForm  = lasting(contract.MinWindow, contract.MaxWindow)
	timeoutForm = allOf(lasting(contract.MinTimeout, contract.MaxTimeoutLong), func(s *huma.Schema) {
		s.Description += "; beyond " + span.Format(contract.MaxTimeout) + " only in pool long"
	})
)

// payloads lists the payloads of all executors.
func payloads(s *huma.Schema) {
	s.AnyOf = nil
	for _, k := range executor.Kinds() {
		if k.Payload != nil {
			s.AnyOf = append(s.AnyOf, ref(reflect.TypeOf(k.Payload).Name()))
		}
	}
	s.AnyOf = append(s.AnyOf, &huma.Schema{Description: "What your own handler takes"})
}

// executors lists the executors and what each does.
func executors(s *huma.Schema) {
	oneOf(executor.Names())(s)
	var about []string
	for _, k := range executor.Kinds() {
		about = append(about, k.Name+": "+k.About)
	}
	s.Description = strings.Join(about, "; ")
}

// narrowed applies keywords to a schema. The keywords for all values of an object go to the schema that it has for
// them.
func narrowed(words executor.Keywords) bound {
	return func(s *huma.Schema) {
		s.Extensions = maps.Clone(map[string]any(words))
		if each, ok := words["additionalProperties"].(executor.Keywords); ok {
			narrowed(each)(s.AdditionalProperties.(*huma.Schema))
			delete(s.Extensions, "additionalProperties")
		}
		if format, ok := words["format"].(string); ok {
			s.Format = format
			delete(s.Extensions, "format")
		}
	}
}

// documentPayloads adds the schemas of the executors' payloads.
func documentPayloads(registry huma.Registry) {
	for _, k := range executor.Kinds() {
		if k.Payload == nil {
			continue
		}
		t := reflect.TypeOf(k.Payload)
		registry.Schema(t, true, "")
		schemas := registry.Map()
		schemas[t.Name()].Description = "Payload of executor " + k.Name + ": " + k.About
		if k.Loose {
			schemas[t.Name()].AdditionalProperties = true
		}
		for name, fields := range k.Bounds {
			for field, words := range fields {
				narrowed(words)(schemas[name].Properties[field])
			}
		}
	}
}

const schemaPrefix = "#/components/schemas/"

func ref(name string) *huma.Schema { return &huma.Schema{Ref: schemaPrefix + name} }

// fieldBounds are the bounds of one schema's fields.
type fieldBounds map[string]bound

func (f fieldBounds) and(more fieldBounds) fieldBounds {
	f = maps.Clone(f)
	maps.Copy(f, more)
	return f
}

var (
	runBounds = fieldBounds{
		"task": taskForm, "payload": payloads, "priority": oneOf(contract.Priorities), "pool": oneOf(contract.Pools),
		"timeout":      timeoutForm,
		"start_within": windowForm, "expire_after": windowForm, "allow_literals": literalsForm,
	}.and(labelBounds)
	timeBounds = fieldBounds{"run_at": instantForm, "delay": delayForm}
	jobBounds  = runBounds.and(timeBounds).and(fieldBounds{
		"after": listOf(0, contract.MaxAfter, idForm), "run_if": oneOf(dag.Rules),
	})
	shownBounds = fieldBounds{"pool": oneOf(contract.Pools), "priority": oneOf(contract.Priorities)}
)

// bounds are the bounds of fields, by the names of schemas.
var bounds = map[string]fieldBounds{
	"JobRequest": jobBounds,
	"BatchJobRequest": jobBounds.and(fieldBounds{
		"idempotency_key": keyForm, "after": listOf(0, contract.MaxAfter, matching(parentPattern, jobIDLength)),
	}),
	"BatchRequest":    {"jobs": listOf(1, contract.MaxBatchJobs, nil)},
	"JobPatchRequest": runBounds.and(timeBounds),
	"RetryRequest": {
		"max_attempts":   numberFrom(1, contract.MaxAttempts),
		"initial_delay":  lasting(0, contract.MaxInitialDelay),
		"factor":         numberFrom(1, contract.MaxFactor),
		"max_delay":      lasting(time.Millisecond, contract.MaxRetryDelay),
		"jitter":         numberFrom(0, 1),
		"on_worker_lost": oneOf(lostWords),
	},
	"TaskRequest": runBounds.and(fieldBounds{
		"executor": executors, "payload_schema": anySchema, "max_result": sizeForm,
		"on_large_result": oneOf(largeWords),
	}),
	"PauseRequest":  {"reason": reasonForm, "until": instantForm, "missed": oneOf(missedWords)},
	"ResumeRequest": {"missed": oneOf(missedWords)},
	"DeadLettersRequest": {
		"job_ids": listOf(1, contract.RedriveMax, idForm), "limit": numberFrom(1, contract.RedriveMax),
		// "" begins at the beginning
		"cursor": allOf(matching(`^$|`+cursorPattern, wire.MaxCursor), textOf(0, wire.MaxCursor)),
	},
	"DeadLetterFilterRequest": {"task": nameForm, "dead_after": instantForm, "dead_before": instantForm},
	"PreviewRequest":          {"name": nameForm, "after": instantForm, "count": numberFrom(1, calendar.MaxPreview)},
	"CalendarRequest": {
		"cron":          formatted("cron", `\S`, calendar.MaxCron),
		"every":         lasting(time.Second, calendar.MaxEvery),
		"phase":         lasting(0, calendar.MaxEvery),
		"dates":         listOf(1, calendar.MaxDates, instantForm),
		"rrule":         formatted("rrule", `[Ff][Rr][Ee][Qq]=`, calendar.MaxRRule),
		"timezone":      zoneForm,
		"start_at":      instantForm,
		"end_at":        instantForm,
		"max_runs":      numberFrom(1, calendar.MaxRuns),
		"exclude":       listOf(0, calendar.MaxExclude, nameForm),
		"missing_hour":  oneOf(calendar.MissingHours),
		"repeated_hour": oneOf(calendar.RepeatedHours),
		"spread":        lasting(time.Millisecond, calendar.MaxSpread),
	},
	"ScheduleRequest": {
		"overlap": oneOf(schedule.Overlaps), "pause_after_failures": numberFrom(0, schedule.MaxPauseAfter),
	},
	"JobTemplateRequest": runBounds, "DagTemplateRequest": dagTemplateBounds,
	"CatchUpRequest": {
		"policy": oneOf(schedule.Policies),
		"window": lasting(contract.MinWindow, schedule.MaxCatchUpWindow),
		"cap":    numberFrom(1, schedule.MaxCatchUpCap),
		"after":  lasting(schedule.MinCatchUpAfter, schedule.MaxCatchUpAfter),
	},
	"RunNowRequest": {"overlap": oneOf(runNowOverlaps)},
	"ExclusionRequest": {
		"dates":    listOf(0, calendar.MaxDates, formatted("date", datePattern, len(time.DateOnly))),
		"ranges":   listOf(0, calendar.MaxRanges, nil),
		"yearly":   listOf(0, maxYearly, matching(yearlyPattern, len("12-25"))),
		"weekly":   listOf(0, maxWeekly, matching(anyCase(calendar.Weekdays), 3)),
		"timezone": zoneForm, "move": oneOf(moveWords),
	},
	"ExclusionRangeRequest": {"from": dayForm, "to": dayForm},

	"DagRequest": dagBounds, "NodeRequest": nodeBounds, "DagRunRequest": dagRunBounds, "RunRequest": runOptionBounds,
	"RunActRequest": actBounds, "RunRetryRequest": actBounds.and(fieldBounds{"from": nameForm}),
	"NodeSkipRequest":     actBounds.and(fieldBounds{"children": oneOf(skipWords)}),
	"NodeCompleteRequest": actBounds,

	"JobView": shownBounds.and(fieldBounds{"run_if": oneOf(dag.Rules)}), "DeadLetter": shownBounds,
	"Problem": {"code": oneOf(codes())}, "Mistake": {"code": oneOf(codes())},
	"TaskView": shownBounds.and(fieldBounds{"executor": oneOf(executor.Names())}), "JobTemplateView": shownBounds,
	"PauseView":         {"scope": scopeForm, "missed": oneOf(missedWords)},
	"SchedulePauseView": {"missed": oneOf(missedWords)},
}

// dayForm is a day or an instant.
var dayForm = matching(datePattern+"|"+wire.InstantPattern.String(), maxTimeText)

// parameterBounds are the bounds of path, query and header parameters. A name means the same in all operations, except
// in ownParameterBounds.
var parameterBounds = fieldBounds{
	"limit":  allOf(wholeFrom(1, contract.ListMax), defaulting(contract.ListDefault)),
	"cursor": matching(cursorPattern, wire.MaxCursor),
	"count":  allOf(wholeFrom(1, calendar.MaxPreview), defaulting(contract.PreviewDefault)),
	"wait":   lasting(0, contract.MaxWait),
	"name":   nameForm, "dag": nameForm, "node": nameForm, "task": nameForm, "schedule": nameForm, "id": idForm,
	"scope":          scopeForm,
	"status":         oneOf(job.Statuses),
	"outcome":        oneOf(outcomes),
	"format":         oneOf(graphForms),
	"version":        wholeFrom(1, maxVersion),
	"dry_run":        func(s *huma.Schema) { s.Type = huma.TypeBoolean },
	"created_after":  instantForm,
	"created_before": instantForm,
	"dead_after":     instantForm,
	"dead_before":    instantForm,
	"after":          instantForm,
	"before":         instantForm,
	"If-Match":       matching(`^\*$|`+matchPattern.String(), 0), "Idempotency-Key": keyForm,
	"code": oneOf(codes()),
}

func codes() []string {
	all := make([]string, len(catalogue))
	for i, e := range catalogue {
		all[i] = e.Code
	}
	return all
}

// hasAll is an object with all these fields.
func hasAll(names ...string) *huma.Schema { return &huma.Schema{Required: names} }

func hasAny(names []string) *huma.Schema {
	of := make([]*huma.Schema, len(names))
	for n, name := range names {
		of[n] = hasAll(name)
	}
	return isEither(of...)
}

func isNot(s *huma.Schema) *huma.Schema { return &huma.Schema{Not: s} }

func isEither(of ...*huma.Schema) *huma.Schema { return &huma.Schema{AnyOf: of} }

// hasSome is an object with a list of that name that is not empty.
func hasSome(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: {MinItems: new(1)}}}
}

// hasNull is an object whose field is null; hasValue is one whose field is anything else.
func hasNull(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: {Type: "null"}}}
}

func hasValue(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name},
		Properties: map[string]*huma.Schema{name: isNot(&huma.Schema{Type: "null"})}}
}

// ruleOfNone is an object with run_if but without after.
var ruleOfNone = &huma.Schema{AllOf: []*huma.Schema{hasAll("run_if"), isNot(hasAll("after"))}}

// refusals are schemas that an object must not match. Generators of clients ignore them; validators apply them.
var refusals = map[string]*huma.Schema{
	"JobRequest":      isEither(hasAll("run_at", "delay"), ruleOfNone),
	"BatchJobRequest": isEither(hasAll("run_at", "delay"), ruleOfNone),
	"DagRunRequest":   hasAll("run_at", "delay"),
	"RunRequest":      hasAll("run_at", "delay"),
	"JobPatchRequest": isEither(
		hasAll("run_at", "delay"),
		&huma.Schema{AllOf: []*huma.Schema{hasAll("allow_literals"), isNot(hasAny(literalFields))}},
	),
	"DeadLettersRequest": isEither(
		hasAll("job_ids", "filter"), hasAll("job_ids", "limit"), hasAll("job_ids", "cursor"),
		isNot(isEither(hasAll("job_ids"), hasAll("filter"))),
	),
	"ScheduleRequest": isEither(hasAll("job", "dag"), isNot(isEither(hasAll("job"), hasAll("dag")))),
	"SchedulePatchRequest": isEither(
		&huma.Schema{AllOf: []*huma.Schema{hasValue("job"), hasValue("dag")}},
		&huma.Schema{AllOf: []*huma.Schema{hasNull("job"), isNot(hasValue("dag"))}},
		&huma.Schema{AllOf: []*huma.Schema{hasNull("dag"), isNot(hasValue("job"))}},
	),
	"CalendarPatchRequest": isNot(ofOneForm()),
	"ExclusionRequest":     isNot(isEither(hasSome("dates"), hasSome("ranges"), hasSome("yearly"), hasSome("weekly"))),
}

// changes are bodies that must have at least one field.
var changes = []string{"JobPatchRequest", "SchedulePatchRequest"}

func closedObject() *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{}}
}

// calendars turns the schema of a calendar into one of its four forms.
func calendars(schemas map[string]*huma.Schema) {
	whole := schemas["CalendarRequest"]
	whole.OneOf = nil
	for _, form := range calendarForms {
		s := closedObject()
		s.Required = form.own[:1]
		for name, field := range whole.Properties {
			if !slices.Contains(form.others(), name) {
				s.Properties[name] = field
			}
		}
		schemas[form.schema] = s
		whole.OneOf = append(whole.OneOf, ref(form.schema))
	}
	whole.Type, whole.Properties, whole.AdditionalProperties, whole.Required = "", nil, nil, nil
}

// patchOf makes the schema of a merge patch (RFC 7396) from a whole schema: no field is required, and null removes an
// optional one. Nested objects are patched too.
func patchOf(schemas map[string]*huma.Schema, name string) *huma.Schema {
	whole, patch := schemas[name], strings.TrimSuffix(name, "Request")+"PatchRequest"
	s := closedObject()
	for field, is := range whole.Properties {
		p := *is
		if inner, ok := strings.CutPrefix(p.Ref, schemaPrefix); ok {
			p = *patchOf(schemas, inner)
		}
		switch {
		case slices.Contains(whole.Required, field):
		case p.Ref != "":
			p = huma.Schema{AnyOf: []*huma.Schema{ref(strings.TrimPrefix(p.Ref, schemaPrefix)), {Type: "null"}}}
		case p.Type != "":
			p = nullable(p)
			if each, ok := p.AdditionalProperties.(*huma.Schema); ok {
				one := nullable(*each)
				p.AdditionalProperties = &one
			}
		}
		s.Properties[field] = &p
	}
	schemas[patch], s.Not = s, refusals[patch]
	return ref(patch)
}

func nullable(s huma.Schema) huma.Schema {
	if s.Nullable = true; s.Enum != nil {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	return s
}

// ofOneForm is a patch whose fields all belong to one form of a calendar.
func ofOneForm() *huma.Schema {
	either := &huma.Schema{}
	for _, form := range calendarForms {
		null := &huma.Schema{Properties: map[string]*huma.Schema{}}
		for _, name := range form.others() {
			null.Properties[name] = &huma.Schema{Type: "null"}
		}
		either.AnyOf = append(either.AnyOf, null)
	}
	return either
}

// schemaName shortens the names of schemas: PageJobView becomes JobPage, BatchAnswerBody becomes BatchAnswer.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if of, ok := strings.CutPrefix(name, "Page"); ok {
		return strings.TrimSuffix(of, "View") + "Page"
	}
	if of, ok := strings.CutSuffix(name, "AnswerBody"); ok {
		return of + "Answer"
	}
	return name
}

// document returns the OpenAPI document. Answers may grow, so their schemas allow unknown fields; the bodies that we
// read must not have any.
func (s *stage) document() ([]byte, error) {
	doc := s.router.OpenAPI()
	registry := doc.Components.Schemas
	documentPayloads(registry)
	schemas := registry.Map()
	for name, schema := range schemas {
		for field, narrow := range bounds[name] {
			if f := schema.Properties[field]; f != nil {
				narrow(f)
			}
		}
		schema.Not = refusals[name]
		if !isRead(name) && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
	patchOf(schemas, "ScheduleRequest")
	for _, name := range changes {
		schemas[name].MinProperties = new(1)
	}
	calendars(schemas)
	for _, path := range doc.Paths {
		for _, op := range operations(path) {
			documentOperation(op)
		}
	}
	whole, err := text.JSON(doc)
	return []byte(limits.Replace(string(whole))), err
}

// isRead reports whether a schema is of a body that we read.
func isRead(name string) bool {
	return strings.HasSuffix(name, "Request") ||
		slices.ContainsFunc(executor.Kinds(), func(k executor.Kind) bool { return k.Bounds[name] != nil && !k.Loose })
}

func operations(p *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		http.MethodGet: p.Get, http.MethodPost: p.Post, http.MethodPut: p.Put, http.MethodPatch: p.Patch,
		http.MethodDelete: p.Delete,
	}
	maps.DeleteFunc(all, func(_ string, op *huma.Operation) bool { return op == nil })
	return all
}

func documentOperation(op *huma.Operation) {
	for _, p := range op.Parameters {
		narrow := parameterBounds[p.Name]
		if own := ownParameterBounds[op.OperationID][p.Name]; own != nil {
			narrow = own
		}
		if narrow != nil {
			narrow(p.Schema)
		}
		if p.Schema.Extensions != nil || p.Description == "" {
			p.Description = p.Schema.Description
		}
	}
}

// resultSizes are the sizes from contract.MinMaxResult to contract.MaxResult, in each unit of package text that can say
// one; a schema has no bounds for a number in a text.
const resultSizes = `^(([1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-6])KiB` +
	`|([2-9]|[1-9][0-9]|1[0-9]{2}|2[0-5][0-9]|26[0-2])KB` +
	`|(102[4-9]|10[3-9][0-9]|1[1-9][0-9]{2}|[2-9][0-9]{3}|[1-9][0-9]{4}|1[0-9]{5}|2[0-5][0-9]{4}|26[01][0-9]{3})B)$`
