// Package promoter visits, each minute, the slices that enter the horizon. It asks dispatch for each slice with a job
// to fire; dispatch makes one timer for the slice and reads it just before its minute. It also promotes the schedules
// whose next nominal time enters the horizon.
//
// What always holds: a pass continues where the last one ended, not at the clock, so a pass that takes longer than a
// minute, overlaps the next one or never ran leaves no gap. Slices are visited for ten more minutes, because an index
// entry may show late. Asking for a slice twice changes nothing. Jobs that the sweeper has deferred are left to it, and
// jobs that are due soon to the stream consumer.
//
// How it fails: a slice that could not be asked for is noted, and each later pass visits it until it succeeds. Slices
// that are overdue by more than the grace are left to the sweeper.
package promoter
