package sim

import (
	"testing"
	"time"
)

func TestAudited_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Audited)
}

func TestAudited_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Audited)
}

func TestAudited_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Audited, 4*time.Hour)
}
