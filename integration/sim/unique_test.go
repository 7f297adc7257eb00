package sim

import (
	"testing"
	"time"
)

func TestUnique_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Unique)
}

func TestUnique_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Unique)
}

func TestUnique_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Unique, 4*time.Hour)
}
