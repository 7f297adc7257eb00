package cost

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/price"
	"punctual/shared/usage"
)

// Counting by as many tags as there may be, with as many values as one may have, costs little of what jobs cost: each
// shard of the stream writes all items of a day once in a window.
func TestUsage_OfManyTagsAndValuesCostsLittle(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	jobs := int64(busyRate*day.Seconds()) / usage.MaxValues
	for name, requests := range map[string]int64{"jobs of requests": jobs, "jobs of schedules": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sum usage.Sum
			g := usage.Group{Tenant: "tenant-of-a-usual-name", By: usage.TagPrefix + "customer"}
			for n := range usage.MaxValues {
				value := fmt.Sprintf("%0*d", usage.MaxTagBytes/usage.MaxValues, n)
				sum.Add(g, value, usage.Use{Jobs: jobs, Attempts: jobs, RunningMS: 2000 * jobs, Bytes: 1500 * jobs,
					Requests: requests})
			}
			items := map[string]int{} // bytes, by sort key: a large item has several writes
			for _, a := range sum.Additions() {
				items[a.Write.Ref.SK] += a.Write.Applied(nil, contract.AttrPK, contract.AttrSK).Size()
			}
			units := 0
			for _, size := range items {
				units += (size + 1023) / 1024
			}
			of := tableShards / spanEvery * usage.MaxTags * float64(units) * writeUnit
			t.Logf("%d items of %d units, %.2f %% of what the jobs cost", len(items), units,
				100*of/(busyRate*price.Job.Dollars()))
			if of > mostCounting*busyRate*price.Job.Dollars() {
				t.Errorf("%d tags cost %.2f %% of what the jobs cost, more than is promised", usage.MaxTags,
					100*of/(busyRate*price.Job.Dollars()))
			}
		})
	}
}
