package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	kind "punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// sqs sends a message to a queue that is open to the tenant. The job has succeeded when SQS has
// the message.
type sqs struct{ queues Queues }

func newSQS(o Options) Executor { return sqs{queues: o.Queues} }

var queueName = text.Pattern(kind.QueuePattern)

// fifo ends the name of a FIFO queue.
const fifo = ".fifo"

func (s sqs) Run(ctx context.Context, w Work) (json.RawMessage, error) {
	var p kind.SQSPayload
	if !decode(w.Payload, &p) || !queueName().MatchString(p.Queue) {
		return nil, never(job.CodeUnreadablePayload, `the payload wants {"queue":"name","message":…,"group":"name"}`)
	}
	body, ok := p.Body()
	if !ok {
		return nil, never(job.CodeUnreadablePayload,
			fmt.Sprintf("message wants a text that SQS takes, of 1 to %d bytes, or other JSON", kind.MaxMessage))
	}
	if s.queues == nil {
		return nil, never(CodeNotAvailable, "this deployment sends to no queues")
	}

	allowed, err := s.queues.Allowed(ctx, p.Queue, w.Key.Tenant)
	switch k := fault.KindOf(err); {
	case k == fault.NotFound, k == fault.Forbidden, err == nil && !allowed:
		// The same answer for all, or a tenant could find out which queues there are.
		return nil, never(CodeForbiddenQueue, "there is no queue of that name that is open to this tenant")
	case err != nil:
		return nil, notSent(ctx, err)
	}

	m := kind.Message{Body: body, Group: p.Group, Attributes: attributesOf(w)}
	if strings.HasSuffix(p.Queue, fifo) {
		// SQS drops a second message of one attempt: its worker may have died after the first.
		m.Deduplication = string(w.Key.ID) + "-" + strconv.FormatInt(w.Attempt, 10)
		if m.Group == "" {
			m.Group = w.Task
		}
	}
	id, err := s.queues.Send(ctx, p.Queue, m)
	if err != nil {
		return nil, notSent(ctx, err)
	}
	return text.JSON(struct {
		MessageID string `json:"message_id"`
	}{id})
}

// attributesOf are what the http executor sends as headers: they let a receiver see a second
// message about the same work. Fences are compared by attempt, then by token.
func attributesOf(w Work) map[string]string {
	all := map[string]string{
		"Idempotency-Key":  string(w.HandlerKey),
		"Punctual-Job-Id":  string(w.Key.ID),
		"Punctual-Attempt": strconv.FormatInt(w.Attempt, 10),
		"Punctual-Token":   strconv.FormatInt(w.Token, 10),
		"Punctual-Due-At":  w.DueAt.UTC().Format(instantFormat),
	}
	if !w.NominalAt.IsZero() {
		all["Punctual-Nominal-At"] = w.NominalAt.UTC().Format(instantFormat)
	}
	return all
}

// notSent says whether trying to send again may help.
func notSent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("sending to the queue: %w", context.Cause(ctx))
	}
	return &Failure{
		Code: CodeQueueRefused, Message: refusal("the message could not be sent", err), Permanent: final(err), Err: err,
	}
}
