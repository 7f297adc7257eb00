package store

import (
	"context"

	"punctual/shared/item"
)

// Store implements all ports. Each method is declared and documented once, in a port; a caller composes the ports
// that it needs. Where some caller may only read, a noun has a port for reading and one for writing. A read is
// strongly consistent unless its method says otherwise, or lists. A condition of a write that does not hold is an
// *item.Refused.
var _ interface {
	Writes
	Jobs
	JobLists
	IdempotencyKeys
	UniqueKeys
	Followers
	Claims
	LogReader
	Contents
	ResultWriter
	ScheduleReader
	ScheduleWriter
	ScheduleLists
	Exclusions
	RunReader
	RunWriter
	RunCounters
	RunPermits
	RunLists
	Dags
	Tasks
	Pauses
	RateLimits
	PermitTaker
	PermitGiver
	WaitingKeys
	WaitingSlots
	OperationWriter
	OperationNotes
	Webhooks
	DueIndex
	Shards
	Marks
	Notes
	RestoredTables
	Recognizer
	Forecasts
	StatsReader
	UsageReader
	AuditTrail
} = (*Store)(nil)

// Writes are writes of any items.
type Writes interface {
	// Put does one write of which nothing needs to be read back.
	Put(ctx context.Context, w item.Write) error
	// Commit does up to 100 writes, all or none, or 99 where a request leaves an entry in the audit. The *item.Refused
	// says which write was refused, by index.
	Commit(ctx context.Context, writes ...item.Write) error
}
