package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// probe holds what facts are looked at with: a queue for each, a role that lets Scheduler send to them,
// and timers. All have the prefix in their names.
type probe struct {
	prefix   string
	emulated bool
	ahead    time.Duration // of timers
	patience time.Duration // after what should have happened
	queues   *sqs.Client
	timers   *scheduler.Client
	roles    *iam.Client
	role     string

	mu   sync.Mutex
	undo []func(context.Context) error // newest last
}

const atLayout = "at(2006-01-02T15:04:05)"

// newProbe makes the role, which Scheduler may use some seconds later.
func newProbe(ctx context.Context, cfg aws.Config, prefix string, emulated bool) (*probe, error) {
	p := &probe{prefix: prefix, emulated: emulated, ahead: 2 * time.Minute, patience: 3 * time.Minute,
		queues: sqs.NewFromConfig(cfg), timers: scheduler.NewFromConfig(cfg), roles: iam.NewFromConfig(cfg)}
	settle := 20 * time.Second
	if emulated {
		p.ahead, p.patience, settle = 5*time.Second, 40*time.Second, 0
	}
	name := aws.String(prefix + "-probe")
	made, err := p.roles.CreateRole(ctx, &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},` +
			`"Action":"sts:AssumeRole"}]}`)})
	if err != nil {
		return p, fmt.Errorf("making the timers' role: %w", err)
	}
	p.role = aws.ToString(made.Role.Arn)
	p.later(func(ctx context.Context) error {
		_, err := p.roles.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name})
		return err
	})
	_, err = p.roles.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: name, PolicyName: aws.String("send"),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:SendMessage",` +
			`"Resource":"arn:aws:sqs:*:*:` + prefix + `-*"}]}`)})
	if err != nil {
		return p, fmt.Errorf("letting the timers' role send: %w", err)
	}
	p.later(func(ctx context.Context) error {
		_, err := p.roles.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name,
			PolicyName: aws.String("send")})
		return err
	})
	time.Sleep(settle)
	return p, nil
}

// later keeps what deletes something that was made.
func (p *probe) later(undo func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undo = append(p.undo, undo)
}

// close deletes what the probe made, last first.
func (p *probe) close(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(p.undo) {
		if err := undo(ctx); !absent(err) {
			errs = append(errs, err)
		}
	}
	p.undo = nil
	return errors.Join(errs...)
}

// absent reports whether what was to be deleted is not there. That is so, too, where the answer to a delete was lost
// and the request was sent once more.
func absent(err error) bool {
	var is smithy.APIError
	return errors.As(err, &is) && slices.Contains([]string{"NoSuchEntity", "ResourceNotFoundException",
		"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"}, is.ErrorCode())
}

// queue is one for a fact, by its URL and ARN.
type queue struct{ url, arn string }

func (p *probe) queue(ctx context.Context, name string) (queue, error) {
	made, err := p.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(p.prefix + "-" + name)})
	if err != nil {
		return queue{}, fmt.Errorf("making a queue: %w", err)
	}
	p.later(func(ctx context.Context) error {
		_, err := p.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
		return err
	})
	got, err := p.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl,
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn}})
	if err != nil {
		return queue{}, fmt.Errorf("reading a queue's ARN: %w", err)
	}
	return queue{aws.ToString(made.QueueUrl), got.Attributes["QueueArn"]}, nil
}

// target sends an empty object to the queue.
func (q queue) target() types.Target {
	return types.Target{Arn: aws.String(q.arn), Input: aws.String("{}")}
}

// timer makes a timer for an instant, whose seconds count.
func (p *probe) timer(ctx context.Context, name string, at time.Time, target types.Target, token string) error {
	target.RoleArn = aws.String(p.role)
	in := &scheduler.CreateScheduleInput{Name: aws.String(p.prefix + "-" + name), Target: &target,
		ScheduleExpression:    aws.String(at.UTC().Format(atLayout)),
		FlexibleTimeWindow:    &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion: types.ActionAfterCompletionDelete}
	if token != "" {
		in.ClientToken = aws.String(token)
	}
	if _, err := p.timers.CreateSchedule(ctx, in); err != nil {
		return fmt.Errorf("making a timer: %w", err)
	}
	return nil
}

// gone deletes a timer that may have gone by itself.
func (p *probe) gone(ctx context.Context, name string) error {
	_, err := p.timers.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String(p.prefix + "-" + name)})
	if absent(err) {
		return nil
	}
	return err
}

// errNothing says that no message came.
var errNothing = errors.New("no message came")

var sentAt = []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp}

// next takes one message, and says when it was sent and when it could be had. none is errNothing.
func (p *probe) next(ctx context.Context, q queue, until time.Time) (
	m sqstypes.Message, sent, had time.Time, err error,
) {
	for time.Now().Before(until) {
		out, err := p.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.url),
			WaitTimeSeconds: 2, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: sentAt})
		if err != nil {
			return m, sent, had, fmt.Errorf("receiving: %w", err)
		}
		if len(out.Messages) == 0 {
			continue
		}
		m, had = out.Messages[0], time.Now()
		ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
		if err != nil {
			return m, sent, had, fmt.Errorf("reading when a message was sent: %w", err)
		}
		_, err = p.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: aws.String(q.url),
			ReceiptHandle: m.ReceiptHandle})
		return m, time.UnixMilli(ms), had, err
	}
	return m, sent, had, errNothing
}

// atSeconds fires a timer in the middle of a minute: it may come then, or with its minute.
func atSeconds(ctx context.Context, p *probe) (string, bool, error) {
	q, err := p.queue(ctx, "seconds")
	if err != nil {
		return "", false, err
	}
	at := time.Now().Add(p.ahead).Truncate(time.Second)
	if !p.emulated {
		at = at.Truncate(time.Minute).Add(time.Minute + 37*time.Second)
	}
	if err := p.timer(ctx, "seconds", at, q.target(), ""); err != nil {
		return "", false, err
	}
	_, sent, _, err := p.next(ctx, q, at.Add(p.patience))
	if err != nil {
		return "", false, errors.Join(err, p.gone(ctx, "seconds"))
	}
	off := sent.Sub(at)
	return fmt.Sprintf("set for second %d, it fired %s after", at.Second(), off.Round(time.Millisecond)),
		off > -time.Minute && off < 2*time.Minute, nil
}

func atPast(ctx context.Context, p *probe) (string, bool, error) {
	q, err := p.queue(ctx, "past")
	if err != nil {
		return "", false, err
	}
	began := time.Now()
	err = p.timer(ctx, "past", began.Add(-10*time.Minute), q.target(), "")
	if refused := new(types.ValidationException); errors.As(err, &refused) {
		return "refused: " + refused.ErrorMessage(), true, nil
	}
	if err != nil {
		return "", false, err
	}
	_, sent, _, err := p.next(ctx, q, began.Add(p.patience))
	if errors.Is(err, errNothing) {
		return "accepted, and it never fired", false, p.gone(ctx, "past")
	}
	return fmt.Sprintf("accepted, and it fired after %s", sent.Sub(began).Round(time.Millisecond)), true, err
}

func clientToken(ctx context.Context, p *probe) (string, bool, error) {
	q, err := p.queue(ctx, "token")
	if err != nil {
		return "", false, err
	}
	at := time.Now().Add(time.Hour)
	request := func() error {
		return p.timer(ctx, "token", at, q.target(), "the-same")
	}
	if err := request(); err != nil {
		return "", false, err
	}
	began := time.Now()
	for over := began.Add(p.patience); time.Now().Before(over); time.Sleep(p.patience / 10) {
		conflict := new(types.ConflictException)
		if err := request(); errors.As(err, &conflict) {
			after := time.Since(began).Round(time.Second)
			return fmt.Sprintf("the same request was a conflict after %s", after), after >= 30*time.Second,
				p.gone(ctx, "token")
		} else if err != nil {
			return "", false, errors.Join(err, p.gone(ctx, "token"))
		}
	}
	return fmt.Sprintf("the same request was no conflict for %s", p.patience), true, p.gone(ctx, "token")
}

func deletion(ctx context.Context, p *probe) (string, bool, error) {
	q, err := p.queue(ctx, "deletion")
	if err != nil {
		return "", false, err
	}
	at := time.Now().Add(p.ahead)
	if err := p.timer(ctx, "deletion", at, q.target(), ""); err != nil {
		return "", false, err
	}
	_, sent, _, err := p.next(ctx, q, at.Add(p.patience))
	if err != nil {
		return "", false, errors.Join(err, p.gone(ctx, "deletion"))
	}
	for over := time.Now().Add(5 * p.patience); time.Now().Before(over); time.Sleep(time.Second) {
		_, err := p.timers.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: aws.String(p.prefix + "-deletion")})
		if absent := new(types.ResourceNotFoundException); errors.As(err, &absent) {
			return fmt.Sprintf("gone %s after it fired", time.Since(sent).Round(time.Second)), true, nil
		}
		if err != nil {
			return "", false, err
		}
	}
	return fmt.Sprintf("still there %s after it fired", (5 * p.patience)), true, p.gone(ctx, "deletion")
}

func universal(ctx context.Context, p *probe) (string, bool, error) {
	return p.universally(ctx, "universal", "sendMessage", func(q queue) any {
		return map[string]any{"QueueUrl": q.url, "MessageBody": "m", "DelaySeconds": 5,
			"MessageAttributes": map[string]any{"a": map[string]any{"DataType": "String", "StringValue": "b"}}}
	})
}

func universalBatch(ctx context.Context, p *probe) (string, bool, error) {
	return p.universally(ctx, "universal-batch", "sendMessageBatch", func(q queue) any {
		return map[string]any{"QueueUrl": q.url, "Entries": []any{
			map[string]any{"Id": "1", "MessageBody": "m", "DelaySeconds": 5}}}
	})
}

func (p *probe) universally(ctx context.Context, name, call string, input func(queue) any) (string, bool, error) {
	q, err := p.queue(ctx, name)
	if err != nil {
		return "", false, err
	}
	text, err := json.Marshal(input(q))
	if err != nil {
		return "", false, err
	}
	at := time.Now().Add(p.ahead)
	if err := p.timer(ctx, name, at, types.Target{Arn: aws.String("arn:aws:scheduler:::aws-sdk:sqs:" + call),
		Input: aws.String(string(text))}, ""); err != nil {
		return "", false, err
	}
	m, sent, had, err := p.next(ctx, q, at.Add(p.patience))
	if errors.Is(err, errNothing) {
		return "nothing was sent", true, p.gone(ctx, name)
	}
	return fmt.Sprintf("sent with %d attributes, there %s later", len(m.MessageAttributes),
		had.Sub(sent).Round(time.Millisecond)), true, err
}

// delays sends messages with a delay and takes each when it is there.
func delays(ctx context.Context, p *probe) (string, bool, error) {
	const n, delay = 50, 5 * time.Second
	q, err := p.queue(ctx, "delays")
	if err != nil {
		return "", false, err
	}
	for i := range n {
		if _, err := p.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(q.url),
			MessageBody: aws.String(strconv.Itoa(i)), DelaySeconds: int32(delay / time.Second)}); err != nil {
			return "", false, fmt.Errorf("sending: %w", err)
		}
	}
	var late []time.Duration
	for range n {
		_, sent, had, err := p.next(ctx, q, time.Now().Add(p.patience))
		if err != nil {
			return "", false, fmt.Errorf("after %d of %d messages: %w", len(late), n, err)
		}
		late = append(late, had.Sub(sent)-delay)
	}
	slices.Sort(late)
	seen := fmt.Sprintf("%d messages of %s: earliest %s, half %s, last %s", n, delay, late[0].Round(time.Millisecond),
		late[n/2].Round(time.Millisecond), late[n-1].Round(time.Millisecond))
	return seen, late[0] > -time.Second && late[n/2] < time.Second, nil
}
