package sim

import (
	"testing"
)

func TestRecurring_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Recurring)
}
