package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// limitedNode compiles a definition whose node last has those limits of work.
func limitedNode(t *testing.T, limits ...job.LimitKey) (*dag.Graph, error) {
	t.Helper()
	return dag.Compile(dag.Definition{
		Params: map[string]json.RawMessage{"account": json.RawMessage(`"acct-42"`), "n": json.RawMessage(`7`), "yes": json.RawMessage(`true`),
			"list": json.RawMessage(`[1]`), "none": json.RawMessage(`null`), "wide": json.RawMessage(`"` + strings.Repeat("x", 200) + `"`),
			"line": json.RawMessage(`"a\nb"`), "empty": json.RawMessage(`""`), "half": json.RawMessage(`1.50`)},
		Nodes: map[string]dag.Node{"last": {Task: "echo", Limits: &limits}},
	})
}

// paramFacts are the defaults of the params.
func paramFacts(t *testing.T, g *dag.Graph) dag.Facts {
	t.Helper()
	merged, _ := g.MergeParams(nil)
	params, err := dag.DecodeResult(merged)
	if err != nil {
		t.Fatal(err)
	}
	return dag.Facts{Params: params}
}

func TestGraph_MakesTheKeysOfLimits(t *testing.T) {
	t.Parallel()
	const github = "github"
	for name, c := range map[string]struct {
		key  string
		want string // of the error, if it begins with !
	}{
		"none":                    {"", ""},
		"a key":                   {"acct-1", "acct-1"},
		"a text":                  {"${params.account}", "acct-42"},
		"a text around":           {"a/${params.account}/${params.n}", "a/acct-42/7"},
		"a number":                {"${params.n}", "7"},
		"a number with digits":    {"${params.half}", "1.5"},
		"a boolean":               {"${params.yes}", "true"},
		"an escape":               {"$${x}", "${x}"},
		"a list":                  {"${params.list}", "!something else"},
		"null":                    {"${params.none}", "!something else"},
		"a list inside a text":    {"a${params.list}", "!something else"},
		"too long":                {"${params.wide}", "!1 to 128"},
		"empty":                   {"${params.empty}", "!1 to 128"},
		"a control character":     {"${params.line}", "!1 to 128"},
		"an expression that ends": {"${params.n / 0}", "!"},
	} {
		t.Run("makes of a key that is "+name, func(t *testing.T) {
			t.Parallel()
			g, err := limitedNode(t, job.LimitKey{Name: "all"}, job.LimitKey{Name: github, Key: c.key})
			if err != nil {
				t.Fatal(err)
			}
			got, own, err := g.Limits(context.Background(), "last", paramFacts(t, g))
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				var failed *dag.ExpressionError
				if !errors.As(err, &failed) || !strings.Contains(failed.Detail, want) ||
					failed.Pointer != "/nodes/last/limits/1/key" {
					t.Errorf("made %q, %v", got, err)
				}
				return
			}
			want := job.LimitsOf(job.LimitKey{Name: "all"}, job.LimitKey{Name: github, Key: c.want})
			if got != want || !own || err != nil {
				t.Errorf("made %q, own: %v, %v; want %q", got, own, err, want)
			}
		})
	}
}

func TestGraph_LimitsOfANodeOrOfItsTask(t *testing.T) {
	t.Parallel()
	g, err := dag.Compile(dag.Definition{Nodes: map[string]dag.Node{
		"task": {Task: "echo"}, "none": {Task: "echo", Limits: &[]job.LimitKey{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, own, err := g.Limits(context.Background(), "task", dag.Facts{}); got != "" || own || err != nil {
		t.Errorf("without limits: %q, own: %v, %v", got, own, err)
	}
	if got, own, err := g.Limits(context.Background(), "none", dag.Facts{}); got != "" || !own || err != nil {
		t.Errorf("with none: %q, own: %v, %v", got, own, err)
	}
	same := job.LimitKey{Name: "github", Key: "${'a'}"}
	g, err = limitedNode(t, same, job.LimitKey{Name: "github", Key: "${'a' + ''}"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := g.Limits(context.Background(), "last", paramFacts(t, g)); len(got.List()) != 1 || err != nil {
		t.Errorf("two keys that are equal: %q, %v", got, err)
	}
}

func TestDefinition_KeepsLimitsAndTheirAbsence(t *testing.T) {
	t.Parallel()
	without := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo"}}}
	none := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo", Limits: &[]job.LimitKey{}}}}
	some := dag.Definition{Nodes: map[string]dag.Node{
		"a": {Task: "echo", Limits: &[]job.LimitKey{{Name: "x", Key: "${1}"}}}}}
	if strings.Contains(without.Encode(), "Limits") {
		t.Error("a definition without limits is stored otherwise than before")
	}
	for _, d := range []dag.Definition{without, none, some} {
		read, err := dag.ParseDefinition(d.Encode())
		if err != nil || read.Hash() != d.Hash() || (read.Nodes["a"].Limits == nil) != (d.Nodes["a"].Limits == nil) {
			t.Errorf("%s reads as %s, %v", d.Encode(), read.Encode(), err)
		}
	}
	if without.Hash() == none.Hash() || none.Hash() == some.Hash() {
		t.Error("definitions with different limits are the same")
	}
}

func TestCompile_RefusesBadExpressionsInLimits(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"${", "${nodes.other.result}", "${params.unknown}", "${1 +}"} {
		_, err := limitedNode(t, job.LimitKey{Name: "all"}, job.LimitKey{Name: "github", Key: key})
		if err == nil || !strings.Contains(err.Error(), "/nodes/last/limits/1/key") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestEncode_KeepsThatANodeHasNoLimits(t *testing.T) {
	t.Parallel()
	for name, none := range map[string][]job.LimitKey{"an empty list": {}, "no list": nil} {
		d := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo", Limits: &none}}}
		g, err := dag.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		read, err := dag.ParseDefinition(g.Encode())
		if err != nil || read.Nodes["a"].Limits == nil || read.Hash() != d.Hash() {
			t.Errorf("%s is read as %v, %v", name, read.Nodes["a"].Limits, err)
		}
	}
}
