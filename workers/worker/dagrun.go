package worker

import (
	"context"

	"punctual/shared/fault"
	"punctual/shared/job"
	runs "punctual/shared/run" // run is a word of this package
)

// runOf reads the run that a row is a node of; nil for a row of no run. It is never kept: the process that changes
// a run relies on it that an attempt which is claimed later sees the change. A run that was forgotten
// has ended.
func (w *Worker) runOf(ctx context.Context, r *job.Row) (*runs.Run, error) {
	if !r.InRun() {
		return nil, nil
	}
	k := runs.Of(*r)
	is, err := w.store.Run(ctx, k)
	if fault.KindOf(err) == fault.NotFound {
		return &runs.Run{Key: k, Status: runs.Cancelled}, nil
	}
	return &is, err
}
