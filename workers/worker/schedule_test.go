package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// rule puts a schedule that is hourly, changed as each says.
func (b *bench) rule(changes ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	cron := "0 * * * *"
	s := schedule.Schedule{Key: schedule.Key{Tenant: shop, Name: "rule"}, Spec: calendar.Spec{Cron: &cron}}
	for _, change := range changes {
		change(&s)
	}
	s, w, err := schedule.Create(nil, s, time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	b.Write(w)
	return s
}

// of makes a row one of the schedule's.
func of(s schedule.Schedule) func(*job.Row) {
	return func(r *job.Row) { r.ScheduleID, r.Epoch, r.NominalAt = s.Name, s.Epoch, r.DueAt }
}

//proof:of S48
func TestSchedule_StartsOnlyJobsThatItAllows(t *testing.T) {
	pause := func(s schedule.Schedule) item.Write {
		_, w := schedule.PauseSchedule(s, schedule.Pause{}, time.Now().UTC().Truncate(time.Millisecond))
		return w
	}
	remove := func(s schedule.Schedule) item.Write {
		_, w := schedule.Delete(s, nil, time.Now().UTC().Truncate(time.Millisecond))
		return w[0]
	}
	editAt := func(after time.Duration) func(s schedule.Schedule) item.Write {
		return func(s schedule.Schedule) item.Write {
			_, w, err := schedule.Edit(s, s, nil, s.CreatedAt.Add(after))
			if err != nil {
				t.Fatal(err)
			}
			return w[0]
		}
	}
	edit, editAfterDue := editAt(-time.Millisecond), editAt(time.Second)
	for name, c := range map[string]struct {
		change  func(schedule.Schedule) item.Write
		attempt int64
		starts  bool
	}{
		"unchanged":                  {nil, 1, true},
		"paused":                     {pause, 1, false},
		"paused, at a later attempt": {pause, 2, false},
		"deleted":                    {remove, 1, false},
		"deleted, a later attempt":   {remove, 2, false},
		"edited before it was due":   {edit, 1, false},
		"edited after it was due":    {editAfterDue, 1, true},
		"edited, at a later attempt": {edit, 2, true},
	} {
		t.Run("starts a schedule's job only if allowed: "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule()
				r := b.put(0, of(s), func(r *job.Row) { r.Attempt = c.attempt })
				b.Once(stagetest.Writes(job.WriteClaimNew), func() memory.Fault {
					if c.change != nil {
						b.Write(c.change(s))
					}
					return memory.Fault{}
				})
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				reports := b.reports()
				if started := b.started() == 1; started != c.starts {
					t.Errorf("started: %v", started)
				}
				if !c.starts && (len(reports) != 1 || reports[0].Kind != message.Reevaluate ||
					b.Claim(r.Key).Live(c.attempt, time.Now())) {
					t.Errorf("reports %+v, claim %+v", reports, b.Claim(r.Key))
				}
			})
		})
	}
}

// A job may start within the second in which the workers hear of a pause. If its worker is lost then, the start counts,
// as it does for the status consumer: no pause and no catch-up takes it back.
func TestSchedule_StartsAJobAgainThatHadStartedWhateverALiftedPauseDrops(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(30 * time.Second)
		old := b.start("old", options(func(o *Options) { o.Drain = time.Second }))
		s := b.rule()
		r := b.put(0, of(s))
		b.fire(r, 0)
		b.sleep(time.Second)
		old.stop()
		old.wait()
		p := job.Pause{Scope: job.PauseAll, Since: r.DueAt.Add(-time.Millisecond), Missed: schedule.MissedDrop}
		if err := b.Store.PutPause(context.Background(), r.Tenant, p); err != nil {
			t.Fatal(err)
		}
		b.sleep(time.Minute)
		if err := b.Store.DeletePause(context.Background(), r.Tenant, p.Scope, time.Now()); err != nil {
			t.Fatal(err)
		}
		b.fire(r, 0)
		b.start("new")
		b.sleep(time.Minute)
		if b.started() != 2 {
			t.Errorf("it started %d times; reports %+v", b.started(), b.reports())
		}
	})
}

//proof:of F42
func TestSchedule_StartsNoJobThatALiftedPauseDrops(t *testing.T) {
	for name, c := range map[string]struct {
		missed  string
		since   time.Duration // of the pause, before the job is due
		until   time.Duration // after it is due; 0: the pause was lifted a second after
		attempt int64
		starts  bool
	}{
		"dropped":                         {schedule.MissedDrop, time.Minute, 0, 1, false},
		"dropped at its until":            {schedule.MissedDrop, time.Minute, time.Second, 1, false},
		"kept by all":                     {schedule.MissedAll, time.Minute, 0, 1, true},
		"due before the pause":            {schedule.MissedDrop, -time.Millisecond, 0, 1, true},
		"a later attempt":                 {schedule.MissedDrop, time.Minute, 0, 2, true},
		"of nobody's schedule is dropped": {schedule.MissedDrop, time.Minute, 0, 0, true},
	} {
		t.Run("starts late after a pause, "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule()
				r := b.put(0, of(s), func(r *job.Row) {
					if r.Attempt = max(c.attempt, 1); c.attempt == 0 {
						r.ScheduleID, r.Epoch = "", 0
					}
				})
				p := job.Pause{Scope: job.PauseAll, Since: r.DueAt.Add(-c.since), Missed: c.missed}
				if c.until > 0 {
					p.Until = r.DueAt.Add(c.until)
				}
				if err := b.Store.PutPause(context.Background(), r.Tenant, p); err != nil {
					t.Fatal(err)
				}
				b.sleep(time.Second)
				if c.until == 0 {
					if err := b.Store.DeletePause(context.Background(), r.Tenant, p.Scope, time.Now()); err != nil {
						t.Fatal(err)
					}
				}
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				if started := b.started() == 1; started != c.starts {
					t.Errorf("started: %v", started)
				}
				if reports := b.reports(); !c.starts && (len(reports) != 1 || reports[0].Kind != message.Reevaluate) {
					t.Errorf("reports %+v", reports)
				}
			})
		})
	}
}

func TestSchedule_StartsOneRunWhereTheyMayNotOverlap(t *testing.T) {
	limited := func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip }
	const unread = "one that nobody can read"
	for name, c := range map[string]struct {
		holder func(*job.Row) // nil: no process holds the slot
		gone   bool
		starts bool
	}{
		"nobody else":          {nil, false, true},
		"one that is not over": {func(*job.Row) {}, false, false},
		"one that waits for its retry": {func(r *job.Row) { r.Attempt = 2; r.DueAt = r.DueAt.Add(time.Hour) },
			false, false},
		"one that is over":                 {func(r *job.Row) { r.Status = job.Succeeded }, false, true},
		"one that nobody remembers":        {func(*job.Row) {}, true, true},
		"one that ends before we are due":  {func(*job.Row) {}, false, true},
		unread:                             {func(*job.Row) {}, false, true},
		unread + ", whose worker is at it": {func(*job.Row) {}, false, false},
	} {
		t.Run("starts one run at a time: "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule(limited)
				r := b.put(3*time.Second, of(s))
				if c.holder != nil {
					h := b.put(-time.Minute, of(s), c.holder)
					b.Write(s.TakeSlot(h.ID))
					if strings.HasPrefix(name, unread) {
						b.Write(item.Write{
							Ref: h.Ref(), Name: "test.spoil", Set: map[string]any{"schema_v": int64(99)},
						})
						if name != unread {
							b.Write(job.ClaimNew(h.Key, 1, job.Owner{Worker: "b",
								LeaseUntil: time.Now().Add(time.Minute), DueAt: h.DueAt}))
						}
					}
					if c.gone {
						b.Write(item.Write{Ref: h.Ref(), Name: "test.gone", Delete: true})
					}
					if name == "one that ends before we are due" {
						time.AfterFunc(3*time.Second-time.Millisecond, func() {
							d, err := job.Settle(&h, 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
							if err != nil {
								t.Error(err)
							}
							b.Write(d.Write)
						})
					}
				}
				b.fire(r, 0)
				b.start("a")
				b.sleep(10 * time.Second)
				if started := b.started() == 1; started != c.starts {
					t.Errorf("started: %v", started)
				}
				slot, err := b.Store.Slot(t.Context(), s.Key)
				if err != nil || (slot.Holder == r.ID) != c.starts {
					t.Errorf("slot %+v, %v", slot, err)
				}
				if reports := b.reports(); !c.starts && (len(reports) != 1 || reports[0].Kind != message.Reevaluate) {
					t.Errorf("reports %+v", reports)
				}
			})
		})
	}
}

// A run at a time that two calendars of a list have counts for both, or for the one that may still run.
func TestSchedule_CountsARunForEachCalendarThatMayRun(t *testing.T) {
	minutes, two, one := "* * * * *", 2, 1
	for name, c := range map[string]struct {
		specs  []calendar.Spec
		before []bool // those that are full before
		starts bool
		after  []bool
	}{
		"both": {[]calendar.Spec{{Cron: &minutes, MaxRuns: &one}, {Cron: &minutes, MaxRuns: &one}},
			[]bool{false, false}, true, []bool{true, true}},
		"one, for the other is full": {[]calendar.Spec{{Cron: &minutes, MaxRuns: &one},
			{Cron: &minutes, MaxRuns: &two}}, []bool{true, false}, true, []bool{true, false}},
		"none, for one has no max_runs": {[]calendar.Spec{{Cron: &minutes, MaxRuns: &one}, {Cron: &minutes}},
			[]bool{true, false}, true, []bool{true, false}},
		"none, for both are full": {[]calendar.Spec{{Cron: &minutes, MaxRuns: &one}, {Cron: &minutes, MaxRuns: &one}},
			[]bool{true, true}, false, []bool{true, true}},
	} {
		t.Run("counts for "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule(func(s *schedule.Schedule) { s.Spec, s.Specs = calendar.Spec{}, c.specs })
				r := b.put(0, of(s), func(r *job.Row) { r.NominalAt = r.DueAt.Truncate(time.Minute) })
				for n, full := range c.before {
					if other := b.put(time.Hour); full {
						others := make([]bool, len(c.specs))
						others[1-n] = true
						other.NominalAt = r.NominalAt
						if err := b.Store.Commit(t.Context(), s.CountRun(other, others)...); err != nil {
							t.Fatal(err)
						}
					}
				}
				b.fire(r, 0)
				b.start("a")
				b.sleep(2 * time.Minute)
				_, full, err := b.Store.RunsOf(t.Context(), s, r.ID)
				if (b.started() == 1) != c.starts || !slices.Equal(full, c.after) || err != nil {
					t.Errorf("started %d, full %v, %v", b.started(), full, err)
				}
			})
		})
	}
}

// Under buffer_all a job waits for those of earlier times, but not for one that is paused itself.
func TestSchedule_WaitsForNoTurnOfAPausedJob(t *testing.T) {
	for name, c := range map[string]struct {
		paused [2]bool // the two jobs before
		starts bool
	}{
		"none is paused":          {[2]bool{false, false}, false},
		"the first is paused":     {[2]bool{true, false}, false},
		"both of them are paused": {[2]bool{true, true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
				s.CreatedAt = s.CreatedAt.Add(-3 * time.Hour)
				b.Write(item.Write{Ref: s.Ref(), Name: "test.older", Put: s.Item()})
				at := func(ago time.Duration, paused bool) job.Row {
					return b.put(-ago, of(s), func(r *job.Row) {
						r.ID = s.JobID(r.NominalAt)
						if paused {
							r.Paused.Since = time.Now()
						}
					})
				}
				at(2*time.Hour, c.paused[0])
				at(time.Hour, c.paused[1])
				b.fire(at(0, false), 0)
				b.start("a")
				b.sleep(5 * time.Second)
				if started := b.started() == 1; started != c.starts {
					t.Errorf("started: %v", started)
				}
			})
		})
	}
}

func TestSchedule_RejudgesASlowlyAdmittedAttempt(t *testing.T) {
	two := 2
	for name, c := range map[string]struct {
		rule func(*schedule.Schedule)
		slow func(memory.Call) bool
		wait time.Duration
	}{
		"its turn": {func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip },
			stagetest.Writes(schedule.WriteSlotTake), 4 * time.Second},
		"its count": {func(s *schedule.Schedule) { s.Spec.MaxRuns = &two },
			stagetest.Every(memory.TableCommit), 4 * time.Second},
		"its turn, nearly failed": {func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip },
			stagetest.Writes(schedule.WriteSlotTake), 9 * time.Second},
	} {
		t.Run("judges a slow admission once more: "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule(c.rule)
				r := b.put(0, of(s))
				b.Once(c.slow, func() memory.Fault {
					_, w := schedule.PauseSchedule(s, schedule.Pause{}, time.Now().UTC().Truncate(time.Millisecond))
					b.Write(w)
					return memory.Fault{Wait: c.wait}
				})
				b.fire(r, 0)
				b.start("a")
				b.sleep(30 * time.Second)
				if n := b.started(); n != 0 {
					t.Errorf("it started %d times, after its schedule was paused", n)
				}
				if reports := b.reports(); len(reports) != 1 || reports[0].Kind != message.Reevaluate ||
					b.Claim(r.Key).Live(1, time.Now()) {
					t.Errorf("reports %+v, claim %+v", reports, b.Claim(r.Key))
				}
			})
		})
	}
}

func TestSchedule_CountsARunOnce(t *testing.T) {
	for name, before := range map[string]int{"below the limit": 1, "at the limit": 2} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				two := 2
				s := b.rule(func(s *schedule.Schedule) { s.Spec.MaxRuns = &two })
				for range before {
					if err := b.Store.Commit(t.Context(), s.CountRun(b.put(time.Hour), []bool{false})...); err != nil {
						t.Fatal(err)
					}
				}
				r := b.put(0, of(s))
				// The answer to the count is lost: the attempt is given back, and counted no more.
				b.FaultFirst(1, stagetest.Every(memory.TableCommit), memory.Fault{Lost: true})
				b.fire(r, 0)
				b.start("a")
				b.sleep(2 * time.Minute)
				counted, full, err := b.Store.RunsOf(t.Context(), s, r.ID)
				if want := before == 1; b.started() != map[bool]int{true: 1}[want] || counted != want || err != nil ||
					!full[0] {
					t.Errorf("started %d, counted %v, full %v, %v", b.started(), counted, full, err)
				}
			})
		})
	}
}

//proof:of F08
func TestWorker_ReadsThePausesForEveryoneOnceASecond(t *testing.T) {
	within(t, func(b *bench) {
		reads := b.Count(stagetest.Queries(job.PausesKey(job.Everyone)))
		const tenants = 40
		for n := range tenants {
			b.fire(b.put(3*time.Second, func(r *job.Row) { r.Tenant = tenant.ID(fmt.Sprint("t", n)) }), 0)
		}
		b.start("a")
		b.sleep(10 * time.Second)
		if b.started() != tenants || reads() == 0 || reads() > 4 {
			t.Errorf("%d of %d tenants' jobs started, with %d reads", b.started(), tenants, reads())
		}
	})
}
