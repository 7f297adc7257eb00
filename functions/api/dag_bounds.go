package api

import (
	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/contract"
	"punctual/shared/dag"
)

// nodeName is the form of the names of nodes and of params.
var nodeName = map[string]any{"minLength": 1, "maxLength": contract.MaxName, "pattern": contract.NamePattern}

// byName bounds an object with entries by name; each entry has its own schema.
func byName(least, most int) bound {
	return func(s *huma.Schema) {
		mapOf(most, nodeName, func(*huma.Schema) {})(s)
		if least > 0 {
			s.MinProperties = &least
		}
	}
}

// anyParams is an object with any values.
func anyParams(s *huma.Schema) {
	s.Type, s.AdditionalProperties = huma.TypeObject, true
	s.Extensions = map[string]any{"propertyNames": nodeName}
}

// anySchema is a JSON Schema. It says that an object may have any fields, because generators of TypeScript take one
// that says nothing for one without fields.
func anySchema(s *huma.Schema) {
	s.AnyOf = []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: true}, {Type: huma.TypeBoolean}}
	s.Format = "json-schema"
}

var (
	dagBounds = fieldBounds{
		"nodes": byName(1, dag.MaxNodes), "params": anyParams, "params_schema": anySchema,
		"on_failure": oneOf(dag.Policies), "max_concurrency": numberFrom(1, dag.MaxJobs), "expire_after": windowForm,
		"priority": oneOf(contract.Priorities), "tags": tagsForm, "allow_literals": literalsForm,
	}
	nodeBounds = fieldBounds{
		"task": taskForm, "payload": func(s *huma.Schema) {}, "priority": oneOf(contract.Priorities),
		"pool": oneOf(contract.Pools), "timeout": timeoutForm, "start_within": windowForm, "tags": tagsForm,
		"depends_on": listOf(0, dag.MaxNodes, nameForm), "run_if": oneOf(dag.Rules),
		"when": matching(`\S`, dag.MaxExpression), "for_each": matching(`\S`, dag.MaxExpression),
		"max_parallel": numberFrom(1, dag.MaxItems), "allow_literals": literalsForm,
	}
	runOptionBounds = fieldBounds{
		"params": anyParams, "run_at": instantForm, "delay": delayForm, "priority": oneOf(contract.Priorities),
		"expire_after": windowForm, "tags": tagsForm, "allow_literals": literalsForm,
	}
	dagRunBounds      = runOptionBounds.and(fieldBounds{"version": numberFrom(1, maxVersion)})
	dagTemplateBounds = fieldBounds{
		"name": nameForm, "version": numberFrom(1, maxVersion), "params": anyParams,
		"priority": oneOf(contract.Priorities), "start_within": windowForm, "expire_after": windowForm,
		"tags": tagsForm, "allow_literals": literalsForm,
	}
	actBounds = fieldBounds{"reason": reasonForm}

	// ownParameterBounds replace parameterBounds where an operation gives a parameter another meaning.
	ownParameterBounds = map[string]fieldBounds{"listRuns": {"status": oneOf(dag.RunStatuses)}}
)
