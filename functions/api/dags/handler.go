package dags

import (
	"context"

	"punctual/functions/api/spec"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Jobs forgets the jobs of a run.
type Jobs interface {
	// Forget forgets a job that has ended, if may returns no error for its row.
	Forget(ctx context.Context, k job.Key, may func(job.Row) error) error
}

// Schedules knows which schedules make runs of a dag.
type Schedules interface {
	// UnusedDag returns a problem that lists the schedules which make runs of a dag; nil if there are none.
	UnusedDag(ctx context.Context, t tenant.ID, name string) error
}

// Handler serves dags and runs.
type Handler struct {
	*spec.Core
	jobs      Jobs
	schedules Schedules
}

// New registers the routes of dags and runs.
func New(core *spec.Core, jobs Jobs, schedules Schedules) *Handler {
	h := &Handler{core, jobs, schedules}
	h.dagRoutes()
	h.runRoutes()
	return h
}
