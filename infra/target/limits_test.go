package target

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The page of limits names what differs between deployments as the targets have it.
func TestTargets_AreOnThePageOfLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../shared/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	number := func(n int) string {
		text := strconv.Itoa(n)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	}
	pods := func(p Pool) string { return fmt.Sprintf("%d to %d", p.Least, p.Most) }
	d, p := dev(), prod()
	for _, line := range [][3]string{
		{"requests a second, of all tenants together", number(d.API.Rate), number(p.API.Rate)},
		{"requests at once, of all tenants together", number(d.API.Burst), number(p.API.Burst)},
		{"requests a second, of each tenant", number(d.API.TenantRate), number(p.API.TenantRate)},
		{"requests at once after a rest, of each tenant", number(d.API.TenantBurst), number(p.API.TenantBurst)},
		{"requests with `wait` that wait at once, of each tenant; more are answered at once, with `Retry-After`",
			number(d.Flow.Waiting()), number(p.Flow.Waiting())},
		{"runs a minute of a tenant's schedules, each at its busiest", number(d.Quota), number(p.Quota)},
		{"days for which it is kept who changed what", number(int(d.Audit)), number(int(p.Audit))},
		{"pods of pool short", pods(d.Fleet.Short), pods(p.Fleet.Short)},
		{"slots of a pod of pool short", number(d.Fleet.Short.Slots), number(p.Fleet.Short.Slots)},
		{"pods of pool long", pods(d.Fleet.Long), pods(p.Fleet.Long)},
		{"slots of a pod of pool long", number(d.Fleet.Long.Slots), number(p.Fleet.Long.Slots)},
		{"shards of the due index", number(d.Shards), number(p.Shards)},
	} {
		if want := "| " + strings.Join(line[:], " | ") + " |"; !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
