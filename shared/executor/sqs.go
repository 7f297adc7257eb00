package executor

import (
	"bytes"
	"encoding/json"
	"fmt"

	"punctual/shared/text"
)

// SQS is the name of the executor, as tasks give it.
const SQS = "sqs"

// SQSPayload is what a job of the sqs executor sends, and to which queue of the tenant.
type SQSPayload struct {
	Queue   string          `json:"queue"`
	Message json.RawMessage `json:"message" doc:"Body of the message; a string is sent unchanged, any other value as JSON"`
	Group   string          `json:"group,omitempty"`
}

// MaxMessage is how many bytes a message may have: what SQS takes (1 MiB), less the room for the
// attributes that name the attempt.
const MaxMessage = 1<<20 - 2<<10

const (
	// QueuePattern is the form of a queue's name; that of a FIFO queue ends in .fifo.
	QueuePattern = `^([a-zA-Z0-9_-]{1,80}|[a-zA-Z0-9_-]{1,75}\.fifo)$`
	groupPattern = `^[!-~]{1,128}$`
)

var (
	queueName = text.Pattern(QueuePattern)
	groupName = text.Pattern(groupPattern)
)

var sqsFields = fieldsOf[SQSPayload]()

var sqsKind = Kind{
	Name: SQS, Payload: SQSPayload{}, Check: checkSQS, About: "sends a message to a queue of the tenant",
	Bounds: map[string]Fields{"SQSPayload": {
		"queue": {
			"format": "sqs-queue", "pattern": QueuePattern, "minLength": 1,
			"description": "Name of a queue in the deployment's account and region; " +
				"its tag punctual:tenant must allow the tenant",
		},
		"group": {
			"pattern": groupPattern, "minLength": 1,
			"description": "Message group; default: the task's name in a FIFO queue, none in any other",
		},
	}},
}

func checkSQS(r Reader, v Value, _ Site) {
	f := r.Object(v, sqsFields)
	if f == nil {
		return
	}
	if q, ok := f["queue"]; !ok {
		r.Missing(v.Pointer, "queue")
	} else if s, ok := r.Text(q); ok && !queueName().MatchString(s) {
		r.Violation(q.Pointer, CodeInvalidValue, "the name of a queue, without its URL or ARN",
			"this is not the name of an SQS queue")
	}
	if g, ok := f["group"]; ok {
		if s, ok := r.Text(g); ok && !groupName().MatchString(s) {
			r.Violation(g.Pointer, CodeInvalidValue, "1 to 128 letters, digits and punctuation marks of ASCII",
				"this is not the name of a message group")
		}
	}
	m, ok := f["message"]
	if !ok {
		r.Missing(v.Pointer, "message")
		return
	}
	s, isText := r.Peek(m)
	size := len(s)
	if !isText {
		size = r.Size(m)
	}
	switch {
	case isText && !text.Allowed(s):
		r.Violation(m.Pointer, CodeInvalidValue,
			"a text that is not empty, without control characters, U+FFFE and U+FFFF", "SQS does not take this text")
	case size > MaxMessage:
		r.Violation(m.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d bytes", MaxMessage),
			"the message is too long for SQS")
	}
}

// Body returns the text of the message that is sent: a string as it is, anything else as JSON.
// false: there is none, or SQS would not take it.
func (p SQSPayload) Body() (string, bool) {
	body := string(text.Sendable(p.Message))
	if bytes.HasPrefix(p.Message, []byte(`"`)) && json.Unmarshal(p.Message, &body) != nil {
		return "", false
	}
	return body, text.Allowed(body) && len(body) <= MaxMessage
}

// Message is what the sqs executor sends.
type Message struct {
	Body          string
	Group         string            // of a FIFO queue, or the label of a fair one; "" is none
	Deduplication string            // of a FIFO queue; "" is none
	Attributes    map[string]string // at most 10, texts that are not empty
}
