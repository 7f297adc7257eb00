package sim

import (
	"testing"
	"time"
)

func TestAnnounced_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Announced)
}

func TestAnnounced_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Announced)
}

func TestAnnounced_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Announced, 6*time.Hour)
}
