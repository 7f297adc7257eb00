package batch

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// ErrRedeliver leaves a message in its queue on purpose. It is not a fault and is not logged.
var ErrRedeliver = errors.New("the message is to be redelivered")

// A message that failed is redelivered after firstRetry, then after twice as long each time, up to lastRetry. A due job
// does not wait for minutes because a table was busy for a moment, and the ten receives that the queues allow still
// outlast an outage of ten minutes.
const (
	firstRetry = 2 * time.Second
	lastRetry  = contract.StageVisibility
)

// SQS runs do over the messages of the event, several at once and in no order. Those that failed are redelivered, and
// SQS moves them to the queue's DLQ after its maxReceiveCount. A message that cannot be read fails each time and
// arrives there unchanged.
func (r Runner) SQS(ctx context.Context, ev events.SQSEvent,
	do func(context.Context, message.Delivery) error) events.SQSEventResponse {
	resp := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	deliveries := make([]message.Delivery, len(ev.Records))
	for i, m := range ev.Records {
		deliveries[i] = DeliveryOf(m)
	}
	reachable := r.Queues != nil
	for i, err := range r.each(ctx, len(deliveries), func(ctx context.Context, i int) error {
		return do(ctx, deliveries[i])
	}) {
		if err == nil {
			continue
		}
		d := deliveries[i]
		resp.BatchItemFailures = append(resp.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: d.ID})
		if errors.Is(err, ErrRedeliver) {
			continue
		}
		undecodable := fault.KindOf(err) == fault.Undecodable
		if undecodable && d.Receives > 1 {
			continue // it was logged at the first receive
		}
		r.note(ctx, err, undecodable, "message_id", d.ID, "receives", d.Receives)
		if reachable && !undecodable {
			reachable = r.soon(ctx, d)
		}
	}
	return resp
}

// soon makes a message that failed visible after a wait that grows with each receive. It says whether the queue could
// be reached; if not, the message is redelivered when its visibility ends.
func (r Runner) soon(ctx context.Context, d message.Delivery) bool {
	in := firstRetry
	for n := 1; n < d.Receives && in < lastRetry; n++ {
		in *= 2
	}
	err := r.Queues.SetVisibility(ctx, r.Queue, d.Receipt, min(in, lastRetry))
	if err != nil {
		r.Log.WarnContext(ctx, "a failed message will be redelivered only when its visibility ends", "message_id", d.ID,
			telemetry.Err, err.Error())
	}
	return err == nil
}

// DeliveryOf reads a message of an event.
func DeliveryOf(m events.SQSMessage) message.Delivery {
	d := message.Delivery{
		ID: m.MessageId, Receipt: m.ReceiptHandle, Body: m.Body,
		Group: m.Attributes["MessageGroupId"], Source: m.Attributes["DeadLetterQueueSourceArn"], Receives: 1,
	}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil {
		d.Receives = n
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms).UTC()
	}
	return d
}
