package dag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
)

// graph returns a definition from "child: parent parent" lines.
func graph(lines ...string) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	for _, l := range lines {
		name, parents, _ := strings.Cut(l, ":")
		d.Nodes[name] = dag.Node{Task: "echo", DependsOn: strings.Fields(parents)}
	}
	return d
}

func mustCompile(t *testing.T, d dag.Definition) *dag.Graph {
	t.Helper()
	g, err := dag.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// violationsOf returns the violations of a definition that Compile must refuse.
func violationsOf(t *testing.T, d dag.Definition) fault.Violations {
	t.Helper()
	_, err := dag.Compile(d)
	var m fault.Violations
	if !errors.As(err, &m) {
		t.Fatalf("got %v", err)
	}
	return m
}

//proof:of 130
func TestCompile_SortsNodesIntoLevels(t *testing.T) {
	t.Parallel()
	g := mustCompile(t, graph("extract", "split: extract", "part: split", "report: part extract", "alone"))
	want := [][]string{{"alone", "extract"}, {"split"}, {"part"}, {"report"}}
	if got := g.Levels(); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("levels %v", got)
	}
	if g.Edges() != 4 {
		t.Errorf("%d edges", g.Edges())
	}
	if got := g.Children("extract"); !slices.Equal(got, []string{"report", "split"}) {
		t.Errorf("children %v", got)
	}
	if got := g.Below("split"); !slices.Equal(got, []string{"part", "report", "split"}) {
		t.Errorf("below %v", got)
	}
}

//proof:of 132 142
func TestCompile_RefusesByPointerAndCode(t *testing.T) {
	t.Parallel()
	many := dag.Definition{Nodes: map[string]dag.Node{}}
	for i := range dag.MaxNodes + 1 {
		many.Nodes[fmt.Sprint("n", i)] = dag.Node{Task: "echo"}
	}
	dense := dag.Definition{Nodes: map[string]dag.Node{}}
	for i := range 70 {
		n := dag.Node{Task: "echo"}
		for j := range i {
			n.DependsOn = append(n.DependsOn, fmt.Sprintf("n%02d", j))
		}
		dense.Nodes[fmt.Sprintf("n%02d", i)] = n
	}
	with := func(n dag.Node) dag.Definition {
		return dag.Definition{Nodes: map[string]dag.Node{"a": n, "b": {Task: "echo"}}}
	}
	for name, c := range map[string]struct {
		d             dag.Definition
		pointer, code string
	}{
		"no nodes":                     {dag.Definition{}, "/nodes", "missing_field"},
		"too many nodes":               {many, "/nodes", "out_of_range"},
		"too many edges":               {dense, "/nodes", "out_of_range"},
		"an unknown parent":            {graph("a: b c", "b"), "/nodes/a/depends_on/1", "unknown_node"},
		"a parent named twice":         {graph("a: b b", "b"), "/nodes/a/depends_on/1", "duplicate_edge"},
		"a node that waits for itself": {graph("a: a"), "/nodes/a/depends_on/0", "self_edge"},
		"a cycle":                      {graph("a: b", "b: a"), "/nodes/b/depends_on/0", "cycle"},
		"an unknown rule": {with(dag.Node{Task: "echo", RunIf: "sometimes"}), "/nodes/a/run_if",
			"invalid_value"},
		"max_parallel without for_each": {with(dag.Node{Task: "echo", MaxParallel: 2}), "/nodes/a/max_parallel",
			"invalid_value"},
		"max_failed without for_each": {with(dag.Node{Task: "echo", MaxFailed: dag.MaxFailed{Count: 1}}),
			"/nodes/a/max_failed", "invalid_value"},
		"max_failed over all items": {with(dag.Node{Task: "echo", ForEach: "${[1]}",
			MaxFailed: dag.MaxFailed{Percent: 101}}), "/nodes/a/max_failed", "out_of_range"},
		"max_failed in both ways": {with(dag.Node{Task: "echo", ForEach: "${[1]}",
			MaxFailed: dag.MaxFailed{Count: 1, Percent: 10}}), "/nodes/a/max_failed", "out_of_range"},
		"an unknown policy": {dag.Definition{Nodes: graph("a").Nodes, OnFailure: "shrug"}, "/on_failure",
			"invalid_value"},
		"a negative max_concurrency": {dag.Definition{Nodes: graph("a").Nodes, MaxConcurrency: -1},
			"/max_concurrency", "out_of_range"},
	} {
		t.Run("refuses a graph: "+name, func(t *testing.T) {
			t.Parallel()
			m := violationsOf(t, c.d)
			if m[0].Pointer != c.pointer || m[0].Code != c.code {
				t.Errorf("%s %s: %s", m[0].Pointer, m[0].Code, m[0].Detail)
			}
		})
	}
}

//proof:of 47 131 184
func TestCompile_NamesEveryNodeOfACycleOnce(t *testing.T) {
	t.Parallel()
	for want, lines := range map[string][]string{
		"a → b → a":         {"a: b", "b: a"},
		"a → b → c → a":     {"a: c", "b: a", "c: b", "d: c"},
		"x → y → z → w → x": {"start", "x: w start", "y: x", "z: y", "w: z"},
	} {
		m := violationsOf(t, graph(lines...))
		if len(m) != 1 || !strings.HasSuffix(m[0].Detail, ": "+cycleFrom(want)) {
			t.Errorf("%v: %v, want %s", lines, m, want)
		}
	}
}

// cycleFrom rotates a cycle so that it begins with its alphabetically first name.
func cycleFrom(s string) string {
	names := strings.Split(s, " → ")
	names = names[:len(names)-1]
	i := slices.Index(names, slices.Min(names))
	names = append(slices.Concat(names[i:], names[:i]), names[i])
	return strings.Join(names, " → ")
}

func TestCompile_ListsAllMistakesAtOnceUpToABound(t *testing.T) {
	t.Parallel()
	if m := violationsOf(t, graph("a: x y", "b: b")); len(m) != 3 {
		t.Errorf("%v", m)
	}
	d := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo"}}}
	n := d.Nodes["a"]
	for i := range 1_500 {
		n.DependsOn = append(n.DependsOn, strings.Repeat("x", 100)+fmt.Sprint(i))
	}
	d.Nodes["a"] = n
	m := violationsOf(t, d)
	if text := m.Error(); len(m) != 50 || len(text) > 20_000 {
		t.Errorf("%d mistakes, %d bytes", len(m), len(text))
	}
}

func TestHash_IsTheSameForDefinitionsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	base := graph("a", "b: a", "c: a b")
	n := base.Nodes["c"]
	n.Payload = json.RawMessage(`{"x":1,"y":[2.0,"${params.p}"]}`)
	base.Nodes["c"] = n
	base.Params = map[string]json.RawMessage{"p": json.RawMessage(`{"k":1,"l":2}`)}
	same := base.WithDefaults()
	n = same.Nodes["c"]
	n.Payload, n.DependsOn = json.RawMessage(` { "y" : [2.0, "${params.p}"], "x": 1 }`), []string{"b", "a"}
	same.Nodes["c"] = n
	same.Params = map[string]json.RawMessage{"p": json.RawMessage(`{"l":2, "k":1}`)}
	if base.Hash() != same.Hash() {
		t.Error("the same meaning has two hashes")
	}
	for name, change := range map[string]func(d *dag.Definition){
		"another payload": func(d *dag.Definition) {
			n := d.Nodes["c"]
			n.Payload = json.RawMessage(`{"x":1}`)
			d.Nodes["c"] = n
		},
		"another policy":  func(d *dag.Definition) { d.OnFailure = dag.Hold },
		"another expiry":  func(d *dag.Definition) { d.ExpireAfter = time.Hour },
		"another default": func(d *dag.Definition) { d.Params = nil },
	} {
		other := base.WithDefaults()
		change(&other)
		if other.Hash() == base.Hash() {
			t.Errorf("%s has the same hash", name)
		}
	}
}

func state(s job.Status) dag.NodeState { return dag.NodeState{Status: s} }

//proof:of 59 144
func TestOutcome_ReturnsTheStatusOfARun(t *testing.T) {
	t.Parallel()
	three := []string{"a", "b: a", "c: b"}
	for name, c := range map[string]struct {
		policy dag.Policy
		states map[string]dag.NodeState
		stop   dag.Stop
		want   dag.RunStatus
	}{
		"runs while a node has not ended": {"", map[string]dag.NodeState{"a": state(job.Running)}, "", dag.Running},
		"succeeds with successes and skips": {"", map[string]dag.NodeState{
			"a": state(job.Succeeded), "b": state(job.Skipped), "c": state(job.Succeeded)}, "", dag.SucceededRun},
		"fails with a dead node": {"", map[string]dag.NodeState{
			"a": state(job.Succeeded), "b": state(job.Dead), "c": state(job.Cancelled)}, "", dag.FailedRun},
		"succeeds under continue when the last node did": {dag.Continue, map[string]dag.NodeState{
			"a": state(job.Dead), "b": state(job.Dead), "c": state(job.Succeeded)}, "", dag.SucceededRun},
		"fails under continue when the last node did": {dag.Continue, map[string]dag.NodeState{
			"a": state(job.Succeeded), "b": state(job.Succeeded), "c": state(job.Expired)}, "", dag.FailedRun},
		"is cancelled by an operator": {"", map[string]dag.NodeState{
			"a": state(job.Succeeded), "b": state(job.Cancelled), "c": state(job.Cancelled)}, dag.StopCancel,
			dag.CancelledRun},
		"fails when it expires": {"", map[string]dag.NodeState{
			"a": state(job.Succeeded), "b": state(job.Cancelled), "c": state(job.Cancelled)}, dag.StopExpire,
			dag.FailedRun},
		"is held when all that is left waits for a held node": {dag.Hold, map[string]dag.NodeState{
			"a": state(job.Dead)}, "", dag.HeldRun},
		"is not held while some run and some may": {dag.Hold, map[string]dag.NodeState{
			"a": state(job.Dead), "x": state(job.Running)}, "", dag.Running},
		"is not held while another node runs": {dag.Hold, map[string]dag.NodeState{
			"a": state(job.Dead), "c": state(job.Running)}, "", dag.Running},
	} {
		t.Run("a run "+name, func(t *testing.T) {
			t.Parallel()
			d := graph(three...)
			if _, more := c.states["x"]; more {
				d.Nodes["x"], d.Nodes["y"] = dag.Node{Task: "echo"}, dag.Node{Task: "echo"}
			}
			d.OnFailure = c.policy
			if got := mustCompile(t, d).Outcome(c.states, c.stop); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestCriticalPath_IsTheChainThatTookLongest(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	took := func(from, to int) dag.NodeState {
		return dag.NodeState{Status: job.Succeeded, StartedAt: at.Add(time.Duration(from) * time.Second),
			FinishedAt: at.Add(time.Duration(to) * time.Second)}
	}
	g := mustCompile(t, graph("a", "b", "c: a b", "d: c", "e: b"))
	states := map[string]dag.NodeState{"a": took(0, 5), "b": took(0, 9), "c": took(9, 10), "e": took(9, 11)}
	if got := g.CriticalPath(states, at); !slices.Equal(got, []string{"b", "e"}) {
		t.Errorf("%v", got)
	}
	states["d"] = dag.NodeState{Status: job.Running, StartedAt: at.Add(10 * time.Second)}
	if got := g.CriticalPath(states, at.Add(20*time.Second)); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("while d runs: %v", got)
	}
	if got := g.CriticalPath(nil, at); got == nil || len(got) != 0 {
		t.Errorf("before anything started: %v", got)
	}
}

func TestFallen_IsWhatFailedAndWhatFellWithIt(t *testing.T) {
	t.Parallel()
	g := mustCompile(t, graph("ok", "bad", "after: bad", "later: after", "apart: ok", "cleanup: bad", "hand: bad"))
	states := map[string]dag.NodeState{
		"ok": state(job.Succeeded), "bad": state(job.Dead), "after": state(job.Cancelled), "later": state(job.Skipped),
		"apart": state(job.Skipped), "cleanup": state(job.Succeeded), "hand": state(job.Skipped),
	}
	reasons := map[string]string{"hand": dag.ReasonSkippedByOperator, "apart": dag.ReasonWhenFalse,
		"later": dag.ReasonRuleNotMet}
	if got := g.Fallen(states, reasons); !slices.Equal(got, []string{"after", "bad", "later"}) {
		t.Errorf("%v", got)
	}
}

func TestGraph_MergesParamsOverItsOwn(t *testing.T) {
	t.Parallel()
	d := graph("a")
	d.Params = map[string]json.RawMessage{"x": json.RawMessage(`1`), "y": json.RawMessage(`[2]`)}
	g := mustCompile(t, d)
	for given, want := range map[string]string{
		`{}`:                  `{"x":1,"y":[2]} []`,
		`{"x":null}`:          `{"x":null,"y":[2]} []`,
		`{"z":1,"x":3,"a":4}`: `{"a":4,"x":3,"y":[2],"z":1} [a z]`,
	} {
		var own map[string]json.RawMessage
		if err := json.Unmarshal([]byte(given), &own); err != nil {
			t.Fatal(err)
		}
		if merged, unknown := g.MergeParams(own); fmt.Sprintf("%s %v", merged, unknown) != want {
			t.Errorf("%s: %s %v, want %s", given, merged, unknown, want)
		}
	}
	if merged, unknown := mustCompile(t, graph("a")).MergeParams(nil); merged != nil || unknown != nil {
		t.Errorf("no params give %s %v", merged, unknown)
	}
	if g.Params["x"] == nil || string(g.Params["x"]) != "1" {
		t.Error("merging changes the dag's own")
	}
}

func TestCompile_RefusesACycleBesideAsManyMistakesAsAreTold(t *testing.T) {
	t.Parallel()
	d := dag.Definition{Nodes: map[string]dag.Node{
		"a": {Task: "echo", DependsOn: []string{"b"}}, "b": {Task: "echo", DependsOn: []string{"a"}},
	}}
	many := dag.Node{Task: "echo"}
	for range 60 {
		many.DependsOn = append(many.DependsOn, "a")
	}
	d.Nodes["0"] = many
	_, err := dag.Compile(d)
	if m := (fault.Violations)(nil); !errors.As(err, &m) || len(m) != 50 {
		t.Errorf("told %v", err)
	}
}

// pointers are where violations are, each with its code.
func pointers(m fault.Violations) (all []string) {
	for _, f := range m {
		all = append(all, f.Pointer+" "+f.Code)
	}
	return all
}

func TestCompile_TellsMistakesInExpressionsTogetherWithThoseOfStructure(t *testing.T) {
	t.Parallel()
	const bad = `nodes.a.result +`
	for name, c := range map[string]struct {
		lines []string
		when  map[string]string
		want  []string
	}{
		"an unknown parent": {[]string{"a", "b: x", "c: b"}, map[string]string{"b": bad, "c": bad},
			[]string{"/nodes/b/depends_on/0 unknown_node", "/nodes/b/when invalid_expression",
				"/nodes/c/when invalid_expression"}},
		"a cycle": {[]string{"a", "b: c", "c: b", "d: c"}, map[string]string{"b": bad, "d": bad},
			[]string{"/nodes/c/depends_on/0 cycle", "/nodes/b/when invalid_expression",
				"/nodes/d/when invalid_expression"}},
		"a parent twice, and what does not come before": {[]string{"a", "b", "c: b b"},
			map[string]string{"c": "nodes.a.forced"},
			[]string{"/nodes/c/depends_on/1 duplicate_edge", "/nodes/c/when invalid_expression"}},
		"a node after itself, which does not come before itself": {[]string{"a: a"},
			map[string]string{"a": "nodes.a.forced"},
			[]string{"/nodes/a/depends_on/0 self_edge", "/nodes/a/when invalid_expression"}},
		"what may come before, where that is not known": {[]string{"a", "b: x", "c: b"},
			map[string]string{"b": "nodes.a.forced", "c": "nodes.a.forced"},
			[]string{"/nodes/b/depends_on/0 unknown_node"}},
		"what may come before, in a cycle": {[]string{"a: b", "b: a"},
			map[string]string{"a": "nodes.b.forced", "b": "nodes.a.forced"},
			[]string{"/nodes/b/depends_on/0 cycle"}},
		"what comes later, beside an unknown parent": {[]string{"a", "b: x", "c: a"},
			map[string]string{"a": "nodes.c.forced"},
			[]string{"/nodes/b/depends_on/0 unknown_node", "/nodes/a/when invalid_expression"}},
		"an unknown parent once": {[]string{"a: x", "b: a"},
			map[string]string{"a": "nodes.x.forced", "b": "nodes.x.forced"},
			[]string{"/nodes/a/depends_on/0 unknown_node", "/nodes/b/when invalid_expression"}},
		"an unknown parent, and beside it another mistake": {[]string{"a: x"},
			map[string]string{"a": "nodes.x.forced && params.y"},
			[]string{"/nodes/a/depends_on/0 unknown_node", "/nodes/a/when invalid_expression"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := graph(c.lines...)
			for node, when := range c.when {
				n := d.Nodes[node]
				n.When = when
				d.Nodes[node] = n
			}
			if got := pointers(violationsOf(t, d)); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCompile_TellsMistakesInExpressionsBesideTooManyDependencies(t *testing.T) {
	t.Parallel()
	d := dag.Definition{Nodes: map[string]dag.Node{"z": {Task: "echo", When: "1 +"}}}
	parents := []string{}
	for i := range 100 {
		name := fmt.Sprintf("n%02d", i)
		d.Nodes[name] = dag.Node{Task: "echo", DependsOn: slices.Clone(parents)}
		parents = append(parents, name)
	}
	want := []string{"/nodes out_of_range", "/nodes/z/when invalid_expression"}
	if got := pointers(violationsOf(t, d)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompile_TakesADefinitionAtItsLimits(t *testing.T) {
	t.Parallel()
	// Twenty nodes after 100 others each, and as many apart as there is room for.
	d := dag.Definition{Nodes: map[string]dag.Node{}, MaxConcurrency: dag.MaxJobs}
	var parents []string
	for i := range dag.MaxNodes - dag.MaxEdges/100 {
		name := fmt.Sprintf("n%03d", i)
		d.Nodes[name] = dag.Node{Task: "echo", ForEach: "${[1]}", MaxParallel: dag.MaxItems}
		parents = append(parents, name)
	}
	for i := range dag.MaxEdges / 100 {
		d.Nodes[fmt.Sprintf("z%02d", i)] = dag.Node{Task: "echo", DependsOn: parents[:100]}
	}
	g := mustCompile(t, d)
	if len(g.Names()) != dag.MaxNodes || g.Edges() != dag.MaxEdges {
		t.Errorf("%d nodes and %d edges", len(g.Names()), g.Edges())
	}
	z := d.Nodes["z00"]
	z.DependsOn = parents[:101]
	d.Nodes["z00"] = z
	if got := pointers(violationsOf(t, d)); !slices.Equal(got, []string{"/nodes out_of_range"}) {
		t.Errorf("an edge more: %q", got)
	}
}

func TestCompile_SaysInWhichLineAndColumnAnExpressionIsWrong(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"params.x":                  "line 1, column 7",
		"true &&\nparams.x":         "line 2, column 7",
		"true &&\n\n   params.x":    "line 3, column 10",
		"true &&\n\n   true &&\n x": "line 4, column 2",
	} {
		m := violationsOf(t, dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo", When: when}}})
		if at, _, _ := strings.Cut(m[0].Detail, ":"); at != want {
			t.Errorf("%q is wrong in %s, want %s", when, at, want)
		}
	}
}
