package store

import (
	"context"
	"time"

	"punctual/shared/item"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

// Scanner reads whole tables: shared/aws/table and shared/memory give it.
type Scanner interface {
	// Scan reads the next page of a table, in no order: up to limit items, the first of which follow cursor ("" is the
	// beginning). An empty page with a Cursor is not the end. An item that is there all the time is read once. Of those
	// that are written meanwhile some are left out, and items whose time has ended may be among them.
	Scan(ctx context.Context, table, cursor string, limit int) (item.Page, error)
}

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
	PutEntries(ctx context.Context, updates []search.Update) []error
	// RemoveEntry removes the entry of a job whose row no longer exists; e is that of its last row. One whose time
	// has ended may be left to the table's time to live.
	RemoveEntry(ctx context.Context, e search.Entry) error
}

// What the ports take and give, by the names of this package.
type (
	// SearchOrder is the order of a page.
	SearchOrder = search.Order
	// SearchQuery asks for a page of entries.
	SearchQuery = search.Query
	// SearchPage is a page of entries.
	SearchPage = search.Page
	// DeadGroups are the causes of dead jobs.
	DeadGroups = search.Causes
)

// The orders.
const (
	NewestFirst = search.NewestFirst
	OldestFirst = search.OldestFirst
	LastDead    = search.LastDead
)

// SearchIndex is an index of jobs that is read and written.
type SearchIndex interface {
	SearchReader
	SearchWriter
}
