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

// InWords lists words as a sentence does: "a", "a and b", "a, b and c".
func InWords(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// namedMost is how many names a sentence lists.
const namedMost = 3

// SomeNames lists a few names as a sentence does, and counts the others.
func SomeNames(names []string) string {
	if more := len(names) - namedMost; more > 0 {
		names = append(names[:namedMost:namedMost], fmt.Sprintf("%d more", more))
	}
	return InWords(names, "and")
}

// NumberWord spells out a number up to ten; a larger one is in digits.
func NumberWord(n int) string {
	words := strings.Fields("zero one two three four five six seven eight nine ten")
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// TimeInWords is "a second" (one) or "five seconds".
func TimeInWords(d, unit time.Duration, one, many string) string {
	if d == unit {
		return one
	}
	return NumberWord(int(d/unit)) + " " + many
}

// RetryText describes a retry policy in one line.
func RetryText(p job.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + " attempts, " + span.Format(p.InitialDelay) + " × " +
		rest.PlainNumber(p.Factor) + " up to " + span.Format(p.MaxDelay) + ", jitter " + rest.PlainNumber(p.Jitter)
}
