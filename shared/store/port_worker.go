package store

import (
	"context"
	"time"
)

// WorkerNotes are what workers write about themselves, so that they can be listed.
type WorkerNotes interface {
	// SeeWorker notes that a worker works, with what it does now.
	SeeWorker(ctx context.Context, w Worker) error
	// EndWorker notes that a worker has ended, so that it is not listed any more.
	EndWorker(ctx context.Context, name, pool string, now time.Time) error
}

// WorkerList lists workers.
type WorkerList interface {
	// Workers lists the workers that were seen within contract.WorkerGoneAfter, by pool and then by name, of the
	// first MostWorkers items. A worker of several pools is listed once for each.
	Workers(ctx context.Context, now time.Time) ([]Worker, error)
}
