// Package ahead counts the starts that are expected of a tenant's jobs, minute by minute for a week: at the times of
// its schedules, and of its jobs that wait. It writes nothing.
//
//	schedules ─▶ times of their calendars ─┐
//	newest jobs ─▶ due times of those that wait ─┴▶ starts of each minute ─▶ steps, peak, calm minutes
//
// What always holds: a forecast reads and computes a bounded amount. Up to MostTimes times of calendars are counted as
// they are; beyond that an hour counts like the one before it. Of the jobs the MostRows newest are read. What was
// expensive is kept for KeptFor, and then does not know what has changed meanwhile.
//
// A time counts once: jobs that a schedule has made ahead count by its calendar, not by their rows.
//
// How it fails: with an error of the store. A schedule or a job that cannot be read is left out.
package ahead
