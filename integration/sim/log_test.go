package sim

import (
	"testing"
	"time"
)

func TestLogged_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Logged)
}

func TestLogged_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Logged)
}

func TestLogged_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Logged, 4*time.Hour)
}
