package queue

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/fault"
)

// Delete removes messages for good, any number. One that is gone, or was received by somebody
// else since, is no error. After an error some may be deleted; deleting all again is harmless.
func (q *Queues) Delete(ctx context.Context, queue string, receipts ...string) error {
	for part := range slices.Chunk(receipts, maxBatch) {
		if err := q.deleteBatch(ctx, queue, part); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queues) deleteBatch(ctx context.Context, queue string, receipts []string) error {
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	url, err := q.url(ctx, queue)
	if err != nil {
		return err
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(receipts))
	for n, r := range receipts {
		entries[n] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(n)), ReceiptHandle: aws.String(r)}
	}
	var bad error // the first receipt that SQS refuses for good; the others are deleted all the same
	for try := 1; ; try++ {
		q.count(0)
		out, err := q.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: entries})
		if err != nil {
			return session.Fault(err, "deleting %d messages from %s", len(entries), queue)
		}
		var last error
		again := map[string]bool{}
		for _, f := range out.Failed {
			err := entryFault(f, "deleting from "+queue)
			if fault.Retryable(err) {
				again[aws.ToString(f.Id)], last = true, err
			} else if bad == nil {
				bad = err
			}
		}
		if len(again) == 0 {
			return bad
		}
		if try == session.Tries {
			return last
		}
		entries = slices.DeleteFunc(entries, func(e types.DeleteMessageBatchRequestEntry) bool { return !again[*e.Id] })
		if err := session.Wait(ctx, try); err != nil {
			return session.Fault(err, "deleting %d messages from %s", len(entries), queue)
		}
	}
}
