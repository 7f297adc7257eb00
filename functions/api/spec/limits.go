package spec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// Fields of a limit of work as a job names it.
var (
	limitName = Name("name", "Name of the limit").Example("github").Required()
	limitKey  = field.Text("key", "Key under which the job counts, each by itself; 1 to {=limit_key} printable "+
		"characters. Default: null, which is a key of its own.", nil, readLimitKey).
		Shaped(nullableText(field.All(field.Characters(1, contract.MaxLimitKey), printed))).Example("acct-42")

	limitUse = field.NewObject("LimitUseRequest", "Limit of work under which a job counts.", limitName, limitKey)

	// Limits are the limits of work of a job, a batch item, a task and a schedule's job.
	Limits = limitsOf(limitUse, readLimitUse).About("Limits of work under which the job counts, up to {=job_limits}, " +
		"in place of those of its task; [] for none.")
)

// LimitAllowed describes the key of a limit, for the "allowed" of a violation.
var LimitAllowed = fmt.Sprintf("1 to %d printable characters", contract.MaxLimitKey)

// limitsOf is a list of limits of work, each read by read.
func limitsOf(
	o *field.Object, read func(*rest.Reader, rest.Value) (job.LimitKey, bool),
) field.Field[[]job.LimitKey] {
	return field.List("limits", "", 0, contract.MaxJobLimits, field.Nested("", "", o, read))
}

func nullableText(bound field.Bound) field.Schema {
	return func(known huma.Registry) *huma.Schema {
		s := field.Nullable(*field.TextSchema(bound)(known))
		return &s
	}
}

func readLimitUse(r *rest.Reader, v rest.Value) (job.LimitKey, bool) {
	return readUse(r, limitUse.Read(r, v), v.Pointer, limitKey)
}

// readUse reads a limit of work. One that is wrong keeps its index, because errors name it.
func readUse(
	r *rest.Reader, f rest.Fields, pointer string, key field.Field[string],
) (l job.LimitKey, ok bool) {
	if !limitName.Into(r, f, &l.Name) && f != nil {
		r.Missing(pointer, limitName.Name())
	}
	key.Into(r, f, &l.Key)
	return l, true
}

// readLimitKey reads a key; null is "".
func readLimitKey(r *rest.Reader, v rest.Value) (string, bool) {
	if r.Doc.Kind(v.Node) == document.KindNull {
		return "", true
	}
	key, ok := r.Text(v)
	switch {
	case !ok:
	case !job.IsLimitKey(key):
		r.Violation(v.Pointer, rest.CodeInvalidValue, LimitAllowed, "this is not a key of a limit")
	case text.TokenShaped(key):
		r.Violation(v.Pointer, rest.CodeSecretInPayload, "", "this looks like a secret, and would be kept in the clear")
	default:
		return key, true
	}
	return "", false
}

// Limits reads the limits of work of a job, if they are given, into to. A limit that is unknown, or named twice with
// one key, is a violation.
func (b *TaskBook) Limits(ctx context.Context, r *rest.Reader, f rest.Fields, to *job.Limits) error {
	var list []job.LimitKey
	before := len(r.Wrong)
	if !Limits.Into(r, f, &list) || len(r.Wrong) > before {
		return nil
	}
	if err := b.KnownLimits(ctx, r, f[Limits.Name()].Pointer, list); err != nil {
		return err
	}
	*to = job.LimitsOf(list...)
	return nil
}

// KnownLimits reports limits of a list at pointer that are unknown, or named twice with one key.
func (b *TaskBook) KnownLimits(ctx context.Context, r *rest.Reader, pointer string, list []job.LimitKey) error {
	for n, l := range list {
		at := fmt.Sprintf("%s/%d", pointer, n)
		if slices.Index(list, l) < n {
			r.Violation(at, rest.CodeInvalidValue, "each limit with each key once", "limit %s is named twice "+
				"with this key", text.Quoted(l.Name))
		}
		known, err := b.limit(ctx, l.Name)
		if err != nil {
			return err
		}
		if !known {
			b.unknownLimit(ctx, r, at+"/name", l.Name)
		}
	}
	return nil
}

// limit reports whether the tenant has a limit, which it reads once per request.
func (b *TaskBook) limit(ctx context.Context, name string) (bool, error) {
	return b.limits.Get(ctx, name, func(ctx context.Context) (bool, error) {
		l, err := b.stage.Store.Limit(ctx, b.Tenant, name)
		if fault.KindOf(err) == fault.NotFound {
			return false, nil
		}
		return !l.Deleted, err
	})
}

// unknownLimit reports a limit that does not exist, with the most similar name.
func (b *TaskBook) unknownLimit(ctx context.Context, r *rest.Reader, pointer, name string) {
	var names []string
	if known, _, err := b.stage.Store.Limits(ctx, b.Tenant, "", contract.ListMax); err == nil { // for a suggestion only
		for _, l := range known {
			names = append(names, l.Name)
		}
	}
	detail := fmt.Sprintf("limit %s is not defined", text.Quoted(name))
	if near := text.Nearest(name, names); near != "" {
		detail += fmt.Sprintf("; did you mean %q?", near)
	}
	r.Violation(pointer, CodeUnknownLimit, listedNames(names), "%s", detail)
}

func limitCache(s *Core) *cache.Cache[string, bool] {
	return cache.New[string, bool](cache.Options[bool]{Most: contract.MaxBatchJobs, Now: s.Now})
}

// LimitUse shows a limit of work of a job.
type LimitUse struct {
	Name string  `json:"name" doc:"Name of the limit"`
	Key  *string `json:"key" doc:"Key under which the job counts; null without one"`
}

// ViewLimits shows limits of work.
func ViewLimits(l job.Limits) (uses []LimitUse) {
	for _, each := range l.List() {
		uses = append(uses, viewLimit(each))
	}
	return uses
}

func viewLimit(l job.LimitKey) LimitUse {
	if l.Key == "" {
		return LimitUse{Name: l.Name}
	}
	return LimitUse{l.Name, &l.Key}
}

// limitWait shows for which limit of work a job waits.
type limitWait struct {
	LimitUse
	Ahead int `json:"ahead" doc:"Number of jobs that wait for this key before the job, counted up to {=waiters}"`
}

// NodeLimits reads the limits of work of a dag's node; given is false if it has the limits of its task. The key may
// hold expressions.
func (b *TaskBook) NodeLimits(
	ctx context.Context, r *rest.Reader, f rest.Fields,
) (list []job.LimitKey, given bool, err error) {
	before := len(r.Wrong)
	if given = NodeLimits.Into(r, f, &list); !given || len(r.Wrong) > before {
		return nil, given, nil
	}
	return list, true, b.KnownLimits(ctx, r, f[NodeLimits.Name()].Pointer, list)
}

// Fields of a limit of work as a node of a dag names it.
var (
	nodeLimitKey = field.Text("key", "Key under which the jobs of the node count: 1 to {=limit_key} printable "+
		"characters, or a text with expressions ${…} that make such a key; numbers and booleans become text. With "+
		"for_each each item has its own key. Default: null, which is a key of its own.", nil, readNodeLimitKey).
		Shaped(nullableText(field.All(field.Characters(1, contract.MaxLimitTemplate), printed))).
		Example("${params.account}")

	nodeLimitUse = field.NewObject("NodeLimitUseRequest", "Limit of work under which the jobs of a node count.",
		limitName, nodeLimitKey)

	// NodeLimits are the limits of work of a dag's node.
	NodeLimits = limitsOf(nodeLimitUse, readNodeLimitUse).About("Limits of work under which each job of the node " +
		"counts, up to {=job_limits}, in place of those of its task; [] for none.")
)

func readNodeLimitUse(r *rest.Reader, v rest.Value) (job.LimitKey, bool) {
	return readUse(r, nodeLimitUse.Read(r, v), v.Pointer, nodeLimitKey)
}

// readNodeLimitKey reads a key, or a text with expressions, which dag.Compile checks.
func readNodeLimitKey(r *rest.Reader, v rest.Value) (string, bool) {
	if r.Doc.Kind(v.Node) != document.KindString || !strings.Contains(r.Doc.Text(v.Node), "${") {
		return readLimitKey(r, v)
	}
	key := r.Doc.Text(v.Node)
	if runes(key) > contract.MaxLimitTemplate || strings.ContainsFunc(key, text.Hidden) {
		r.Violation(v.Pointer, rest.CodeInvalidValue, fmt.Sprintf("up to %d printable characters",
			contract.MaxLimitTemplate), "this is not a text with expressions for a key")
		return "", false
	}
	return key, true
}
