package client

import (
	"context"
	"iter"

	"punctual/shared/client/rest"
)

// PutDag creates a dag, or a new version of it when the definition is another one.
func (c *Client) PutDag(ctx context.Context, name string, d rest.DagRequest) (rest.DagView, error) {
	return Call[rest.DagView](ctx, c, rest.PutDag, Request{Path: []string{name}, Body: d})
}

// ValidateDag returns the levels of a draft, or the violations that PutDag would find.
func (c *Client) ValidateDag(ctx context.Context, d rest.DagRequest) (rest.ValidateAnswer, error) {
	return Call[rest.ValidateAnswer](ctx, c, rest.ValidateDag, Request{Body: d})
}

// Dag returns the newest version of a dag, [NotFound] if there is none.
func (c *Client) Dag(ctx context.Context, name string) (rest.DagView, error) {
	return Call[rest.DagView](ctx, c, rest.GetDag, Request{Path: []string{name}})
}

// DagVersion returns one version of a dag, [NotFound] if there is none.
func (c *Client) DagVersion(ctx context.Context, name string, version int) (rest.DagView, error) {
	return Call[rest.DagView](ctx, c, rest.GetDag, Request{
		Path: []string{name}, Params: rest.GetDagParams{Version: &version}})
}

// DagVersions iterates over the versions of a dag, newest first.
func (c *Client) DagVersions(ctx context.Context, name string) iter.Seq2[rest.DagItemView, error] {
	return list[rest.DagItemView](ctx, c, rest.ListDagVersions, Request{Path: []string{name}})
}

// Dags iterates over the dags by name.
func (c *Client) Dags(ctx context.Context) iter.Seq2[rest.DagItemView, error] {
	return list[rest.DagItemView](ctx, c, rest.ListDags, Request{})
}

// DeleteDag deletes all versions of a dag. Its runs go on.
func (c *Client) DeleteDag(ctx context.Context, name string) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteDag, Request{Path: []string{name}})
	return err
}

// RunDag starts a run of a dag; key is as in [Client.CreateJob].
func (c *Client) RunDag(
	ctx context.Context, key, name string, r rest.DagRunRequest,
) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.CreateDagRun, Request{
		Path: []string{name}, Params: rest.CreateDagRunParams{IdempotencyKey: keyed(key)}, Body: r})
}

// CreateRun starts a run of a definition of its own; key is as in [Client.CreateJob].
func (c *Client) CreateRun(ctx context.Context, key string, r rest.RunRequest) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.CreateRun, Request{
		Params: rest.CreateRunParams{IdempotencyKey: keyed(key)}, Body: r})
}

// Run returns a run with its nodes, [NotFound] if there is none.
func (c *Client) Run(ctx context.Context, id string) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.GetRun, Request{Path: []string{id}})
}

// WaitRun returns a run once it has ended, as [Client.Wait] does a job. A run that is HELD or PAUSED is
// not over.
func (c *Client) WaitRun(ctx context.Context, id string) (rest.RunView, error) {
	r := Request{Path: []string{id}, Params: rest.GetRunParams{Wait: new(c.wait.String())}}
	return wait(ctx, c, rest.GetRun, r, func(run rest.RunView) string { return string(run.Status) })
}

// Runs iterates over the runs that match filter, newest first, without their nodes; nil is all.
func (c *Client) Runs(ctx context.Context, filter *rest.ListRunsParams) iter.Seq2[rest.RunView, error] {
	return list[rest.RunView](ctx, c, rest.ListRuns, Request{Params: filter})
}

// RunEvents iterates over who did what to a run, when and why, oldest first.
func (c *Client) RunEvents(ctx context.Context, id string) iter.Seq2[rest.RunEventView, error] {
	return list[rest.RunEventView](ctx, c, rest.ListRunEvents, Request{Path: []string{id}})
}

// RunGraph returns the nodes, edges and levels of a run.
func (c *Client) RunGraph(ctx context.Context, id string) (rest.GraphView, error) {
	return Call[rest.GraphView](ctx, c, rest.GetRunGraph, Request{
		Path: []string{id}, Params: rest.GetRunGraphParams{Format: new(rest.GetRunGraphParamsFormatJSON)}})
}

// RunDiagram returns the graph of a run as the source of a Mermaid diagram, or as an SVG picture.
func (c *Client) RunDiagram(ctx context.Context, id string, format rest.GetRunGraphParamsFormat) ([]byte, error) {
	return Call[[]byte](ctx, c, rest.GetRunGraph, Request{
		Path: []string{id}, Params: rest.GetRunGraphParams{Format: &format}})
}

// DeleteRun deletes a run that has ended, with its jobs. [NotFinished] when it has not.
func (c *Client) DeleteRun(ctx context.Context, id string) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteRun, Request{Path: []string{id}})
	return err
}

// PauseRun keeps the nodes of a run that have not started from starting.
func (c *Client) PauseRun(ctx context.Context, id string, r rest.RunActRequest) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.PauseRun, Request{Path: []string{id}, Body: r})
}

// ResumeRun lifts the pause of a run.
func (c *Client) ResumeRun(ctx context.Context, id string, r rest.RunActRequest) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.ResumeRun, Request{Path: []string{id}, Body: r})
}

// CancelRun cancels what has not started of a run, and asks what runs to stop. Nodes with run_if always still run; a
// second cancel stops them, too.
func (c *Client) CancelRun(ctx context.Context, id string, r rest.RunActRequest) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.CancelRun, Request{Path: []string{id}, Body: r})
}

// RetryRun runs again what failed in a run, with what was cancelled downstream; with From, that node and all below it.
func (c *Client) RetryRun(ctx context.Context, id string, r rest.RunRetryRequest) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.RetryRun, Request{Path: []string{id}, Body: r})
}

// Node returns a node of a run in full, and the first page of its items if it has items.
func (c *Client) Node(ctx context.Context, id, node string) (rest.RunNodeDetail, error) {
	return Call[rest.RunNodeDetail](ctx, c, rest.GetRunNode, Request{Path: []string{id, node}})
}

// NodeItems iterates over the items of a node that runs once for each item of a list.
func (c *Client) NodeItems(ctx context.Context, id, node string) iter.Seq2[rest.RunItemView, error] {
	return pages(func(cursor *string) (rest.RunNodeDetail, error) {
		return Call[rest.RunNodeDetail](ctx, c, rest.GetRunNode, Request{Path: []string{id, node}, cursor: cursor})
	}, func(d rest.RunNodeDetail) ([]rest.RunItemView, *string) {
		page := deref(d.Items)
		return page.Items, page.NextCursor
	})
}

// RetryNode runs a failed node again, with what was cancelled downstream.
func (c *Client) RetryNode(
	ctx context.Context, id, node string, r rest.RunActRequest,
) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.RetryRunNode, Request{Path: []string{id, node}, Body: r})
}

// SkipNode passes over a node that is blocked, waits or has failed.
func (c *Client) SkipNode(
	ctx context.Context, id, node string, r rest.NodeSkipRequest,
) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.SkipRunNode, Request{Path: []string{id, node}, Body: r})
}

// CompleteNode makes a node that is blocked, waits or has failed a success, with a result.
func (c *Client) CompleteNode(
	ctx context.Context, id, node string, r rest.NodeCompleteRequest,
) (rest.RunView, error) {
	return Call[rest.RunView](ctx, c, rest.CompleteRunNode, Request{Path: []string{id, node}, Body: r})
}
