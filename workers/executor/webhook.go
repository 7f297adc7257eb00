package executor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	kind "punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/text"
)

// cloudEvent is the media type of a CloudEvents 1.0 event in JSON.
const cloudEvent = "application/cloudevents+json"

// webhookExecutor delivers an event to a webhook: a call of the http executor with other rules for what follows.
type webhookExecutor struct{ http httpExecutor }

func newWebhook(o Options) Executor { return webhookExecutor{newHTTP(o).(httpExecutor)} }

// delivered is the result of a delivery. The body of the answer is not read: it says nothing to Punctual.
type delivered struct {
	Status int `json:"status"`
}

// Run sends the event. Every failure is retried, because the receiver may mend what was wrong; only a 410 is final.
func (e webhookExecutor) Run(ctx context.Context, w Work) (json.RawMessage, error) {
	var p kind.WebhookPayload
	if !decode(w.Payload, &p) {
		return nil, never(job.CodeUnreadablePayload, "the payload is not that of a delivery")
	}
	secrets := &wallet{secrets: e.http.secrets, tenant: w.Key.Tenant, deployment: e.http.deployment}
	// The id of the event is the key of its effects and the id of Standard Webhooks: it is the same however often, and
	// by however many jobs, the event is delivered.
	w.HandlerKey = job.ID(p.EventID)
	req, err := e.http.build(ctx, w, kind.HTTPPayload{
		URL: p.URL, Headers: p.Headers, SignWith: p.SignWith, Body: p.Event,
	}, secrets)
	if err != nil {
		return nil, retried(err)
	}
	req.Header.Set("Content-Type", cloudEvent)
	answer, err := e.http.send(ctx, req, secrets)
	if err != nil {
		return nil, retried(err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusGone:
		return nil, never(kind.CodeWebhookGone, "the endpoint answered 410 Gone: it wants no events any more")
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return nil, retried(failureOf(answer, e.http.clock.Now()))
	}
	return text.JSON(delivered{answer.StatusCode})
}

// retried is a failure after which the delivery is tried once more.
func retried(err error) error {
	if f := new(Failure); errors.As(err, &f) {
		f.Permanent = false
	}
	return err
}
