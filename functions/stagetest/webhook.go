package stagetest

import (
	"encoding/json"

	"punctual/shared/executor"
	"punctual/shared/job/jobtest"
	"punctual/shared/webhook"
)

// hook is the name of the webhook that Subscribe puts.
const hook = "ops"

// Subscribe puts a webhook of jobtest.Tenant that asks for events. A process that runs already hears of it five seconds
// later.
func (s *Bench) Subscribe(events ...string) {
	s.Helper()
	_, err := s.Store.UpdateWebhook(s.Context(), jobtest.Tenant, hook,
		func(*webhook.Webhook) (webhook.Webhook, error) {
			return webhook.Webhook{Tenant: jobtest.Tenant, Name: hook, URL: "https://example.com", Events: events,
				Enabled: true}, nil
		})
	s.Must(err)
}

// Event is an event as a webhook gets it.
type Event struct {
	Type, Subject string
	Data          json.RawMessage
}

// Delivered returns the events that were given to the webhook of Subscribe, each by one job.
func (s *Bench) Delivered() (events []Event) {
	s.Helper()
	found, _, err := s.Store.Deliveries(s.Context(), jobtest.Tenant, hook, "", 200)
	s.Must(err)
	for _, d := range found {
		payload, err := s.Store.Payload(s.Context(), s.Row(d.Key))
		s.Must(err)
		var p executor.WebhookPayload
		var e Event
		s.Must(json.Unmarshal(payload, &p))
		s.Must(json.Unmarshal(p.Event, &e))
		events = append(events, e)
	}
	return events
}
