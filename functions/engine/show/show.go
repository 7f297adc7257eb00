package show

import (
	"context"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/store"
)

// MaxRead is how many rows a page of dead letters, of running jobs or of occurrences reads at most.
const MaxRead = 2000

// Store is what a Reader reads. It has no method that writes.
type Store interface {
	store.JobReader
	store.JobLists
	store.ClaimReader
	store.LogReader
	store.ContentReader
	store.PauseReader
	store.LimitWaiters
	store.ScheduleReader
	store.ScheduleLists
	store.RunReader
	store.RunLists
	store.MarkReader
}

// Nodes reads a run with the current rows of its nodes; a BLOCKED node has none. An absent run is a fault.NotFound.
type Nodes func(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error)

// Reader reads what is shown. It is safe for concurrent use.
type Reader struct {
	process.Base
	Store Store
	Nodes Nodes
	// Search is the index of jobs; nil: there is none.
	Search store.SearchReader
}

// Now returns the time, to the millisecond as it is stored.
func (s *Reader) Now() time.Time { return s.Clock.Now().UTC().Truncate(time.Millisecond) }
