package notify

import (
	"context"
	"encoding/json"
	"fmt"

	"punctual/shared/event"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/webhook"
)

// Test makes a delivery of a test event to a webhook, also to one that is disabled. id is a new id.
func (n *Notifier) Test(ctx context.Context, w webhook.Webhook, id job.ID) (job.Row, error) {
	e := event.OfTest(w.Tenant, w.Name, w.URL, id, n.now())
	return n.deliver(ctx, w, id, e.ID, e.Body(job.Labels{}))
}

// Redeliver makes another delivery of the event that a job delivers, or was to deliver, to the webhook as it is now. id
// is a new id. An absent job, and one that is no delivery to that webhook, is a fault.NotFound.
func (n *Notifier) Redeliver(ctx context.Context, w webhook.Webhook, of, id job.ID) (job.Row, error) {
	row, err := n.Store.Row(ctx, job.Key{Tenant: w.Tenant, ID: of})
	if err != nil {
		return row, err
	}
	if row.Webhook != w.Name {
		return row, fault.New(fault.NotFound, nil, "reading delivery %s to webhook %q", of, w.Name)
	}
	payload, err := n.Store.Payload(ctx, row)
	if err != nil {
		return row, fmt.Errorf("reading the event of delivery %s: %w", of, err)
	}
	var p executor.WebhookPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return row, fault.New(fault.Undecodable, err, "reading the event of delivery %s", of)
	}
	return n.deliver(ctx, w, id, p.EventID, p.Event)
}
