package decide_test

import (
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/limit"
)

// A job that waits for a permit and is then held by a pause goes where the end of the pause finds it, and the next one
// that waits starts in its place.
func TestDecider_WakesTheNextWhereAPauseHoldsTheFirst(t *testing.T) {
	t.Parallel()
	bubble(t, "two that wait", func(b *bench) {
		under := job.LimitKey{Name: "github", Key: "acct-42"}
		key := limit.Key{Tenant: jobtest.Tenant, LimitKey: under}
		_, err := b.Store.UpdateLimit(b.Context(), key.Tenant, under.Name, stagetest.Now(),
			func(*limit.Limit) (limit.Limit, error) { return limit.Limit{MaxRunning: 1}, nil })
		b.Must(err)
		wait := func(n int, ago time.Duration, task string) job.Row {
			r := b.Overdue(n, ago, func(r *job.Row) { r.Limits, r.Task = job.LimitsOf(under), task })
			after, write := job.ParkForLimit(r, 1, stagetest.Now())
			b.Write(write, key.MarkWaiting(stagetest.Now()))
			return after
		}
		first, second := wait(1, time.Hour, "held"), wait(2, time.Minute, "free")
		b.Pause(job.PauseTaskPrefix+"held", time.Time{})
		b.Must(b.engine.Waiting(b.Context(), key))
		b.RequireFired(b.Row(second.Key))
		if is := b.Row(first.Key); is.WaitsLimit != 0 || !strings.HasPrefix(is.Slice(), "parked#") {
			b.Errorf("the first is in %q", is.Slice())
		}
	})
}

// Where jobs have waited for a permit until a moment ago, and none does any more, the next one may start: its row says
// so. A worker would otherwise refuse it time after time, for as long as the key is marked.
func TestDecider_LetsAJobGoOnWhereNoneWaitsAnyMore(t *testing.T) {
	t.Parallel()
	bubble(t, "a marked key", func(b *bench) {
		under := job.LimitKey{Name: "github", Key: "acct-42"}
		key := limit.Key{Tenant: jobtest.Tenant, LimitKey: under}
		_, err := b.Store.UpdateLimit(b.Context(), key.Tenant, under.Name, stagetest.Now(),
			func(*limit.Limit) (limit.Limit, error) { return limit.Limit{MaxRunning: 1}, nil })
		b.Must(err)
		b.Write(key.MarkWaiting(stagetest.Now()))
		r := b.Overdue(1, time.Second, func(r *job.Row) { r.Limits = job.LimitsOf(under) })
		_, err = b.engine.Reevaluate(b.Context(), r.Key, r.Version, r.Attempt)
		b.Must(err)
		b.RequireFired(b.Row(r.Key))
		if b.Row(r.Key).ReadyAt.IsZero() {
			b.Error("the row does not say that the job need not wait")
		}
	})
}
