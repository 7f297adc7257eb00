package worker

import "errors"

// Why a handler's context ended, as context.Cause returns it.
var (
	// ErrCancelled: a caller cancelled the job. An error returned now ends it as CANCELLED.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrTimeout: the attempt reached its timeout. It will be retried.
	ErrTimeout = errors.New("the attempt reached its timeout")
	// ErrLeaseLost: another worker may own the attempt by now. What is returned no longer counts.
	ErrLeaseLost = errors.New("the lease on the attempt was lost")
	// ErrDraining: the worker is shutting down and its time is up. An error returned now does
	// not count as an attempt: another worker starts it again.
	ErrDraining = errors.New("the worker is shutting down")
)
