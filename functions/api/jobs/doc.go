// Package jobs serves jobs and dead letters: it creates, shows, lists, changes, cancels, redrives and deletes them.
package jobs
