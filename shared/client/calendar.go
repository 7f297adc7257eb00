package client

import (
	"time"

	"punctual/shared/client/rest"
)

// Cron is the calendar of a cron rule of five fields, or six with seconds first, by the clock of a time zone such as
// Europe/Berlin; "" is UTC. Set further fields, such as Spread and Exclude, on the value that it returns.
func Cron(rule, zone string) rest.CalendarRequest {
	return rest.CalendarRequest{Cron: &rule, Timezone: named(zone)}
}

// Every is the calendar of a period of real time, in whole seconds. It is counted from StartAt, and without one from
// 1970-01-01T00:00:00Z.
func Every(period time.Duration) rest.CalendarRequest {
	return rest.CalendarRequest{Every: new(period.String())}
}

// RRule is the calendar of a rule of RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9, by the clock of a time zone;
// "" is UTC. The rule begins at start.
func RRule(rule string, start time.Time, zone string) rest.CalendarRequest {
	return rest.CalendarRequest{Rrule: &rule, StartAt: &start, Timezone: named(zone)}
}

// Dates is the calendar of single times, in any order.
func Dates(times ...time.Time) rest.CalendarRequest {
	return rest.CalendarRequest{Dates: &times}
}

// named is the name of a time zone; nil is UTC.
func named(zone string) *string {
	if zone == "" {
		return nil
	}
	return &zone
}
