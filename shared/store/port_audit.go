package store

import (
	"context"

	"punctual/shared/tenant"
)

// AuditTrail reads the entries of the audit. Writes leave them by themselves: see audited.
type AuditTrail interface {
	// AuditEntries reads one page of a tenant's entries, newest first. next is the place below which the list goes on;
	// "" at the end. A page reads a bounded number of days and entries, so it may be short, even empty, with a next. An
	// entry that cannot be read is left out.
	AuditEntries(ctx context.Context, t tenant.ID, q AuditQuery) (found []AuditEntry, next string, err error)
}
