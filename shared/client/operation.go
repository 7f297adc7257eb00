package client

import (
	"context"
	"iter"

	"punctual/shared/client/rest"
)

// Backfill makes past times of a schedule that did not run; key is as in [Client.CreateJob]. It returns the operation
// that does it, or, for a dry run, how many times match and are left out.
func (c *Client) Backfill(
	ctx context.Context, key, schedule string, b rest.BackfillRequest,
) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.CreateBackfill, Request{
		Path: []string{schedule}, Params: rest.CreateBackfillParams{IdempotencyKey: keyed(key)}, Body: b})
}

// CreateOperation does one action to many jobs or runs; key is as in [Client.CreateJob]. It returns the operation that
// does it, or, for a dry run, how many match.
func (c *Client) CreateOperation(ctx context.Context, key string, o rest.OperationRequest) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.CreateOperation, Request{
		Params: rest.CreateOperationParams{IdempotencyKey: keyed(key)}, Body: o})
}

// Operations iterates over the operations, newest first.
func (c *Client) Operations(ctx context.Context) iter.Seq2[rest.OperationView, error] {
	return list[rest.OperationView](ctx, c, rest.ListOperations, Request{})
}

// Operation returns an operation, [NotFound] if there is none.
func (c *Client) Operation(ctx context.Context, id string) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.GetOperation, Request{Path: []string{id}})
}

// WaitOperation returns an operation once it has ended, as [Client.Wait] does a job. One that is PAUSED has not ended.
func (c *Client) WaitOperation(ctx context.Context, id string) (rest.OperationView, error) {
	r := Request{Path: []string{id}, Params: rest.GetOperationParams{Wait: new(c.wait.String())}}
	return wait(ctx, c, rest.GetOperation, r, func(o rest.OperationView) string { return string(*o.Status) })
}

// PauseOperation keeps an operation from making anything new. [WrongState] when it has ended.
func (c *Client) PauseOperation(ctx context.Context, id string) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.PauseOperation, Request{Path: []string{id}})
}

// ResumeOperation lets a paused operation go on.
func (c *Client) ResumeOperation(ctx context.Context, id string) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.ResumeOperation, Request{Path: []string{id}})
}

// StopOperation ends an operation; what is open goes on.
func (c *Client) StopOperation(ctx context.Context, id string) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.StopOperation, Request{Path: []string{id}})
}

// ProceedOperation lets an operation go on in spite of its canary. [WrongState] when it has none.
func (c *Client) ProceedOperation(ctx context.Context, id string) (rest.OperationView, error) {
	return Call[rest.OperationView](ctx, c, rest.ProceedOperation, Request{Path: []string{id}})
}
