package load

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/workers/worker"
)

// BenchmarkHeldMessages measures a worker that holds 100,000 messages until they are due. It runs
// first, in a process that has done nothing else; the figure includes the copies of the queue in memory.
func BenchmarkHeldMessages(b *testing.B) {
	for b.Loop() {
		const n = 100_000
		world := memory.New(memory.Options{})
		w := worker.New(worker.Deps{Queues: world.Queues(), Store: store.New(world.Table(), world.Blobs())},
			worker.Options{Name: "bench", Slots: 1, Hold: n + 1000, Poll: time.Second})
		queue := contract.FiringQueue("short", "normal")
		due := time.Now().Add(9500 * time.Millisecond)
		for from := 0; from < n; from += 1000 {
			out := make([]message.Outgoing, 1000)
			for i := range out {
				id := job.DeterministicID(due, fmt.Sprint(from+i))
				out[i] = job.Firing{Key: job.Key{Tenant: tenant.Local, ID: id}, Version: 1, Attempt: 1, Pool: "short",
					Priority: job.Normal, DueAt: due}.Outgoing(due)
			}
			if err := world.Queues().Send(context.Background(), queue, out...); err != nil {
				b.Fatal(err)
			}
		}
		debug.FreeOSMemory()
		before := resident()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Until(due.Add(-time.Second)))
		depth, err := world.Queues().Depth(context.Background(), queue)
		if err != nil || depth.InFlight < n {
			b.Fatalf("the worker holds %+v, %v", depth, err)
		}
		peak := resident()
		debug.FreeOSMemory()
		note("resident memory, worker holding 100,000 messages",
			"%d MB, at rest %d MB (queue twin with them, no worker: %d MB)", peak>>20, resident()>>20, before>>20)
		stop()
		<-done
		world.Close()
	}
}
