package sim

import (
	"testing"
	"time"
)

func TestOperated_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Operated)
}

func TestOperated_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Operated, 4*time.Hour)
}
