package client

import (
	"context"
	"iter"

	"punctual/shared/client/rest"
)

// PutDag creates a dag, or a new version of it when the definition is another one.
func (c *Client) PutDag(ctx context.Context, name string, d rest.DagRequest) (rest.DagView, error) {
	return Read[rest.DagView](c.rest.PutDag(ctx, name, d))
}

// ValidateDag returns the levels of a draft, or the mistakes that PutDag would find.
func (c *Client) ValidateDag(ctx context.Context, d rest.DagRequest) (rest.ValidateAnswer, error) {
	return Read[rest.ValidateAnswer](c.rest.ValidateDag(ctx, d))
}

// Dag returns the newest version of a dag, [NotFound] if there is none.
func (c *Client) Dag(ctx context.Context, name string) (rest.DagView, error) {
	return Read[rest.DagView](c.rest.GetDag(ctx, name, nil))
}

// Dags iterates over the dags by name.
func (c *Client) Dags(ctx context.Context) iter.Seq2[rest.DagItemView, error] {
	return pages(func(cursor *string) (rest.DagItemPage, error) {
		return Read[rest.DagItemPage](c.rest.ListDags(ctx, &rest.ListDagsParams{Cursor: cursor}))
	}, func(p rest.DagItemPage) ([]rest.DagItemView, *string) { return p.Items, p.NextCursor })
}

// RunDag starts a run of a dag; key is as in [Client.CreateJob].
func (c *Client) RunDag(
	ctx context.Context, key, name string, r rest.DagRunRequest,
) (rest.RunView, error) {
	p := &rest.CreateDagRunParams{IdempotencyKey: keyed(key)}
	return Read[rest.RunView](c.rest.CreateDagRun(ctx, name, p, r))
}

// CreateRun starts a run of a definition of its own; key is as in [Client.CreateJob].
func (c *Client) CreateRun(ctx context.Context, key string, r rest.RunRequest) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.CreateRun(ctx, &rest.CreateRunParams{IdempotencyKey: keyed(key)}, r))
}

// Run returns a run with its nodes, [NotFound] if there is none.
func (c *Client) Run(ctx context.Context, id string) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.GetRun(ctx, id, nil))
}

// WaitRun returns a run once it is over, as [Client.Wait] does a job. A run that is HELD or PAUSED is
// not over.
func (c *Client) WaitRun(ctx context.Context, id string) (rest.RunView, error) {
	wait := c.wait.String()
	for {
		answer, err := c.rest.GetRun(ctx, id, &rest.GetRunParams{Wait: &wait})
		run, err := Read[rest.RunView](answer, err)
		if err != nil || Over(string(run.Status)) {
			return run, err
		}
		if !pause(ctx, retryAfter(answer.Header)) {
			return run, context.DeadlineExceeded
		}
	}
}

// Runs iterates over the runs that filter lets through, newest first, without their nodes; nil is all.
func (c *Client) Runs(ctx context.Context, filter *rest.ListRunsParams) iter.Seq2[rest.RunView, error] {
	return pages(func(cursor *string) (rest.RunPage, error) {
		p := deref(filter)
		p.Cursor = next(cursor, p.Cursor)
		return Read[rest.RunPage](c.rest.ListRuns(ctx, &p))
	}, func(p rest.RunPage) ([]rest.RunView, *string) { return p.Items, p.NextCursor })
}

// RunEvents iterates over who did what to a run, when and why, oldest first.
func (c *Client) RunEvents(ctx context.Context, id string) iter.Seq2[rest.RunEventView, error] {
	return pages(func(cursor *string) (rest.RunEventPage, error) {
		return Read[rest.RunEventPage](c.rest.ListRunEvents(ctx, id, &rest.ListRunEventsParams{Cursor: cursor}))
	}, func(p rest.RunEventPage) ([]rest.RunEventView, *string) { return p.Items, p.NextCursor })
}

// CancelRun cancels what has not started of a run, and asks what runs to stop.
func (c *Client) CancelRun(ctx context.Context, id string, r rest.RunActRequest) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.CancelRun(ctx, id, r))
}

// RetryRun runs again what failed in a run, and what fell with it; with From, that node and all below it.
func (c *Client) RetryRun(ctx context.Context, id string, r rest.RunRetryRequest) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.RetryRun(ctx, id, r))
}

// RetryNode runs a failed node again, and what fell with it.
func (c *Client) RetryNode(
	ctx context.Context, id, node string, r rest.RunActRequest,
) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.RetryRunNode(ctx, id, node, r))
}

// SkipNode passes over a node that is blocked, waits or has failed.
func (c *Client) SkipNode(
	ctx context.Context, id, node string, r rest.NodeSkipRequest,
) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.SkipRunNode(ctx, id, node, r))
}

// CompleteNode makes a node that is blocked, waits or has failed a success, with a result.
func (c *Client) CompleteNode(
	ctx context.Context, id, node string, r rest.NodeCompleteRequest,
) (rest.RunView, error) {
	return Read[rest.RunView](c.rest.CompleteRunNode(ctx, id, node, r))
}
