package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is what is used here of an OpenAPI schema. What is not listed there may not be in an
// object, as Kubernetes would drop it silently.
type schema struct {
	Type       string
	Properties map[string]*schema
	More       json.RawMessage `json:"additionalProperties"`
	Items      *schema
	Required   []string
	Enum       []any
	Pattern    string
	Minimum    *float64
	Maximum    *float64
	MinLength  *int
	MinItems   *int
	IntOrText  bool `json:"x-kubernetes-int-or-string"`
}

// wrong lists the violations in v, each with its path.
func (s *schema) wrong(at string, v any) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, at+" "+fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		say("is %v, not one of %v", v, s.Enum)
	}
	switch x := v.(type) {
	case map[string]any:
		if s.Type != "object" {
			say("is an object, not %s", s.Type)
		}
		for _, name := range s.Required {
			if _, ok := x[name]; !ok {
				say("lacks %s", name)
			}
		}
		for name, field := range x {
			inner := s.Properties[name]
			if inner == nil && len(s.More) > 0 {
				if err := json.Unmarshal(s.More, &inner); err != nil {
					say("cannot be judged: %v", err)
				}
			}
			if inner != nil {
				list = append(list, inner.wrong(at+"."+name, field)...)
			} else if s.Properties != nil {
				say("has %s, which is not known", name)
			}
		}
	case []any:
		if s.Type != "array" {
			say("is a list, not %s", s.Type)
			break
		}
		if s.MinItems != nil && len(x) < *s.MinItems {
			say("is too short")
		}
		for i, e := range x {
			list = append(list, s.Items.wrong(fmt.Sprintf("%s[%d]", at, i), e)...)
		}
	case string:
		if s.Type != "string" && !s.IntOrText {
			say("is text, not %s", s.Type)
		}
		if s.Pattern != "" && s.Type == "string" && !regexp.MustCompile(s.Pattern).MatchString(x) {
			say("is %q, which does not match %s", x, s.Pattern)
		}
		if s.MinLength != nil && len(x) < *s.MinLength {
			say("is too short")
		}
	case float64:
		if s.Type != "number" && (s.Type != "integer" || x != math.Trunc(x)) && !s.IntOrText {
			say("is %v, not %s", x, s.Type)
		}
		if s.Minimum != nil && x < *s.Minimum || s.Maximum != nil && x > *s.Maximum {
			say("is %v, which is too small or too large", x)
		}
	case bool:
		if s.Type != "boolean" {
			say("is %v, not %s", x, s.Type)
		}
	}
	return list
}

// asJSON is o as Kubernetes would get it.
func asJSON(t *testing.T, o any) any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func schemaOf(t *testing.T, kind string) *schema {
	t.Helper()
	text, err := os.ReadFile("testdata/schema/" + strings.ToLower(kind) + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestObjects_OfScalersAndNodePoolsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	validated := 0
	for _, o := range everything() {
		switch kind := o["kind"].(string); kind {
		case "NodePool", "ScaledObject", "TriggerAuthentication":
			validated++
			for _, w := range schemaOf(t, kind).wrong(kind, asJSON(t, o)) {
				t.Error(w)
			}
		}
	}
	if validated != 5 {
		t.Errorf("%d objects were judged; want a node pool and a scaler for each pool, and their identity", validated)
	}
}

func TestSchema_NamesUnknownFields(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(spec Object){
		"has pollInterval, which is not known": func(s Object) { s["pollInterval"] = 15 },
		"lacks scaleTargetRef":                 func(s Object) { delete(s, "scaleTargetRef") },
		"minReplicaCount is text":              func(s Object) { s["minReplicaCount"] = "1" },
		"maxReplicaCount is 0, which is too small": func(s Object) {
			s["maxReplicaCount"] = 0
		},
		"behavior is hold, not one of": func(s Object) { s["fallback"].(Object)["behavior"] = "hold" },
		"queueLength is 5, not string": func(s Object) {
			s["triggers"].([]any)[0].(Object)["metadata"].(Object)["queueLength"] = 5
		},
	} {
		o := pools()[0].Scaler("Punctual/dev", "slots_wanted")
		spoil(o["spec"].(Object))
		got := strings.Join(schemaOf(t, "ScaledObject").wrong("ScaledObject", asJSON(t, o)), "\n")
		if !strings.Contains(got, want) {
			t.Errorf("it is refused with %q; want %q", got, want)
		}
	}
}
