package queue

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
)

// CreateAll creates the queues of contract.Queues with their redrive policies; those that are
// there already stay. It is for emulators: in AWS the data stack does it, with keys and alarms.
func (q *Queues) CreateAll(ctx context.Context) error {
	arns := map[string]string{} // by logical name; a queue's DLQ comes before it
	for _, c := range contract.Queues() {
		attributes := map[string]string{
			string(types.QueueAttributeNameVisibilityTimeout):      strconv.FormatInt(seconds(c.Visibility), 10),
			string(types.QueueAttributeNameMessageRetentionPeriod): strconv.FormatInt(seconds(c.Retention), 10),
		}
		if c.DeadLetter != "" {
			policy, err := json.Marshal(map[string]string{
				"deadLetterTargetArn": arns[c.DeadLetter], "maxReceiveCount": strconv.Itoa(c.MaxReceives),
			})
			if err != nil {
				return err
			}
			attributes[string(types.QueueAttributeNameRedrivePolicy)] = string(policy)
		}
		out, err := q.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{
			QueueName: aws.String(q.name(c.Name)), Attributes: attributes,
		})
		if err != nil {
			return session.Fault(err, "creating queue %q", q.name(c.Name))
		}
		q.urls.Store(c.Name, aws.ToString(out.QueueUrl))
		if arns[c.Name], err = q.arn(ctx, out.QueueUrl); err != nil {
			return session.Fault(err, "creating queue %q", q.name(c.Name))
		}
	}
	return nil
}

// ARN returns a queue's ARN, as timers and policies name it.
func (q *Queues) ARN(ctx context.Context, queue string) (string, error) {
	url, err := q.url(ctx, queue)
	if err != nil {
		return "", err
	}
	arn, err := q.arn(ctx, url)
	return arn, session.Fault(err, "asking for the ARN of %s", queue)
}

func (q *Queues) arn(ctx context.Context, url *string) (string, error) {
	out, err := q.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", err
	}
	return out.Attributes[string(types.QueueAttributeNameQueueArn)], nil
}
