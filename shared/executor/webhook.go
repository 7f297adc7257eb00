package executor

import (
	"encoding/json"
	"maps"
)

// Webhook is the name of the executor that delivers events to webhooks, and of its task. It is not among [Kinds]: no
// task of a tenant can name it, because only Punctual makes deliveries.
const Webhook = "webhook"

// WebhookPayload is what a delivery sends, and where.
type WebhookPayload struct {
	Webhook  string            `json:"webhook"` // its name
	EventID  string            `json:"event_id"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers,omitempty"`
	SignWith string            `json:"sign_with,omitempty"`
	Event    json.RawMessage   `json:"event"` // the body
}

// CodeWebhookGone is the code of a delivery whose endpoint has answered 410: it wants no events any more.
const CodeWebhookGone = "webhook_gone"

// CheckWebhook notes what is wrong with the url, the headers and the sign_with of a webhook, by the rules for a payload
// of the http executor. f has the fields that were given, with any others; in is the pointer of their object.
func CheckWebhook(r Reader, f map[string]Value, in string, s Site) { checkRequest(r, f, in, s) }

// WebhookBounds are what those fields may hold.
func WebhookBounds() Fields {
	of := httpKind.Bounds["HTTPPayload"]
	bounds := Fields{}
	for _, name := range []string{"url", "headers", "sign_with"} {
		bounds[name] = maps.Clone(of[name])
		delete(bounds[name], "description") // it is that of a payload
	}
	return bounds
}
