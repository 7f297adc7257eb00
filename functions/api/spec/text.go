package spec

import (
	"strconv"
	"time"

	"punctual/shared/job"
	"punctual/shared/span"
	"punctual/shared/text"
)

// Days returns how many whole days a duration has.
func Days(d time.Duration) string { return text.InUnits(d, 24*time.Hour, "") }

// RetryText describes a retry policy in one line.
func RetryText(p job.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + " attempts, " + span.Format(p.InitialDelay) + " × " +
		text.PlainNumber(p.Factor) + " up to " + span.Format(p.MaxDelay) + ", jitter " + text.PlainNumber(p.Jitter)
}
