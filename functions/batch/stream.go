package batch

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/text"
)

// Aside describes a stream record that could not be handled: its keys and the reason, never its values.
type Aside struct {
	Seq    string            // of the record in its stream
	Keys   map[string]string // of its item
	Reason string
}

// Body is the message that is kept in a dead-letter queue.
func (a Aside) Body() string {
	return string(text.MustJSON(map[string]any{"v": 1, "stream_seq": a.Seq, "keys": a.Keys, "reason": a.Reason}))
}

// Stream runs do over all records of the event at once, so that it can send in tens; do returns one error for each
// record, in their order. A record whose error is retryable is redelivered with all later ones of its shard. After any
// other error a redelivery would only block the shard, so aside keeps the record where an operator finds it, and it
// counts as done. It counts as done even if aside fails for good: the log has its keys, and the sweeper finds its row.
func (r Runner) Stream(ctx context.Context, ev events.DynamoDBEvent, do func(context.Context, []item.Change) []error,
	aside func(context.Context, Aside) error) events.DynamoDBEventResponse {
	resp := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	changes := make([]item.Change, len(ev.Records))
	for i, rec := range ev.Records {
		changes[i] = ChangeOf(rec)
	}
	for i, err := range do(ctx, changes) {
		if err == nil {
			continue
		}
		seq := changes[i].Seq
		if !fault.Retryable(err) {
			a := Aside{Seq: seq, Keys: keysOf(ev.Records[i]), Reason: err.Error()}
			asideErr := aside(ctx, a)
			if !fault.Retryable(asideErr) {
				r.note(ctx, errors.Join(err, asideErr), true, "stream_seq", seq, "keys", a.Keys)
				continue
			}
			err = asideErr
		}
		r.note(ctx, err, false, "stream_seq", seq)
		resp.BatchItemFailures = append(resp.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: seq})
	}
	return resp
}

// ChangeOf reads a record of an event. Values that are neither strings nor whole numbers are left out; the process that
// needs one fails because it is missing.
func ChangeOf(rec events.DynamoDBEventRecord) item.Change {
	return item.Change{Seq: rec.Change.SequenceNumber, Old: itemOf(rec.Change.OldImage),
		New: itemOf(rec.Change.NewImage)}
}

func itemOf(image map[string]events.DynamoDBAttributeValue) item.Item {
	if len(image) == 0 {
		return nil
	}
	i := make(item.Item, len(image))
	for name, v := range image {
		switch v.DataType() {
		case events.DataTypeString:
			i[name] = v.String()
		case events.DataTypeNumber:
			if n, err := strconv.ParseInt(v.Number(), 10, 64); err == nil {
				i[name] = n
			}
		}
	}
	return i
}

func keysOf(rec events.DynamoDBEventRecord) map[string]string {
	keys := map[string]string{}
	for name, v := range itemOf(rec.Change.Keys) {
		if s, ok := v.(string); ok {
			keys[name] = s
		}
	}
	return keys
}
