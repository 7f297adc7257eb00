package sim

import (
	"testing"
)

func TestRecurring_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Recurring)
}

func TestRunsOfSchedules_EndWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, RunsOfSchedules)
}
