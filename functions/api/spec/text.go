package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/job"
	"punctual/shared/span"
)

// Days returns how many whole days a duration has.
func Days(d time.Duration) string { return rest.InUnits(d, 24*time.Hour, "") }

// Listed lists words as a sentence does: "a", "a and b", "a, b and c".
func Listed(items []string, conjunction string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " " + conjunction + " " + items[last]
}

// namedMost is how many names a sentence lists.
const namedMost = 3

// SomeNames lists a few names as a sentence does, and counts the others.
func SomeNames(names []string) string {
	if more := len(names) - namedMost; more > 0 {
		names = append(names[:namedMost:namedMost], fmt.Sprintf("%d more", more))
	}
	return Listed(names, "and")
}

// Spelled spells out a number up to ten; a larger one is in digits.
func Spelled(n int) string {
	names := strings.Fields("zero one two three four five six seven eight nine ten")
	if n < len(names) {
		return names[n]
	}
	return strconv.Itoa(n)
}

// SpelledTime is "a second" (one) or "five seconds".
func SpelledTime(d, unit time.Duration, one, many string) string {
	if d == unit {
		return one
	}
	return Spelled(int(d/unit)) + " " + many
}

// RetryText describes a retry policy in one line.
func RetryText(p job.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + " attempts, " + span.Format(p.InitialDelay) + " × " +
		rest.PlainNumber(p.Factor) + " up to " + span.Format(p.MaxDelay) + ", jitter " + rest.PlainNumber(p.Jitter)
}
