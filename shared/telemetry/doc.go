// Package telemetry is how every part reports what it did: log lines with one set of keys, and
// metrics that become CloudWatch embedded-metric lines in AWS and text at GET /metrics on a laptop.
//
// A log line is a fact in the past tense; it carries ids, never payloads or secrets. A metric never
// has an id or a tenant as a dimension: the number of series is bounded by the names below times
// pools, priorities and outcomes, because every series is billed.
package telemetry
