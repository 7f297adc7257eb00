package jobs

import "punctual/functions/api/spec"

// Handler serves jobs and dead letters.
type Handler struct {
	*spec.Core
}

// New registers the routes of jobs and dead letters.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	h.jobRoutes()
	h.deadLetterRoutes()
	return h
}
