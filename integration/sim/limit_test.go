package sim

import (
	"testing"
	"time"
)

func TestLimited_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Limited)
}

func TestLimited_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Limited)
}

func TestLimited_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Limited, 4*time.Hour)
}
