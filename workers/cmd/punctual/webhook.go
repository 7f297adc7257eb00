package main

import (
	"strings"

	"punctual/shared/client/rest"
)

type webhooks struct {
	common     `set:"kind=webhook"`
	Delete     deleteNamed    `cmd:"" aliases:"rm" help:"Delete webhooks; open deliveries are still tried."`
	Put        putNamed       `cmd:"" help:"Create or replace the webhooks of a YAML file."`
	Test       testWebhook    `cmd:"" help:"Send a test event to a webhook."`
	Deliveries listDeliveries `cmd:"" help:"List the deliveries to a webhook, newest first."`
	Redeliver  redeliver      `cmd:"" help:"Send the events of deliveries once more."`
}

var webhookColumns = []column[rest.WebhookView]{
	{"WEBHOOK", func(w rest.WebhookView) string { return w.Name }},
	{"URL", func(w rest.WebhookView) string { return w.URL }},
	{"EVENTS", func(w rest.WebhookView) string { return strings.Join(w.Events, " ") }},
	{"ENABLED", func(w rest.WebhookView) string {
		switch {
		case w.Disabled != nil:
			return "disabled: " + w.Disabled.Message
		case w.Enabled:
			return "yes"
		}
		return "no"
	}},
	{"VERSION", func(w rest.WebhookView) string { return count(w.Version) }},
}

type testWebhook struct {
	Name string `arg:"" help:"Name of the webhook."`
}

// Run sends the event and shows its delivery.
func (c testWebhook) Run(s *shell) error {
	j, err := s.client.TestWebhook(s.ctx, c.Name)
	if err != nil {
		return err
	}
	return show(s, j, jobID, jobColumns...)
}

var deliveryColumns = []column[rest.DeliveryView]{
	{"DELIVERY", deliveryID},
	{"STATUS", func(d rest.DeliveryView) string { return string(d.Status) }},
	{"ATTEMPT", func(d rest.DeliveryView) string { return count(d.Attempt) }},
	{"CREATED", func(d rest.DeliveryView) string { return instant(&d.CreatedAt) }},
	{"DUE", func(d rest.DeliveryView) string { return instant(&d.DueAt) }},
	{"FINISHED", func(d rest.DeliveryView) string { return instant(d.FinishedAt) }},
	{"WHY", func(d rest.DeliveryView) string { return reason(d.StatusReason) }},
}

func deliveryID(d rest.DeliveryView) string { return d.JobID }

type listDeliveries struct {
	Name   string `arg:"" help:"Name of the webhook."`
	Status string `help:"Status of the deliveries to list, such as DEAD."`
	Limit  int    `default:"20" help:"Maximum number of deliveries; 0: no limit."`
}

// Run lists the deliveries.
func (c listDeliveries) Run(s *shell) error {
	filter := &rest.ListDeliveriesParams{Status: ptr(rest.ListDeliveriesParamsStatus(strings.ToUpper(c.Status)))}
	return list(s, s.client.Deliveries(s.ctx, c.Name, filter), c.Limit, deliveryID, deliveryColumns...)
}

type redeliver struct {
	Name string   `arg:"" help:"Name of the webhook."`
	ID   []string `arg:"" help:"Identifiers of deliveries."`
}

// Run makes another delivery of each event, and stops at the first that it cannot make.
func (c redeliver) Run(s *shell) error {
	for _, id := range c.ID {
		j, err := s.client.Redeliver(s.ctx, c.Name, id)
		if err != nil {
			return err
		}
		if err := show(s, j, jobID, jobColumns...); err != nil {
			return err
		}
	}
	return nil
}
