package memory_test

import (
	"context"
	"testing"
	"time"

	"punctual/shared/conformance"
	"punctual/shared/executor"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
)

// virtual makes every wait run in virtual time: the in-memory implementations do no I/O.
var virtual = conformance.Knobs{Virtual: true}

func open(t *testing.T, o memory.Options) *memory.World {
	t.Helper()
	w := memory.New(o)
	t.Cleanup(w.Close)
	return w
}

//proof:of 68
func TestWorld_ConformsToAWS(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{
		"a kind world": {},
		"a world whose indexes lag and whose pages are often empty": {IndexLag: memory.LagUpTo(5 * time.Second),
			EmptyPages: true},
	} {
		t.Run("table "+name+" behaves as DynamoDB", func(t *testing.T) {
			t.Parallel()
			conformance.Table(t, func(t *testing.T) store.Table { return open(t, o).Table() }, virtual)
		})
	}
	for name, o := range map[string]memory.Options{
		"a kind world": {}, "a world whose pages are often empty": {EmptyPages: true},
	} {
		t.Run("the index of jobs in a table of "+name+" behaves as that in memory", func(t *testing.T) {
			t.Parallel()
			conformance.Search(t, func(t *testing.T) conformance.SearchIndex {
				return store.NewSearchTable(nil, open(t, o).Table())
			}, virtual)
		})
	}
	for name, o := range map[string]memory.Options{
		"a kind world": {}, "a world whose pages are often empty": {EmptyPages: true},
	} {
		t.Run("a whole table of "+name+" is read as one of DynamoDB", func(t *testing.T) {
			t.Parallel()
			conformance.Scan(t, func(t *testing.T) conformance.ScanBench { return open(t, o).Table() }, virtual)
		})
	}
	t.Run("the index of jobs in memory behaves as that in a table", func(t *testing.T) {
		t.Parallel()
		conformance.Search(t, func(t *testing.T) conformance.SearchIndex {
			return open(t, memory.Options{}).Search()
		}, virtual)
	})
	t.Run("queues behave as SQS", func(t *testing.T) {
		t.Parallel()
		conformance.Queue(t, func(t *testing.T) message.Queues { return open(t, memory.Options{}).Queues() },
			virtual)
	})
	t.Run("timers behave as EventBridge Scheduler", func(t *testing.T) {
		t.Parallel()
		conformance.Timer(t, func(t *testing.T) conformance.TimerBench {
			w := open(t, memory.Options{})
			return conformance.TimerBench{Timers: w.Timers(), Queues: w.Queues(),
				Armed: func(_ context.Context, name string) (message.Timer, bool, error) {
					for _, timer := range w.Timers().Armed() {
						if timer.Name == name {
							return timer, true, nil
						}
					}
					return message.Timer{}, false, nil
				}}
		}, virtual)
	})
	t.Run("blobs behave as S3", func(t *testing.T) {
		t.Parallel()
		conformance.Blob(t, func(t *testing.T) store.Blobs { return open(t, memory.Options{}).Blobs() }, virtual)
	})
	t.Run("queues of tenants behave as SQS", func(t *testing.T) {
		t.Parallel()
		conformance.TenantQueue(t, func(t *testing.T) conformance.TenantQueueBench {
			w := open(t, memory.Options{})
			return conformance.TenantQueueBench{
				TenantQueues: w.TenantQueues(),
				Create: func(_ context.Context, name, owner string) error {
					w.TenantQueues().Put(name, owner)
					return nil
				},
				Receive: func(_ context.Context, name string) ([]executor.Message, error) {
					return w.TenantQueues().Sent(name), nil
				},
			}
		}, virtual)
	})
	t.Run("secrets behave as Secrets Manager", func(t *testing.T) {
		t.Parallel()
		conformance.Secret(t, func(t *testing.T) conformance.SecretBench {
			w := open(t, memory.Options{Secrets: map[string]string{"arn:a": "s3cret", "arn:free": "s3cret"}})
			w.Secrets().Bind("arn:a", "a.test", ".b.test")
			return conformance.SecretBench{Secrets: w.Secrets(), ARN: "arn:a", Value: "s3cret", Free: "arn:free",
				Absent: "arn:b"}
		}, virtual)
	})
}
