// Package operations serves operations: work on many jobs that goes on by itself, shows its progress and can be
// stopped. Those on many jobs or runs are made here; a backfill is made by the package of schedules.
package operations
