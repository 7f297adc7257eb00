package emulator_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"punctual/integration/emulator/environment"
	"punctual/shared/aws/queue"
	"punctual/shared/conformance"
	"punctual/shared/contract"
	"punctual/shared/executor"
)

func TestTenants_ConformOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	api := sqs.NewFromConfig(cfg)
	conformance.TenantQueue(t, func(*testing.T) conformance.TenantQueueBench {
		return conformance.TenantQueueBench{
			TenantQueues: queue.NewTenants(cfg),
			Create: func(ctx context.Context, name, owner string) error {
				return createTagged(ctx, api, name, owner)
			},
			Receive: func(ctx context.Context, name string) ([]executor.Message, error) {
				return receiveAll(ctx, api, name)
			},
		}
	}, k)
}

func createTagged(ctx context.Context, api *sqs.Client, name, owner string) error {
	in := &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: map[string]string{}}
	if strings.HasSuffix(name, ".fifo") {
		in.Attributes["FifoQueue"] = "true"
	}
	if owner != "" {
		in.Tags = map[string]string{contract.TenantTag: owner}
	}
	_, err := api.CreateQueue(ctx, in)
	return err
}

// receiveAll takes messages until none comes, and deletes them: the next of a group comes after.
func receiveAll(ctx context.Context, api *sqs.Client, name string) ([]executor.Message, error) {
	of, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return nil, err
	}
	var all []executor.Message
	for {
		out, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: of.QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil || len(out.Messages) == 0 {
			return all, err
		}
		for _, m := range out.Messages {
			attributes := map[string]string{}
			for name, value := range m.MessageAttributes {
				attributes[name] = aws.ToString(value.StringValue)
			}
			all = append(all, executor.Message{Body: aws.ToString(m.Body), Attributes: attributes})
			in := &sqs.DeleteMessageInput{QueueUrl: of.QueueUrl, ReceiptHandle: m.ReceiptHandle}
			if _, err := api.DeleteMessage(ctx, in); err != nil {
				return nil, err
			}
		}
	}
}
