// Package show reads what users ask for: jobs with what their claims, pauses and schedules add, lists of jobs, dead
// letters and runs, and the occurrences of a schedule. It writes nothing.
//
// What always holds: a page reads a bounded number of rows, or for a bounded time; an empty page with a next position
// is not the end. A row that cannot be read is reported and left out, so that the others are still shown. A job that a
// worker runs is shown as RUNNING, and one that its schedule has given up as SKIPPED, although their rows hear of that
// only later.
//
// How it fails: what is absent is a fault.NotFound; any other error is the store's.
package show
