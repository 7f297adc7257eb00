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

// ByID is the input of a route about one run.
type ByID struct {
	ID  string `path:"id"`
	key run.Key
}

// Prepare makes the key of the run. A text that is no id is a run that does not exist.
func (in *ByID) Prepare(_ context.Context, who tenant.Identity) error {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return errNoRun()
	}
	in.key = run.Key{Tenant: who.Tenant, ID: id}
	return nil
}

// ByNode is the input of a route about one node of a run.
type ByNode struct {
	ByID
	Node string `path:"node"`
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
