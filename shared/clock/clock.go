package clock

import "time"

// Clock tells the time. Its answers carry a monotonic reading where the source has one.
type Clock interface{ Now() time.Time }

// System is the machine's clock.
type System struct{}

// Now returns the current time.
func (System) Now() time.Time { return time.Now() }

// Skewed runs beside the machine's clock, ahead of it by Offset (behind, if negative).
type Skewed struct{ Offset time.Duration }

// Now returns the skewed time.
func (s Skewed) Now() time.Time { return time.Now().Add(s.Offset) }

// Fixed always gives the same answer.
type Fixed time.Time

// Now returns the fixed time.
func (f Fixed) Now() time.Time { return time.Time(f) }
