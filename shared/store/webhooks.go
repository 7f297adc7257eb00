package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

// Webhook implements WebhookReader.
func (s *Store) Webhook(ctx context.Context, t tenant.ID, name string) (webhook.Webhook, error) {
	i, err := s.table.Get(ctx, webhook.Ref(t, name))
	if err != nil {
		return webhook.Webhook{}, err
	}
	if i == nil {
		return webhook.Webhook{}, fault.New(fault.NotFound, nil, "reading webhook %q", name)
	}
	return webhook.Parse(i, t)
}

// Webhooks implements WebhookReader.
func (s *Store) Webhooks(
	ctx context.Context, t tenant.ID, after string, most int,
) (list []webhook.Webhook, more bool, err error) {
	return byName(ctx, s.table, contract.Tasks, webhook.ListKey(t), after, most,
		func(i item.Item) (webhook.Webhook, bool) {
			w, err := webhook.Parse(i, t)
			return w, err == nil
		})
}

// WebhookHealth implements WebhookReader.
func (s *Store) WebhookHealth(ctx context.Context, t tenant.ID, name string) (webhook.Health, error) {
	i, err := s.table.Get(ctx, webhook.HealthRef(t, name))
	return webhook.ParseHealth(i), err
}

// UpdateWebhook implements Webhooks.
func (s *Store) UpdateWebhook(
	ctx context.Context, t tenant.ID, name string, decide func(*webhook.Webhook) (webhook.Webhook, error),
) (webhook.Webhook, error) {
	return replace(ctx, s.table, versioned[webhook.Webhook]{
		ref: webhook.Ref(t, name), kind: "webhook", put: webhook.WritePut,
		parse: parsed(func(i item.Item) (webhook.Webhook, error) { return webhook.Parse(i, t) },
			func(i item.Item) webhook.Webhook {
				return webhook.Webhook{Tenant: t, Name: name, Version: i.Int("version")}
			}),
		version: func(w *webhook.Webhook) *int64 { return &w.Version },
		encode:  func(w webhook.Webhook) (item.Item, error) { return w.Item(), nil },
		guard: func() (item.Write, error) {
			made, err := s.table.Get(ctx, webhook.MadeRef(t))
			return webhook.CountMade(t, made.Int("made")), err
		},
	}, decide)
}

// DeleteWebhook implements Webhooks.
func (s *Store) DeleteWebhook(ctx context.Context, w webhook.Webhook) error {
	return s.Put(ctx, item.Write{
		Ref: webhook.Ref(w.Tenant, w.Name), Name: webhook.WriteDelete, Delete: true,
		When: []item.All{{{Attr: "version", Op: item.Eq, Value: w.Version}}},
	})
}

// NoteAttempts implements Webhooks.
func (s *Store) NoteAttempts(
	ctx context.Context, t tenant.ID, name string, attempts []webhook.Attempt, now time.Time,
) (after webhook.Health, err error) {
	for range updateTries {
		was, err := s.WebhookHealth(ctx, t, name)
		if err != nil {
			return was, err
		}
		after = was
		for _, a := range attempts {
			after = after.After(a)
		}
		if after == was {
			return after, nil
		}
		if err := s.Put(ctx, was.Become(t, name, after, now)); Refused(err) == nil {
			return after, err
		}
	}
	return after, fault.New(fault.Conflict, nil, "noting the health of webhook %q: it changed %d times meanwhile", name,
		updateTries)
}

// Deliveries implements Webhooks.
func (s *Store) Deliveries(
	ctx context.Context, t tenant.ID, name, position string, most int,
) (found []Delivery, more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var runs []*run
	for _, key := range job.DeliveryGroups(t, name) {
		q := item.Query{Table: contract.Jobs, Index: contract.GroupIndex, PK: key, Descending: true,
			Limit: min(most+1, maxPage)}
		if position != "" {
			q.To = position
		}
		runs = append(runs, &run{query: q, key: func(i item.Item) string { return i.Str(contract.AttrGroupSort) }})
	}
	for i, err := range s.merge(ctx, runs) {
		if err != nil {
			return nil, false, err
		}
		if len(found) == most {
			return found, true, nil
		}
		if k, err := job.KeyOf(i); err == nil {
			found = append(found, Delivery{k, i.Str(contract.AttrGroupSort)})
		}
	}
	return found, false, nil
}
