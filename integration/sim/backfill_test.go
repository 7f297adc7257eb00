package sim

import (
	"testing"
	"time"
)

func TestBackfilled_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Backfilled)
}

func TestBackfilled_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Backfilled)
}

func TestBackfilled_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Backfilled, 4*time.Hour)
}
