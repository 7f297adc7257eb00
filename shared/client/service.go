package client

import (
	"context"
	"encoding/json"
	"iter"

	"punctual/shared/client/rest"
)

// Health returns whether the API answers. It needs no token.
func (c *Client) Health(ctx context.Context) (rest.HealthAnswer, error) {
	return Call[rest.HealthAnswer](ctx, c, rest.GetHealth, Request{})
}

// Readiness returns whether work is done: the tables, the marks of the passes, the quotas and the time zone rules.
// [Unavailable] when it is not.
func (c *Client) Readiness(ctx context.Context) (rest.ReadyAnswer, error) {
	return Call[rest.ReadyAnswer](ctx, c, rest.GetReadiness, Request{})
}

// Workers returns the workers of the deployment, and how full the queues are. It needs the scope admin.
func (c *Client) Workers(ctx context.Context) (rest.WorkersAnswer, error) {
	return Call[rest.WorkersAnswer](ctx, c, rest.ListWorkers, Request{})
}

// WhoAmI returns the tenant, the subject and the scopes of the token.
func (c *Client) WhoAmI(ctx context.Context) (rest.WhoamiAnswer, error) {
	return Call[rest.WhoamiAnswer](ctx, c, rest.WhoAmI, Request{})
}

// Document returns the OpenAPI document of the API. It needs no token.
func (c *Client) Document(ctx context.Context) (json.RawMessage, error) {
	return Call[json.RawMessage](ctx, c, rest.GetDocument, Request{})
}

// Problem explains the code of a problem. It needs no token.
func (c *Client) Problem(ctx context.Context, code Code) (rest.Explanation, error) {
	return Call[rest.Explanation](ctx, c, rest.GetProblem, Request{Path: []string{string(code)}})
}

// Problems iterates over the explanations of all codes.
func (c *Client) Problems(ctx context.Context) iter.Seq2[rest.Explanation, error] {
	return list[rest.Explanation](ctx, c, rest.ListProblems, Request{})
}

// Tasks iterates over the tasks by name.
func (c *Client) Tasks(ctx context.Context) iter.Seq2[rest.TaskView, error] {
	return list[rest.TaskView](ctx, c, rest.ListTasks, Request{})
}

// Task returns a task, [NotFound] if there is none.
func (c *Client) Task(ctx context.Context, name string) (rest.TaskView, error) {
	return Call[rest.TaskView](ctx, c, rest.GetTask, Request{Path: []string{name}})
}

// PutTask creates or replaces a task.
func (c *Client) PutTask(ctx context.Context, name string, t rest.TaskRequest) (rest.TaskView, error) {
	return Call[rest.TaskView](ctx, c, rest.PutTask, Request{Path: []string{name}, Body: t})
}

// DeleteTask deletes a task; its jobs that wait still run.
func (c *Client) DeleteTask(ctx context.Context, name string) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteTask, Request{Path: []string{name}})
	return err
}

// Audit iterates over the changes that callers made, newest first; nil parameters select all.
func (c *Client) Audit(ctx context.Context, only *rest.ListAuditParams) iter.Seq2[rest.AuditView, error] {
	return list[rest.AuditView](ctx, c, rest.ListAudit, Request{Params: only})
}

// Pauses iterates over the pauses of tasks and of everything.
func (c *Client) Pauses(ctx context.Context) iter.Seq2[rest.PauseView, error] {
	return list[rest.PauseView](ctx, c, rest.ListPauses, Request{})
}

// Pause holds a scope, all or task:NAME: what is due does not start until it is lifted.
func (c *Client) Pause(ctx context.Context, scope string, p rest.PauseRequest) (rest.PauseView, error) {
	return Call[rest.PauseView](ctx, c, rest.PutPause, Request{Path: []string{scope}, Body: p})
}

// Resume lifts the pause of a scope.
func (c *Client) Resume(ctx context.Context, scope string) error {
	_, err := Call[struct{}](ctx, c, rest.DeletePause, Request{Path: []string{scope}})
	return err
}

// Limits iterates over the limits of work by name.
func (c *Client) Limits(ctx context.Context) iter.Seq2[rest.LimitView, error] {
	return list[rest.LimitView](ctx, c, rest.ListLimits, Request{})
}

// Limit returns a limit of work, [NotFound] if there is none.
func (c *Client) Limit(ctx context.Context, name string) (rest.LimitView, error) {
	return Call[rest.LimitView](ctx, c, rest.GetLimit, Request{Path: []string{name}})
}

// PutLimit creates or replaces a limit of work: whatever its version is, or by [IfVersion] one version only. It counts
// for the next start of a job.
func (c *Client) PutLimit(
	ctx context.Context, name string, l rest.LimitRequest, only ...Condition,
) (rest.LimitView, error) {
	return Call[rest.LimitView](ctx, c, rest.PutLimit, Request{
		Path: []string{name}, Params: rest.PutLimitParams{IfMatch: ifMatch(only)}, Body: l})
}

// DeleteLimit deletes a limit of work; [InUse] while a task, a schedule or a dag uses it. Jobs that name it start
// without it.
func (c *Client) DeleteLimit(ctx context.Context, name string, only ...Condition) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteLimit, Request{
		Path: []string{name}, Params: rest.DeleteLimitParams{IfMatch: ifMatch(only)}})
	return err
}

// LimitKeys iterates over the keys of a limit of work that are used most, busiest first.
func (c *Client) LimitKeys(ctx context.Context, name string) iter.Seq2[rest.LimitKeyView, error] {
	return list[rest.LimitKeyView](ctx, c, rest.ListLimitKeys, Request{Path: []string{name}})
}

// Usage iterates over what jobs used, by task unless the parameters say otherwise; what costs most comes first.
func (c *Client) Usage(ctx context.Context, of *rest.ListUsageParams) iter.Seq2[rest.UsageView, error] {
	return list[rest.UsageView](ctx, c, rest.ListUsage, Request{Params: of})
}

// Stats returns counts of what became of jobs, step by step of time. A nil range is the last 24 hours by the hour.
func (c *Client) Stats(ctx context.Context, of *rest.GetStatsParams) (rest.StatsView, error) {
	return Call[rest.StatsView](ctx, c, rest.GetStats, Request{Params: of})
}

// Webhooks iterates over the webhooks by name.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[rest.WebhookView, error] {
	return list[rest.WebhookView](ctx, c, rest.ListWebhooks, Request{})
}

// Webhook returns a webhook, [NotFound] if there is none.
func (c *Client) Webhook(ctx context.Context, name string) (rest.WebhookView, error) {
	return Call[rest.WebhookView](ctx, c, rest.GetWebhook, Request{Path: []string{name}})
}

// PutWebhook creates or replaces a webhook: whatever its version is, or by [IfVersion] one version only.
func (c *Client) PutWebhook(
	ctx context.Context, name string, w rest.WebhookRequest, only ...Condition,
) (rest.WebhookView, error) {
	return Call[rest.WebhookView](ctx, c, rest.PutWebhook, Request{
		Path: []string{name}, Params: rest.PutWebhookParams{IfMatch: ifMatch(only)}, Body: w})
}

// DeleteWebhook deletes a webhook; deliveries that are open are still tried.
func (c *Client) DeleteWebhook(ctx context.Context, name string, only ...Condition) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteWebhook, Request{
		Path: []string{name}, Params: rest.DeleteWebhookParams{IfMatch: ifMatch(only)}})
	return err
}

// TestWebhook sends a test event to a webhook, and returns the job that delivers it.
func (c *Client) TestWebhook(ctx context.Context, name string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.TestWebhook, Request{Path: []string{name}})
}

// Deliveries iterates over the jobs that deliver events to a webhook, newest first: those that match a filter, nil for
// all.
func (c *Client) Deliveries(
	ctx context.Context, name string, filter *rest.ListDeliveriesParams,
) iter.Seq2[rest.DeliveryView, error] {
	return list[rest.DeliveryView](ctx, c, rest.ListDeliveries, Request{Path: []string{name}, Params: filter})
}

// Redeliver sends the event of a delivery once more, and returns the job that does.
func (c *Client) Redeliver(ctx context.Context, name, delivery string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.Redeliver, Request{Path: []string{name, delivery}})
}
