package sim

import (
	"testing"
)

func TestEachScheduleEndsWellWhenNothingFails(t *testing.T) {
	t.Parallel()
	nothingFails(t, Recurring)
}
