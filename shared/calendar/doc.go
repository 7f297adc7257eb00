// Package calendar answers one question: when is the next time?
//
// A [Spec] is what a user wrote: a cron expression, an interval, a list of
// dates or an RRULE, with a zone, a window, exclusions and policies for clock
// changes. [Parse] turns it into a [Calendar], an immutable value that is safe
// for concurrent use.
//
//	rule (cron, rrule) ─ wall clock ─ clock change ┐
//	every, dates ──────────────────────────────────┴─ window ─ exclusions ─ spread ─▶ Occurrence
//
// # What always holds
//
//   - Next is strictly after the given time, and the same arguments always give
//     the same answer: no clock, no dice, no I/O. Spread is derived from the
//     schedule's id and the nominal time.
//   - A wall time that a clock change skips runs once, at the first instant
//     after the gap; one that happens twice runs once, the first time. A
//     wildcard expression (second, minute or hour begins with "*") follows real
//     time instead. Both can be chosen per schedule.
//   - Every answer is bounded work. A time more than [HorizonYears] ahead counts
//     as never, and so does one outside 1900 to 2399.
//   - The zone rules are this package's own copy, so a laptop, a Lambda and a
//     container agree whatever files their hosts have; [ZoneRules] names them.
//
// # Dialect
//
// Cron takes five fields, or six with seconds first: lists, ranges, steps,
// names, 7 as Sunday, @daily and its like, @every. When both day fields are
// restricted a day matches if EITHER does; a field that begins with "*" or "?"
// is not a restriction. L, L-n, LW, nW in the day of month and nL, n#k in the
// day of week are written as for Quartz, with "?" in the other day
// field: "0 9 L * ?", "0 9 ? * FRI#2". Weekdays are 0 to 7 from
// Sunday in every form.
//
// The cron library only parses fields and the RRULE library only parses
// properties. Their own searches lose, double, hang or walk from the first
// occurrence, so the searching is done here.
//
// # How it fails
//
// Parse returns an [*Error] that names the field, a stable code and what is
// allowed. Nothing panics on user input. After the end of a calendar, Next
// returns false.
package calendar
