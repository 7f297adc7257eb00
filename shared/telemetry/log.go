package telemetry

import (
	"io"
	"log/slog"
)

// The keys of log lines, the same everywhere.
const (
	Tenant  = "tenant_id"
	JobID   = "job_id"
	Attempt = "attempt"
	RunID   = "run_id"
	Stage   = "stage"
	Err     = "error"
)

// Logger returns a logger of JSON lines to w that name the stage.
func Logger(w io.Writer, stage string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, nil)).With(Stage, stage)
}

// Silent returns a logger that drops everything, for tests and benchmarks.
func Silent() *slog.Logger { return slog.New(slog.DiscardHandler) }
