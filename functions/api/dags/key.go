package dags

import (
	"errors"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/release"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/tenant"
)

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
