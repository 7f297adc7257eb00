package limits_test

import (
	"slices"
	"testing"
	"time"

	"punctual/functions/engine/limits"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/limit"
	"punctual/shared/memory"
)

// bench is the set-up of the tests: the limits of work, over tables in memory and in virtual time.
type bench struct {
	*stagetest.Bench
	limits *limits.Limits
}

var (
	under = job.LimitKey{Name: "github", Key: "acct-42"}
	key   = limit.Key{Tenant: jobtest.Tenant, LimitKey: under}
)

func bubble(t *testing.T, name string, do func(b *bench)) {
	t.Helper()
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{Bench: s, limits: &limits.Limits{Base: s.ProcessBase(), Store: s.Store}})
	})
}

// put writes the limit.
func (b *bench) put(l limit.Limit) limit.Limit {
	b.Helper()
	is, err := b.Store.UpdateLimit(b.Context(), key.Tenant, under.Name, stagetest.Now(),
		func(*limit.Limit) (limit.Limit, error) { return l, nil })
	b.Must(err)
	return is
}

func limited(p job.Priority) func(*job.Row) {
	return func(r *job.Row) { r.Limits, r.Priority = job.LimitsOf(under), p }
}

// waiting puts a job among those that wait.
func (b *bench) waiting(n int, ago time.Duration, p job.Priority) job.Row {
	b.Helper()
	r := b.Overdue(n, ago, limited(p))
	after, write := job.ParkForLimit(r, 1, stagetest.Now())
	b.Write(write, key.MarkWaiting(stagetest.Now()))
	return after
}

// holding has a job hold a permit, taken so long ago.
func (b *bench) holding(l limit.Limit, n int, ago time.Duration) job.Row {
	b.Helper()
	r := b.Overdue(n, ago, limited(job.Normal))
	_, taken, err := b.Store.TakePermit(b.Context(), l, key, r.ID, r.Attempt, stagetest.Now().Add(-ago))
	b.Must(err)
	if !taken {
		b.Fatalf("job %d got no permit", n)
	}
	return r
}

func (b *bench) admit(r job.Row) limits.Verdict {
	b.Helper()
	v, err := b.limits.Admit(b.Context(), r, b.Claim(r.Key), stagetest.Now())
	b.Must(err)
	return v
}

// woken are the jobs that may start now.
func (b *bench) woken() (ids []job.ID) {
	b.Helper()
	w, err := b.limits.Next(b.Context(), key)
	b.Must(err)
	for _, each := range w.Wake {
		ids = append(ids, each.Jobs[0].ID)
	}
	return ids
}

func TestNext_WakesAsManyAsMayStartInTheirOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit limit.Limit
		held  int
		want  []int // of the jobs, in their order
	}{
		"one permit is free":    {limit.Limit{MaxRunning: 2}, 1, []int{4}},
		"three are":             {limit.Limit{MaxRunning: 3}, 0, []int{4, 2, 1}},
		"none is":               {limit.Limit{MaxRunning: 1}, 1, nil},
		"all are":               {limit.Limit{MaxRunning: 9}, 0, []int{4, 2, 1, 3}},
		"a rate lets two start": {limit.Limit{Rate: limit.Rate{Count: 2, Per: time.Minute}}, 0, []int{4, 2}},
		"both, and the rate less": {limit.Limit{MaxRunning: 9, Rate: limit.Rate{Count: 1, Per: time.Minute}}, 2,
			[]int{4}},
	} {
		bubble(t, name, func(b *bench) {
			l := b.put(c.limit)
			for n := range c.held {
				b.holding(l, 10+n, time.Second)
			}
			rows := map[int]job.Row{
				1: b.waiting(1, 2*time.Minute, job.Normal), 2: b.waiting(2, 3*time.Minute, job.Normal),
				3: b.waiting(3, 9*time.Minute, job.Low), 4: b.waiting(4, time.Minute, job.Critical),
			}
			var want []job.ID
			for _, n := range c.want {
				want = append(want, rows[n].ID)
			}
			if got := b.woken(); !slices.Equal(got, want) {
				b.Errorf("woken are %v, want %v", got, want)
			}
		})
	}
}

// Those whose deadline is nearer lie first in the index, which says nothing of when they were due.
func TestNext_GoesByDueTimesAndNotByDeadlines(t *testing.T) {
	t.Parallel()
	bubble(t, "the later one has a deadline", func(b *bench) {
		b.put(limit.Limit{MaxRunning: 1})
		first := b.waiting(1, 2*time.Minute, job.Normal)
		r := b.Overdue(2, time.Minute, func(r *job.Row) {
			limited(job.Normal)(r)
			r.StartWithin = time.Hour
		})
		_, write := job.ParkForLimit(r, 1, stagetest.Now())
		b.Write(write)
		if got := b.woken(); !slices.Equal(got, []job.ID{first.ID}) {
			b.Errorf("woken are %v, want %v", got, first.ID)
		}
	})
}

func TestAdmit_HasJobsWaitBehindOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*job.Row)
		want   job.Step
	}{
		"one that falls due waits behind them":  {func(*job.Row) {}, limits.Waits},
		"one with a higher priority does not":   {func(r *job.Row) { r.Priority = job.High }, job.StepFire},
		"one that was woken does not":           {func(r *job.Row) { r.ReadyAt = stagetest.Now() }, job.StepFire},
		"one that waits there already does not": {func(r *job.Row) { r.WaitsLimit = 1 }, job.StepFire},
		"one without the limit does not":        {func(r *job.Row) { r.Limits = "" }, job.StepFire},
		"one of another key does not":           {func(r *job.Row) { r.Limits = "github\tother" }, job.StepFire},
		"one whose limit is absent does not":    {func(r *job.Row) { r.Limits = "gone\t" }, job.StepFire},
		"one of two limits waits":               {func(r *job.Row) { r.Limits = "gone\t\n" + r.Limits }, limits.Waits},
	} {
		bubble(t, name, func(b *bench) {
			b.put(limit.Limit{MaxRunning: 1})
			b.waiting(1, time.Minute, job.Normal)
			r := b.Overdue(2, 0, limited(job.Normal))
			c.change(&r)
			if v := b.admit(r); v.Step != c.want {
				b.Errorf("it is %q, want %q", v.Step, c.want)
			}
		})
	}
}

func TestAdmit_DoesWhatAFullLimitSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit   limit.Limit
		attempt int64
		want    job.Step
		cancels bool
	}{
		"wait":                            {limit.Limit{MaxRunning: 2}, 1, limits.Waits, false},
		"skip":                            {limit.Limit{MaxRunning: 2, WhenFull: limit.Skip}, 1, limits.Skipped, false},
		"skip, but it is another attempt": {limit.Limit{MaxRunning: 2, WhenFull: limit.Skip}, 2, limits.Waits, false},
		"cancel": {limit.Limit{MaxRunning: 2, WhenFull: limit.CancelOldest}, 1, limits.Waits,
			true},
		"cancel, and it is another attempt": {limit.Limit{MaxRunning: 2, WhenFull: limit.CancelOldest}, 2, limits.Waits,
			false},
	} {
		bubble(t, name, func(b *bench) {
			l := b.put(c.limit)
			old := b.holding(l, 1, 3*time.Minute)
			b.Own(old, contract.Lease)
			other := b.holding(l, 2, time.Minute)
			b.Own(other, contract.Lease)
			r := b.Overdue(3, 0, limited(job.Normal), func(r *job.Row) { r.Attempt = c.attempt })
			v := b.admit(r)
			if v.Step != c.want || (v.Cancel != nil) != c.cancels || c.cancels && v.Cancel.ID != old.ID {
				b.Errorf("it is %q and cancels %+v", v.Step, v.Cancel)
			}
		})
	}
}

// A permit of an attempt whose worker was lost is given back, and the attempt cannot go on; that of one whose worker
// lives, or whose outcome is not settled, is not.
func TestAdmit_GivesBackPermitsOfLostAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*bench, job.Row)
		want    job.Step
	}{
		"its worker lives":      {func(b *bench, r job.Row) { b.Own(r, contract.Lease) }, limits.Waits},
		"its worker is lost":    {func(b *bench, r job.Row) { b.Own(r, -time.Second) }, job.StepFire},
		"it was never claimed":  {func(*bench, job.Row) {}, job.StepFire},
		"its row is gone":       {(*bench).expire, job.StepFire},
		"it is at a later try":  {(*bench).retry, job.StepFire},
		"its outcome is unread": {func(b *bench, r job.Row) { b.recordOutcome(r) }, limits.Waits},
	} {
		bubble(t, name, func(b *bench) {
			l := b.put(limit.Limit{MaxRunning: 1})
			lost := b.holding(l, 1, time.Minute)
			c.happens(b, lost)
			before := b.Claim(lost.Key)
			if v := b.admit(b.Overdue(2, 0, limited(job.Normal))); v.Step != c.want {
				b.Errorf("it is %q, want %q", v.Step, c.want)
			}
			after := b.Claim(lost.Key)
			if c.want == limits.Waits && after.Token != before.Token {
				b.Error("the claim of a live attempt was fenced")
			}
			if name == "its worker is lost" && after.Token == before.Token {
				b.Error("its claim was not fenced")
			}
		})
	}
}

func (b *bench) expire(r job.Row) {
	b.Write(item.Write{Ref: r.Ref(), Name: "test.expire", Delete: true})
}

func (b *bench) retry(r job.Row) {
	r.Attempt = 2
	b.Overwrite(r.Ref(), r.Item())
}

func (b *bench) recordOutcome(r job.Row) {
	b.Helper()
	c := b.Own(r, -time.Second)
	b.Write(job.RecordOutcome(r.Key, r.Attempt, c.Token, job.Outcome{Kind: job.OutcomeSucceeded}))
}

// Where the index shows none that waits although there is a mark, it is read once more; an old mark is removed.
func TestNext_RemovesTheMarkOnceNoneWaits(t *testing.T) {
	t.Parallel()
	bubble(t, "none waits", func(b *bench) {
		b.put(limit.Limit{MaxRunning: 1})
		b.Write(key.MarkWaiting(stagetest.Now()))
		w, err := b.limits.Next(b.Context(), key)
		b.Must(err)
		if w.Later == nil || w.Later.Delay <= 0 {
			b.Errorf("it is not read once more: %+v", w)
		}
		time.Sleep(2 * time.Minute)
		if w, err = b.limits.Next(b.Context(), key); err != nil || w.Later != nil {
			b.Errorf("it is read once more: %+v, %v", w, err)
		}
		if head, err := b.Store.Waiting(b.Context(), key); err != nil || !head.Mark.IsZero() {
			b.Errorf("the mark stays: %+v, %v", head, err)
		}
	})
}

// Jobs of two limits that were woken do not send each other from one queue to the other.
func TestAdmit_FiresAWokenJobAlthoughOthersWaitForItsOtherLimit(t *testing.T) {
	t.Parallel()
	bubble(t, "two limits", func(b *bench) {
		b.put(limit.Limit{MaxRunning: 1})
		b.waiting(1, time.Hour, job.Normal)
		r := b.Overdue(2, time.Minute, func(r *job.Row) {
			r.Limits = job.LimitsOf(job.LimitKey{Name: "gone"}, under)
		})
		woken, write := job.ParkForLimit(r, 1, stagetest.Now())
		b.Write(write)
		if v := b.admit(woken); v.Step != job.StepFire {
			b.Errorf("it is %q", v.Step)
		}
	})
}

// A limit that cannot be read keeps no job from its end: what it holds is given back wherever it is.
func TestFree_OfALimitThatCannotBeRead(t *testing.T) {
	t.Parallel()
	bubble(t, "the body is broken", func(b *bench) {
		l := b.put(limit.Limit{MaxRunning: 40})
		r := b.holding(l, 1, time.Minute)
		ref := limit.Ref(key.Tenant, under.Name)
		b.Write(item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{"body": "{"}})
		if _, err := b.limits.Free(b.Context(), r, 1, nil); err != nil {
			b.Fatal(err)
		}
		are, err := b.Store.Buckets(b.Context(), l, key)
		b.Must(err)
		for no, bucket := range are {
			if bucket.N != 0 {
				b.Errorf("bucket %d has %+v", no, bucket)
			}
		}
	})
}
