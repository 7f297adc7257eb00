package rest

import (
	"fmt"
	"time"

	"punctual/shared/fault"
	"punctual/shared/text"
)

// Period is the range of times of a request, its end excluded.
type Period struct {
	From, To time.Time
	pointer  string // of what is wrong if it is empty
}

// ReadPeriod reads the parameters from and to. An end that is not given is zero.
func ReadPeriod(wrong *fault.Violations, from, to string) (p Period) {
	p.From, p.To = ReadRange(wrong, "from", from, "to", to)
	if p.pointer = "to"; to == "" {
		p.pointer = "from"
	}
	return p
}

// Before gives a period without an end the end now, and one without a start the start that is so long before its end.
func (p Period) Before(now time.Time, length time.Duration) Period {
	if p.To.IsZero() {
		p.To = now
	}
	if p.From.IsZero() {
		p.From = p.To.Add(-length)
	}
	return p
}

// NotEmpty adds a violation if the period does not begin before it ends.
func (p Period) NotEmpty(wrong *fault.Violations) {
	if p.From.Before(p.To) {
		return
	}
	allowed := "a time after " + p.From.Format(text.InstantLayout)
	if p.pointer == "from" {
		allowed = "a time before " + p.To.Format(text.InstantLayout)
	}
	*wrong = append(*wrong, fault.Field{Pointer: p.pointer, Code: CodeConflictingFields, Allowed: allowed,
		Detail: "the range does not begin before it ends"})
}

// AtMost adds a violation if the period is longer than a number of days.
func (p Period) AtMost(wrong *fault.Violations, days int) {
	if p.To.Sub(p.From) > time.Duration(days)*24*time.Hour {
		*wrong = append(*wrong, fault.Field{Pointer: "from", Code: CodeOutOfRange,
			Allowed: fmt.Sprintf("at most %d days before the end", days),
			Detail:  fmt.Sprintf("the range is longer than %d days", days)})
	}
}

// Steps adds a violation if the period has too many steps. allowed describes the steps that are long enough.
func (p Period) Steps(wrong *fault.Violations, steps, most int, allowed string) {
	if steps > most {
		*wrong = append(*wrong, fault.Field{Pointer: "step", Code: CodeOutOfRange, Allowed: allowed,
			Detail: fmt.Sprintf("the range has %d steps, and a request at most %d", steps, most)})
	}
}
