package system_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/recur"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// schedulesOfTheYear returns the number of schedules: PUNCTUAL_YEAR, or a small number.
func schedulesOfTheYear(t *testing.T) int {
	text := os.Getenv("PUNCTUAL_YEAR")
	if text == "" {
		return 16
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A year of mixed schedules, each with its own outages, edits, pauses and failing calls: every
// nominal time ends in one job or one entry of the ledger, and only times of the calendar run. Time
// jumps from event to event, and the parts of the worker and the sweeper are called directly.
//
//proof:of 12 77 S14
func TestSchedule_AccountsForEachTimeOfAYear(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	total := map[string]int{}
	n := schedulesOfTheYear(t)
	t.Run("all schedules", func(t *testing.T) {
		for seed := range n {
			t.Run("schedule "+strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				got := year(t, uint64(seed))
				mu.Lock()
				defer mu.Unlock()
				for outcome, n := range got {
					total[outcome] += n
				}
			})
		}
	})
	t.Logf("%d schedules: %v", n, total)
	for _, outcome := range []string{schedule.Ran, schedule.Skipped, schedule.Missed, schedule.Superseded} {
		if total[outcome] == 0 {
			t.Errorf("nothing ended as %s: the year was too quiet", outcome)
		}
	}
}

// indexLagOfTheYear is longer than the wait before a failed promotion is repeated.
const indexLagOfTheYear = 2 * time.Minute

var zonesOfTheYear = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Asia/Kolkata",
	"Australia/Lord_Howe", "Australia/Sydney", "Africa/Cairo", "America/Santiago",
	"America/Sao_Paulo", "Europe/London", "Asia/Kathmandu", "Pacific/Auckland", "Pacific/Chatham", "America/St_Johns",
	"Asia/Tehran", "Africa/Casablanca", "Atlantic/Azores", "Pacific/Apia",
}

// setClock is a clock that the test sets.
type setClock struct{ at time.Time }

func (c *setClock) Now() time.Time { return c.at }

// noQueue drops every message: here the due index brings the jobs on.
type noQueue struct{}

func (noQueue) Send(context.Context, string, ...message.Outgoing) error { return nil }
func (noQueue) Depth(context.Context, string) (message.Depth, error)    { return message.Depth{}, nil }

// shakyTable fails at random, before or after the effect, and records which jobs were made.
type shakyTable struct {
	store.Table
	rand  *rand.Rand
	shaky bool
	mu    sync.Mutex
	made  []item.Ref
}

func (s *shakyTable) shake() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shaky {
		return 1000
	}
	return s.rand.IntN(200)
}

func (s *shakyTable) note(writes ...item.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		if w.Name == job.WriteAccept || w.Name == job.WriteAdopt {
			s.made = append(s.made, w.Ref)
		}
	}
}

var errShaken = fault.New(fault.Unavailable, nil, "writing while the table shakes")

func (s *shakyTable) Write(ctx context.Context, w item.Write) (item.Item, error) {
	n := s.shake()
	if n == 0 {
		return nil, errShaken
	}
	i, err := s.Table.Write(ctx, w)
	if err == nil {
		s.note(w)
		if n == 1 {
			return nil, errShaken
		}
	}
	return i, err
}

func (s *shakyTable) Commit(ctx context.Context, writes ...item.Write) error {
	n := s.shake()
	if n == 0 {
		return errShaken
	}
	err := s.Table.Commit(ctx, writes...)
	if err == nil {
		s.note(writes...)
		if n == 1 {
			return errShaken
		}
	}
	return err
}

// segment is a part of the year with one calendar.
type segment struct {
	from, to time.Time // nominal times after from, up to and including to
	rule     schedule.Schedule
}

// life is one schedule's year.
type life struct {
	*testing.T
	rand     *rand.Rand
	clock    *setClock
	table    *shakyTable
	store    *store.Store
	recur    *recur.Recurrer
	decider  *engine.Engine
	k        schedule.Key
	segments []segment
	due      map[item.Ref]time.Time // of unfinished jobs: when they wake up
	retryAt  time.Time              // when to repeat a failed promotion
}

func year(t *testing.T, seed uint64) map[string]int {
	random := rand.New(rand.NewPCG(seed, 7))
	schemas := contract.Schemas()
	for n := range schemas {
		schemas[n].Stream = false
	}
	l := &life{T: t, rand: random, clock: &setClock{at: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		due: map[item.Ref]time.Time{}}
	world := memory.New(memory.Options{Clock: l.clock, Schemas: schemas, IndexLag: memory.LagUpTo(indexLagOfTheYear)})
	defer world.Close()
	l.table = &shakyTable{Table: world.Table(), rand: rand.New(rand.NewPCG(seed, 8)), shaky: true}
	l.store = store.New(l.table, world.Blobs())
	e := engine.New(engine.Deps{Store: l.store, Queue: noQueue{}, Base: process.Base{Clock: l.clock, Shards: 4}})
	l.recur, l.decider = e.Recur, e
	l.k = schedule.Key{Tenant: "acme", Name: fmt.Sprintf("s%d", seed)}
	first := l.rule(seed)
	l.write(func() []item.Write {
		s, w, err := schedule.Create(nil, first, l.clock.at)
		if err != nil {
			t.Fatal(err)
		}
		first = s
		return []item.Write{w}
	})
	l.segments = []segment{{from: l.clock.at, rule: first}}
	l.promote()
	end := l.clock.at.AddDate(1, 0, 0)
	l.run(end)
	// No more faults: everything that is left comes to its end.
	l.table.shaky = false
	for range 3 {
		l.to(l.clock.at.Add(5 * time.Minute))
		s := l.read()
		if s.Paused != nil {
			l.resume()
		}
		l.promote()
		l.poll(true)
	}
	return l.check(end)
}

// rule returns a random schedule.
func (l *life) rule(seed uint64) schedule.Schedule {
	zone := zonesOfTheYear[l.rand.IntN(len(zonesOfTheYear))]
	crons := []string{"30 2 * * *", "0 0 * * 1-5", "15 */6 * * *", "0 * * * *", "59 23 L * ?", "0 9 ? * FRI#2",
		"*/30 1-3 * * *", "5 4 1 * *"}
	if seed%16 == 3 {
		crons = []string{"*/15 * * * *"}
	}
	cron := crons[l.rand.IntN(len(crons))]
	s := schedule.Schedule{Key: l.k, Spec: calendar.Spec{Cron: &cron, Timezone: &zone}, Template: schedule.Template{
		Settings: job.Settings{Task: "echo", Executor: "echo", Pool: "short", Priority: job.Normal,
			Timeout: time.Minute,
			Retry:   job.DefaultRetry},
	}}
	s.CatchUp = schedule.CatchUp{
		Policy: []schedule.Policy{schedule.CatchUpNone, schedule.CatchUpLast, schedule.CatchUpAll}[l.rand.IntN(3)],
		Window: time.Duration(1+l.rand.IntN(48)) * time.Hour, Cap: 1 + l.rand.IntN(100),
	}
	if l.rand.IntN(3) == 0 {
		s.Spec.Exclude = []string{"off"}
		s.Exclusions = calendar.Exclusions{"off": {Weekly: []string{"sun"}, Yearly: []string{"12-25", "01-01"}}}
	}
	if l.rand.IntN(3) == 0 {
		skip := "skip"
		s.Spec.MissingHour = &skip
	}
	if l.rand.IntN(4) == 0 {
		both := "both"
		s.Spec.RepeatedHour = &both
	}
	if l.rand.IntN(4) == 0 {
		spread := "7m"
		s.Spec.Spread = &spread
	}
	if _, err := calendar.Parse(s.Spec, s.Exclusions); err != nil {
		s.Spec.Spread = nil // longer than its shortest distance
	}
	return s
}

func (l *life) read() schedule.Schedule {
	s, err := l.store.Schedule(context.Background(), l.k)
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// write makes a user's write until its answer comes; after a lost answer it reads instead of
// writing.
func (l *life) write(f func() []item.Write) {
	for range 100 {
		err := l.table.Table.Commit(context.Background(), f()...)
		if err == nil {
			return
		}
		if store.Refused(err) == nil {
			l.Fatal(err)
		}
	}
	l.Fatal("the schedule changes all the time")
}

// promote promotes as a pass would, and once more a minute later if that failed.
func (l *life) promote() {
	_, err := l.recur.Promote(context.Background(), l.k)
	l.retryAt = time.Time{}
	if err != nil {
		if !fault.Retryable(err) {
			l.Fatal(err)
		}
		l.retryAt = l.clock.at.Add(time.Minute)
	}
	for _, ref := range l.table.made {
		l.due[ref] = time.Time{}
	}
	l.table.made = nil
	for ref, at := range l.due {
		if at.IsZero() {
			i, err := l.table.Table.Get(context.Background(), ref)
			if err != nil {
				l.Fatal(err)
			}
			l.due[ref] = later(i.Time("due_at"), l.clock.at)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// poll does with due jobs what their worker or the sweeper does.
func (l *life) poll(all bool) {
	for ref, at := range l.due {
		if at.After(l.clock.at) && !all {
			continue
		}
		i, err := l.table.Table.Get(context.Background(), ref)
		if err != nil {
			l.Fatal(err)
		}
		row, err := job.ParseRow(i)
		if err != nil {
			l.Fatal(err)
		}
		s := l.read()
		switch {
		case row.Status.Final():
			delete(l.due, ref)
			continue
		case row.DueAt.After(l.clock.at):
			l.due[ref] = row.DueAt
			continue
		case s.ValidityOf(row, job.HasStarted(row, job.Claim{})) == schedule.Current:
			d, err := job.Settle(&row, 1, job.Outcome{Kind: job.OutcomeSucceeded, StartedAt: l.clock.at}, l.clock.at)
			if err == nil {
				_, err = l.table.Table.Write(context.Background(), d.Write)
			}
			if err != nil {
				l.Fatal(err)
			}
			delete(l.due, ref)
			continue
		}
		if row.Parked {
			_, err = l.decider.Parked(context.Background(), row.Key)
		} else {
			_, err = l.decider.Reevaluate(context.Background(), row.Key, row.Version, row.Attempt)
		}
		if err != nil && !fault.Retryable(err) {
			l.Fatal(err)
		}
		l.due[ref] = l.clock.at.Add(time.Hour) // parked, left, or failed: it wakes up later
	}
}

func (l *life) to(at time.Time) { l.clock.at = at.UTC().Truncate(time.Millisecond) }

// run lives until end: outages, edits and pauses come at random, everything else at its time.
func (l *life) run(end time.Time) {
	days := func(most int) time.Duration {
		return time.Duration(l.rand.Int64N(int64(most)*24*3600*1000)) * time.Millisecond
	}
	outage, back := l.clock.at.Add(days(40)), time.Time{}
	edit, pause, resume := l.clock.at.Add(days(60)), l.clock.at.Add(days(60)), time.Time{}
	for {
		s := l.read()
		pass := time.Time{}
		if !s.WakeAt.IsZero() {
			pass = later(s.WakeAt.Add(-contract.Horizon).Truncate(time.Minute),
				l.clock.at.Truncate(time.Minute).Add(time.Minute))
		}
		if !l.retryAt.IsZero() {
			pass = l.retryAt
		}
		if !back.IsZero() && (pass.IsZero() || pass.Before(back)) {
			pass = back
		}
		next := end
		for _, at := range []time.Time{pass, outage, edit, pause, resume} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		for _, at := range l.due {
			if at.Before(next) {
				next = at
			}
		}
		l.to(later(next, l.clock.at))
		now := l.clock.at
		l.poll(false)
		switch {
		case !now.Before(end):
			return
		case next.Equal(outage):
			back, outage = now.Add(days(3)), now.Add(days(60)+3*24*time.Hour)
		case next.Equal(edit):
			l.edit()
			edit = now.Add(days(60))
		case next.Equal(pause):
			l.pause()
			pause, resume = now.Add(days(90)+10*24*time.Hour), now.Add(days(9))
		case next.Equal(resume):
			resume = time.Time{}
			l.resume()
		case next.Equal(pass):
			back = time.Time{}
			l.promote()
		}
	}
}

func (l *life) edit() {
	edited := l.rule(1)
	var after schedule.Schedule
	l.write(func() []item.Write {
		old := l.read()
		has, err := l.store.HaveJobs(context.Background(), l.k, old.Leaves(l.clock.at))
		if err != nil {
			l.Fatal(err)
		}
		edited.Paused = old.Paused
		s, writes, err := schedule.Edit(old, edited, has, l.clock.at)
		if err != nil {
			l.Fatal(err)
		}
		after = s
		return writes
	})
	l.segments[len(l.segments)-1].to = l.clock.at
	l.segments = append(l.segments, segment{from: l.clock.at, rule: after})
	l.promote()
}

func (l *life) pause() {
	missed := []string{"", schedule.MissedDrop, schedule.MissedLast, schedule.MissedAll}[l.rand.IntN(4)]
	l.write(func() []item.Write {
		_, w := schedule.PauseSchedule(l.read(), schedule.Pause{Missed: missed}, l.clock.at)
		return []item.Write{w}
	})
}

func (l *life) resume() {
	l.write(func() []item.Write {
		_, w := schedule.Resume(l.read(), "", l.clock.at)
		return []item.Write{w}
	})
	l.promote()
}

// check compares what there is with what the calendars say.
func (l *life) check(end time.Time) map[string]int {
	f := fatesOf(l, l.store, l.k)
	var want, out []time.Time // what runs, and what the calendars skip
	l.segments[len(l.segments)-1].to = end
	for _, seg := range l.segments {
		want = append(want, times(l, seg.rule, seg.from, seg.to)...)
		cal, err := seg.rule.Calendar()
		if err != nil {
			l.Fatal(err)
		}
		for from := seg.from; from.Before(seg.to); {
			var skips []calendar.Skip
			skips, from = cal.Skipped(from, seg.to, 1000)
			for _, s := range skips {
				out = append(out, s.NominalAt)
			}
		}
	}
	covered := map[time.Time]int{}
	outcome := map[time.Time]string{}
	for _, list := range [][]time.Time{want, out} {
		for _, e := range f.entries {
			from, _ := slices.BinarySearchFunc(list, e.From, time.Time.Compare)
			n := 0
			for ; from < len(list) && !list[from].After(e.To); from++ {
				covered[list[from]]++
				outcome[list[from]] = e.Outcome
				n++
			}
		}
	}
	got := map[string]int{}
	wanted := map[time.Time]bool{}
	for _, at := range want {
		wanted[at] = true
		row, made := f.rows[at]
		switch {
		case !made && covered[at] != 1:
			l.Errorf("%s is accounted for %d times", at.Format(time.RFC3339), covered[at])
		case !made:
			got[outcome[at]]++
		default:
			what, _, _ := schedule.OfJob(row)
			got[what]++
			if what == schedule.Pending {
				l.Errorf("the job of %s is still %s", at.Format(time.RFC3339), row.Status)
			}
			// Not even by a step that made the job and died before it advanced the schedule.
			if covered[at] != 0 {
				l.Errorf("%s has a job that is %s, and is recorded %d times as %s too", at.Format(time.RFC3339),
					row.Status, covered[at], outcome[at])
			}
			if what == schedule.Ran && row.StartedAt.Before(row.DueAt) {
				l.Errorf("%s ran early", at.Format(time.RFC3339))
			}
		}
	}
	for _, at := range out {
		if covered[at] != 1 && at.Before(l.read().Seen) {
			l.Errorf("%s, which the calendar leaves out, is recorded %d times", at.Format(time.RFC3339), covered[at])
		}
		got[schedule.Skipped] += covered[at]
	}
	for at, row := range f.rows {
		if !wanted[at] && at.Before(end) && row.Status == job.Succeeded {
			l.Errorf("%s ran, which is no time of the calendar", at.Format(time.RFC3339))
		}
	}
	return got
}
