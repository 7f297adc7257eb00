package schedules

import (
	"context"

	"punctual/functions/api/spec"
	"punctual/shared/run"
)

// DagRuns shows runs of dags.
type DagRuns interface {
	// ShowRun returns the view of a run, without its params. An absent run is a problem.
	ShowRun(ctx context.Context, k run.Key) (spec.RunView, error)
}

// Handler serves schedules, their occurrences, previews and exclusions.
type Handler struct {
	*spec.Core
	// DagRuns shows a run that a schedule has begun at once. It is set before the first request.
	DagRuns DagRuns
}

// New registers the routes of schedules and exclusions.
func New(core *spec.Core) *Handler {
	h := &Handler{Core: core}
	h.scheduleRoutes()
	h.exclusionRoutes()
	return h
}
