package arm

import (
	"context"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/operation"
	"punctual/shared/run"
	"punctual/shared/tenant"
)

// later is the least wait of work that is handed to another invocation, mostly because it failed: without a delay, what
// fails for minutes would hand itself on as fast as messages travel.
const later = time.Second

// Unpark are the messages that have dispatch decide about all that the pauses of a tenant hold.
func Unpark(t tenant.ID) []message.Dispatch {
	asks := make([]message.Dispatch, contract.ParkShards)
	for shard := range asks {
		asks[shard] = message.Ask(message.Verb{Unpark: &message.Parking{Tenant: string(t), Shard: shard}})
	}
	return asks
}

// Asker asks for work in invocations of their own.
type Asker struct{ Queue message.Sender }

// ReevaluateAfter has a job decided about after that time, in whole seconds, and after the reports that already wait.
// If the job is final, that does its pending effects.
func (a Asker) ReevaluateAfter(ctx context.Context, row job.Row, wait time.Duration) error {
	body := message.Encode(message.Report{V: message.V, Kind: message.Reevaluate, Tenant: string(row.Tenant),
		JobID: string(row.ID), Version: row.Version, Attempt: row.Attempt})
	err := a.Queue.Send(ctx, contract.ReportQueue,
		message.Outgoing{Group: string(row.Tenant), Delay: wait, Body: body})
	if err != nil {
		return fmt.Errorf("deferring the children of job %s: %w", row.ID, err)
	}
	return nil
}

// EndedLater has the children of an ended job evaluated soon.
func (a Asker) EndedLater(ctx context.Context, row job.Row) error {
	return a.ReevaluateAfter(ctx, row, later)
}

// ReconcileLater has a run reconciled soon.
func (a Asker) ReconcileLater(ctx context.Context, k run.Key) error {
	return a.ReconcileAfter(ctx, k, 0)
}

// ReconcileAfter has a run reconciled after a wait, or earlier if it is a long one.
func (a Asker) ReconcileAfter(ctx context.Context, k run.Key, wait time.Duration) error {
	wait = min(max(wait.Truncate(time.Second)+time.Second, later), contract.MaxDelay)
	ask := message.Ask(message.Verb{Reconcile: &message.Run{Tenant: string(k.Tenant), RunID: string(k.ID)}})
	err := a.Queue.Send(ctx, contract.DispatchQueue,
		message.Outgoing{Group: string(k.Tenant), Body: message.Encode(ask), Delay: wait})
	if err != nil {
		return fmt.Errorf("asking for run %s to be reconciled: %w", k.ID, err)
	}
	return nil
}

// Operate asks for an operation on rows to be continued, after a wait or earlier if it is a long one. Messages are
// grouped by tenant, so that the many rows of one do not keep another waiting.
func (a Asker) Operate(ctx context.Context, k operation.Key, wait time.Duration) error {
	wait = min((wait + time.Second - 1).Truncate(time.Second), contract.MaxDelay)
	ask := message.Ask(message.Verb{Operate: &message.Operation{Tenant: string(k.Tenant), OperationID: string(k.ID)}})
	err := a.Queue.Send(ctx, contract.BulkQueue,
		message.Outgoing{Group: string(k.Tenant), Body: message.Encode(ask), Delay: wait})
	if err != nil {
		return fmt.Errorf("asking for operation %s to be continued: %w", k.ID, err)
	}
	return nil
}
