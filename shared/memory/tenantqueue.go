package memory

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// dedupFor is how long a FIFO queue drops a second message with the same deduplication id.
const dedupFor = 5 * time.Minute

// maxAttributes is how many attributes a message may have.
const maxAttributes = 10

// TenantQueues are the queues of tenants, in memory. Only tests read them.
type TenantQueues struct {
	world *World
	mu    sync.Mutex
	known map[string]*tenantQueue
}

type tenantQueue struct {
	owner string
	sent  []executor.Message
	ids   map[string]sentOnce // by deduplication id
}

type sentOnce struct {
	id string
	at time.Time
}

// Put creates a queue and replaces the one of that name. owner is its tag contract.TenantTag. A
// queue is FIFO if its name ends in .fifo.
func (q *TenantQueues) Put(name, owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known[name] = &tenantQueue{owner: owner, ids: map[string]sentOnce{}}
}

// Sent returns the messages that a queue holds, oldest first.
func (q *TenantQueues) Sent(name string) []executor.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	if of := q.known[name]; of != nil {
		return slices.Clone(of.sent)
	}
	return nil
}

// Allowed reports whether jobs of the tenant may send to the queue. An absent one is a
// fault.NotFound.
func (q *TenantQueues) Allowed(ctx context.Context, name string, t tenant.ID) (bool, error) {
	c := Call{Op: TenantQueueAllowed, Name: name}
	f, err := q.world.enter(ctx, c)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	of := q.known[name]
	q.mu.Unlock()
	if of == nil {
		return false, fault.New(fault.NotFound, nil, "queue %q", name)
	}
	return of.owner == contract.AnyTenant || of.owner != "" && of.owner == string(t), f.after(c)
}

// Send sends one message and returns its id.
func (q *TenantQueues) Send(ctx context.Context, name string, m executor.Message) (id string, err error) {
	c := Call{Op: TenantQueueSend, Name: name, Size: len(m.Body)}
	f, err := q.world.enter(ctx, c)
	if err != nil {
		return "", err
	}
	if err := checkMessage(name, m); err != nil {
		return "", err
	}
	q.mu.Lock()
	of := q.known[name]
	if of != nil {
		id = q.put(of, m)
	}
	q.mu.Unlock()
	if of == nil {
		return "", fault.New(fault.NotFound, nil, "queue %q", name)
	}
	if err := f.after(c); err != nil {
		return "", err
	}
	return id, nil
}

// put adds a message, unless the queue has seen it. The lock is held.
func (q *TenantQueues) put(of *tenantQueue, m executor.Message) string {
	now := q.world.now()
	if seen, ok := of.ids[m.Deduplication]; ok && m.Deduplication != "" && now.Sub(seen.at) < dedupFor {
		return seen.id
	}
	id := q.world.queues.nextID()
	of.ids[m.Deduplication] = sentOnce{id, now}
	of.sent = append(of.sent, m)
	return id
}

func checkMessage(name string, m executor.Message) error {
	size := len(m.Body)
	for key, value := range m.Attributes {
		size += len(key) + len("String") + len(value)
		if value == "" {
			return fault.New(fault.Invalid, nil, "sending to queue %q: the attribute %s is empty", name, key)
		}
	}
	fifo := strings.HasSuffix(name, ".fifo")
	switch {
	case !text.Allowed(m.Body):
		return fault.New(fault.Invalid, nil,
			"sending to queue %q: the body is empty or holds characters that SQS refuses", name)
	case size > maxBody:
		return fault.New(fault.Invalid, nil, "sending to queue %q: the message has %d bytes, %d are allowed", name,
			size, maxBody)
	case len(m.Attributes) > maxAttributes:
		return fault.New(fault.Invalid, nil, "sending to queue %q: there are %d attributes, %d are allowed", name,
			len(m.Attributes), maxAttributes)
	case len(m.Group) > maxGroup || strings.ContainsFunc(m.Group, notInGroup):
		return fault.New(fault.Invalid, nil, "sending to queue %q: SQS does not take the group", name)
	case fifo && (m.Group == "" || m.Deduplication == ""):
		return fault.New(fault.Invalid, nil, "sending to queue %q: a FIFO queue wants a group and a deduplication id",
			name)
	case !fifo && m.Deduplication != "":
		return fault.New(fault.Invalid, nil, "sending to queue %q: only a FIFO queue takes a deduplication id", name)
	}
	return nil
}
