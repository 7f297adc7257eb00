//go:build race

package calendar

import "time"

// The race detector slows the code under test tenfold and more.
const limitPerNext = 30 * time.Millisecond
