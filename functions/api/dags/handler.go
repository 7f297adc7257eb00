package dags

import (
	"context"
	"errors"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/release"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
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

func errNoRun() error {
	return rest.NewProblem(rest.CodeNotFound, "there is no such run, or the run has no such node")
}

// runKey returns the key of the run with that id. A text that is no id is a run that does not exist.
func runKey(who tenant.Identity, id string) (run.Key, error) {
	parsed, err := job.ParseID(id)
	if err != nil {
		return run.Key{}, errNoRun()
	}
	return run.Key{Tenant: who.Tenant, ID: parsed}, nil
}

// asRunProblem turns an error of Runs into a problem.
func asRunProblem(err error) error {
	var wrong *release.WrongState
	switch {
	case errors.As(err, &wrong):
		p := rest.NewProblem(spec.CodeWrongState, "%s", wrong.Error())
		p.Allowed = wrong.Allowed
		return p
	case fault.KindOf(err) == fault.NotFound:
		return errNoRun()
	}
	return err
}
