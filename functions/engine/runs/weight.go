package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/engine/runs/permit"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// weigh admits the release of a node that makes so many jobs with payloads of so many bytes, before anything of it is
// written. A node that weighs less than a request is admitted at once. Of another the weight is drawn on the rate limit
// of the tenant, once for each generation of the node; while the tenant is too much in deficit, the release is left to
// another invocation, for which weigh asks. why is set if the run's payloads have too many bytes with the node's.
func (r *Controller) weigh(
	ctx context.Context, f *facts, name string, jobs, bytes int,
) (admitted bool, why job.Reason, err error) {
	n := store.Weight(jobs, bytes)
	if n == 0 {
		return true, why, nil
	}
	no, _ := slices.BinarySearch(f.graph.Names(), name)
	generation, drawn := f.run.Generation(name), false
	for range tries {
		weights, err := r.Store.Weights(ctx, f.run.Key)
		if err != nil || weights.Has(no, generation) {
			return err == nil, why, err
		}
		if sum := weights.With(no, int64(bytes)); sum > contract.MaxRunPayloads {
			return false, tooManyBytes(bytes, sum-int64(bytes)), nil
		}
		if !drawn {
			if drawn, err = r.draw(ctx, f, n); err != nil || !drawn {
				return false, why, err
			}
		}
		note := weights.Note(f.run.Key, no, generation, int64(bytes), contract.MaxRunPayloads, r.Clock.Now())
		if err := r.Store.Put(ctx, note); !refused(err) {
			return err == nil, why, err
		}
	}
	return false, why, changed(f.run.Key)
}

// tooManyBytes is why a node is DEAD whose payloads have so many bytes, where those of the run's other nodes have
// others.
func tooManyBytes(bytes int, others int64) job.Reason {
	return job.Reason{Code: dag.ReasonPayloadsTooLarge, Message: fmt.Sprintf(
		"the node's payloads have at least %d bytes, and those of the run's other nodes %d; all payloads of a run may "+
			"have %d bytes", bytes, others, contract.MaxRunPayloads)}
}

// payloadBytes is how many bytes the list of a mapped node and the payloads of its items have. It stops counting once
// they are more than those of a run may be. An item whose payload fails has none.
func (r *Controller) payloadBytes(
	ctx context.Context, f *facts, name string, see dag.Facts, list []json.RawMessage,
) (bytes int, err error) {
	see.Items = len(list)
	for i, raw := range list {
		if see.Item, err = dag.DecodeResult(raw); err != nil {
			return bytes, err
		}
		see.Index = i
		payload, err := f.graph.Payload(ctx, name, see)
		if wrong := new(dag.ExpressionError); err != nil && !errors.As(err, &wrong) {
			return bytes, err
		}
		if bytes += len(raw) + len(payload); bytes > contract.MaxRunPayloads {
			break
		}
	}
	return bytes, nil
}

// draw draws n requests on the rate limit of the run's tenant. If the tenant is too much in deficit, it asks for the
// run to be reconciled once that is paid, and drawn is false.
func (r *Controller) draw(ctx context.Context, f *facts, n int) (drawn bool, err error) {
	if r.RateLimit.Rate == 0 {
		return true, nil
	}
	now := r.Clock.Now()
	drawn, wait, err := r.Store.DrawWeight(ctx, f.run.Tenant, r.RateLimit, n, contract.MaxReleaseOverdraft, now)
	if err != nil || drawn {
		return drawn, err
	}
	f.mu.Lock()
	defers := f.defers
	f.mu.Unlock()
	if defers {
		return false, nil
	}
	if err := r.Jobs.ReconcileAfter(ctx, f.run.Key, wait+patience(f.run, now)); err != nil {
		return false, err
	}
	f.mu.Lock()
	f.defers = true
	f.mu.Unlock()
	r.Log.InfoContext(ctx, "a release was deferred until its tenant's rate limit allows it",
		telemetry.Tenant, f.run.Tenant, telemetry.RunID, f.run.ID, "requests", n)
	return false, nil
}

// longestPatience bounds how much longer than the deficit lasts a run waits.
const longestPatience = 30 * time.Second

// patience is how much longer than the deficit lasts a run waits before it is reconciled once more. Many runs of a
// tenant may wait for the same deficit, and one of them leaves the next: the older a run, the less often it asks.
func patience(is run.Run, now time.Time) time.Duration {
	most := min(now.Sub(is.CreatedAt)/4, longestPatience)
	if most < time.Second {
		return 0
	}
	return time.Duration(permit.Hash(string(is.ID))) * time.Microsecond % most
}

// drawAfter draws what has been done already, whatever deficit that leaves. An error is only logged: the limit protects
// other tenants, and what was done is done.
func (r *Controller) drawAfter(ctx context.Context, t tenant.ID, n int) {
	if n == 0 || r.RateLimit.Rate == 0 {
		return
	}
	if _, _, err := r.Store.DrawWeight(ctx, t, r.RateLimit, n, store.AnyDeficit, r.Clock.Now()); err != nil {
		r.Log.WarnContext(ctx, "the size of a run was not counted", telemetry.Tenant, t, telemetry.Err, err.Error())
	}
}
