// Package usage counts what jobs used, day by day: by task, by schedule, by dag and by some tags. What a change of a
// job counts follows from the row before and after it. Counts are added up in memory and then added to stored items,
// each of which has a part of the values of one day.
//
// What always holds: the counts of two sums added together are those of the changes of both, in any order. Nothing in
// here reads a clock or calls a store.
//
// How it fails: counts are close, not exact, as those of package stats are. They are no basis of an invoice.
package usage
