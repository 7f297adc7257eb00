package store

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

// SearchReader finds jobs in the index, which follows the jobs table. The row decides: a caller reads the row of each
// entry by its key and leaves out what no longer matches.
type SearchReader interface {
	// Search reads one page of the entries that match. A page may be short, or empty, and have a Next.
	Search(ctx context.Context, t tenant.ID, q SearchQuery) (SearchPage, error)
	// DeadGroups counts all dead jobs that died at from or later (zero: all) by their cause, most first. Deliveries of
	// webhooks are left out. The last hour of each count ends at now.
	DeadGroups(ctx context.Context, t tenant.ID, from, now time.Time) (DeadGroups, error)
}

// SearchWriter brings the index up to date. Each method is safe to repeat, and an older entry never replaces a later
// one.
type SearchWriter interface {
	// PutEntries writes entries, and returns one error for each.
	PutEntries(ctx context.Context, entries []search.Entry) []error
	// RemoveEntry removes the entry of a job that no longer exists, and what leads to it.
	RemoveEntry(ctx context.Context, k job.Key) error
}

// SearchOrder is the order of a page.
type SearchOrder string

// The orders. That of ids is the order of the list of jobs.
const (
	NewestFirst SearchOrder = "newest" // by falling id
	OldestFirst SearchOrder = "oldest" // by rising id
	LastDead    SearchOrder = "dead"   // by falling time of death, then falling id: DEAD jobs only
)

// SearchQuery asks for a page of entries.
type SearchQuery struct {
	search.Filter
	Order    SearchOrder
	Before   job.ID // only ids before it; "": any
	Position string // Next of the page before; "" is the beginning
	Limit    int    // at least 1
}

// SearchPage is a page of entries. What happened before AsOf is in.
type SearchPage struct {
	Entries []search.Entry
	Next    string // position of the next page; "" is the end
	AsOf    time.Time
}

// DeadGroups are the causes of dead jobs. What happened before AsOf is in.
type DeadGroups struct {
	Groups []search.GroupCount
	AsOf   time.Time
}
