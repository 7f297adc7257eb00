package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/text"
)

// Send enqueues any number of messages. Those that were not taken, after retries, come back in
// a *message.Unsent by index; the others are sent. Delays are cut to whole seconds.
func (q *Queues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	if len(out) == 0 {
		return nil
	}
	failed := map[int]error{}
	send := make([]int, 0, len(out)) // indexes of what SQS could take
	for n, o := range out {
		if err := checkOutgoing(queue, o); err != nil {
			failed[n] = err
		} else {
			send = append(send, n)
		}
	}
	for len(send) > 0 {
		n := batch(out, send)
		err := q.sendBatch(ctx, queue, out, send[:n], failed)
		if kind := fault.KindOf(err); n > 1 && (kind == fault.Invalid || kind == fault.TooLarge) {
			// The batch was refused for one message that no check found: the first goes alone.
			for _, i := range send[:n] {
				delete(failed, i)
			}
			n = 1
			err = q.sendBatch(ctx, queue, out, send[:n], failed)
		}
		send = send[n:]
		if fault.Retryable(err) || fault.KindOf(err) == fault.NotFound || fault.KindOf(err) == fault.Forbidden {
			// The batch was given up after all its tries: the next ones would fare no better.
			for _, i := range send {
				failed[i] = err
			}
			break
		}
	}
	if len(failed) > 0 {
		return &message.Unsent{Failed: failed}
	}
	return nil
}

// batch says how many of the indexes, from the first, go into one request.
func batch(out []message.Outgoing, send []int) int {
	bytes := 0
	for n, i := range send {
		if bytes += len(out[i].Body); n == maxBatch || n > 0 && bytes > maxBody {
			return n
		}
	}
	return len(send)
}

// sendBatch sends the messages of these indexes in one request, and retries those that SQS
// failed to take. What stays behind is noted in failed; the error is one of the request itself.
func (q *Queues) sendBatch(
	ctx context.Context, queue string, out []message.Outgoing, send []int, failed map[int]error,
) error {
	give := func(indexes []int, err error) error {
		for _, i := range indexes {
			failed[i] = err
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	url, err := q.url(ctx, queue)
	if err != nil {
		return give(send, err)
	}
	for try := 1; ; try++ {
		entries, bytes := make([]types.SendMessageBatchRequestEntry, len(send)), 0
		for n, i := range send {
			entries[n] = entry(i, out[i])
			bytes += len(out[i].Body)
		}
		q.count(bytes)
		answer, err := q.sqs.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: entries})
		if err != nil {
			return give(send, session.Fault(err, "sending %d messages to %s", len(send), queue))
		}
		// Only what SQS names as sent is sent; an entry that it does not mention is retried.
		left := map[int]error{}
		for _, i := range send {
			left[i] = fault.New(fault.Unavailable, nil, "sending to %s: the answer did not mention the message", queue)
		}
		for _, ok := range answer.Successful {
			if i, err := strconv.Atoi(aws.ToString(ok.Id)); err == nil {
				delete(left, i)
			}
		}
		for _, f := range answer.Failed {
			i, err := strconv.Atoi(aws.ToString(f.Id))
			if _, ours := left[i]; err != nil || !ours {
				continue
			}
			left[i] = entryFault(f, "sending to "+queue)
		}
		resend := send[:0:0]
		for _, i := range send {
			switch err, still := left[i]; {
			case !still:
			case fault.Retryable(err):
				resend = append(resend, i)
			default:
				failed[i] = err
			}
		}
		if len(resend) == 0 {
			return nil
		}
		if send = resend; try == session.Tries {
			return give(send, left[send[0]])
		}
		if err := session.Wait(ctx, try); err != nil {
			return give(send, session.Fault(err, "sending %d messages to %s", len(send), queue))
		}
	}
}

// entryFault is what became of one entry of a batch. SenderFault says whose fault it was: ours
// comes back the same however often it is sent.
func entryFault(f types.BatchResultErrorEntry, op string) error {
	kind := session.CodeKind(aws.ToString(f.Code))
	switch {
	case kind == "" && f.SenderFault:
		kind = fault.Invalid
	case !f.SenderFault && kind != fault.Throttled:
		kind = fault.Unavailable
	}
	return fault.New(kind, nil, "%s: %s", op, aws.ToString(f.Code))
}

// entry names itself by its index in the call.
func entry(i int, o message.Outgoing) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{
		Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(o.Body), DelaySeconds: int32(o.Delay / time.Second),
	}
	if o.Group != "" {
		e.MessageGroupId = aws.String(o.Group)
	}
	return e
}

// checkOutgoing holds a message that SQS would refuse out of the batch, which is refused as a
// whole for some of these.
func checkOutgoing(queue string, o message.Outgoing) error {
	switch {
	case len(o.Body) > maxBody:
		return fault.New(fault.TooLarge, nil, "sending to %s: the body has %d bytes, %d are allowed", queue,
			len(o.Body), maxBody)
	case !text.Allowed(o.Body):
		return fault.New(fault.Invalid, nil, "sending to %s: the body is empty or holds characters that SQS refuses",
			queue)
	case o.Delay < 0 || o.Delay > contract.MaxDelay:
		return fault.New(fault.Invalid, nil, "sending to %s: delay %s is outside 0 to %s", queue, o.Delay,
			contract.MaxDelay)
	case len(o.Group) > maxGroup || strings.ContainsFunc(o.Group, notInGroup):
		return fault.New(fault.Invalid, nil,
			"sending to %s: a group has at most %d letters, digits and punctuation marks of ASCII", queue, maxGroup)
	}
	return nil
}

// notInGroup names what SQS does not take in a group: all but letters, digits and punctuation of ASCII.
func notInGroup(r rune) bool { return r <= ' ' || r > '~' }
