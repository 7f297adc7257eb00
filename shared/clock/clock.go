package clock

import "time"

// Clock returns the time. Its answers have a monotonic reading where the source has one.
type Clock interface{ Now() time.Time }

// System is the machine's clock.
type System struct{}

// Now returns the current time.
func (System) Now() time.Time { return time.Now() }

// Skewed is the machine's clock, ahead by Offset (behind, if negative).
type Skewed struct{ Offset time.Duration }

// Now returns the skewed time.
func (s Skewed) Now() time.Time { return time.Now().Add(s.Offset) }

// Fixed always returns the same instant.
type Fixed time.Time

// Now returns the fixed time.
func (f Fixed) Now() time.Time { return time.Time(f) }
