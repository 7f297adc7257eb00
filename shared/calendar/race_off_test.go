//go:build !race

package calendar

import "time"

const limitPerNext = time.Millisecond
