package backfill_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/operation"
	"punctual/shared/schedule"
)

// bench is a world with a schedule, hourly unless it says otherwise, and a worker that knows which times it was given.
type bench struct {
	*stagetest.Bench
	of   schedule.Schedule
	last int
	ran  map[time.Time]int
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true}, func(s *stagetest.Bench) {
		b := &bench{Bench: s, ran: map[time.Time]int{}}
		b.of = b.Create(stagetest.Schedule("hourly", "0 * * * *"))
		time.Sleep(time.Minute)
		do(b)
	})
}

// begin makes a backfill of the last hours, and takes its first steps.
func (b *bench) begin(hours int, change ...func(*operation.Operation)) operation.Key {
	b.Helper()
	b.last++
	o := operation.Operation{
		Key:    operation.Key{Tenant: jobtest.Tenant, ID: job.NewID(stagetest.Now(), [10]byte{byte(b.last)})},
		Action: operation.Backfill, Status: operation.Running, CreatedAt: stagetest.Now(), Version: 1,
		Schedule: b.of.Name, Since: b.of.CreatedAt, Epoch: b.of.Epoch, Order: operation.Oldest, Most: 2, Matched: hours,
		To: stagetest.Now().Truncate(time.Hour),
	}
	o.From = o.To.Add(-time.Duration(hours) * time.Hour)
	for _, c := range change {
		c(&o)
	}
	e := b.Engine()
	b.Must(e.Backfills.Create(b.Context(), o))
	b.advance(o.Key)
	return o.Key
}

func (b *bench) advance(k operation.Key) operation.Operation {
	b.Helper()
	_, _, err := b.Engine().Operation(b.Context(), k, func() bool { return true })
	b.Must(err)
	return b.read(k)
}

func (b *bench) read(k operation.Key) operation.Operation {
	b.Helper()
	o, err := b.Store.Operation(b.Context(), k)
	b.Must(err)
	return o
}

// open reads the rows of the jobs that have not ended, in the order in which they were made.
func (b *bench) open(k operation.Key) (rows []job.Row) {
	b.Helper()
	for _, id := range b.read(k).Open {
		rows = append(rows, b.Row(job.Key{Tenant: k.Tenant, ID: id}))
	}
	return rows
}

// end has a job end in a status.
func (b *bench) end(r job.Row, s job.Status) job.Row {
	b.Helper()
	b.ran[r.NominalAt]++
	r.Status, r.WakeAt, r.StartedAt, r.FinishedAt = s, time.Time{}, stagetest.Now(), stagetest.Now()
	if s != job.Succeeded {
		r.Reason = job.Reason{Code: job.CodeHandler, Message: "no"}
	}
	return b.Put(r)
}

// work ends the jobs of an operation, and what their ends bring about, until it has ended.
func (b *bench) work(k operation.Key, s job.Status) operation.Operation {
	b.Helper()
	for range 1000 {
		o := b.read(k)
		if o.Status.Over() {
			return o
		}
		for _, r := range b.open(k) {
			b.Must(b.Engine().Ended(b.Context(), b.end(r, s)))
		}
	}
	b.Fatalf("it does not end: %+v", b.read(k))
	return operation.Operation{}
}

func (b *bench) requireCounts(o operation.Operation, s operation.Status, matched, done, skipped, failed int) {
	b.Helper()
	if o.Status != s || o.Matched != matched || o.Done != done || o.Skipped != skipped || o.Failed != failed {
		b.Fatalf("it is %s with %d matched, %d done, %d skipped and %d failed: %+v", o.Status, o.Matched, o.Done,
			o.Skipped, o.Failed, o)
	}
}

// times lists the hours of a backfill, in its order, of which jobs were made.
func (b *bench) times(rows []job.Row) (hours []string) {
	for _, r := range rows {
		hours = append(hours, r.NominalAt.Format("15:04"))
	}
	return hours
}

func TestBackfiller_MakesTimes(t *testing.T) {
	t.Parallel()
	bubble(t, "of which never more are open than the operation allows", func(b *bench) {
		k := b.begin(5)
		rows := b.open(k)
		if got := strings.Join(b.times(rows), " "); got != "19:00 20:00" {
			b.Fatalf("made %s", got)
		}
		r := rows[0]
		if r.Backfill != k.ID || r.ManualOf != "hourly" || r.ScheduleID != "" || !r.DueAt.Equal(r.CreatedAt) ||
			!r.OccurredAt().Equal(r.NominalAt) || r.Manual() || r.Rule != "" {
			b.Errorf("%+v", r)
		}
		if fired := b.Fired(); len(fired) != 2 || fired[string(r.ID)] != 1 {
			b.Errorf("fired %v", fired)
		}
		b.Must(b.Engine().Ended(b.Context(), b.end(r, job.Succeeded)))
		if got := strings.Join(b.times(b.open(k)), " "); got != "20:00 21:00" {
			b.Errorf("open after one has ended: %s", got)
		}
		o := b.work(k, job.Succeeded)
		b.requireCounts(o, operation.Succeeded, 5, 5, 0, 0)
		if len(b.ran) != 5 {
			b.Errorf("%d times ran", len(b.ran))
		}
	})
	bubble(t, "the newest first", func(b *bench) {
		k := b.begin(5, func(o *operation.Operation) { o.Order = operation.Newest })
		if got := strings.Join(b.times(b.open(k)), " "); got != "23:00 22:00" {
			b.Errorf("made %s", got)
		}
		b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 5, 5, 0, 0)
	})
	bubble(t, "in transactions that are bounded", func(b *bench) {
		tagged := b.of
		tagged.Template.Tags = `{"team":"billing"}`
		b.Write(item.Write{Ref: tagged.Ref(), Name: "test.tags", Put: tagged.Item()})
		k := b.begin(200, func(o *operation.Operation) { o.Most = operation.MaxOpen })
		rows := b.open(k)
		if len(rows) != operation.MaxOpen {
			b.Fatalf("%d are open", len(rows))
		}
		labels, err := b.Store.LabelsOf(b.Context(), rows...)
		if err != nil || labels[99].Tags != tagged.Template.Tags {
			b.Errorf("labels %v, %v", labels[99], err)
		}
		b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 200, 200, 0, 0)
	})
	bubble(t, "a repeated end changes nothing", func(b *bench) {
		k := b.begin(5)
		r := b.end(b.open(k)[0], job.Succeeded)
		for range 3 {
			b.Must(b.Engine().Ended(b.Context(), r))
		}
		if o := b.read(k); o.Done != 1 || len(o.Open) != 2 {
			b.Errorf("%+v", o)
		}
	})
	bubble(t, "an end whose call was lost is found from the rows", func(b *bench) {
		k := b.begin(3)
		for _, r := range b.open(k) {
			b.end(r, job.Succeeded)
		}
		if o := b.advance(k); o.Done != 2 || len(o.Open) != 1 {
			b.Errorf("%+v", o)
		}
	})
	bubble(t, "a job that was deleted counts as failed", func(b *bench) {
		k := b.begin(1)
		r := b.end(b.open(k)[0], job.Succeeded)
		b.Write(job.Forget(r, stagetest.Now()))
		o := b.advance(k)
		b.requireCounts(o, operation.Failed, 1, 0, 0, 1)
		if o.Errors[0].Code != string(job.Gone) {
			b.Errorf("%+v", o.Errors)
		}
	})
	bubble(t, "whose failures are counted and shown", func(b *bench) {
		o := b.work(b.begin(30), job.Dead)
		b.requireCounts(o, operation.Failed, 30, 0, 0, 30)
		if len(o.Errors) != operation.MaxErrors || o.Errors[0].Code != job.CodeHandler || o.Errors[0].JobID == "" {
			b.Errorf("%d errors, the first %+v", len(o.Errors), o.Errors[0])
		}
	})
	bubble(t, "none in an empty range", func(b *bench) {
		k := b.begin(1, func(o *operation.Operation) {
			o.From, o.Matched = o.To.Add(-59*time.Minute), 0
		})
		b.requireCounts(b.read(k), operation.Succeeded, 0, 0, 0, 0)
	})
}

func TestBackfiller_LeavesOutTimesThatRan(t *testing.T) {
	t.Parallel()
	own := func(b *bench, hoursAgo int, s job.Status, change ...func(*job.Row)) {
		at := stagetest.Now().Truncate(time.Hour).Add(-time.Duration(hoursAgo) * time.Hour)
		b.Put(jobtest.Row(1, at, at, append([]func(*job.Row){stagetest.Of(b.of), func(r *job.Row) {
			r.ID, r.Status = b.of.JobID(at), s
		}}, change...)...))
	}
	started := func(r *job.Row) { r.StartedAt = r.DueAt }
	for name, c := range map[string]struct {
		status  job.Status
		change  func(*job.Row)
		leftOut bool
	}{
		"succeeded": {job.Succeeded, started, true}, "failed for good": {job.Dead, started, true},
		"is open":                 {job.Scheduled, func(*job.Row) {}, true},
		"was cancelled early":     {job.Cancelled, func(*job.Row) {}, false},
		"was cancelled as it ran": {job.Cancelled, started, true},
		"was skipped":             {job.Skipped, func(*job.Row) {}, false},
		"expired":                 {job.Expired, func(*job.Row) {}, false},
	} {
		bubble(t, "one whose job "+name, func(b *bench) {
			own(b, 2, c.status, c.change)
			o := b.work(b.begin(3), job.Succeeded)
			skipped := 0
			if c.leftOut {
				skipped = 1
			}
			b.requireCounts(o, operation.Succeeded, 3, 3-skipped, skipped, 0)
		})
		bubble(t, "one whose job "+name+" is made on request", func(b *bench) {
			own(b, 2, c.status, c.change)
			o := b.work(b.begin(3, func(o *operation.Operation) { o.Repeat = true }), job.Succeeded)
			b.requireCounts(o, operation.Succeeded, 3, 3, 0, 0)
		})
	}
	bubble(t, "also those of another backfill", func(b *bench) {
		b.requireCounts(b.work(b.begin(3), job.Dead), operation.Failed, 3, 0, 0, 3)
		b.requireCounts(b.work(b.begin(5), job.Succeeded), operation.Succeeded, 5, 2, 3, 0)
		repeat := func(o *operation.Operation) { o.Repeat = true }
		b.requireCounts(b.work(b.begin(5, repeat), job.Succeeded), operation.Succeeded, 5, 5, 0, 0)
	})
	bubble(t, "but not those of another backfill that did not run", func(b *bench) {
		k := b.begin(2)
		for _, r := range b.open(k) {
			r.Status, r.Reason, r.WakeAt = job.Cancelled, job.Reason{Code: job.CodeCancelled}, time.Time{}
			b.Must(b.Engine().Ended(b.Context(), b.Put(r)))
		}
		b.requireCounts(b.read(k), operation.Failed, 2, 0, 0, 2)
		b.requireCounts(b.work(b.begin(2), job.Succeeded), operation.Succeeded, 2, 2, 0, 0)
	})
	bubble(t, "but not those whose job was deleted", func(b *bench) {
		k := b.begin(1)
		r := b.end(b.open(k)[0], job.Succeeded)
		b.Must(b.Engine().Ended(b.Context(), r))
		b.Write(job.Forget(r, stagetest.Now()))
		b.requireCounts(b.work(b.begin(1), job.Succeeded), operation.Succeeded, 1, 1, 0, 0)
	})
	bubble(t, "a time that was made too often is no job any more", func(b *bench) {
		at := stagetest.Now().Truncate(time.Hour).Add(-time.Hour)
		for n := range schedule.MaxBackfills {
			r, _ := b.of.Backfill("01KD000000000000000000000A", at, n, stagetest.Shards, stagetest.Now())
			r.Status = job.Succeeded
			b.Put(r)
		}
		o := b.work(b.begin(2, func(o *operation.Operation) { o.Repeat = true }), job.Succeeded)
		b.requireCounts(o, operation.Succeeded, 2, 1, 0, 1)
	})
	bubble(t, "many at a time", func(b *bench) {
		b.requireCounts(b.work(b.begin(500, func(o *operation.Operation) { o.Most = 50 }), job.Succeeded),
			operation.Succeeded, 500, 500, 0, 0)
		reads := b.Count(stagetest.Every(memory.TableGetMany))
		k := b.begin(1500, func(o *operation.Operation) { o.Order = operation.Newest })
		if n := reads(); n > 60 {
			b.Errorf("%d reads", n)
		}
		b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 1500, 1000, 500, 0)
	})
}

func TestBackfiller_Counts(t *testing.T) {
	t.Parallel()
	bubble(t, "what would be left out, and writes nothing", func(b *bench) {
		b.work(b.begin(3), job.Succeeded)
		o := b.read(b.begin(0))
		o.From, o.Cursor = o.To.Add(-250*time.Hour), time.Time{}
		writes := b.Count(func(c memory.Call) bool { return c.Op == memory.TableWrite || c.Op == memory.TableCommit })
		matched, skipped, all, err := b.Engine().Backfills.Count(b.Context(), b.of, o)
		if err != nil || !all || matched != 250 || skipped != 3 || writes() != 0 {
			b.Errorf("%d matched, %d skipped, all: %v, %d writes, %v", matched, skipped, all, writes(), err)
		}
	})
}

func TestBackfiller_CountsUntilItsTimeIsUp(t *testing.T) {
	t.Parallel()
	bubble(t, "and says of how many times it knows", func(b *bench) {
		o := b.read(b.begin(0))
		o.From, o.Cursor = o.To.Add(-250*time.Hour), time.Time{}
		ctx, cancel := context.WithCancel(b.Context())
		reads := 0
		b.Each(stagetest.Every(memory.TableGetMany), func(memory.Call) {
			if reads++; reads == 3 { // of the second hundred times
				cancel()
			}
		})
		matched, skipped, all, err := b.Engine().Backfills.Count(ctx, b.of, o)
		if err != nil || all || matched != 100 || skipped != 0 {
			b.Errorf("%d matched, %d skipped, all: %v, %v", matched, skipped, all, err)
		}
	})
}

func TestBackfiller_IsPausedAndStopped(t *testing.T) {
	t.Parallel()
	type verb func(operation.Operation) (operation.Operation, error)
	change := func(b *bench, k operation.Key, by verb) operation.Operation {
		o, err := b.Engine().Backfills.Change(b.Context(), k,
			func(o operation.Operation, _ time.Time) (operation.Operation, error) { return by(o) })
		b.Must(err)
		return o
	}
	bubble(t, "paused, it makes nothing and counts what ends", func(b *bench) {
		k := b.begin(5)
		change(b, k, operation.Operation.Pause)
		version := change(b, k, operation.Operation.Pause).Version
		for _, r := range b.open(k) {
			b.Must(b.Engine().Ended(b.Context(), b.end(r, job.Succeeded)))
		}
		o := b.advance(k)
		b.requireCounts(o, operation.Paused, 5, 2, 0, 0)
		if len(o.Open) != 0 || o.Version != version+2 {
			b.Errorf("%+v", o)
		}
		if o = change(b, k, operation.Operation.Resume); len(o.Open) != 2 {
			b.Errorf("resumed: %+v", o)
		}
		b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 5, 5, 0, 0)
	})
	bubble(t, "stopped, it has ended and counts nothing", func(b *bench) {
		k := b.begin(5)
		open := b.open(k)
		change(b, k, func(o operation.Operation) (operation.Operation, error) { return o.Stop(stagetest.Now()) })
		b.Must(b.Engine().Ended(b.Context(), b.end(open[0], job.Succeeded)))
		b.requireCounts(b.advance(k), operation.Stopped, 5, 0, 0, 0)
	})
	bubble(t, "of a deleted schedule it fails, and of one made anew", func(b *bench) {
		k := b.begin(5)
		_, writes := schedule.Delete(b.of, nil, stagetest.Now())
		b.Write(writes...)
		b.Must(b.Engine().Ended(b.Context(), b.end(b.open(k)[0], job.Succeeded)))
		o := b.read(k)
		b.requireCounts(o, operation.Failed, 5, 1, 0, 0)
		if o.Why.Code != operation.CodeDeleted || len(o.Open) != 1 {
			b.Errorf("%+v", o)
		}
	})
	bubble(t, "an edit counts for the times that are not made yet", func(b *bench) {
		k := b.begin(6)
		edited := b.of
		cron := "30 * * * *"
		edited.Spec.Cron = &cron
		_, writes, err := schedule.Edit(b.of, edited, nil, stagetest.Now())
		b.Must(err)
		b.Write(writes...)
		o := b.work(k, job.Succeeded)
		b.requireCounts(o, operation.Succeeded, 7, 7, 0, 0)
		halfPast := o.From.Add(time.Hour + 30*time.Minute)
		if b.ran[o.From] != 1 || b.ran[halfPast] != 1 || b.ran[o.From.Add(2*time.Hour)] != 0 {
			b.Errorf("ran %v", b.ran)
		}
	})
	bubble(t, "an edit that gives it too many times ends it", func(b *bench) {
		k := b.begin(200)
		edited := b.of
		cron := "* * * * *"
		edited.Spec.Cron = &cron
		_, writes, err := schedule.Edit(b.of, edited, nil, stagetest.Now())
		b.Must(err)
		b.Write(writes...)
		b.Must(b.Engine().Ended(b.Context(), b.end(b.open(k)[0], job.Succeeded)))
		if o := b.read(k); o.Status != operation.Failed || o.Why.Code != operation.CodeTooMany {
			b.Errorf("%+v", o)
		}
	})
}

// Two processes take a step at once, at every call of one of them: each time is made once, and never more are open than
// the operation allows.
func TestBackfiller_TakesStepsAtOnce(t *testing.T) {
	t.Parallel()
	for _, op := range []string{memory.TableGet, memory.TableGetMany, memory.TableCommit, memory.TableWrite} {
		bubble(t, "another step before "+op, func(b *bench) {
			k := b.begin(6)
			rows := b.open(k)
			first, second := b.end(rows[0], job.Succeeded), b.end(rows[1], job.Succeeded)
			b.Before(stagetest.Every(op), func() { b.Must(b.Engine().Ended(b.Context(), second)) })
			b.Must(b.Engine().Ended(b.Context(), first))
			if o := b.read(k); o.Done != 2 || len(o.Open) != 2 {
				b.Errorf("%+v", o)
			}
			b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 6, 6, 0, 0)
			b.requireOnce(6)
		})
	}
	bubble(t, "two backfills of the same times make each once", func(b *bench) {
		var other operation.Key
		b.Before(stagetest.Every(memory.TableCommit), func() { other = b.begin(6) })
		k := b.begin(6)
		for range 20 {
			for _, r := range append(b.open(k), b.open(other)...) {
				b.Must(b.Engine().Ended(b.Context(), b.end(r, job.Succeeded)))
			}
		}
		one, two := b.read(k), b.read(other)
		if one.Status != operation.Succeeded || two.Status != operation.Succeeded || one.Done+two.Done != 6 ||
			one.Skipped+two.Skipped != 6 || one.Done == 0 || two.Done == 0 {
			b.Errorf("%+v\n%+v", one, two)
		}
		b.requireOnce(6)
	})
	bubble(t, "an end that other steps keep from being noted waits for the sweeper", func(b *bench) {
		k := b.begin(6)
		r := b.end(b.open(k)[0], job.Succeeded)
		b.Each(stagetest.Every(memory.TableCommit), func(memory.Call) {
			o := b.read(k)
			b.Write(o.Become(o))
		})
		b.Must(b.Engine().Ended(b.Context(), r))
		b.World.SetFaults(nil)
		if o := b.read(k); o.Done != 0 {
			b.Fatalf("%+v", o)
		}
		if o := b.advance(k); o.Done != 1 || len(o.Open) != 2 {
			b.Errorf("%+v", o)
		}
	})
}

func (b *bench) requireOnce(times int) {
	b.Helper()
	if len(b.ran) != times {
		b.Errorf("%d times ran", len(b.ran))
	}
	for at, n := range b.ran {
		if n != 1 {
			b.Errorf("%v ran %d times", at, n)
		}
	}
}

// A process crashes at every call of a step, and the call may have taken effect: nothing is lost, doubled or forgotten.
func TestBackfiller_SurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("lost answers: %v", lost), func(b *bench) {
			var k operation.Key
			var r job.Row
			prepare := func(int) {
				k = b.begin(3, func(o *operation.Operation) { o.Repeat = true })
				r = b.end(b.open(k)[0], job.Succeeded)
			}
			b.Crashes(lost, prepare, func() error { return b.Engine().Ended(b.Context(), r) }, func(int) {
				b.advance(k)
				b.requireCounts(b.work(k, job.Succeeded), operation.Succeeded, 3, 3, 0, 0)
			})
		})
	}
}

// A year of an hourly schedule, four at a time, by processes that crash all the time: each time is made once.
func TestBackfiller_MakesAYear(t *testing.T) {
	t.Parallel()
	bubble(t, "each hour once", func(b *bench) {
		const hours, most = 8760, 4
		random := rand.New(rand.NewPCG(1, 2))
		k := b.begin(hours, func(o *operation.Operation) { o.Most, o.Repeat = most, true })
		met := map[job.ID]bool{}
		for rounds := 0; ; rounds++ {
			o := b.read(k)
			if o.Status.Over() {
				b.requireCounts(o, operation.Succeeded, hours, hours, 0, 0)
				break
			}
			if len(o.Open) > most || rounds > 4*hours {
				b.Fatalf("round %d: %+v", rounds, o)
			}
			e := b.Engine()
			for _, r := range b.open(k) {
				if !met[r.ID] {
					met[r.ID], r = true, b.end(r, job.Succeeded)
				}
				b.World.SetFaults(crashes(random))
				_ = e.Ended(b.Context(), r)
				b.World.SetFaults(nil)
			}
			if random.IntN(10) == 0 {
				b.advance(k)
			}
		}
		b.requireOnce(hours)
	})
}

// crashes has one call in forty fail, or take effect and fail; all calls after it fail.
func crashes(random *rand.Rand) func(memory.Call) memory.Fault {
	var mu sync.Mutex // calls may come together
	dead := false
	return func(memory.Call) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !dead && random.IntN(40) == 0 {
			dead = true
			if random.IntN(2) == 0 {
				return memory.Fault{Lost: true}
			}
		}
		if dead {
			return memory.Fault{Fail: fault.Unavailable}
		}
		return memory.Fault{}
	}
}
