package batch

import (
	"slices"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/message"
)

// SQSEventOf is the event that Lambda would make of those deliveries. The stages on a laptop and in tests are called
// with it.
func SQSEventOf(deliveries ...message.Delivery) events.SQSEvent {
	ev := events.SQSEvent{Records: make([]events.SQSMessage, len(deliveries))}
	for i, d := range deliveries {
		attributes := map[string]string{
			"SentTimestamp":           strconv.FormatInt(d.SentAt.UnixMilli(), 10),
			"ApproximateReceiveCount": strconv.Itoa(d.Receives),
		}
		if d.Group != "" {
			attributes["MessageGroupId"] = d.Group
		}
		if d.Source != "" {
			attributes["DeadLetterQueueSourceArn"] = d.Source
		}
		ev.Records[i] = events.SQSMessage{MessageId: d.ID, ReceiptHandle: d.Receipt, Body: d.Body,
			Attributes: attributes, EventSource: "aws:sqs"}
	}
	return ev
}

// StreamEventOf is the event that Lambda would make of those changes of the jobs table. It leaves out the changes that
// the event source's filter drops.
func StreamEventOf(changes ...item.Change) events.DynamoDBEvent {
	return StreamEventOfAll(slices.DeleteFunc(slices.Clone(changes), func(c item.Change) bool { return !shown(c) })...)
}

// StreamEventOfAll is the event that Lambda would make of those changes for an event source without a filter.
func StreamEventOfAll(changes ...item.Change) events.DynamoDBEvent {
	var ev events.DynamoDBEvent
	for _, c := range changes {
		name, is := "MODIFY", c.New
		switch {
		case c.New == nil:
			name, is = "REMOVE", c.Old
		case c.Old == nil:
			name = "INSERT"
		}
		keys := item.Item{contract.AttrPK: is[contract.AttrPK], contract.AttrJobID: is[contract.AttrJobID]}
		ev.Records = append(ev.Records, events.DynamoDBEventRecord{
			EventName: name, EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{
				SequenceNumber: c.Seq, Keys: imageOf(keys), NewImage: imageOf(c.New), OldImage: imageOf(c.Old),
			},
		})
	}
	return ev
}

// shown says whether the event source's filter lets a change through: a job that is near, or an expired row that may
// have contents.
func shown(c item.Change) bool {
	if c.New != nil {
		return c.New.Str(contract.AttrNear) == "1"
	}
	for _, attr := range contract.ContentMarks {
		if _, marked := c.Old[attr]; marked {
			return true
		}
	}
	attempt, isRow := c.Old[contract.AttrAttempt].(int64)
	return isRow && attempt != 1
}

func imageOf(i item.Item) map[string]events.DynamoDBAttributeValue {
	if i == nil {
		return nil
	}
	image := make(map[string]events.DynamoDBAttributeValue, len(i))
	for name, v := range i {
		switch v := v.(type) {
		case string:
			image[name] = events.NewStringAttribute(v)
		case int64:
			image[name] = events.NewNumberAttribute(strconv.FormatInt(v, 10))
		}
	}
	return image
}
