package stack

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// measured is a metric of ours, as it is written or as it is asked for: a name and the keys of its
// dimensions.
type measured struct{ name, keys string }

// written lists every metric that code can write, by its source.
func written(t *testing.T) map[measured]string {
	t.Helper()
	names, all := metricNames(t), map[measured]string{}
	for _, dir := range []string{"functions", "workers", "shared/aws"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			dims := dimensions(file)
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				name, ok := names[selected(call.Args[0])]
				if f, isMethod := call.Fun.(*ast.SelectorExpr); !ok || !isMethod ||
					f.Sel.Name != "Count" && f.Sel.Name != "Gauge" && f.Sel.Name != "Observe" {
					return true
				}
				var keys []string
				for _, arg := range call.Args[2:] {
					key := keyOf(arg, dims)
					if key == "" {
						t.Errorf("%s: cannot tell the dimension of %s", fset.Position(arg.Pos()), name)
					}
					keys = append(keys, key)
				}
				all[measured{name, strings.Join(keys, ",")}] = fset.Position(call.Pos()).String()
				if telemetry.CountedByVersion(telemetry.Name(name)) {
					keys = append(keys, telemetry.VersionDim)
					all[measured{name, strings.Join(keys, ",")}] = fset.Position(call.Pos()).String()
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// metricNames are the names of package telemetry by their constants.
func metricNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared/telemetry/meter.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Name" {
				names[spec.Names[0].Name], _ = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			}
		}
		return true
	})
	return names
}

// selected is x of telemetry.x, or x alone.
func selected(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// dimensions are the keys of a file's variables and functions that are a telemetry.Dim.
func dimensions(file *ast.File) map[string]string {
	of := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			if len(x.Lhs) == 1 && len(x.Rhs) == 1 {
				if key := keyOf(x.Rhs[0], nil); key != "" {
					of[selected(x.Lhs[0])] = key
				}
			}
		case *ast.FuncDecl:
			ast.Inspect(x, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if key := keyOf(r.Results[0], nil); key != "" {
						of[x.Name.Name] = key
					}
				}
				return true
			})
		}
		return true
	})
	return of
}

// keyOf is the key of a telemetry.Dim, whether it is written out, named, or what a function returns.
func keyOf(e ast.Expr, dims map[string]string) string {
	switch x := e.(type) {
	case *ast.CompositeLit:
		if selected(x.Type) != "Dim" {
			return ""
		}
		for _, el := range x.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok && selected(kv.Key) == "Key" {
				if lit, ok := kv.Value.(*ast.BasicLit); ok {
					key, _ := strconv.Unquote(lit.Value)
					return key
				}
			}
		}
	case *ast.Ident:
		return dims[x.Name]
	case *ast.CallExpr:
		return dims[selected(x.Fun)]
	}
	return ""
}

// searchIs finds what a panel searches for.
var searchIs = regexp.MustCompile(`SEARCH\('\{([^,}]+),([^}]+)\} MetricName="([^"]+)"'`)

// question is a metric that an alarm or a panel asks for.
type question struct {
	by, namespace, name string
	dims                []string // keys and values in turn
}

// keys are the dimensions' keys with commas between them.
func (q question) keys() string {
	var keys []string
	for i := 0; i < len(q.dims); i += 2 {
		keys = append(keys, q.dims[i])
	}
	return strings.Join(keys, ",")
}

// questions lists what alarms and panels ask for. Those that search for all values of a dimension have none.
func (d *synthesized) questions(t *testing.T) (all []question) {
	t.Helper()
	d.each("AWS::CloudWatch::Alarm", func(_ template, id string, r object) {
		single := []any{r["Properties"]}
		for _, m := range list(at(r, "Properties.Metrics")) {
			single = append(single, at(m, "MetricStat.Metric"))
		}
		for _, m := range single {
			q := question{by: id, namespace: text(at(m, "Namespace")), name: text(at(m, "MetricName"))}
			if q.name == "" { // an expression
				continue
			}
			for _, dim := range list(at(m, "Dimensions")) {
				q.dims = append(q.dims, text(at(dim, "Name")), text(at(dim, "Value")))
			}
			all = append(all, q)
		}
	})
	d.each("AWS::CloudWatch::Dashboard", func(_ template, id string, r object) {
		var board struct {
			Widgets []struct {
				Properties struct {
					Title   string
					Metrics [][]any
				}
			}
		}
		if err := json.Unmarshal([]byte(plain(at(r, "Properties.DashboardBody"))), &board); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		for _, w := range board.Widgets {
			for _, line := range w.Properties.Metrics {
				for _, found := range searchIs.FindAllStringSubmatch(text(at(line, "0.expression")), -1) {
					q := question{by: w.Properties.Title, namespace: found[1], name: found[3]}
					for key := range strings.SplitSeq(found[2], ",") {
						q.dims = append(q.dims, key, "")
					}
					all = append(all, q)
				}
				if _, named := line[0].(string); !named {
					continue
				}
				q := question{by: w.Properties.Title, namespace: text(line[0]), name: text(line[1])}
				for i := 2; i+1 < len(line); i += 2 {
					q.dims = append(q.dims, text(line[i]), text(line[i+1]))
				}
				all = append(all, q)
			}
		}
	})
	return all
}

// asked lists the metrics of our namespace that alarms and panels ask for, by who does.
func (d *synthesized) asked(t *testing.T) map[measured]string {
	t.Helper()
	all := map[measured]string{}
	for _, q := range d.questions(t) {
		if q.namespace == "Punctual/"+d.settings.Prefix {
			all[measured{q.name, q.keys()}] = q.by
		} else if !strings.HasPrefix(q.namespace, "AWS/") {
			t.Errorf("%s asks in the namespace %q", q.by, q.namespace)
		}
	}
	return all
}

// metricValues are the values of package telemetry by the dimension that they are of.
func metricValues(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared/telemetry/meter.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{"pool": contract.Pools}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Type == nil && len(spec.Values) == 1 {
			for prefix, key := range map[string]string{"Outcome": "outcome", "Step": "step", "Pass": "pass",
				"Stage": "stage"} {
				if lit, is := spec.Values[0].(*ast.BasicLit); is && strings.HasPrefix(spec.Names[0].Name, prefix) {
					value, _ := strconv.Unquote(lit.Value)
					values[key] = append(values[key], value)
				}
			}
		}
		return true
	})
	return values
}

func TestMetrics_AreAskedForByValuesThatAreWritten(t *testing.T) {
	t.Parallel()
	values, seen := metricValues(t), map[string]bool{}
	for _, q := range prod().questions(t) {
		if strings.HasPrefix(q.namespace, "AWS/") {
			continue
		}
		for i := 0; i < len(q.dims); i += 2 {
			key, value := q.dims[i], q.dims[i+1]
			seen[key+" "+value] = true
			if value != "" && key != telemetry.VersionDim && !slices.Contains(values[key], value) {
				t.Errorf("%s asks for %s of the %s %q: %q", q.by, q.name, key, value, values[key])
			}
		}
	}
	for key, all := range values {
		for _, value := range all {
			if !seen[key+" "+value] {
				t.Errorf("nobody asks for the %s %s, which package telemetry names for that", key, value)
			}
		}
	}
}

// theirs are the metrics of AWS that are asked for, with the keys of their dimensions, as the services' documentation
// names them. A misspelt name is a metric without values: an alarm that never rings.
var theirs = map[string]string{
	"AWS/ApiGateway 4XXError":                 "ApiName",
	"AWS/ApiGateway 5XXError":                 "ApiName",
	"AWS/ApiGateway Count":                    "ApiName",
	"AWS/DynamoDB ConsumedReadCapacityUnits":  "TableName",
	"AWS/DynamoDB ConsumedWriteCapacityUnits": "TableName",
	"AWS/DynamoDB ReadThrottleEvents":         "TableName or GlobalSecondaryIndexName,TableName",
	"AWS/DynamoDB WriteThrottleEvents":        "TableName or GlobalSecondaryIndexName,TableName",
	"AWS/Lambda Duration":                     "FunctionName",
	"AWS/Lambda Errors": "FunctionName or FunctionName,Resource or " +
		"ExecutedVersion,FunctionName,Resource",
	"AWS/Lambda Invocations":                        "FunctionName or ExecutedVersion,FunctionName,Resource",
	"AWS/Lambda IteratorAge":                        "FunctionName",
	"AWS/Lambda Throttles":                          "FunctionName",
	"AWS/EventBridge/Pipes ExecutionFailed":         "PipeName",
	"AWS/SQS ApproximateAgeOfOldestMessage":         "QueueName",
	"AWS/SQS ApproximateNumberOfMessagesNotVisible": "QueueName",
	"AWS/SQS ApproximateNumberOfMessagesVisible":    "QueueName",
	"AWS/Scheduler InvocationDroppedCount":          "ScheduleGroup",
	"AWS/Scheduler InvocationThrottleCount":         "ScheduleGroup",
}

func TestMetrics_OfServicesHaveTheirNames(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	for _, q := range prod().questions(t) {
		if !strings.HasPrefix(q.namespace, "AWS/") {
			continue
		}
		name := q.namespace + " " + q.name
		asked[name] = true
		if keys, known := theirs[name]; !known || !slices.Contains(strings.Split(keys, " or "), q.keys()) {
			t.Errorf("%s asks for %s by %s; known is %q", q.by, name, q.keys(), keys)
		}
	}
	for name := range theirs {
		if !asked[name] {
			t.Errorf("nobody asks for %s", name)
		}
	}
}

func TestMetrics_AreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	does, asks := written(t), prod().asked(t)
	if len(does) < 20 || len(asks) < 20 {
		t.Fatalf("%d metrics are written, and %d asked for", len(does), len(asks))
	}
	for m, by := range asks {
		if does[m] == "" {
			t.Errorf("%s asks for %s by %q, which nobody writes", by, m.name, m.keys)
		}
	}
	for m, by := range does {
		if asks[m] == "" {
			t.Errorf("%s writes %s by %q, which no alarm and no panel shows", by, m.name, m.keys)
		}
	}
	named := map[string]bool{}
	for m := range does {
		named[m.name] = true
	}
	for constant, name := range metricNames(t) {
		if !named[name] {
			t.Errorf("%s is a metric that nobody writes", constant)
		}
	}
}
