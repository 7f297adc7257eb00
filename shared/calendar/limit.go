package calendar

import "time"

// Limits of one calendar. They keep every answer under a millisecond whatever a user sends.
const (
	// HorizonYears is how far ahead a search looks. The rarest useful rule, 29 February on a given
	// weekday, waits up to 40 years.
	HorizonYears = 60

	MaxCron     = 1024          // bytes of a cron expression
	MaxRRule    = 512           // bytes of an RRULE
	MaxCount    = 1000          // COUNT of an RRULE; max_runs has no such limit
	MaxInterval = 10000         // INTERVAL of an RRULE, and no longer than intervalYears
	MaxSetPos   = 32            // entries of BYSETPOS
	MaxDates    = 1000          // explicit dates of a calendar, and of an exclusion
	MaxRanges   = 200           // ranges of an exclusion
	MaxExclude  = 10            // exclusions named by a calendar
	MaxRuns     = 1_000_000_000 // max_runs
	MaxPreview  = 1000          // occurrences of one preview

	// MaxMoveDays is how many days an exclusion may move a run; a run that would move further is
	// dropped.
	MaxMoveDays = 31
	// MaxMovedPerDay is how often a day a calendar may run if one of its exclusions moves runs to
	// another day.
	MaxMovedPerDay = 12

	MinEvery  = time.Second
	MaxEvery  = 36525 * 24 * time.Hour
	MaxSpread = time.Hour

	// maxChecks bounds how often one answer looks up a time in a zone's closed days. A calendar
	// that needs more counts as having no open time; a year of alternating exclusions in two zones
	// needs far less.
	maxChecks = 15000
	// intervalYears is how long the INTERVAL of an RRULE may be: a search looks no further ahead.
	intervalYears = HorizonYears - 1
	// maxSteps bounds the search of an RRULE below daily, whose interval and BY parts may rarely
	// match together.
	maxSteps = 10000
	// parseSteps bounds the searches that a rule with COUNT or INTERVAL needs before it is accepted.
	parseSteps = 20 * maxSteps
)
