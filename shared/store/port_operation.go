package store

import (
	"context"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/tenant"
)

// OperationReader reads operations.
type OperationReader interface {
	// Operation reads an operation; an absent one is a fault.NotFound.
	Operation(ctx context.Context, k operation.Key) (operation.Operation, error)
	// Operations reads one page of a tenant's operations, newest first, beginning before that id; "" is the newest,
	// and most is at least 1. more says that the page is not the last. One that cannot be read is left out.
	Operations(
		ctx context.Context, t tenant.ID, before job.ID, most int,
	) (list []operation.Operation, more bool, err error)
}

// OperationPages are the ids of the rows that operations work on.
type OperationPages interface {
	// OperationPage reads a page of the ids of an operation's rows. One that is gone is a fault.NotFound.
	OperationPage(ctx context.Context, k operation.Key, n int) ([]job.ID, error)
}

// OperationWriter writes operations.
type OperationWriter interface {
	OperationReader
	// UpdateOperation is JobWriter.Update for an operation.
	UpdateOperation(
		ctx context.Context, k operation.Key, decide func(operation.Operation) ([]item.Write, error),
	) (operation.Operation, error)
	// CreateOperation writes a new operation, with those writes in one transaction. One that is there already, or
	// something of those writes that is refused, is an *item.Refused in which the operation is write 0.
	CreateOperation(ctx context.Context, o operation.Operation, with ...item.Write) error
	// NoteOperation has the sweeper bring an operation on until ForgetOperation. It comes before the write that makes
	// the operation.
	NoteOperation(ctx context.Context, k operation.Key, now time.Time) error
	// Existing says of each key what there is of a job, for up to ReadAtOnce keys.
	Existing(ctx context.Context, keys []job.Key) ([]Existing, error)
	// PrepareAccept writes what comes before the transaction in which the caller puts the row of a new job.
	PrepareAccept(ctx context.Context, r job.Row) error
}

// Existing is what there is of a job. The zero Existing is nothing.
type Existing struct {
	Row  *job.Row // nil: none that can be read
	Gone bool     // it was deleted, and its id cannot be used
	Err  error    // why it cannot be read; nil if it can, or if there is none
}

// NotedOperation is an operation that may go on.
type NotedOperation struct {
	operation.Key
	NotedAt time.Time
}

// OperationNotes list the operations that go on, so that the sweeper brings them on.
type OperationNotes interface {
	// NotedOperations lists the operations that NoteOperation named.
	NotedOperations(ctx context.Context) ([]NotedOperation, error)
	// ForgetOperation removes a NoteOperation older than NoteKept. The operation has ended, or there is none.
	ForgetOperation(ctx context.Context, k operation.Key, now time.Time) error
}
