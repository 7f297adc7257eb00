package dag

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/expression"
	"punctual/shared/job"
)

func limitKeyPointer(node string, n int) string {
	return pointer("nodes", node, "limits", strconv.Itoa(n), "key")
}

// compileLimits checks the expressions in the keys of a node's limits of work.
func (g *Graph) compileLimits(
	limits *[]job.LimitKey, s scope, at string, x *nodeExprs, count *int, m *violations,
) {
	if limits == nil {
		return
	}
	for n, l := range *limits {
		where := at + "/" + strconv.Itoa(n) + "/key"
		t, wrong := s.compileText(l.Key)
		if wrong != nil {
			addViolation(m, where, wrong)
			continue
		}
		if t == nil {
			continue
		}
		if !t.counted(count, where, m) {
			return
		}
		x.limits[n] = t
	}
}

// Limits returns the limits of work of a job of the node; own is false if they are those of its task. An expression
// that fails, or makes no key, is an *ExpressionError. Limits whose keys turn out to be equal are one.
func (g *Graph) Limits(ctx context.Context, node string, f Facts) (limits job.Limits, own bool, err error) {
	x, of := g.exprs[node], g.Nodes[node].Limits
	if of == nil {
		return "", false, nil
	}
	var list []job.LimitKey
	var vars map[string]any
	for n, l := range *of {
		if t := x.limits[n]; t != nil {
			if vars == nil {
				vars = f.variables()
			}
			var failed *expr
			if l.Key, failed, err = t.key(ctx, vars, f.meter()); err != nil {
				return "", true, explain(err, node, limitKeyPointer(node, n), failed)
			}
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return job.LimitsOf(list...), true, nil
}

// key evaluates the key of a limit of work. failed is the expression at which it ended with an error.
func (t *pattern) key(
	ctx context.Context, vars map[string]any, meter *expression.Meter,
) (key string, failed *expr, err error) {
	var whole strings.Builder
	var last *expr
	at := position{1, 1}
	for _, p := range t.parts {
		if p.expr == nil {
			whole.WriteString(p.literal)
			continue
		}
		last, at = p.expr, p.expr.at
		v, err := p.expr.eval(ctx, vars, meter)
		if err != nil {
			return "", last, err
		}
		if !expression.IsPlain(v) {
			return "", last, &violation{at: at,
				detail: "the key of a limit is made from texts, numbers and booleans, and this gives something else"}
		}
		s, err := expression.Text(v, mostOfKey)
		if err != nil {
			return "", last, &violation{at: at, detail: "this is too long for the key of a limit"}
		}
		whole.WriteString(s)
	}
	if key = whole.String(); !job.IsLimitKey(key) {
		return "", last, &violation{at: at, detail: fmt.Sprintf("the key of a limit has 1 to %d printable "+
			"characters, and this makes another text", contract.MaxLimitKey)}
	}
	return key, nil, nil
}

// mostOfKey is how many bytes one expression may give to the key of a limit of work.
const mostOfKey = 4 * contract.MaxLimitKey
