// Package schedules serves schedules: calendars, templates, occurrences, previews, pauses and exclusions.
package schedules
