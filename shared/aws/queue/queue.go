package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
)

// Limits of SQS.
const (
	maxBody       = 1 << 20 // of a message and of a batch, in bytes
	maxBatch      = 10
	maxWait       = 20 * time.Second
	maxVisibility = 12 * time.Hour
	maxGroup      = 128
)

const (
	answerIn = 5 * time.Second  // one request, a long poll apart
	pollIn   = 30 * time.Second // a long poll: 20 s and the way
	callIn   = 20 * time.Second // one batch with all its tries
)

// Queues reaches every queue of a deployment. It is safe for concurrent use.
type Queues struct {
	sqs  *sqs.Client
	poll *sqs.Client // has connections of its own, on which requests stay open
	name func(logical string) string
	urls sync.Map // logical name → URL

	calls, units atomic.Int64
}

// New returns the queues of a deployment; name gives the real name of each (contract.Env.QueueName).
func New(cfg aws.Config, name func(logical string) string) *Queues {
	return &Queues{
		sqs:  sqs.NewFromConfig(session.Within(cfg, answerIn, throttled)),
		poll: sqs.NewFromConfig(session.Within(cfg, pollIn, throttled)),
		name: name,
	}
}

// throttled recognizes the throttles of SQS whose names the SDK does not know.
func throttled(err error) bool { return session.Kind(err) == fault.Throttled }

// url returns a queue's URL, which never changes while the queue lives.
func (q *Queues) url(ctx context.Context, queue string) (*string, error) {
	if url, ok := q.urls.Load(queue); ok {
		return aws.String(url.(string)), nil
	}
	q.count(0)
	out, err := q.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(q.name(queue))})
	if err != nil {
		return nil, session.Fault(err, "finding queue %q", q.name(queue))
	}
	q.urls.Store(queue, aws.ToString(out.QueueUrl))
	return out.QueueUrl, nil
}

// Receive takes up to max (1–10) messages, waiting up to wait (≤ 20 s) for the first; none is
// no error. They stay invisible to others for the visibility, 0 being the queue's default.
func (q *Queues) Receive(
	ctx context.Context, queue string, max int, wait, visibility time.Duration,
) ([]message.Delivery, error) {
	if max < 1 || max > maxBatch || wait < 0 || wait > maxWait || visibility < 0 || visibility > maxVisibility {
		return nil, fault.New(fault.Invalid, nil, "receiving %d from %s, waiting %s, for %s: outside SQS's limits", max,
			queue, wait, visibility)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+callIn)
	defer cancel()
	url, err := q.url(ctx, queue)
	if err != nil {
		return nil, err
	}
	in := &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: int32(max), WaitTimeSeconds: int32(wait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
			types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameDeadLetterQueueSourceArn,
		},
	}
	if visibility > 0 {
		in.VisibilityTimeout = int32(seconds(visibility))
	}
	out, err := q.poll.ReceiveMessage(ctx, in)
	if err != nil {
		q.count(0)
		return nil, session.Fault(err, "receiving from %s", queue)
	}
	bytes := 0
	deliveries := make([]message.Delivery, len(out.Messages))
	for n, m := range out.Messages {
		deliveries[n] = q.delivery(m)
		bytes += len(deliveries[n].Body)
	}
	q.count(bytes)
	return deliveries, nil
}

// seconds rounds up: what stays hidden a little longer is late, a little shorter is doubled.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// SetVisibility makes a received message visible after d (≤ 12 h) from now, at once for 0. Of
// a message that is not in flight under this receipt it is a fault.Invalid.
func (q *Queues) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	if d < 0 || d > maxVisibility {
		return fault.New(fault.Invalid, nil, "setting visibility %s in %s: 0 to %s is allowed", d, queue, maxVisibility)
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	url, err := q.url(ctx, queue)
	if err != nil {
		return err
	}
	q.count(0)
	_, err = q.sqs.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: url, ReceiptHandle: aws.String(receipt), VisibilityTimeout: int32(seconds(d)),
	})
	return session.Fault(err, "setting visibility in %s", queue)
}

// Depth says roughly what a queue holds; SQS's numbers lag by up to a minute.
func (q *Queues) Depth(ctx context.Context, queue string) (message.Depth, error) {
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	url, err := q.url(ctx, queue)
	if err != nil {
		return message.Depth{}, err
	}
	q.count(0)
	out, err := q.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: url,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
		},
	})
	if err != nil {
		return message.Depth{}, session.Fault(err, "asking for the depth of %s", queue)
	}
	return depth(out.Attributes), nil
}

// Counts returns what this Queues' calls have cost so far. All tries inside one call count as one.
func (q *Queues) Counts() item.Counts {
	return item.Counts{QueueCalls: q.calls.Load(), QueueUnits: q.units.Load()}
}

// count adds one request that carries that many bytes: every 64 KB begun is billed as one.
func (q *Queues) count(bytes int) {
	q.calls.Add(1)
	q.units.Add(int64(max(1, (bytes+64<<10-1)/(64<<10))))
}

// logical is the name in package contract of a queue with that real name; the real name
// itself for a queue that is not ours.
func (q *Queues) logical(real string) string {
	for _, known := range contract.Queues() {
		if q.name(known.Name) == real {
			return known.Name
		}
	}
	return real
}
