// Package promoter brings on their way, each minute, the jobs whose slices enter the horizon: dispatch
// is asked for each slice that holds something, has one timer made for it, and reads it just before
// its minute. Schedules whose next time enters the horizon make their jobs.
//
// What always holds: it goes on from where the last pass ended, not from the clock, so a pass that
// takes longer than a minute, overlaps the next one or never came leaves no gap; slices it has passed
// are looked at again for ten minutes, because an index entry may show late. Asking for the same
// slice again changes nothing. What the sweeper has put off it leaves to the sweeper, and what the
// stream consumer sends to the stream consumer.
//
// How it fails: a slice that could not be asked for is noted and visited again by each pass. What
// lies more than the grace behind is the sweeper's.
package promoter
