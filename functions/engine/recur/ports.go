package recur

import (
	"punctual/functions/engine/accept"
	"punctual/shared/store"
)

// Store is what a Recurrer reads and writes: schedules, their slots and counts, and their jobs.
type Store interface {
	accept.Jobs
	store.ScheduleReader
	store.ScheduleWriter
	store.DueIndex
	store.PauseReader
	store.NoteWriter
	store.Writes
	store.Webhooks
}
