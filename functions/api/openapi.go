package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/admin"
	"punctual/functions/api/dags"
	"punctual/functions/api/field"
	forecastapi "punctual/functions/api/forecast"
	"punctual/functions/api/jobs"
	"punctual/functions/api/rest"
	"punctual/functions/api/schedules"
	"punctual/functions/api/spec"
	usageapi "punctual/functions/api/usage"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/text"
)

// This file makes the OpenAPI document as strict as the readers. Request bodies are stated by their fields (package
// field); parameters and answers are Go types, and the tables below say what they may hold.

var scopeForm = field.Matching("^(all|"+job.PauseTaskPrefix+strings.Trim(contract.NamePattern, "^$")+")$",
	len(job.PauseTaskPrefix)+contract.MaxName)

// narrowed applies keywords to a schema. The keywords for all values of an object go to the schema that it has for
// them.
func narrowed(words executor.Keywords) field.Bound {
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

// fieldBounds are the bounds of one schema's fields.
type fieldBounds map[string]field.Bound

var shownBounds = fieldBounds{"pool": field.OneOf(contract.Pools), "priority": field.OneOf(contract.Priorities)}

func (f fieldBounds) and(more fieldBounds) fieldBounds {
	f = maps.Clone(f)
	maps.Copy(f, more)
	return f
}

// bounds are the bounds of fields in answers, by the names of schemas.
var bounds = map[string]fieldBounds{
	"JobView": shownBounds.and(fieldBounds{"run_if": field.OneOf(dag.Rules)}), "DeadLetter": shownBounds,
	"Problem": {"code": field.OneOf(codes())}, "ProblemError": {"code": field.OneOf(codes())},
	"TaskView": shownBounds.and(fieldBounds{
		"executor": field.OneOf(append(executor.Names(), executor.Webhook)),
	}),
	"JobTemplateView":   shownBounds,
	"DeliveryView":      shownBounds.and(fieldBounds{"run_if": field.OneOf(dag.Rules)}),
	"WebhookRequest":    webhookBounds,
	"PauseView":         {"scope": scopeForm, "missed": field.OneOf(spec.MissedValues)},
	"SchedulePauseView": {"missed": field.OneOf(spec.MissedValues)},
}

// webhookBounds are those of a payload of the http executor.
var webhookBounds = func() fieldBounds {
	f := fieldBounds{}
	for name, words := range executor.WebhookBounds() {
		f[name] = narrowed(words)
	}
	return f
}()

// ownParameterBounds replace parameterBounds where an operation gives a parameter another meaning.
var ownParameterBounds = map[string]fieldBounds{
	"listRuns":        {"status": field.OneOf(dag.RunStatuses)},
	"listJobs":        searchBounds.and(fieldBounds{"id": field.Matching(spec.IDPrefixPattern, spec.JobIDLength)}),
	"listDeadLetters": searchBounds,
	"getAttemptLog":   {"from": field.WholeParameter(0, job.MaxLogPosition-1)},
	"getForecast":     {"step": field.Lasting(forecastapi.MinStep, forecastapi.MaxStep)},
	"listCalmMinutes": {"count": field.All(field.WholeParameter(1, forecastapi.CalmMost),
		field.Default(forecastapi.CalmDefault))},
	"listUsage": {"by": field.Matching(usageapi.ByPattern, usageapi.MaxBy)},
	"listAudit": {"actor": field.Characters(1, admin.MaxActor), "resource": field.Characters(1, admin.MaxResource),
		"action": field.OneOf(audit.Actions())},
}

// searchBounds are the bounds of parameters of a search.
var searchBounds = fieldBounds{"code": field.Characters(1, contract.MaxErrorCode)}

// parameterBounds are the bounds of path, query and header parameters. A name means the same in all operations, except
// in ownParameterBounds.
var parameterBounds = fieldBounds{
	"limit":  field.All(field.WholeParameter(1, contract.ListMax), field.Default(contract.ListDefault)),
	"cursor": field.Matching(rest.CursorPattern, rest.MaxCursor),
	"count":  field.All(field.WholeParameter(1, calendar.MaxPreview), field.Default(contract.PreviewDefault)),
	"wait":   field.Lasting(0, contract.MaxWait),
	"follow": field.Lasting(0, contract.MaxWait),
	"n":      field.WholeParameter(1, spec.MaxVersion),
	"name":   spec.NameForm, "dag": spec.NameForm, "node": spec.NameForm, "task": spec.NameForm,
	"schedule": spec.NameForm, "id": spec.IDForm,
	"scope":           scopeForm,
	"status":          field.OneOf(job.Statuses),
	"outcome":         field.OneOf(show.Outcomes),
	"format":          field.OneOf(dags.GraphForms),
	"version":         field.WholeParameter(1, spec.MaxVersion),
	"dry_run":         func(s *huma.Schema) { s.Type = huma.TypeBoolean },
	"created_after":   spec.InstantForm,
	"created_before":  spec.InstantForm,
	"due_after":       spec.InstantForm,
	"due_before":      spec.InstantForm,
	"finished_after":  spec.InstantForm,
	"finished_before": spec.InstantForm,
	"run_id":          spec.IDForm, "pool": field.OneOf(contract.Pools), "priority": field.OneOf(contract.Priorities),
	"group": field.Matching(search.GroupPattern, search.GroupLength), "order": field.OneOf(jobs.Orders),
	"dead_after":  spec.InstantForm,
	"dead_before": spec.InstantForm,
	"after":       spec.InstantForm,
	"before":      spec.InstantForm,
	"from":        spec.InstantForm,
	"to":          spec.InstantForm,
	"between":     field.Matching(forecastapi.BetweenPattern, 0),
	"timezone":    spec.ZoneForm,
	"If-Match":    field.Matching(`^\*$|`+rest.MatchPattern.String(), 0), "Idempotency-Key": spec.KeyForm,
	"code": field.OneOf(codes()),
}

func codes() []string {
	all := make([]string, len(spec.Catalogue))
	for i, e := range spec.Catalogue {
		all[i] = e.Code
	}
	return all
}

// schemaName shortens the names of schemas: PageJobView becomes JobPage, BatchAnswerBody becomes BatchAnswer.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if of, ok := strings.CutPrefix(strings.TrimPrefix(name, "Search"), "Page"); ok {
		return strings.TrimSuffix(of, "View") + "Page"
	}
	if of, ok := strings.CutSuffix(name, "AnswerBody"); ok {
		return of + "Answer"
	}
	return name
}

// document completes the OpenAPI document of the routes. Answers may grow, so their schemas allow unknown fields; the
// bodies that we read must not have any.
func document(doc *huma.OpenAPI) ([]byte, error) {
	doc.Tags, doc.Servers = tags, []*huma.Server{{URL: "/", Description: "The server of this document"}}
	registry := doc.Components.Schemas
	documentPayloads(registry)
	schemas := registry.Map()
	for name, schema := range schemas {
		for field, narrow := range bounds[name] {
			if f := schema.Properties[field]; f != nil {
				narrow(f)
			}
		}
		if !isRead(name) && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
	describe(schemas)
	schedules.Document(schemas)
	describe(schemas) // those that it has added
	for path, item := range doc.Paths {
		for _, op := range rest.Operations(item) {
			documentOperation(op)
			describeOperation(path, op)
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
