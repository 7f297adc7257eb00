package sim

import (
	"testing"
	"time"
)

func TestOneJob_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, OneJob)
}

func TestOneJob_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, OneJob)
}

func TestOneJob_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, OneJob, 4*time.Hour)
}
