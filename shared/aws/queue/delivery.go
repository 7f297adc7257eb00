package queue

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/message"
)

func (q *Queues) delivery(m types.Message) message.Delivery {
	attribute := func(name types.MessageSystemAttributeName) string { return m.Attributes[string(name)] }
	d := message.Delivery{
		ID: aws.ToString(m.MessageId), Receipt: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body),
		Group:    attribute(types.MessageSystemAttributeNameMessageGroupId),
		Receives: number(attribute(types.MessageSystemAttributeNameApproximateReceiveCount)),
	}
	if ms, err := strconv.ParseInt(attribute(types.MessageSystemAttributeNameSentTimestamp), 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms).UTC()
	}
	if arn := attribute(types.MessageSystemAttributeNameDeadLetterQueueSourceArn); arn != "" {
		d.Source = q.logical(arn[strings.LastIndex(arn, ":")+1:])
	}
	return d
}

func depth(attributes map[string]string) message.Depth {
	return message.Depth{
		Visible:  number(attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)]),
		InFlight: number(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)]),
		Delayed:  number(attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesDelayed)]),
	}
}

// number reads a count that SQS calls approximate; what cannot be read counts as 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
