//go:build race

package calendar

import "time"

// The race detector slows the tested code at least tenfold.
const limitPerNext = 30 * time.Millisecond
