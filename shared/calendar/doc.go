// Package calendar answers one question: when is the next time?
//
// A [Spec] is what a user wrote: a cron expression, an interval, a list of
// dates or an RRULE, with a zone, a window, exclusions and what to do when the
// clocks change. [Parse] turns it into a [Calendar], an immutable value that
// any number of goroutines may ask.
//
//	rule (cron, rrule) ─ wall clock ─ change-over ─┐
//	every, dates ──────────────────────────────────┴─ window ─ exclusions ─ spread ─▶ Occurrence
//
// # What always holds
//
//   - Next is strictly after the time it is given, and the same question always
//     has the same answer: no clock, no dice, no I/O. Spread comes from the
//     schedule's id and the nominal time.
//   - A wall time that a clock change swallows runs once, at the first instant
//     after the gap; one that happens twice runs once, the first time. A
//     wildcard expression (second, minute or hour begins with "*") follows real
//     time instead. Both can be chosen per schedule.
//   - Every answer is bounded work. A time more than [HorizonYears] after the
//     one asked about counts as never, and so does one outside 1900 to 2399.
//   - The zone rules are this package's own copy, so a laptop, a Lambda and a
//     container agree whatever files their host has; [ZoneRules] names them.
//
// # Dialect
//
// Cron takes five fields, or six with seconds first: lists, ranges, steps,
// names, 7 as Sunday, @daily and its like, @every. When both day fields are
// restricted a day matches if EITHER does; a field that begins with "*" or "?"
// is not a restriction. L, L-n, LW, nW in the day of month and nL, n#k in the
// day of week are read as Quartz users write them, that is with "?" in the
// other day field: "0 9 L * ?", "0 9 ? * FRI#2". Weekdays are 0 to 7 from
// Sunday in every form.
//
// The cron library only parses fields and the RRULE library only parses
// properties. Their own searches lose, double, hang or walk from the first
// occurrence, so the searching is done here.
//
// # How it fails
//
// Parse returns an [*Error] that names the field, a stable code and what is
// allowed. Nothing panics on user input. A calendar that has come to its end
// answers false.
package calendar
