package executor_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/executor"
)

func TestKinds_AreNamedOnceAndSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range executor.Kinds() {
		if !regexp.MustCompile(contract.NamePattern).MatchString(k.Name) || seen[k.Name] || k.About == "" {
			t.Errorf("executor %q, about %q", k.Name, k.About)
		}
		seen[k.Name] = true
		if got, ok := executor.Named(k.Name); !ok || got.About != k.About {
			t.Errorf("%s is not found by its name", k.Name)
		}
		if k.NeedsPayload() && k.Check == nil {
			t.Errorf("%s needs a payload that nobody checks", k.Name)
		}
	}
	if _, ok := executor.Named("fax"); ok {
		t.Error("an executor is found that there is none of")
	}
	if got := strings.Join(executor.BuiltIn(), " "); got != "echo http lambda" {
		t.Errorf("the built-in ones are %s", got)
	}
}

// typesOf lists the struct types that a payload is made of, by name.
func typesOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{t.Name(): t}
	for i := range t.NumField() {
		if f := t.Field(i).Type; f.Kind() == reflect.Struct {
			all[f.Name()] = f
		}
	}
	return all
}

func TestKinds_BoundFieldsThatThereAre(t *testing.T) {
	t.Parallel()
	for _, k := range executor.Kinds() {
		if k.Payload == nil {
			continue
		}
		types := typesOf(reflect.TypeOf(k.Payload))
		for name, fields := range k.Bounds {
			known := map[string]bool{}
			if types[name] == nil {
				t.Fatalf("%s bounds %s, which is no part of its payload", k.Name, name)
			}
			for i := range types[name].NumField() {
				field, _, _ := strings.Cut(types[name].Field(i).Tag.Get("json"), ",")
				known[field] = true
			}
			for field, words := range fields {
				if !known[field] {
					t.Errorf("%s has no field %s", name, field)
				}
				if _, err := json.Marshal(words); err != nil {
					t.Errorf("the bounds of %s.%s: %v", name, field, err)
				}
			}
		}
	}
}

func TestSQSPayload_BodyIsATextAsItIsAndAnythingElseAsJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", executor.MaxMessage)
	for message, want := range map[string]string{
		`"paid"`:              "paid",
		`"a \u00e9 \n <b>"`:   "a é \n <b>",
		`{"n":1.0,"s":"<b>"}`: `{"n":1.0,"s":"<b>"}`,
		`null`:                "null",
		`12e3`:                "12e3",
		"[\"\uffff\"]":        `["\uffff"]`, // as an escape, or SQS would refuse it
		`"` + long + `"`:      long,
	} {
		if got, ok := (executor.SQSPayload{Message: json.RawMessage(message)}).Body(); got != want || !ok {
			t.Errorf("%.50s is sent as %.50q, %v; want %.50q", message, got, ok, want)
		}
	}
	for _, message := range []string{``, `""`, `"a\u0000"`, "\"\uffff\"", `"` + long + `x"`, `["` + long + `"]`,
		`"broken`} {
		if got, ok := (executor.SQSPayload{Message: json.RawMessage(message)}).Body(); ok {
			t.Errorf("%.50s would be sent as %.50q", message, got)
		}
	}
}
