package alarms

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// alarm is one of infra/testdata/alarms.json.
type alarm struct {
	Name       string
	Pages      bool
	Quiet      bool
	Metrics    []metric
	Expression string
	Threshold  float64
	Below      bool
	Bad, Of    int
	Breaching  bool
}

type metric struct {
	ID, Namespace, Name, Statistic string
	Dims                           map[string]string
	Period                         int // seconds
}

// load returns the alarms of a deployment.
func load(t *testing.T, deployment string) []alarm {
	t.Helper()
	body, err := os.ReadFile("../../infra/testdata/alarms.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]alarm
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	if len(all[deployment]) == 0 {
		t.Fatalf("there are no alarms of %s", deployment)
	}
	return all[deployment]
}

// values are what was written for a metric in one minute.
type values struct {
	sum, count, most float64
	sample           []float64 // one of each bucket, as often as it counts, up to some
}

// cloudwatch keeps metrics by the minute and evaluates alarms. It is safe for concurrent use.
type cloudwatch struct {
	mu   sync.Mutex
	data map[string]map[int64]*values // by series and minute
}

func newCloudwatch() *cloudwatch { return &cloudwatch{data: map[string]map[int64]*values{}} }

func series(name string, dims map[string]string) string {
	key := name
	for _, k := range slices.Sorted(maps.Keys(dims)) {
		key += "|" + k + "=" + dims[k]
	}
	return key
}

// put adds a value to the metric's minute.
func (c *cloudwatch) put(name string, dims map[string]string, at time.Time, v values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, minute := series(name, dims), at.Unix()/60
	if c.data[key] == nil {
		c.data[key] = map[int64]*values{}
	}
	if c.data[key][minute] == nil {
		c.data[key][minute] = &values{most: math.Inf(-1)}
	}
	is := c.data[key][minute]
	is.sum, is.count, is.most = is.sum+v.sum, is.count+v.count, max(is.most, v.most)
	is.sample = append(is.sample, v.sample...)
}

// take reads the embedded-metric lines that a process wrote.
func (c *cloudwatch) take(t *testing.T, lines []byte) {
	t.Helper()
	for scan := bufio.NewScanner(bytes.NewReader(lines)); scan.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("a line of metrics is no JSON: %v", err)
		}
		head := line["_aws"].(map[string]any)
		what := head["CloudWatchMetrics"].([]any)[0].(map[string]any)
		name := what["Metrics"].([]any)[0].(map[string]any)["Name"].(string)
		dims := map[string]string{}
		for _, k := range what["Dimensions"].([]any)[0].([]any) {
			dims[k.(string)] = line[k.(string)].(string)
		}
		v := values{}
		switch x := line[name].(type) {
		case float64:
			v = values{sum: x, count: 1, most: x, sample: []float64{x}}
		case map[string]any:
			v = values{sum: x["Sum"].(float64), count: x["Count"].(float64), most: x["Max"].(float64)}
			for i, value := range x["Values"].([]any) {
				for range int(x["Counts"].([]any)[i].(float64)) {
					v.sample = append(v.sample, value.(float64))
				}
			}
		}
		c.put(name, dims, time.UnixMilli(int64(head["Timestamp"].(float64))), v)
	}
}

// of is the statistic of a metric over the period that ends with a minute; false without values.
func (c *cloudwatch) of(m metric, last int64) (float64, bool) {
	whole := values{most: math.Inf(-1)}
	for minute := last - int64(m.Period/60) + 1; minute <= last; minute++ {
		if v := c.data[series(m.Name, m.Dims)][minute]; v != nil {
			whole.sum, whole.count, whole.most = whole.sum+v.sum, whole.count+v.count, max(whole.most, v.most)
			whole.sample = append(whole.sample, v.sample...)
		}
	}
	if whole.count == 0 {
		return 0, false
	}
	switch m.Statistic {
	case "Sum":
		return whole.sum, true
	case "SampleCount":
		return whole.count, true
	case "Average":
		return whole.sum / whole.count, true
	case "Maximum":
		return whole.most, true
	}
	slices.Sort(whole.sample)
	percent, err := strconv.ParseFloat(strings.TrimPrefix(m.Statistic, "p"), 64)
	if err != nil {
		panic("statistic " + m.Statistic)
	}
	return whole.sample[min(len(whole.sample)-1, int(percent/100*float64(len(whole.sample))))], true
}

// value is what an alarm looks at, in the period that ends with a minute.
func (c *cloudwatch) value(a alarm, last int64) (float64, bool) {
	if a.Expression == "" {
		return c.of(a.Metrics[0], last)
	}
	// Metric math is close enough to Go's expressions to be read by Go's parser.
	tree, err := parser.ParseExpr(strings.NewReplacer("[", "", "]", "").Replace(a.Expression))
	if err != nil {
		panic(fmt.Sprintf("alarm %s: %v", a.Name, err))
	}
	any := false
	vars := map[string]float64{}
	for _, m := range a.Metrics {
		if v, ok := c.of(m, last); ok {
			vars[m.ID], any = v, true
		}
	}
	v, ok := evaluate(tree, vars)
	return v, ok && any
}

// evaluate computes an expression; false where a value is missing.
func evaluate(e ast.Expr, vars map[string]float64) (float64, bool) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return evaluate(x.X, vars)
	case *ast.BasicLit:
		v, err := strconv.ParseFloat(x.Value, 64)
		return v, err == nil
	case *ast.Ident:
		v, ok := vars[x.Name]
		return v, ok
	case *ast.BinaryExpr:
		a, ok1 := evaluate(x.X, vars)
		b, ok2 := evaluate(x.Y, vars)
		return binary(x.Op, a, b), ok1 && ok2
	case *ast.CallExpr:
		switch name := x.Fun.(*ast.Ident).Name; name {
		case "FILL":
			if v, ok := evaluate(x.Args[0], vars); ok {
				return v, true
			}
			return evaluate(x.Args[1], vars)
		case "MAX":
			most, any := math.Inf(-1), false
			for _, arg := range x.Args {
				if v, ok := evaluate(arg, vars); ok {
					most, any = max(most, v), true
				}
			}
			return most, any
		}
	}
	panic(fmt.Sprintf("metric math has a %T that is not known here", e))
}

func binary(op token.Token, a, b float64) float64 {
	switch op {
	case token.ADD:
		return a + b
	case token.SUB:
		return a - b
	case token.MUL:
		return a * b
	case token.QUO:
		return a / b
	}
	panic("metric math has " + op.String() + ", which is not known here")
}

// on lists the alarms that notify a person at the end of a minute.
func (c *cloudwatch) on(all []alarm, at time.Time) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := at.Unix()/60 - 1
	for _, a := range all {
		bad := 0
		for n := range a.Of {
			v, ok := c.value(a, last-int64(n*a.Metrics[0].Period/60))
			if !ok && a.Breaching || ok && (v < a.Threshold) == a.Below && v != a.Threshold {
				bad++
			}
		}
		if bad >= a.Bad && !a.Quiet {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}
