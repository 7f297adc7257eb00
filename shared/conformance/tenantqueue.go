package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// TenantQueues is what the workers need of the queues of tenants.
type TenantQueues interface {
	// Allowed reports whether jobs of the tenant may send to the queue. An absent one is a
	// fault.NotFound.
	Allowed(ctx context.Context, queue string, t tenant.ID) (bool, error)
	// Send sends one message and returns its id. An absent queue is a fault.NotFound.
	Send(ctx context.Context, queue string, m executor.Message) (id string, err error)
}

// TenantQueueBench is the queues of tenants, and how to create and read them.
type TenantQueueBench struct {
	TenantQueues
	// Create creates a queue with this tag contract.TenantTag, "" for none.
	Create func(ctx context.Context, name, owner string) error
	// Receive returns all messages of a queue: body and attributes, in order for a FIFO queue.
	Receive func(ctx context.Context, name string) ([]executor.Message, error)
}

// TenantQueue exercises the queues of tenants.
func TenantQueue(t *testing.T, open func(*testing.T) TenantQueueBench, k Knobs) {
	t.Helper()
	run(t, k, open, tenantQueues())
}

func tenantQueues() []exercise[TenantQueueBench] {
	create := func(t T, b TenantQueueBench, suffix, owner string) string {
		name := "q-" + unique() + suffix
		must(t, b.Create(t.Context(), name, owner))
		return name
	}
	bodies := func(t T, b TenantQueueBench, queue string) []string {
		t.Helper()
		got, err := b.Receive(t.Context(), queue)
		must(t, err)
		var all []string
		for _, m := range got {
			all = append(all, m.Body)
		}
		return all
	}
	return []exercise[TenantQueueBench]{
		{name: "a tenant's queue is open to the tenant of its tag", run: func(t T, b TenantQueueBench) {
			for owner, want := range map[string][2]bool{"acme": {true, false}, "*": {true, true}, "": {false, false},
				"Acme": {false, false}} {
				queue := create(t, b, "", owner)
				for i, who := range []tenant.ID{"acme", "zeta"} {
					if got, err := b.Allowed(t.Context(), queue, who); got != want[i] || err != nil {
						t.Errorf("tagged %q it is open to %s: %v, %v; want %v", owner, who, got, err, want[i])
					}
				}
			}
		}},
		{name: "a missing tenant's queue is not found", run: func(t T, b TenantQueueBench) {
			name := "q-" + unique()
			_, err := b.Allowed(t.Context(), name, "acme")
			wantKind(t, err, fault.NotFound)
			_, err = b.Send(t.Context(), name, executor.Message{Body: "x"})
			wantKind(t, err, fault.NotFound)
		}},
		{name: "a message to a tenant's queue arrives with its attributes", run: func(t T, b TenantQueueBench) {
			queue := create(t, b, "", "acme")
			sent := executor.Message{Body: `{"n":1,"s":"ü <b>"}`,
				Attributes: map[string]string{"Punctual-Attempt": "1", "Idempotency-Key": "k"}}
			id, err := b.Send(t.Context(), queue, sent)
			must(t, err)
			got, err := b.Receive(t.Context(), queue)
			must(t, err)
			if id == "" || len(got) != 1 || got[0].Body != sent.Body ||
				!maps.Equal(got[0].Attributes, sent.Attributes) {
				t.Errorf("message %q arrived as %+v", id, got)
			}
		}},
		{name: "a tenant's FIFO queue keeps the order of a group and drops duplicates",
			run: func(t T, b TenantQueueBench) {
				queue := create(t, b, ".fifo", "acme")
				var ids []string
				for _, m := range []struct{ body, attempt string }{{"a", "j1-1"}, {"b", "j2-1"}, {"a again", "j1-1"},
					{"c", "j1-2"}} {
					id, err := b.Send(t.Context(), queue, executor.Message{Body: m.body, Group: "g",
						Deduplication: m.attempt})
					must(t, err)
					ids = append(ids, id)
				}
				if got := bodies(t, b, queue); !slices.Equal(got, []string{"a", "b", "c"}) {
					t.Errorf("it holds %q", got)
				}
				if ids[0] == ids[1] || ids[0] == "" {
					t.Errorf("the messages are called %q", ids)
				}
			}},
		{name: "a tenant's FIFO queue refuses a message without a group", run: func(t T, b TenantQueueBench) {
			queue := create(t, b, ".fifo", "acme")
			_, err := b.Send(t.Context(), queue, executor.Message{Body: "a", Deduplication: "j1-1"})
			wantKind(t, err, fault.Invalid)
			if got := bodies(t, b, queue); len(got) != 0 {
				t.Errorf("it holds %q", got)
			}
		}},
		{name: "a message that is too long for a tenant's queue can never be sent",
			run: func(t T, b TenantQueueBench) {
				queue := create(t, b, "", "acme")
				_, err := b.Send(t.Context(), queue, executor.Message{Body: strings.Repeat("x", 1<<20+1)})
				wantKind(t, err, fault.Invalid)
			}},
		{name: "the longest message that a job can send arrives in a tenant's queue",
			run: func(t T, b TenantQueueBench) {
				queue := create(t, b, "", "acme")
				body := strings.Repeat("x", executor.MaxMessage)
				_, err := b.Send(t.Context(), queue, executor.Message{Body: body,
					Attributes: map[string]string{"a": strings.Repeat("v", 1000)}})
				must(t, err)
				if got := bodies(t, b, queue); len(got) != 1 || got[0] != body {
					t.Errorf("it holds %d messages", len(got))
				}
			}},
	}
}
