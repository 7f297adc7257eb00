package runs

import (
	"context"
	"encoding/json"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/dag"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/text"
)

// Request says which run to create.
type Request struct {
	// The caller computes the ID from an idempotency key or from a nominal time.
	run.Key
	Dag        string                        // "" for an inline run
	Version    int64                         // of the dag; 0 for an inline run
	Definition dag.Definition                // checked: dag.Compile accepts it
	Kept       bool                          // the definition is stored already
	Params     json.RawMessage               // merged; nil for none
	DueAt      time.Time                     // zero: now
	NominalAt  time.Time                     // zero without a schedule
	Schedule   string                        // "" for none
	Backfill   job.ID                        // operation that makes it; "" for none
	Priority   job.Priority                  // "": the definition's
	Tags       map[string]string             // over the definition's
	ExpireAt   func(due time.Time) time.Time // nil: the definition's expire_after
	By         By
	With       []item.Write // in the transaction that creates the run
}

// By is the caller of an operation, and the reason.
type By struct{ Who, Reason string }

// Create creates a run and has it reconciled. If there is a run with that ID already, it returns that run, and created
// is false. If something of With is refused and there is no run, that is a fault.NotFound. Once the
// run's item is written the run goes on by itself, even if the call fails.
func (r *Controller) Create(
	ctx context.Context, n Request,
) (is run.Run, created bool, todo effect.List, err error) {
	now := r.Clock.Now()
	is = run.Run{
		Key: n.Key, Dag: n.Dag, DagVersion: n.Version, Definition: n.Definition.Hash(), DueAt: n.DueAt,
		NominalAt: n.NominalAt, Schedule: n.Schedule, Backfill: n.Backfill, Priority: n.Priority,
		Shard: horizon.ShardOf(string(n.ID), r.Shards), Params: string(n.Params),
	}
	if is.DueAt.IsZero() {
		is.DueAt = now
	}
	switch {
	case n.ExpireAt != nil:
		is.ExpiryAt = n.ExpireAt(is.DueAt)
	case n.Definition.ExpireAfter > 0:
		is.ExpiryAt = is.DueAt.Add(n.Definition.ExpireAfter)
	}
	if !n.Kept {
		if err := r.Store.PutDefinition(ctx, n.Tenant, is.Definition, n.Definition.Encode()); err != nil {
			return is, false, todo, err
		}
	}
	var contents []item.Write // in the transaction: of two requests for one run, the refused one leaves nothing behind
	if len(is.Params) > run.MaxInlineParams {
		contents = append(contents, is.PutContent(run.ParamsContent, is.Params, now))
		is.Params = run.ParamsInItem
	}
	tags := merged(n.Definition.Tags, n.Tags)
	is.Tagged = len(tags) > 0
	is, write := run.Create(is, now)
	event := is.PutEvent(run.Event{At: now, By: n.By.Who, Action: "create", Reason: n.By.Reason,
		To: string(run.Building)})
	writes := append([]item.Write{write, event, is.List()}, contents...)
	if is.Tagged {
		writes = append(writes, is.PutContent(run.TagsContent, string(text.MustJSON(tags)), now))
	}
	if err := r.Store.Commit(ctx, append(writes, n.With...)...); err != nil {
		if !refused(err) {
			return is, false, todo, err
		}
		is, err = r.Store.Run(ctx, n.Key)
		return is, false, todo, err
	}
	r.Meter.Count(telemetry.RunsCreated, 1)
	r.drawAfter(ctx, n.Tenant, plainWeight(n))
	todo.Reconcile = []run.Key{n.Key}
	return is, true, todo, nil
}

// plainWeight is what the jobs of a run weigh, except those of mapped nodes, and its params if a schedule gives them:
// those of a request were weighed with its body.
func plainWeight(n Request) int {
	jobs, bytes := 0, 0
	for _, node := range n.Definition.Nodes {
		if node.ForEach == "" {
			jobs++
		}
	}
	if n.Schedule != "" {
		bytes = len(n.Params)
	}
	return store.Weight(jobs, bytes)
}
