package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/event"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
	"punctual/shared/webhook"
)

// Age is how old the list of a tenant's webhooks may be.
const Age = 5 * time.Second

// maxTenants is how many tenants' webhooks are kept.
const maxTenants = 10_000

// Store is what a Notifier reads and writes.
type Store interface {
	accept.Jobs
	store.Webhooks
}

// Deps is what a Notifier needs.
type Deps struct {
	process.Base
	Store  Store
	Accept *accept.Acceptor
}

// Notifier makes deliveries. It is safe for concurrent use.
type Notifier struct {
	Deps
	webhooks *cache.Cache[tenant.ID, []webhook.Webhook]
}

// New returns a Notifier.
func New(d Deps) *Notifier {
	return &Notifier{d, cache.New[tenant.ID](cache.Options[[]webhook.Webhook]{
		Age: Age, Most: maxTenants, Now: d.Clock.Now,
	})}
}

// of returns the webhooks of a tenant.
func (n *Notifier) of(ctx context.Context, t tenant.ID) ([]webhook.Webhook, error) {
	return n.webhooks.Get(ctx, t, func(ctx context.Context) ([]webhook.Webhook, error) {
		list, _, err := n.Store.Webhooks(ctx, t, "", contract.MaxWebhooks)
		if err != nil {
			return nil, fmt.Errorf("reading the webhooks of tenant %s: %w", t, err)
		}
		return list, nil
	})
}

// Asked reports whether a webhook of the tenant asks for events of that type, as far as their type says. Where that
// cannot be read, one may.
func (n *Notifier) Asked(ctx context.Context, t tenant.ID, what event.Type) bool {
	if !n.Announced {
		return false
	}
	list, err := n.of(ctx, t)
	return err != nil || slices.ContainsFunc(list, func(w webhook.Webhook) bool { return w.Asks(what) })
}

// Announce makes the deliveries of an event to all webhooks that ask for it. It may be repeated.
func (n *Notifier) Announce(ctx context.Context, e event.Event) error {
	list, err := n.of(ctx, e.Tenant)
	if err != nil {
		return err
	}
	var labels job.Labels
	var body []byte
	var errs []error
	for _, w := range list {
		if !w.Wants(e) {
			continue
		}
		if body == nil {
			if labels, err = n.labels(ctx, e); err != nil {
				return err
			}
			body = e.Body(labels)
		}
		if !w.WantsTags(e.TagsWith(labels)) {
			continue
		}
		id := job.DeterministicID(e.At, "delivery", string(e.Tenant), w.Name, e.ID)
		_, err := n.deliver(ctx, w, id, e.ID, body)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (n *Notifier) labels(ctx context.Context, e event.Event) (job.Labels, error) {
	if e.Job == nil {
		return job.Labels{}, nil
	}
	labels, err := n.Store.LabelsOf(ctx, *e.Job)
	if err != nil {
		return job.Labels{}, fmt.Errorf("reading the labels for event %s: %w", e.ID, err)
	}
	return labels[0], nil
}

// deliver accepts the job that delivers an event to a webhook as it is now, unless it is there already.
func (n *Notifier) deliver(
	ctx context.Context, w webhook.Webhook, id job.ID, eventID string, body []byte,
) (job.Row, error) {
	row, send := job.Delivery(job.Key{Tenant: w.Tenant, ID: id}, w.Name, n.Shards, n.now())
	contents := job.Contents{Payload: text.MustJSON(executor.WebhookPayload{
		Webhook: w.Name, EventID: eventID, URL: w.URL, Headers: w.Headers, SignWith: w.SignWith, Event: body,
	})}
	row.Hold(contents)
	if err := n.Accept.Put(ctx, accept.Job{Row: row, OwnID: true, Keep: func(ctx context.Context, r job.Row) error {
		return n.Store.KeepContents(ctx, r, contents)
	}}); err != nil {
		return row, fmt.Errorf("accepting the delivery of event %s to webhook %q: %w", eventID, w.Name, err)
	}
	if send {
		n.Accept.FireNow(ctx, row.Firing())
	}
	return row, nil
}

// now returns the time, to the millisecond as it is stored.
func (n *Notifier) now() time.Time { return n.Clock.Now().UTC().Truncate(time.Millisecond) }
