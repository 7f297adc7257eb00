package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path"
	"slices"
	"sync"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
	"punctual/workers/system"
)

// ledger records the calls of all parts: "part action resource", each once.
type ledger struct {
	mu    sync.Mutex
	lines map[string]bool
}

func (l *ledger) note(part, action, resource string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string]bool{}
	}
	l.lines[fmt.Sprintf("%s %s %s", part, action, resource)] = true
}

func (l *ledger) sorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, 0, len(l.lines))
	for line := range l.lines {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// ports returns a part's ports, with every call recorded.
func (l *ledger) ports(w *memory.World, part string) system.Ports {
	r := recorder{l, part, w}
	return system.Ports{
		Executors: executor.Options{Resolver: nowhere{}},
		Table:     table{r, w.Table()}, Blobs: blobs{r, w.Blobs()}, Stream: w.Table(), Queues: queues{r, w.Queues()},
		Timers:  timers{r, w.Timers()},
		Secrets: w.Secrets(), Clock: clock.System{}, Log: func(string) *slog.Logger { return telemetry.Silent() },
	}
}

type recorder struct {
	*ledger
	part string
	w    *memory.World
}

func (r recorder) did(action, resource string) { r.note(r.part, action, resource) }

type table struct {
	recorder
	t *memory.Table
}

func (t table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	t.did("dynamodb:GetItem", ref.Table)
	return t.t.Get(ctx, ref)
}

func (t table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	for _, ref := range refs {
		t.did("dynamodb:BatchGetItem", ref.Table)
	}
	return t.t.GetMany(ctx, refs)
}

// wrote returns IAM's name for a write; alone says that it is not part of a transaction, where a
// check counts as a read.
func (t table) wrote(w item.Write, alone bool) {
	action := "dynamodb:UpdateItem"
	switch {
	case w.Put != nil:
		action = "dynamodb:PutItem"
	case w.Delete:
		action = "dynamodb:DeleteItem"
	case w.Check && alone:
		action = "dynamodb:GetItem"
	case w.Check:
		action = "dynamodb:ConditionCheckItem"
	}
	t.did(action, w.Table)
}

func (t table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	t.wrote(w, true)
	return t.t.Write(ctx, w)
}

func (t table) Commit(ctx context.Context, writes ...item.Write) error {
	for _, w := range writes {
		t.wrote(w, false)
	}
	return t.t.Commit(ctx, writes...)
}

func (t table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	resource := q.Table
	if q.Index != "" {
		resource += "/" + q.Index
	}
	t.did("dynamodb:Query", resource)
	return t.t.Query(ctx, q)
}

func (t table) Scan(ctx context.Context, name, cursor string, limit int) (item.Page, error) {
	t.did("dynamodb:Scan", name)
	return t.t.Scan(ctx, name, cursor, limit)
}

func (t table) Identity(ctx context.Context, name string) (item.Identity, error) {
	t.did("dynamodb:DescribeTable", name)
	return t.t.Identity(ctx, name)
}

type blobs struct {
	recorder
	b *memory.Blobs
}

func (b blobs) Put(ctx context.Context, key string, body []byte) error {
	resource := "payloads"
	if is, err := path.Match(contract.JobBlobs+"*/*/result#*", key); b.part == "worker" && is && err == nil {
		resource = "payloads/results" // all that the workers' role may put
	}
	b.did("s3:PutObject", resource)
	return b.b.Put(ctx, key, body)
}

func (b blobs) Get(ctx context.Context, key string) ([]byte, error) {
	b.did("s3:GetObject", "payloads")
	return b.b.Get(ctx, key)
}

func (b blobs) Delete(ctx context.Context, key string) error {
	b.did("s3:DeleteObject", "payloads")
	return b.b.Delete(ctx, key)
}

type queues struct {
	recorder
	q *memory.Queues
}

func (q queues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	if len(out) > 0 {
		q.did("sqs:SendMessage", queue)
	}
	return q.q.Send(ctx, queue, out...)
}

func (q queues) Receive(ctx context.Context, queue string, max int, wait,
	visibility time.Duration) ([]message.Delivery, error) {
	q.did("sqs:ReceiveMessage", queue)
	return q.q.Receive(ctx, queue, max, wait, visibility)
}

func (q queues) Delete(ctx context.Context, queue string, receipts ...string) error {
	q.did("sqs:DeleteMessage", queue)
	return q.q.Delete(ctx, queue, receipts...)
}

func (q queues) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	q.did("sqs:ChangeMessageVisibility", queue)
	return q.q.SetVisibility(ctx, queue, receipt, d)
}

func (q queues) Depth(ctx context.Context, queue string) (message.Depth, error) {
	q.did("sqs:GetQueueAttributes", queue)
	return q.q.Depth(ctx, queue)
}

type timers struct {
	recorder
	t *memory.Timers
}

func (t timers) Arm(ctx context.Context, m message.Timer) error {
	t.did("scheduler:CreateSchedule", "timers")
	return t.t.Arm(ctx, m)
}

// nowhere knows no host: a delivery leaves neither the machine nor the virtual time.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("there is no such host")
}
