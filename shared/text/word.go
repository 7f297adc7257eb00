package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

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

// InstantLayout is the layout of times in answers, for package time.
const InstantLayout = "2006-01-02T15:04:05.000Z07:00"

// InUnits returns how many whole units a length of time has. Texts take the limits of the contract with it:
// InUnits(contract.IdempotencyKept, time.Hour, " hours") is "24 hours".
func InUnits(d, unit time.Duration, name string) string {
	return strconv.FormatInt(int64(d/unit), 10) + name
}

// PlainNumber formats a number without an exponent if it is short enough.
func PlainNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
