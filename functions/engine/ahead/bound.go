package ahead

import (
	"time"

	"punctual/shared/store"
)

// Bounds of the work for one forecast.
const (
	// MostTimes is how many times of all calendars together are counted one by one.
	MostTimes = 1_000_000
	// MostRows is how many jobs are read, the newest of the tenant.
	MostRows = 10_000
	// MostClaims is for how many jobs that are due it is read whether they run already. Beyond it they count as
	// waiting.
	MostClaims = 1000
	// MostTime is how long jobs are read, and how long times are counted. Only calendars that are made to be slow, or a
	// machine that is very busy, take as long.
	MostTime = 2 * time.Second
	// KeptFor is how long a forecast is kept that cost more than cheap.
	KeptFor = time.Minute
)

// Store is what a Forecaster reads.
type Store interface {
	store.JobLists
	store.ClaimReader
	store.PauseReader
	store.ScheduleLists
}
