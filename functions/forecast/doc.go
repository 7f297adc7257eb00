// Package forecast looks half an hour ahead each minute and says how many slots each pool will
// want at once, so that workers are there before the work is.
//
//	due index, next 30 minutes ─▶ jobs per second and pool ─▶ peak of (due rate × how long jobs take) + headroom
//	                                                      └▶ slots_wanted, due_ahead, forecast_error
//
// KEDA takes the larger of slots_wanted and what the queues hold; jobs that are due at once are
// in no forecast and only the queues know of them.
//
// What always holds: it only reads jobs. How long jobs take is learnt from a few that it saw
// shortly before they were due and reads again some minutes later; what it learnt is kept in
// the table, so that any instance goes on from there. The work of a pass is bounded: beyond
// MostEntries it stops counting and says so.
//
// How it fails: a pass that fails reports nothing, and the metric keeps the last minute's value
// until the alarm on missing passes goes off; the queues' depth still scales the fleet.
package forecast
