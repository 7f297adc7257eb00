package system_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/recur"
	"punctual/functions/stagetest"
	"punctual/integration/story"
	"punctual/shared/calendar"
	"punctual/shared/clock"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// rules is the product over memory, with stages that can be stopped and started.
type rules struct {
	*bench
	recur *recur.Recurrer
	down  map[string]*atomic.Bool
}

// outOfReach is a table that a stopped stage cannot reach.
type outOfReach struct {
	store.Table
	down *atomic.Bool
}

func (o outOfReach) gone(what string) error {
	if o.down.Load() {
		return fault.New(fault.Unavailable, nil, "%s while the stage is down", what)
	}
	return nil
}

func (o outOfReach) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	if err := o.gone("reading"); err != nil {
		return nil, err
	}
	return o.Table.Get(ctx, ref)
}

func (o outOfReach) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if err := o.gone("writing"); err != nil {
		return nil, err
	}
	return o.Table.Write(ctx, w)
}

func (o outOfReach) Query(ctx context.Context, q item.Query) (item.Page, error) {
	if err := o.gone("querying"); err != nil {
		return item.Page{}, err
	}
	return o.Table.Query(ctx, q)
}

func setupRules(t *testing.T) *rules {
	t.Helper()
	over := stagetest.New(t, memory.Options{IndexLag: memory.LagUpTo(500 * time.Millisecond)})
	r := &rules{bench: &bench{Bench: over, log: new(lines)},
		down: map[string]*atomic.Bool{"promoter": {}, "sweeper": {}}}
	world := over.World
	ports := system.Ports{
		Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
		Timers: world.Timers(), Secrets: world.Secrets(),
		Clock: clock.System{}, Meter: r.Meter,
		Log: func(stage string) *slog.Logger {
			if stage == "pump" { // it reports each failed pass of a stopped stage
				return telemetry.Silent()
			}
			return telemetry.Logger(testLog{t, r.log}, stage)
		},
	}
	shared := ports
	ports.Of = func(stage string) system.Ports {
		p := shared
		if d := r.down[stage]; d != nil {
			p.Table, p.Log = outOfReach{shared.Table, d}, func(string) *slog.Logger { return telemetry.Silent() }
		}
		return p
	}
	r.sys = system.Compose(ports, system.Options{Shards: 4, Registry: worker.NewRegistry(),
		Worker: worker.Options{Name: "w1", Slots: 25, Pools: []string{"short"}, Poll: 20 * time.Second}})
	r.API = story.Over(t, r.sys.API)
	r.recur = recur.New(recur.Deps{Store: r.Store, Queue: world.Queues(), Base: process.Base{Shards: 4}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.sys.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		for _, d := range r.down {
			d.Store(false)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the system ended with %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// create makes a schedule of echo jobs, as the API would.
func (r *rules) create(name, cron string, payload object, change ...func(*schedule.Schedule)) schedule.Key {
	r.Helper()
	k := schedule.Key{Tenant: tenant.Local, Name: name}
	s := schedule.Schedule{Key: k, Spec: calendar.Spec{Cron: &cron}, CatchUp: schedule.DefaultCatchUp,
		Shard: horizon.ShardOf(k.ID(), 4), Template: schedule.Template{
			Settings: job.Settings{Task: "echo", Executor: job.ExecutorEcho, Pool: "short", Priority: job.Normal,
				Timeout: 10 * time.Minute,
				Retry:   job.RetryPolicy{MaxAttempts: 1, InitialDelay: time.Second, Factor: 1, MaxDelay: time.Second}},
		}}
	for _, f := range change {
		f(&s)
	}
	if payload != nil {
		b, _ := json.Marshal(payload)
		s.SetPayload(b)
	}
	_, w, err := schedule.Create(nil, s, now())
	if err == nil {
		err = r.Store.Put(context.Background(), w)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.promote(k)
	return k
}

func (r *rules) promote(k schedule.Key) {
	r.Helper()
	if _, err := r.recur.Promote(context.Background(), k); err != nil {
		r.TB.Logf("promoting: %v", err)
	}
}

func (r *rules) read(k schedule.Key) schedule.Schedule {
	r.Helper()
	s, err := r.Store.Schedule(context.Background(), k)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// change makes one of the writes that raise the epoch, as the API would.
func (r *rules) change(k schedule.Key,
	f func(s schedule.Schedule) (schedule.Schedule, []item.Write)) schedule.Schedule {
	r.Helper()
	for range 20 {
		after, writes := f(r.read(k))
		err := r.Store.Commit(context.Background(), writes...)
		if store.Refused(err) != nil {
			continue
		}
		if err != nil {
			r.Fatal(err)
		}
		r.promote(k)
		return after
	}
	r.Fatal("the schedule changes all the time")
	return schedule.Schedule{}
}

// haveJobs returns which of the times that an edit or a delete would leave have jobs.
func (r *rules) haveJobs(s schedule.Schedule) map[time.Time]bool {
	r.Helper()
	has, err := r.Store.HaveJobs(context.Background(), s.Key, s.Leaves(now()))
	if err != nil {
		r.Fatal(err)
	}
	return has
}

func (r *rules) pause(k schedule.Key, p schedule.Pause) schedule.Schedule {
	r.Helper()
	return r.change(k, func(s schedule.Schedule) (schedule.Schedule, []item.Write) {
		after, w := schedule.PauseSchedule(s, p, now())
		return after, []item.Write{w}
	})
}

func (r *rules) resume(k schedule.Key) schedule.Schedule {
	r.Helper()
	after := r.change(k, func(s schedule.Schedule) (schedule.Schedule, []item.Write) {
		after, w := schedule.Resume(s, "", now())
		return after, []item.Write{w}
	})
	if err := r.recur.Unpark(context.Background(), after); err != nil {
		r.Fatal(err)
	}
	return after
}

func (r *rules) edit(k schedule.Key, f func(*schedule.Schedule)) schedule.Schedule {
	r.Helper()
	return r.change(k, func(s schedule.Schedule) (schedule.Schedule, []item.Write) {
		edited := s
		f(&edited)
		after, writes, err := schedule.Edit(s, edited, r.haveJobs(s), now())
		if err != nil {
			r.Fatal(err)
		}
		return after, writes
	})
}

// times returns the calendar's times after from, up to and including to.
func times(t testing.TB, s schedule.Schedule, from, to time.Time) []time.Time {
	t.Helper()
	cal, err := s.Calendar()
	if err != nil {
		t.Fatal(err)
	}
	var list []time.Time
	for {
		o, ok := cal.Next(from)
		if !ok || o.NominalAt.After(to) {
			return list
		}
		from = o.NominalAt
		list = append(list, from)
	}
}

// fates holds what became of nominal times.
type fates struct {
	rows    map[time.Time]job.Row
	entries []schedule.Entry
}

func fatesOf(t testing.TB, s *store.Store, k schedule.Key) fates {
	t.Helper()
	ctx := context.Background()
	f := fates{rows: map[time.Time]job.Row{}}
	for cursor := ""; ; {
		jobs, next, err := s.JobsOf(ctx, k, time.Time{}, time.Time{}, false, 100, cursor)
		if err != nil {
			t.Fatal(err)
		}
		keys := make([]job.Key, len(jobs))
		for n, j := range jobs {
			keys[n] = j.Key
		}
		rows, there, err := s.Rows(ctx, keys)
		if err != nil {
			t.Fatal(err)
		}
		for n, row := range rows {
			if there[n] {
				f.rows[row.NominalAt] = row
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for cursor := ""; ; {
		entries, next, err := s.Recorded(ctx, k, time.Time{}, time.Time{}, false, 100, cursor)
		if err != nil {
			t.Fatal(err)
		}
		f.entries = append(f.entries, entries...)
		if cursor = next; cursor == "" {
			return f
		}
	}
}

// account returns how many times have each outcome, and fails unless each has exactly one.
func (f fates) account(t testing.TB, want []time.Time) map[string]int {
	t.Helper()
	outcomes := map[string]int{}
	for _, at := range want {
		if row, ok := f.rows[at]; ok {
			outcome, _, _ := schedule.OfJob(row)
			outcomes[outcome]++
			continue
		}
		n := 0
		for _, e := range f.entries {
			if !at.Before(e.From) && !at.After(e.To) {
				n++
				if n == 1 {
					outcomes[e.Outcome]++
				}
			}
		}
		if n != 1 {
			t.Errorf("%s is accounted for %d times", at.Format(time.RFC3339), n)
		}
	}
	return outcomes
}

// ran returns the nominal times whose jobs succeeded, in order.
func (f fates) ran() []time.Time {
	var list []time.Time
	for at, row := range f.rows {
		if row.Status == job.Succeeded {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, time.Time.Compare)
	return list
}

func (r *rules) fates(k schedule.Key) fates { return fatesOf(r.TB, r.Store, k) }

//proof:of 11 S13
func TestSchedule_RunsEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		time.Sleep(time.Until(now().Truncate(time.Minute).Add(time.Minute + 500*time.Millisecond)))
		from := now()
		k := r.create("often", "*/5 * * * * *", nil)
		time.Sleep(time.Hour)
		f := r.fates(k)
		want := times(t, r.read(k), from, now().Add(-3*time.Second))
		if len(want) != 60*12-1 && len(want) != 60*12 {
			t.Fatalf("%d times in an hour", len(want))
		}
		if got := f.account(t, want); got[schedule.Ran] != len(want) {
			t.Errorf("outcomes %v of %d", got, len(want))
		}
		for at, row := range f.rows {
			if row.LatenessMS > 100 || row.Status == job.Succeeded && row.StartedAt.Before(row.DueAt) ||
				row.Status == job.Succeeded && row.Attempt != 1 {
				t.Errorf("%s ran at %s, %d ms late, attempt %d", at, row.StartedAt, row.LatenessMS, row.Attempt)
			}
		}
	})
}

//proof:of 20
func TestPause_StopsExactlyAndDecidesByPolicy(t *testing.T) {
	t.Parallel()
	for missed, made := range map[string]int{schedule.MissedDrop: 0, schedule.MissedLast: 1, schedule.MissedAll: 20,
		"": 1} {
		t.Run("paused with missed "+missed, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setupRules(t)
				defer r.stop()
				from := now()
				k := r.create("often", "*/5 * * * * *", nil, func(s *schedule.Schedule) { s.CatchUp.Cap = 20 })
				time.Sleep(3*time.Minute + 2*time.Second)
				paused := r.pause(k, schedule.Pause{Reason: "test", Missed: missed})
				effective := paused.Paused.EffectiveAt
				time.Sleep(35 * time.Minute)
				for at, row := range r.fates(k).rows {
					if row.StartedAt.After(effective) {
						t.Errorf("%s started at %s, the pause was effective at %s", at, row.StartedAt, effective)
					}
				}
				resumed := now()
				r.resume(k)
				time.Sleep(5 * time.Minute)
				f := r.fates(k)
				want := times(t, r.read(k), from, now().Add(-3*time.Second))
				got := f.account(t, want)
				late := 0
				for at, row := range f.rows {
					if row.Status != job.Succeeded {
						continue
					}
					if !row.StartedAt.Before(resumed) && at.Before(resumed) {
						late++
					}
					if at.After(resumed) && row.LatenessMS > 100 {
						t.Errorf("after resuming, %s was %d ms late", at, row.LatenessMS)
					}
				}
				if late != made {
					t.Errorf("%d of the times under the pause ran, want %d (%v)", late, made, got)
				}
				if got[schedule.Pending] != 0 || got[schedule.Missed] != 0 {
					t.Errorf("outcomes %v", got)
				}
			})
		})
	}
}

func TestPause_WithAnEndResumesByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		k := r.create("often", "*/10 * * * * *", nil)
		time.Sleep(time.Minute)
		r.pause(k, schedule.Pause{Until: now().Add(10 * time.Minute), Missed: schedule.MissedDrop})
		time.Sleep(20 * time.Minute) // no process sends the message that would resume it exactly on time
		s := r.read(k)
		if s.Paused != nil {
			t.Fatalf("still paused: %+v", s.Paused)
		}
		if ran := r.fates(k).ran(); time.Since(ran[len(ran)-1]) > 20*time.Second {
			t.Errorf("the last that ran is of %s", ran[len(ran)-1])
		}
	})
}

// S48: the old time still fires after an update.
//
//proof:of S10 S48
func TestSchedule_RunsOnlyAtItsNewTimeAfterAnEdit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := func(clock string) time.Time {
			day, _ := time.Parse("2006-01-02 15:04:05", "2000-01-01 "+clock)
			return day.UTC()
		}
		time.Sleep(time.Until(at("09:20:00")))
		r := setupRules(t)
		defer r.stop()
		k := r.create("daily", "0 10 * * *", nil)
		time.Sleep(time.Until(at("09:45:00")))
		to := func(cron, zone string) func(*schedule.Schedule) {
			return func(s *schedule.Schedule) { s.Spec = calendar.Spec{Cron: &cron, Timezone: &zone} }
		}
		r.edit(k, to("0 15 * * *", "UTC"))
		time.Sleep(time.Until(at("09:46:00")))
		r.edit(k, to("0 15 * * *", "Asia/Tokyo"))
		time.Sleep(time.Until(at("09:59:59")))
		r.edit(k, to("0 16 * * *", "UTC"))
		time.Sleep(time.Until(at("16:30:00")))
		f := r.fates(k)
		if ran := f.ran(); len(ran) != 1 || !ran[0].Equal(at("16:00:00")) {
			t.Errorf("it ran at %v", ran)
		}
		if old := f.rows[at("10:00:00")]; old.Status != job.Skipped || old.Reason.Code != job.CodeEdited {
			t.Errorf("the old time is %s: %v", old.Status, old.Reason)
		}
	})
}

// S14 and S15: which stage is down, and for how long.
func TestSchedule_AccountsForTimesOfAnOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stages []string
		outage time.Duration
		change func(*schedule.Schedule)
		missed func(n int) bool
		late   int
	}{
		{"promoter down for three hours", []string{"promoter"}, 3 * time.Hour, func(*schedule.Schedule) {},
			func(n int) bool {
				return n == 0
			}, -1},
		//proof:of S14
		{"promoter and sweeper down for three hours", []string{"promoter", "sweeper"}, 3 * time.Hour,
			func(*schedule.Schedule) {}, func(n int) bool {
				return n > 140
			}, 1},
		//proof:of S15
		{"promoter and sweeper down for three days", []string{"promoter", "sweeper"}, 72 * time.Hour,
			func(s *schedule.Schedule) {
				s.CatchUp = schedule.CatchUp{Policy: schedule.CatchUpAll, Window: 24 * time.Hour, Cap: 50}
			}, func(n int) bool { return n > 4000 }, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setupRules(t)
				defer r.stop()
				from := now()
				k := r.create("minutely", "* * * * *", nil, c.change)
				time.Sleep(10*time.Minute + 30*time.Second)
				for _, stage := range c.stages {
					r.down[stage].Store(true)
				}
				time.Sleep(c.outage)
				for _, stage := range c.stages {
					r.down[stage].Store(false)
				}
				back := now()
				time.Sleep(time.Hour)
				f := r.fates(k)
				got := f.account(t, times(t, r.read(k), from, now().Add(-10*time.Second)))
				if got[schedule.Pending] != 0 || !c.missed(got[schedule.Missed]) {
					t.Errorf("outcomes %v", got)
				}
				late := 0
				for at, row := range f.rows {
					if row.Status == job.Succeeded && row.StartedAt.After(back) && at.Before(back.Add(-time.Minute)) {
						late++
					}
					if at.After(back.Add(10*time.Minute)) && row.LatenessMS > 100 {
						t.Errorf("long after, %s was %d ms late", at, row.LatenessMS)
					}
				}
				// Jobs that were due in the minutes before the next passes are late, too.
				if c.late >= 0 && (late < c.late || late > c.late+5) {
					t.Errorf("%d missed times were made up for, want about %d", late, c.late)
				}
			})
		})
	}
}

//proof:of 13
func TestSchedule_FollowsItsOverlapPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy                       schedule.Overlap
		ran, skipped, together, most int
	}{
		// Each run takes 150 s and comes every minute: 60 of them in an hour.
		{schedule.OverlapAllow, 57, 0, 3, 60},
		{schedule.OverlapSkip, 19, 36, 1, 21},
		{schedule.OverlapBufferOne, 22, 30, 1, 25},
		{schedule.OverlapBufferAll, 22, 0, 1, 25},
		{schedule.OverlapCancelRunning, 0, 0, 1, 2},
	} {
		t.Run("overlap "+string(c.policy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setupRules(t)
				defer r.stop()
				time.Sleep(time.Until(now().Truncate(time.Minute).Add(90 * time.Second)))
				k := r.create("slow", "* * * * *", object{"sleep": "150s"}, func(s *schedule.Schedule) {
					s.Overlap = c.policy
				})
				time.Sleep(time.Hour)
				f := r.fates(k)
				var ran, skipped int
				type edge struct {
					at time.Time
					by int
				}
				var edges []edge
				for _, row := range f.rows {
					switch row.Status {
					case job.Succeeded:
						ran++
					case job.Skipped:
						skipped++
						if row.Reason.Code != job.CodeOverlap {
							t.Errorf("skipped for %v", row.Reason)
						}
					}
					if !row.StartedAt.IsZero() && !row.FinishedAt.IsZero() {
						edges = append(edges, edge{row.StartedAt, 1}, edge{row.FinishedAt, -1})
					}
				}
				slices.SortFunc(edges, func(a, b edge) int {
					if c := a.at.Compare(b.at); c != 0 {
						return c
					}
					return a.by - b.by
				})
				together, most := 0, 0
				for _, e := range edges {
					together += e.by
					most = max(most, together)
				}
				if ran < c.ran || ran > c.most || skipped < c.skipped || c.skipped == 0 && skipped > 0 ||
					most != c.together {
					t.Errorf("%d ran, %d were skipped, up to %d at once; want %d to %d, %d or more, %d", ran, skipped,
						most, c.ran, c.most, c.skipped, c.together)
				}
				if c.policy == schedule.OverlapCancelRunning {
					cancelled := 0
					for _, row := range f.rows {
						if row.Status == job.Cancelled && !row.StartedAt.IsZero() {
							cancelled++
						}
					}
					if cancelled < 50 {
						t.Errorf("%d runs were cancelled by the next", cancelled)
					}
				}
				f.account(t, times(t, r.read(k), now().Add(-time.Hour), now().Add(-time.Minute)))
			})
		})
	}
}

func TestSchedule_EndsAfterMaxRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		seven := 7
		k := r.create("seven", "* * * * *", nil, func(s *schedule.Schedule) { s.Spec.MaxRuns = &seven })
		time.Sleep(2 * time.Hour)
		f := r.fates(k)
		if ran := f.ran(); len(ran) != 7 {
			t.Errorf("it ran %d times", len(ran))
		}
		for at, row := range f.rows {
			if row.Status != job.Succeeded && (row.Status != job.Skipped || row.Reason.Code != job.CodeMaxRuns) {
				t.Errorf("%s is %s: %v", at, row.Status, row.Reason)
			}
		}
		if s := r.read(k); !s.Next.IsZero() || s.EndedBy != job.CodeMaxRuns || s.Slice() != "" {
			t.Errorf("next %s, ended by %q, wake-up in %q", s.Next, s.EndedBy, s.Slice())
		}
	})
}

func TestSchedule_PausesAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		k := r.create("failing", "* * * * *", object{"fail": 9}, func(s *schedule.Schedule) { s.PauseAfter = 3 })
		time.Sleep(30 * time.Minute)
		s := r.read(k)
		if s.Paused == nil || s.Paused.By != schedule.ByPunctual || s.Paused.Reason == "" {
			t.Fatalf("paused: %+v", s.Paused)
		}
		dead := 0
		for _, row := range r.fates(k).rows {
			if row.Status == job.Dead {
				dead++
			}
		}
		if dead != 3 {
			t.Errorf("%d failed before it was paused", dead)
		}
	})
}

func TestSchedule_StopsWhenDeletedAndCanBeRecreated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		k := r.create("gone", "* * * * *", nil)
		time.Sleep(5*time.Minute + 30*time.Second)
		deleted := r.change(k, func(s schedule.Schedule) (schedule.Schedule, []item.Write) {
			return schedule.Delete(s, r.haveJobs(s), now())
		})
		time.Sleep(time.Hour)
		f := r.fates(k)
		for at, row := range f.rows {
			before := at.Before(deleted.DeletedAt)
			if before != (row.Status == job.Succeeded) || !before &&
				(row.Status != job.Skipped || row.Reason.Code != job.CodeDeleted) {
				t.Errorf("%s is %s: %v", at, row.Status, row.Reason)
			}
		}
		if len(f.rows) < 30 {
			t.Errorf("%d jobs", len(f.rows))
		}
		old := r.read(k)
		cron := "* * * * *"
		created, w, err := schedule.Create(&old, schedule.Schedule{Key: k, Spec: calendar.Spec{Cron: &cron},
			CatchUp: schedule.DefaultCatchUp, Template: old.Template}, now())
		if err != nil || created.Epoch != 3 {
			t.Fatalf("epoch %d, %v", created.Epoch, err)
		}
		if err := r.Store.Put(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		r.promote(k)
		time.Sleep(10*time.Minute + 30*time.Second)
		if ran := r.fates(k).ran(); time.Since(ran[len(ran)-1]) > time.Minute {
			t.Errorf("the last that ran is of %s", ran[len(ran)-1])
		}
	})
}

func TestPause_OfEverythingHoldsSchedulesUntilLifted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		from := now()
		k := r.create("minutely", "* * * * *", nil)
		time.Sleep(5*time.Minute + 10*time.Second)
		r.Want(201, "PUT", "/pauses/all", object{"reason": "test", "missed": "drop"})
		paused := now()
		time.Sleep(3 * time.Hour)
		r.Want(204, "DELETE", "/pauses/all", nil)
		lifted := now()
		time.Sleep(10 * time.Second)
		if s := r.read(k); s.Parked || s.Next.Before(now()) {
			t.Errorf("ten seconds later it still stands at %s, parked %v", s.Next, s.Parked)
		}
		time.Sleep(time.Hour)
		f := r.fates(k)
		got := f.account(t, times(t, r.read(k), from, now().Add(-10*time.Second)))
		if got[schedule.Pending] != 0 || got[schedule.Missed] != 0 || got[schedule.Skipped] < 178 ||
			got[schedule.Skipped] > 182 {
			t.Errorf("outcomes %v", got)
		}
		for at, row := range f.rows {
			if row.StartedAt.After(paused.Add(2*time.Second)) && row.StartedAt.Before(lifted) {
				t.Errorf("%s started at %s, under the pause", at, row.StartedAt)
			}
		}
	})
}

// S11: one bad zone must not stop the others.
//
//proof:of S06 S07 S11
func TestSchedule_IsSetAsideWhenUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setupRules(t)
		defer r.stop()
		var keys []schedule.Key
		for n := range 20 {
			keys = append(keys, r.create(fmt.Sprintf("good%d", n), "*/10 * * * *", nil))
		}
		spoil := func(name string, f func(item.Item)) {
			s := r.read(r.create(name, "*/10 * * * *", nil))
			i := s.Item()
			f(i)
			if err := r.Store.Put(context.Background(), item.Write{Ref: s.Ref(), Name: "test.put",
				Put: i}); err != nil {
				t.Fatal(err)
			}
		}
		in := func(old, spoiled string) func(item.Item) {
			return func(i item.Item) {
				var b map[string]any
				_ = json.Unmarshal([]byte(i.Str("body")), &b)
				b["calendar"].(map[string]any)[old] = spoiled
				text, _ := json.Marshal(b)
				i["body"] = string(text)
			}
		}
		spoil("zone", in("timezone", "America/New_Yrok"))
		spoil("prefix", in("cron", "TZ=UTC"))
		spoil("never", in("cron", "0 0 31 4 *"))
		spoil("type", func(i item.Item) { i["epoch"] = "one" })
		spoil("body", func(i item.Item) { delete(i, "body") })
		time.Sleep(3 * time.Hour)
		for _, k := range keys {
			f := r.fates(k)
			if ran := f.ran(); len(ran) < 17 {
				t.Errorf("%s ran %d times", k.Name, len(ran))
			}
			for at, row := range f.rows {
				if row.LatenessMS > 100 {
					t.Errorf("%s of %s was %d ms late", at, k.Name, row.LatenessMS)
				}
			}
		}
		aside, err := r.World.Table().Query(context.Background(), item.Query{Table: "tasks", PK: "system#set_aside"})
		if err != nil {
			t.Fatal(err)
		}
		schedules := 0
		for _, i := range aside.Items {
			if strings.HasPrefix(i.Str("sk"), "schedules/local/") {
				schedules++
			}
		}
		if schedules != 5 || len(aside.Items) != 5 { // without the jobs that were made before
			t.Errorf("%d schedules are set aside: %v", schedules, aside.Items)
		}
	})
}
