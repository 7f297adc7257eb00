package admin

import "punctual/functions/api/spec"

// Handler serves tasks, pauses and what concerns the whole deployment.
type Handler struct {
	*spec.Core
	document func() ([]byte, error)
}

// New registers the routes. document makes the OpenAPI document, once all routes are registered.
func New(core *spec.Core, document func() ([]byte, error)) *Handler {
	h := &Handler{core, document}
	h.taskRoutes()
	h.pauseRoutes()
	h.systemRoutes()
	return h
}
