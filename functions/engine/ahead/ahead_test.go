package ahead_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/functions/engine/ahead"
	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/schedule"
)

// start is the day before the clock in Berlin goes forward.
var start = time.Date(2027, 3, 27, 12, 0, 30, 0, time.UTC)

// manualClock is a clock that tests set.
type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *manualClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bench is a world with a forecaster.
type bench struct {
	*stagetest.Bench
	clock *manualClock
	ahead *ahead.Forecaster
}

func setup(t testing.TB) *bench {
	clock := &manualClock{at: start}
	b := &bench{Bench: stagetest.New(t, memory.Options{Clock: clock, EmptyPages: true}), clock: clock}
	b.ahead = ahead.New(process.Base{Clock: clock, Meter: b.Meter}, b.Store)
	return b
}

// schedule puts a schedule.
func (b *bench) schedule(name string, change ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	s, w, err := schedule.Create(nil, stagetest.Schedule(name, "0 * * * *", change...), b.clock.Now())
	b.Must(err)
	b.Write(w)
	return s
}

func cron(rule, zone string) func(*schedule.Schedule) {
	return func(s *schedule.Schedule) { s.Spec = calendar.Spec{Cron: &rule, Timezone: &zone} }
}

func (b *bench) load() *ahead.Load {
	b.Helper()
	l, err := b.ahead.Load(context.Background(), jobtest.Tenant)
	b.Must(err)
	return l
}

// starts are the starts in each of the next hours, the one that has begun first.
func (b *bench) starts(hours int) []int {
	b.Helper()
	from := b.clock.Now().Truncate(time.Hour)
	return b.load().Starts(from, from.Add(time.Duration(hours)*time.Hour), time.Hour)
}

func (b *bench) want(hours int, want string) {
	b.Helper()
	if got := fmt.Sprint(b.starts(hours)); got != want {
		b.Errorf("the starts are %s, want %s", got, want)
	}
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestLoad_CountsTheTimesOfSchedules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*schedule.Schedule)
		want   string // starts of six hours
	}{
		"each hour":                     {func(*schedule.Schedule) {}, "[0 1 1 1 1 1]"},
		"each 20 minutes, begun before": {cron("*/20 * * * *", "UTC"), "[2 3 3 3 3 3]"},
		"several calendars, an instant of both is one": {func(s *schedule.Schedule) {
			s.Spec, s.Specs = calendar.Spec{}, []calendar.Spec{{Cron: new("0 * * * *")}, {Cron: new("0,30 14 * * *")}}
		}, "[0 1 2 1 1 1]"},
		"an end": {func(s *schedule.Schedule) { s.Spec.EndAt = new("2027-03-27T15:00:00Z") }, "[0 1 1 0 0 0]"},
		"an exclusion": {func(s *schedule.Schedule) {
			s.Spec.Exclude = []string{"x"}
			s.Exclusions = calendar.Exclusions{"x": {Ranges: []calendar.Range{{From: "2027-03-27T14:00:00Z",
				To: "2027-03-27T16:00:00Z"}}}}
		}, "[0 1 0 0 1 1]"},
		"max_runs": {func(s *schedule.Schedule) { s.Spec.MaxRuns = new(2) }, "[0 1 1 0 0 0]"},
		"max_runs of one of two calendars": {func(s *schedule.Schedule) {
			s.Spec, s.Specs = calendar.Spec{}, []calendar.Spec{{Cron: new("5 * * * *"), MaxRuns: new(1)},
				{Cron: new("10 15 * * *")}}
		}, "[1 0 0 1 0 0]"},
		"a pause without an end": {func(s *schedule.Schedule) {
			s.Paused = &schedule.Pause{Since: start}
		}, "[0 0 0 0 0 0]"},
		"a pause with an end": {func(s *schedule.Schedule) {
			s.Paused = &schedule.Pause{Since: start, Until: at("2027-03-27T15:00:00Z")}
		}, "[0 0 0 1 1 1]"},
		"a run of a dag": {func(s *schedule.Schedule) {
			s.Template = schedule.Template{DagRef: job.DagRef{Dag: "etl"}}
		}, "[0 1 1 1 1 1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.schedule("s", c.change)
			b.want(6, c.want)
		})
	}
	t.Run("delays them by their spread, also those that the clock has passed", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		s := b.schedule("s", func(s *schedule.Schedule) { s.Spec.Spread = new("59m") })
		times, err := s.Calendar()
		b.Must(err)
		want := make([]int, 6)
		for _, o := range times.Preview(start.Add(-time.Hour), 6) {
			if n := int(o.DueAt.Sub(start.Truncate(time.Hour)) / time.Hour); !o.DueAt.Before(start) && n < 6 {
				want[n]++
			}
		}
		b.want(6, fmt.Sprint(want))
	})
	t.Run("leaves out the runs of max_runs that were made", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		s := b.schedule("s", func(s *schedule.Schedule) { s.Spec.MaxRuns = new(4) })
		b.Overwrite(s.RunsRef(0), map[string]any{"pk": s.RunsRef(0).PK, "runs": int64(3)})
		b.want(6, "[0 1 0 0 0 0]")
	})
	t.Run("leaves out those that a pause of the task holds", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.schedule("s")
		b.Pause(job.PauseTaskPrefix+"other", time.Time{})
		b.want(4, "[0 1 1 1]")
		b.Pause(job.PauseTaskPrefix+"echo", at("2027-03-27T14:30:00Z"))
		b.want(4, "[0 0 0 1]")
		b.Pause(job.PauseAll, time.Time{})
		b.want(4, "[0 0 0 0]")
	})
	t.Run("reads all schedules, and goes on after one that nobody can read", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		for n := range 250 {
			b.schedule(fmt.Sprintf("s%03d", n))
		}
		b.Spoil(schedule.Key{Tenant: jobtest.Tenant, Name: "s001"}.Ref())
		b.want(2, "[0 249]")
	})
}

func TestLoad_CountsTheJobsThatWait(t *testing.T) {
	t.Parallel()
	due := func(in time.Duration) func(b *bench) {
		return func(b *bench) { b.Put(jobtest.Row(1, start.Add(in), start.Add(-time.Hour))) }
	}
	with := func(in time.Duration, change ...func(*job.Row)) func(b *bench) {
		return func(b *bench) { b.Put(jobtest.Row(1, start.Add(in), start.Add(-time.Hour), change...)) }
	}
	for name, c := range map[string]struct {
		prepare func(b *bench)
		want    string
	}{
		"one that is due in two hours": {due(2 * time.Hour), "[0 0 1]"},
		"one that is due and waits":    {due(-time.Minute), "[1 0 0]"},
		"one that a worker runs": {func(b *bench) {
			r := b.Put(jobtest.Row(1, start.Add(-time.Second), start.Add(-time.Hour)))
			b.Write(job.ClaimNew(r.Key, 1, job.Owner{Worker: "w", Nonce: "n", LeaseUntil: start.Add(time.Minute),
				DueAt: r.DueAt}))
		}, "[0 0 0]"},
		"one that is paused":        {with(time.Hour, func(r *job.Row) { r.Paused.Since = start }), "[0 0 0]"},
		"one that is cancelled":     {with(time.Hour, func(r *job.Row) { r.Stop = job.StopCancel }), "[0 0 0]"},
		"one that waits for others": {with(time.Hour, func(r *job.Row) { r.Status = job.Blocked }), "[0 0 0]"},
		"one that has ended":        {with(time.Hour, func(r *job.Row) { r.Status = job.Succeeded }), "[0 0 0]"},
		"a retry":                   {with(time.Hour, func(r *job.Row) { r.Attempt = 2 }), "[0 1 0]"},
		"one under a pause that ends": {func(b *bench) {
			b.Pause(job.PauseAll, start.Add(2*time.Hour))
			b.Put(jobtest.Row(1, start.Add(-time.Hour), start.Add(-2*time.Hour)))
		}, "[0 0 1]"},
		"one under a pause without an end": {func(b *bench) {
			b.Pause(job.PauseAll, time.Time{})
			b.Put(jobtest.Row(1, start.Add(-time.Hour), start.Add(-2*time.Hour)))
		}, "[0 0 0]"},
		"one that its schedule has made ahead counts once": {func(b *bench) {
			s := b.schedule("s", cron("0 13 * * *", "UTC"))
			times, err := s.Calendar()
			b.Must(err)
			o, _ := times.Next(start)
			r, _ := s.Job(o, stagetest.Shards, start)
			b.Put(r)
		}, "[0 1 0]"},
		"one of another tenant": {with(time.Hour, func(r *job.Row) { r.Tenant = "globex" }), "[0 0 0]"},
		"one that nobody can read": {func(b *bench) {
			b.Spoil(b.Put(jobtest.Row(2, start.Add(time.Hour), start.Add(-time.Hour))).Ref())
			due(time.Hour)(b)
		}, "[0 1 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c.prepare(b)
			b.want(3, c.want)
		})
	}
}

func TestLoad_IsMadeAnewUnlessItWasExpensive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 5 {
		b.schedule(fmt.Sprintf("minutely%d", n), cron("* * * * *", "UTC"))
	}
	b.want(2, "[295 300]")
	b.schedule("hourly")
	b.want(2, "[295 301]")
	for n := range 10 {
		b.schedule(fmt.Sprintf("more%d", n), cron("* * * * *", "UTC"))
	}
	b.want(2, "[885 901]")
	b.schedule("another")
	b.want(2, "[885 901]")
	b.clock.forward(time.Minute)
	b.want(2, "[870 902]")
}

func TestLoad_FailsWithTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Fail: "unavailable"})
	if _, err := b.ahead.Load(context.Background(), jobtest.Tenant); err == nil {
		t.Error("it made a forecast")
	}
}

// oracle enumerates the minutes of the next week one by one, with the local time of package time.
func oracle(l *ahead.Load, from, to, count int, zone *time.Location, now time.Time) (all []ahead.Calm) {
	sum := map[time.Time]int{}
	first := now.Truncate(time.Minute)
	starts := l.Starts(first, first.Add(ahead.Span+10*time.Minute), time.Minute)
	for m := now.Truncate(time.Minute); !m.After(now.Add(ahead.Span)); m = m.Add(time.Minute) {
		local := m.In(zone)
		of := local.Hour()*60 + local.Minute()
		in := from < to && of >= from && of < to || from > to && (of >= from || of < to)
		load, ok := l.At(m, now)
		if !in || !ok || m.Before(now) {
			continue
		}
		all = append(all, ahead.Calm{At: m, Local: local, Load: load})
		for d := -5; d <= 5; d++ {
			if n := int(m.Sub(first)/time.Minute) + d; n >= 0 {
				sum[m] += starts[n]
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ahead.Calm) int {
		if a.Load != b.Load {
			return a.Load - b.Load
		}
		return sum[a.At] - sum[b.At]
	})
	return all[:min(count, len(all))]
}

func TestCalmest_AgreesWithANaiveEnumeration(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "UTC", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"}
	for _, begin := range []time.Time{start, at("2027-10-29T22:15:00Z")} { // both changes of the clock
		b := setup(t)
		b.clock.at = begin
		b.schedule("hourly")
		b.schedule("night", cron("*/7 1-4 * * *", "Europe/Berlin"))
		b.schedule("weekend", cron("*/2 * * * 6,0", "Europe/Berlin"))
		l := b.load()
		rapid.Check(t, func(t *rapid.T) {
			zone, err := calendar.Location(rapid.SampledFrom(zones).Draw(t, "zone"))
			if err != nil {
				t.Fatal(err)
			}
			from := rapid.IntRange(0, 1439).Draw(t, "from")
			to := (from + rapid.IntRange(1, 40).Draw(t, "length")) % 1440
			count := rapid.IntRange(1, 400).Draw(t, "count")
			got := l.Calmest(ahead.TimeOfDay{From: from, To: to}, zone, begin, count)
			want := oracle(l, from, to, count, zone, begin)
			if !slices.EqualFunc(got, want, func(a, b ahead.Calm) bool {
				return a.At.Equal(b.At) && a.Load == b.Load && a.Local.String() == b.Local.String()
			}) {
				t.Fatalf("%d-%d in %s: got %v, want %v", from, to, zone, got, want)
			}
		})
	}
}

func TestCalmest_FollowsTheChangesOfTheClock(t *testing.T) {
	t.Parallel()
	zone, err := calendar.Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// minutes counts the minutes from 02:00 to 03:00 on a local day.
	minutes := func(begin time.Time, day int) (n int) {
		b := setup(t)
		b.clock.at = begin
		for _, c := range b.load().Calmest(ahead.TimeOfDay{From: 120, To: 180}, zone, begin, 100_000) {
			if c.Local.Day() == day {
				n++
			}
		}
		return n
	}
	if n := minutes(start, 28); n != 0 {
		t.Errorf("the hour that the clock skips has %d minutes", n)
	}
	if n := minutes(start, 29); n != 60 {
		t.Errorf("the hour of the day after has %d minutes", n)
	}
	if n := minutes(at("2027-10-29T12:00:00Z"), 31); n != 120 {
		t.Errorf("the hour that the clock shows twice has %d minutes", n)
	}
}
