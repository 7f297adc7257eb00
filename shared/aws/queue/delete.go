package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/fault"
)

// spent is what a queue may say of the receipt of a message that is already deleted.
const spent = "ReceiptHandleIsInvalid"

// Delete removes messages for good, any number. One that is gone, or that another
// receiver has now, is no error. After an error some may be deleted; deleting all again is harmless.
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
	var bad error // the first that SQS refuses for good; the others are deleted all the same
	for try := 1; ; try++ {
		q.count(0)
		out, err := q.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: entries})
		if err != nil {
			return session.Fault(err, "deleting %d messages from %s", len(entries), queue)
		}
		var last error
		retry := map[string]bool{}
		for _, f := range out.Failed {
			switch err := entryFault(f, "deleting from "+queue); {
			case fault.Retryable(err):
				retry[aws.ToString(f.Id)], last = true, err
			case strings.HasSuffix(aws.ToString(f.Code), spent):
			case bad == nil:
				bad = err
			}
		}
		if len(retry) == 0 {
			return bad
		}
		if try == session.Tries {
			return last
		}
		entries = slices.DeleteFunc(entries, func(e types.DeleteMessageBatchRequestEntry) bool { return !retry[*e.Id] })
		if err := session.Wait(ctx, try); err != nil {
			return session.Fault(err, "deleting %d messages from %s", len(entries), queue)
		}
	}
}
