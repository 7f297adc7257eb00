package search

import (
	"time"

	"punctual/shared/job"
)

// Order is the order of a page of entries.
type Order string

// The orders. That of ids is the order of the list of jobs.
const (
	NewestFirst Order = "newest" // by falling id
	OldestFirst Order = "oldest" // by rising id
	LastDead    Order = "dead"   // by falling time of death, then falling id: DEAD jobs only
)

// Query asks for a page of entries.
type Query struct {
	Filter
	Order    Order
	Before   job.ID // only ids before it; "": any
	Position string // Next of the page before; "" is the beginning
	Limit    int    // at least 1
}

// Page is a page of entries. What happened before AsOf is in.
type Page struct {
	Entries []Entry
	Next    string // position of the next page; "" is the end
	AsOf    time.Time
}

// Causes are the causes of dead jobs, most frequent first. What happened before AsOf is in.
type Causes struct {
	Groups []GroupCount
	AsOf   time.Time
}
