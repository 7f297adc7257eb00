package notify

import (
	"context"
	"fmt"

	"punctual/shared/event"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

// attemptOf returns the attempt to deliver that a change of a delivery is the end of; ok is false if it is none.
func attemptOf(c event.Change) (a webhook.Attempt, ok bool) {
	r := c.New
	a = webhook.Attempt{At: r.FinishedAt, CreatedAt: r.CreatedAt, Succeeded: r.Status == job.Succeeded,
		Gone: r.Reason.Code == executor.CodeWebhookGone}
	for _, of := range r.Attempts { // the newest is the last
		if !of.FinishedAt.IsZero() {
			a.At = of.FinishedAt
		}
	}
	return a, a.Succeeded && c.Ended() || c.Failed()
}

// Attempted notes the outcome of an attempt to deliver, if the change of a delivery is one. A webhook that has had
// nothing but failures for webhook.FailingMost, or whose endpoint has gone, is disabled, and that is announced to the
// others. It may be repeated.
func (n *Notifier) Attempted(ctx context.Context, c event.Change) error {
	a, ok := attemptOf(c)
	if !ok {
		return nil
	}
	t, name := c.New.Tenant, c.New.Webhook
	health, err := n.Store.NoteAttempts(ctx, t, name, []webhook.Attempt{a}, n.now())
	if err != nil || a.Succeeded {
		return err
	}
	w, err := n.Store.Webhook(ctx, t, name)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if why := w.Disables(a, health); why != "" {
		if w, err = n.disable(ctx, t, name, a, health); err != nil {
			return err
		}
	}
	if w.Enabled || w.Disabled.Code == "" {
		return nil
	}
	// The process that disabled it may have ended before it announced that: each later failure announces it once more,
	// which changes nothing if it was announced.
	return n.Announce(ctx, event.OfDisabled(t, name, w.URL, w.Version, w.Disabled, w.DisabledAt))
}

// reasons are the sentences of the codes.
var reasons = map[string]string{
	webhook.CodeFailing: "every delivery of the last three days has failed",
	webhook.CodeGone:    "the endpoint answered 410 Gone",
}

// disable disables a webhook, unless it has changed so that the attempt does not count any more.
func (n *Notifier) disable(
	ctx context.Context, t tenant.ID, name string, a webhook.Attempt, health webhook.Health,
) (webhook.Webhook, error) {
	disabled := false
	w, err := n.Store.UpdateWebhook(ctx, t, name, func(w *webhook.Webhook) (webhook.Webhook, error) {
		disabled = false
		if w == nil {
			return webhook.Webhook{}, fault.New(fault.NotFound, nil, "disabling webhook %q", name)
		}
		next := *w
		why := w.Disables(a, health)
		if why == "" {
			return next, nil
		}
		disabled = true
		next.Enabled, next.DisabledAt = false, n.now()
		next.Disabled = job.Reason{Code: why, Message: reasons[why]}
		return next, nil
	})
	if fault.KindOf(err) == fault.NotFound {
		return webhook.Webhook{}, nil
	}
	if err != nil {
		return w, fmt.Errorf("disabling webhook %q: %w", name, err)
	}
	if disabled {
		n.webhooks.Drop(t)
		n.Meter.Count(telemetry.WebhooksDisabled, 1)
		n.Log.WarnContext(ctx, "disabled a webhook", telemetry.Tenant, t, "webhook", name, "reason", w.Disabled.Code)
	}
	return w, nil
}
