package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// bySchedule is who starts and cancels the runs of schedules.
const bySchedule = "schedule"

// Launch creates the run that a schedule's row represents, in one transaction with those writes. If one of them is
// refused and there is no run, that is an *item.Refused. If there is a run already, it is derived. why is set if there
// can be no run: the dag is gone, or the params do not fit it.
func (r *Controller) Launch(
	ctx context.Context, row job.Row, with ...item.Write,
) (why job.Reason, todo effect.List, err error) {
	n := Request{
		Key: run.Key{Tenant: row.Tenant, ID: row.ID}, Dag: row.Dag, DueAt: row.DueAt, NominalAt: row.NominalAt,
		Schedule: row.Schedule(), Backfill: row.Backfill, Priority: row.Priority,
		By: By{Who: bySchedule, Reason: row.Schedule()}, With: with,
	}
	if n.Tags, err = r.tagsOf(ctx, row); err != nil {
		return why, todo, err
	}
	if !row.ExpiryAt.IsZero() {
		n.ExpireAt = func(time.Time) time.Time { return row.ExpiryAt }
	}
	if why, err = r.definition(ctx, row, &n); why.Code != "" || err != nil {
		return why, todo, err
	}
	is, created, todo, err := r.Create(ctx, n)
	switch {
	case created:
		return why, todo, err
	case fault.KindOf(err) == fault.NotFound:
		return why, todo, &item.Refused{}
	case err == nil:
		todo.Reconcile = []run.Key{is.Key}
	}
	return why, todo, err
}

// tagsOf reads the tags of a row; nil is none.
func (r *Controller) tagsOf(ctx context.Context, row job.Row) (tags map[string]string, err error) {
	labels, err := r.Store.LabelsOf(ctx, row)
	if err != nil || labels[0].Tags == "" {
		return nil, err
	}
	if err := json.Unmarshal([]byte(labels[0].Tags), &tags); err != nil {
		return nil, fault.New(fault.Undecodable, err, "reading the tags of run %s", row.ID)
	}
	return tags, nil
}

// definition completes the request for a row's run: the dag as it now is, and the row's params over the dag's.
func (r *Controller) definition(ctx context.Context, row job.Row, n *Request) (why job.Reason, err error) {
	read := r.Store.Dag
	what := fmt.Sprintf("the dag %q", row.Dag)
	if v := row.DagVersion; v > 0 {
		read = func(ctx context.Context, t tenant.ID, name string) (store.Dag, error) {
			return r.Store.DagVersion(ctx, t, name, v)
		}
		what = fmt.Sprintf("version %d of %s", v, what)
	}
	d, err := read(ctx, row.Tenant, row.Dag)
	if fault.KindOf(err) == fault.NotFound {
		return job.Reason{Code: job.CodeUnknownDag, Message: what + " is gone"}, nil
	}
	if err != nil {
		return why, err
	}
	g, err := r.Compiled(ctx, row.Tenant, d.Definition)
	if err != nil {
		return why, err
	}
	n.Definition, n.Version, n.Kept = g.Definition, d.Version, true
	given, err := r.Store.Payload(ctx, row)
	if err != nil {
		return why, err
	}
	var own map[string]json.RawMessage
	if len(given) > 0 {
		if err := json.Unmarshal(given, &own); err != nil {
			return why, fault.New(fault.Undecodable, err, "reading the params of run %s", row.ID)
		}
	}
	var unknown []string
	if n.Params, unknown = g.MergeParams(own); len(unknown) > 0 {
		what := fmt.Sprintf("version %d of the dag knows no param %s", d.Version, strings.Join(unknown, ", "))
		return job.Reason{Code: job.CodeParams, Message: job.Cut(what, contract.MaxErrorMessage)}, nil
	}
	if len(g.ParamsSchema) == 0 {
		return why, nil
	}
	checked := n.Params
	if checked == nil {
		checked = json.RawMessage("{}")
	}
	by := schema.Use{Schema: g.ParamsSchema, Owner: "dag", Field: "params_schema"}
	return r.unfit(ctx, job.CodeParams, "/params", checked, by)
}

// CancelLaunched cancels the run of a row for its schedule, which may ask for it more than once. A run that has ended
// or was never created stays so.
func (r *Controller) CancelLaunched(ctx context.Context, row job.Row, why string) (effect.List, error) {
	todo, err := r.cancel(ctx, run.Key{Tenant: row.Tenant, ID: row.ID}, By{Who: bySchedule, Reason: why}, false)
	if wrong := new(WrongState); errors.As(err, &wrong) || fault.KindOf(err) == fault.NotFound {
		return todo, nil
	}
	return todo, err
}
