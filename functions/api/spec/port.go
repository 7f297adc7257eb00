package spec

import (
	"punctual/functions/engine"
	"punctual/functions/engine/amend"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/ratelimit"
	"punctual/functions/engine/show"
	"punctual/functions/engine/submit"
	"punctual/shared/store"
)

// Store is what the stage and the engine read and write; engine.Store has what both do.
type Store interface {
	engine.Store
	show.Store
	operate.Store
	amend.Store
	edit.Store
	ratelimit.Store
	submit.Store
	store.Tasks
	store.Pauses
	store.Exclusions
	store.Limits
	store.Dags
	store.Webhooks
	store.RestoredTables
	store.StatsReader
	store.UsageReader
	store.WorkerList
	store.AuditTrail
}
