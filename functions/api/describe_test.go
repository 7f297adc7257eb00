package api

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/shared/store"
)

// dangling are the words with which no description begins: a description begins with its noun.
var dangling = regexp.MustCompile(`^(?i:of|as|those|what|its|and|that|which|with|from)\b`)

// textErrors returns what is wrong with the texts of a document: descriptions and summaries that are missing, empty or
// begin with a dangling word.
func textErrors(doc map[string]any) []string {
	var found []string
	needs := func(at string, v any, name string) {
		if s, _ := v.(map[string]any)[name].(string); strings.TrimSpace(s) == "" {
			found = append(found, at+" has no "+name)
		}
	}
	for name, s := range schemasOf(doc) {
		needs(name, s, "description")
		properties, _ := s.(map[string]any)["properties"].(map[string]any)
		for property, p := range properties {
			needs(name+"."+property, p, "description")
		}
	}
	for name, op := range eachOperation(doc) {
		needs(name, op, "summary")
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			needs(name+" "+p.(map[string]any)["name"].(string), p, "description")
		}
		responses, _ := op["responses"].(map[string]any)
		for status, r := range responses {
			headers, _ := r.(map[string]any)["headers"].(map[string]any)
			for header, h := range headers {
				needs(name+" "+status+" "+header, h, "description")
			}
		}
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for _, each := range v {
				walk(at, each)
			}
		case map[string]any:
			for name, each := range v {
				s, isText := each.(string)
				if isText && (name == "description" || name == "summary") && dangling.MatchString(s) {
					found = append(found, at+": "+s)
				}
				walk(at+"/"+name, each)
			}
		}
	}
	walk("", doc)
	slices.Sort(found)
	return found
}

func TestDocument_IsDescribedInTextsThatStandAlone(t *testing.T) {
	t.Parallel()
	for _, wrong := range textErrors(served(t, Deps{Store: &store.Store{}})) {
		t.Error(wrong)
	}
}

func TestTextErrors_FindsEachError(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	of := func(schema, op object) object {
		return object{
			"components": object{"schemas": object{"Job": schema}}, "paths": object{"/v1/jobs": object{"get": op}},
		}
	}
	right := func() (schema, op object) {
		return object{"description": "Job.", "properties": object{"at": object{"description": "Time"}}}, object{
			"summary":    "List jobs",
			"parameters": []any{object{"name": "limit", "description": "Maximum"}},
			"responses":  object{"200": object{"headers": object{"ETag": object{"description": "Version"}}}},
		}
	}
	if found := textErrors(of(right())); len(found) > 0 {
		t.Errorf("a document without errors has %q", found)
	}
	for want, plant := range map[string]func(schema, op object){
		"Job has no description": func(schema, _ object) { delete(schema, "description") },
		"Job.at has no description": func(schema, _ object) {
			schema["properties"] = object{"at": object{"description": " "}}
		},
		"GET /v1/jobs has no summary": func(_, op object) {
			delete(op, "summary")
		},
		"GET /v1/jobs limit has no description": func(_, op object) {
			op["parameters"] = []any{object{"name": "limit"}}
		},
		"GET /v1/jobs 200 ETag has no description": func(_, op object) {
			op["responses"] = object{"200": object{"headers": object{"ETag": object{}}}}
		},
		"/components/schemas/Job: Of its kind": func(schema, _ object) { schema["description"] = "Of its kind" },
		"/paths//v1/jobs/get: As jobs":         func(_, op object) { op["summary"] = "As jobs" },
	} {
		schema, op := right()
		plant(schema, op)
		found := textErrors(of(schema, op))
		if !slices.Equal(found, []string{want}) {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

// A text of a schema that is not in the document describes nothing.
func TestDescribe_HasNoTextOfAnAbsentSchema(t *testing.T) {
	t.Parallel()
	schemas := schemasOf(served(t, Deps{Store: &store.Store{}}))
	for _, name := range slices.Sorted(maps.Keys(schemaTexts)) {
		if schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	for of, request := range statedIn {
		if schemas[of] == nil || schemas[request] == nil {
			t.Errorf("there is no schema %s or %s", of, request)
		}
	}
}
