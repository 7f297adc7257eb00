package store

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

// WebhookReader reads a tenant's webhooks.
type WebhookReader interface {
	// Webhook reads a tenant's webhook; an absent one is a fault.NotFound.
	Webhook(ctx context.Context, t tenant.ID, name string) (webhook.Webhook, error)
	// Webhooks reads one page of a tenant's webhooks by name, beginning after that name; most is at least 1. more says
	// that the page is not the last. One that cannot be read is left out.
	Webhooks(ctx context.Context, t tenant.ID, after string, most int) (list []webhook.Webhook, more bool, err error)
	// WebhookHealth reads how the deliveries to a webhook fare.
	WebhookHealth(ctx context.Context, t tenant.ID, name string) (webhook.Health, error)
}

// Webhooks are tenants' webhooks, and the deliveries to them.
type Webhooks interface {
	WebhookReader
	// UpdateWebhook is JobWriter.Update for a webhook. decide gets nil for an absent one; what it then reads of the
	// tenant's webhooks holds until the write: another new one in between makes it decide anew.
	UpdateWebhook(
		ctx context.Context, t tenant.ID, name string, decide func(*webhook.Webhook) (webhook.Webhook, error),
	) (webhook.Webhook, error)
	// DeleteWebhook deletes a webhook of that version; an absent one is a fault.NotFound, another version an
	// *item.Refused.
	DeleteWebhook(ctx context.Context, w webhook.Webhook) error
	// NoteAttempts notes attempts to deliver to a webhook, and returns its health then. Unless something changes, it
	// writes nothing.
	NoteAttempts(
		ctx context.Context, t tenant.ID, name string, attempts []webhook.Attempt, now time.Time,
	) (webhook.Health, error)
	// Deliveries reads up to that many deliveries to a webhook, newest first, from those before a position on, "" being
	// the beginning; more says that others follow. The index lags; JobReader.Rows reads the rows.
	Deliveries(ctx context.Context, t tenant.ID, name, position string, most int) (_ []Delivery, more bool, err error)
}

// Delivery is an entry of the index of deliveries.
type Delivery struct {
	job.Key
	Position string
}
