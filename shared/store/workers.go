package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// Worker is what a worker says about itself and one of its pools.
type Worker struct {
	Name, Pool, Version string
	StartedAt, SeenAt   time.Time
	Slots, Busy         int
	Draining            bool
}

// workersKind is the kind of the workers' items: they are in one partition, so that they can be listed.
const workersKind = "worker"

// MostWorkers is how many items of workers are listed at most.
const MostWorkers = 2000

func workerRef(name, pool string) item.Ref { return system(workersKind, pool+"#"+name) }

// SeeWorker implements WorkerNotes.
func (s *Store) SeeWorker(ctx context.Context, w Worker) error {
	ref := workerRef(w.Name, w.Pool)
	i := item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "name": w.Name, "pool": w.Pool, "version": w.Version,
		"started_at": w.StartedAt.UnixMilli(), "seen_at": w.SeenAt.UnixMilli(),
		"slots": int64(w.Slots), "busy": int64(w.Busy),
		contract.AttrExpiresAt: w.SeenAt.Add(contract.WorkerKept).Unix(),
	}
	if w.Draining {
		i["draining"] = int64(1)
	}
	return s.Put(ctx, item.Write{Ref: ref, Name: WriteWorkerSee, Put: i})
}

// EndWorker implements WorkerNotes.
func (s *Store) EndWorker(ctx context.Context, name, pool string, now time.Time) error {
	ref := workerRef(name, pool)
	return s.Put(ctx, item.Write{Ref: ref, Name: WriteWorkerEnd, Put: item.Item{contract.AttrPK: ref.PK,
		contract.AttrSK: ref.SK, contract.AttrExpiresAt: now.Unix()}})
}

// Workers implements WorkerList.
func (s *Store) Workers(ctx context.Context, now time.Time) (all []Worker, err error) {
	q := item.Query{Table: contract.Tasks, PK: system(workersKind, "").PK, Limit: MostWorkers}
	for read := 0; ; {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			w := Worker{
				Name: i.Str("name"), Pool: i.Str("pool"), Version: i.Str("version"),
				StartedAt: i.Time("started_at"), SeenAt: i.Time("seen_at"),
				Slots: int(i.Int("slots")), Busy: int(i.Int("busy")), Draining: i.Int("draining") != 0,
			}
			if w.Name != "" && now.Sub(w.SeenAt) < contract.WorkerGoneAfter {
				all = append(all, w)
			}
		}
		read += len(page.Items)
		if q.Cursor = page.Cursor; q.Cursor == "" || read >= MostWorkers {
			return all, nil
		}
	}
}
