package sweeper_test

import (
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/functions/sweeper"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/operation"
	"punctual/shared/store"
)

// backfill makes an operation of the last hours of a schedule, and takes no step of it: its process has crashed.
func (b *bench) backfill(n byte, hours int) operation.Key {
	b.Helper()
	s, err := b.Store.Schedule(b.Context(), stagetest.Schedule("rule", "").Key)
	if err != nil {
		s = b.rule("0 * * * *")
	}
	to := stagetest.Now().Truncate(time.Hour)
	o := operation.Operation{
		Key:    operation.Key{Tenant: jobtest.Tenant, ID: job.NewID(stagetest.Now(), [10]byte{n})},
		Action: operation.Backfill, Status: operation.Running, CreatedAt: stagetest.Now(), Version: 1, Schedule: s.Name,
		Since: s.CreatedAt, Epoch: s.Epoch, From: to.Add(-time.Duration(hours) * time.Hour), To: to,
		Order: operation.Oldest, Most: 50, Matched: hours,
	}
	b.Must(b.Engine().Backfills.Create(b.Context(), o))
	return o.Key
}

func TestSweeper_BringsOperationsOn(t *testing.T) {
	t.Parallel()
	read := func(b *bench, k operation.Key) operation.Operation {
		o, err := b.Store.Operation(b.Context(), k)
		b.Must(err)
		return o
	}
	bubble(t, "one whose process crashed, and one that it cannot read keeps it from no other", func(b *bench) {
		unreadable, k := b.backfill(1, 3), b.backfill(2, 30)
		b.Overwrite(unreadable.Ref(), item.Item{"pk": unreadable.Ref().PK, "sk": unreadable.Ref().SK, "body": "{"})
		b.sweep()
		if o := read(b, k); len(o.Open) != 30 {
			b.Errorf("%+v", o)
		}
		for _, id := range read(b, k).Open { // each ends, and no process hears of it
			r := b.Row(job.Key{Tenant: k.Tenant, ID: id})
			r.Status, r.WakeAt = job.Succeeded, time.Time{}
			b.Put(r)
		}
		b.sweep()
		if o := read(b, k); o.Status != operation.Succeeded || o.Done != 30 {
			b.Errorf("%+v", o)
		}
	})
	bubble(t, "until it has ended and its note is old", func(b *bench) {
		k := b.backfill(1, 0)
		b.sweep()
		noted := func() int {
			list, err := b.Store.NotedOperations(b.Context())
			b.Must(err)
			return len(list)
		}
		b.sweep()
		if read(b, k).Status != operation.Succeeded || noted() != 1 {
			b.Errorf("%d notes", noted())
		}
		time.Sleep(store.NoteKept + time.Minute)
		b.sweep()
		if noted() != 0 {
			b.Errorf("%d notes", noted())
		}
	})
}

func TestSweeper_ResumesOperationsOfProcessesThatHaveEnded(t *testing.T) {
	t.Parallel()
	bubble(t, "whose lease goes on, and none of a process that has begun since", func(b *bench) {
		held := func(n byte) operation.Key {
			k := operation.Key{Tenant: jobtest.Tenant, ID: job.NewID(stagetest.Now(), [10]byte{n})}
			b.Must(b.Store.NoteOperation(b.Context(), k, stagetest.Now()))
			b.Must(b.Store.CreateOperation(b.Context(), operation.Operation{
				Key: k, Action: operation.RedriveJobs, Status: operation.Running, CreatedAt: stagetest.Now(),
				Version: 1, Matched: 1, Bulk: operation.Bulk{Phase: operation.Running, Owner: "x",
					LeaseUntil: stagetest.Now().Add(operation.Lease)},
			}))
			return k
		}
		k := held(1)
		time.Sleep(time.Second)
		b.stage = sweeper.New(sweeper.Deps{Base: b.ProcessBase(), Store: b.Store, Queue: b.World.Queues(), Alone: true})
		held(2)
		b.Must(b.stage.Resume(b.Context()))
		asked, err := b.World.Queues().Receive(b.Context(), contract.BulkQueue, 10, 0, 0)
		b.Must(err)
		if len(asked) != 1 || !strings.Contains(asked[0].Body, string(k.ID)) {
			b.Errorf("asked for %+v", asked)
		}
	})
}
