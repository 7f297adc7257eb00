package sim

import (
	"testing"
	"time"
)

func TestAfter_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Afters)
}

func TestAfter_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Afters)
}

//proof:of 39
func TestAfter_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Afters, 4*time.Hour)
}
