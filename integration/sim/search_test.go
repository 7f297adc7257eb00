package sim

import (
	"testing"
	"time"
)

func TestIndexed_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Indexed)
}

func TestIndexed_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Indexed)
}

func TestIndexed_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Indexed, 6*time.Hour)
}
