package worker

import (
	"punctual/shared/message"
	"punctual/shared/store"
)

// Queues is what a worker needs of the queues.
type Queues interface {
	message.Sender
	message.Receiver
}

// Store is what a worker reads and writes. It writes claims and results; rows are the stages' to write.
type Store interface {
	store.JobReader
	store.Claims
	store.ContentReader
	store.ResultWriter
	store.RunReader
	store.ScheduleReader
	store.PauseReader
	store.PermitGiver
	store.PermitTaker
	store.UniqueKeys
	store.WorkerNotes
	store.RestoredTables
	store.Writes
}
