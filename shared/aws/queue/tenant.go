package queue

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// OwnerAge is how old what is known of a tenant's queue may be.
const OwnerAge = time.Minute

const mostOwned = 1000 // queues known

// Tenants reaches the queues of tenants: those of the account whose tag contract.TenantTag names
// one. It is safe for concurrent use.
type Tenants struct {
	sqs   *sqs.Client // for questions
	send  *sqs.Client // one try
	known *cache.Cache[string, owned]
}

// owned is a queue and what its tag says.
type owned struct{ url, owner string }

// NewTenants returns the queues of the account's tenants.
func NewTenants(cfg aws.Config) *Tenants {
	return &Tenants{
		sqs: sqs.NewFromConfig(session.Within(cfg, answerIn, throttled)),
		send: sqs.NewFromConfig(session.Within(cfg, answerIn, nil),
			func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }),
		known: cache.New[string](cache.Options[owned]{Age: OwnerAge, Most: mostOwned}),
	}
}

// Allowed says whether jobs of the tenant may send to the queue, by its tag as it was at most
// OwnerAge ago. An absent queue is a fault.NotFound.
func (q *Tenants) Allowed(ctx context.Context, queue string, t tenant.ID) (bool, error) {
	o, err := q.of(ctx, queue)
	if err != nil {
		return false, err
	}
	return o.owner == contract.AnyTenant || o.owner != "" && o.owner == string(t), nil
}

// Send sends one message, once, and returns its id. After an error that leaves open whether the
// message arrived (fault.Unavailable) it may be there.
func (q *Tenants) Send(ctx context.Context, queue string, m executor.Message) (id string, err error) {
	o, err := q.of(ctx, queue)
	if err != nil {
		return "", err
	}
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(o.url), MessageBody: aws.String(m.Body),
		MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	for name, text := range m.Attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{
			DataType: aws.String("String"), StringValue: aws.String(text),
		}
	}
	if m.Group != "" {
		in.MessageGroupId = aws.String(m.Group)
	}
	if m.Deduplication != "" {
		in.MessageDeduplicationId = aws.String(m.Deduplication)
	}
	out, err := q.send.SendMessage(ctx, in)
	if err != nil {
		err = session.Fault(err, "sending to queue %q", queue)
		if fault.KindOf(err) == fault.NotFound {
			q.known.Drop(queue)
		}
		return "", err
	}
	return aws.ToString(out.MessageId), nil
}

// of asks for a queue's URL and tag.
func (q *Tenants) of(ctx context.Context, queue string) (owned, error) {
	return q.known.Get(ctx, queue, func(ctx context.Context) (owned, error) {
		ctx, cancel := context.WithTimeout(ctx, callIn)
		defer cancel()
		found, err := q.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(queue)})
		if err != nil {
			return owned{}, session.Fault(err, "finding queue %q", queue)
		}
		out, err := q.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: found.QueueUrl})
		if err != nil {
			return owned{}, session.Fault(err, "reading the tags of queue %q", queue)
		}
		return owned{url: aws.ToString(found.QueueUrl), owner: out.Tags[contract.TenantTag]}, nil
	})
}
