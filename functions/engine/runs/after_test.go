package runs_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/decide"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
)

// waiting is a setup for single jobs that come after each other.
type waiting struct {
	*stagetest.Bench
	*engine.Engine
}

func withWaiters(t *testing.T, name string, do func(l *waiting)) {
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true}, func(s *stagetest.Bench) {
		do(&waiting{s, s.Engine()})
	})
}

// open puts a job that has not ended.
func (l *waiting) open(n int) job.Row {
	l.Helper()
	return l.Overdue(n, time.Second)
}

// request returns the row of job n after others, and what the API does to accept it, step by step.
func (l *waiting) request(n int, a dag.After, parents ...job.Row) (job.Row, []func() error) {
	now := stagetest.Now()
	for _, p := range parents {
		a.Parents = append(a.Parents, dag.Parent{ID: p.ID})
	}
	row, _ := a.Admit(jobtest.Row(n, now, now), now)
	var steps []func() error
	for _, p := range parents {
		steps = append(steps, func() error {
			_, err := l.Store.Follow(l.Context(), p.Key, row.Key, now)
			return err
		})
	}
	return row, append(steps,
		func() error { return l.Store.Accept(l.Context(), row) },
		func() error { return l.Runs.EvaluateAfter(l.Context(), row.Key) },
	)
}

// after accepts job n, which comes after others.
func (l *waiting) after(n int, a dag.After, parents ...job.Row) job.Row {
	l.Helper()
	row, steps := l.request(n, a, parents...)
	for _, step := range steps {
		l.Must(step())
	}
	return row
}

// report records how a job's attempt ended, and settles it.
func (l *waiting) report(r job.Row, kind job.OutcomeKind) {
	l.Helper()
	c := l.claimed(r, kind)
	l.Must(l.Settle(l.Context(), r.Key, c.Attempt, c.Token, decide.Arrival{}))
}

// claimed has a worker claim a job and record its outcome.
func (l *waiting) claimed(r job.Row, kind job.OutcomeKind) job.Claim {
	l.Helper()
	c := l.Own(r, time.Minute)
	o := job.Outcome{Kind: kind, Permanent: true, Worker: "w1", StartedAt: stagetest.Now(), FinishedAt: stagetest.Now()}
	if kind == job.OutcomeFailed {
		o.Error = &job.Reason{Code: job.CodeHandler, Message: "no"}
	}
	l.Write(job.RecordOutcome(r.Key, c.Attempt, c.Token, o))
	return c
}

// sweep decides about rows as the sweeper does, after their wake-ups.
func (l *waiting) sweep(rows ...job.Row) {
	l.Helper()
	time.Sleep(2 * contract.MaxPostpone)
	for _, r := range rows {
		now, err := l.Store.Row(l.Context(), r.Key)
		if err != nil || now.WakeAt.IsZero() {
			continue
		}
		_, err = l.Entry(l.Context(), stagetest.Entry(now))
		l.Must(err)
	}
}

func (l *waiting) is(r job.Row, want job.Status, code string) {
	l.Helper()
	if now := l.Row(r.Key); now.Status != want || now.Reason.Code != code {
		l.Errorf("job %s is %s %s, want %s %s", r.ID, now.Status, now.Reason.Code, want, code)
	}
}

func TestAfter_RunsOnceAllHaveEnded(t *testing.T) {
	t.Parallel()
	withWaiters(t, "a job is fired once after the last of two has ended", func(l *waiting) {
		a, b := l.open(1), l.open(2)
		c := l.after(3, dag.After{Rule: dag.AllDone}, a, b)
		l.report(a, job.OutcomeFailed)
		l.is(c, job.Blocked, "")
		l.report(b, job.OutcomeSucceeded)
		l.is(c, job.Scheduled, "")
		if n := l.Fired()[string(c.ID)]; n != 1 {
			l.Errorf("fired %d times", n)
		}
		for _, r := range []job.Row{a, b} {
			if now := l.Row(r.Key); now.PendingEffects.Children() {
				l.Errorf("job %s has pending effects %q", r.ID, now.PendingEffects)
			}
		}
	})
	withWaiters(t, "all 250 followers of a job are released", func(l *waiting) {
		a := l.open(0)
		var all []job.Row
		for n := range 250 {
			all = append(all, l.after(n+1, dag.After{}, a))
		}
		l.report(a, job.OutcomeSucceeded)
		fired := l.Fired()
		for _, c := range all {
			l.is(c, job.Scheduled, "")
			if fired[string(c.ID)] != 1 {
				l.Errorf("job %s was fired %d times", c.ID, fired[string(c.ID)])
			}
		}
		if left, err := l.Store.Followers(l.Context(), a.Key); err != nil || len(left) != 0 {
			l.Errorf("%d entries are left, %v", len(left), err)
		}
	})
	withWaiters(t, "a follower is released although another one cannot be read", func(l *waiting) {
		a := l.open(1)
		spoilt, good := l.after(2, dag.After{}, a), l.after(3, dag.After{}, a)
		l.Write(item.Write{Ref: spoilt.Ref(), Name: "test.spoil", Set: map[string]any{"parents": "{"}})
		l.report(a, job.OutcomeSucceeded)
		l.is(good, job.Scheduled, "")
	})
	withWaiters(t, "a released job waits for its own due time", func(l *waiting) {
		a := l.open(1)
		now := stagetest.Now()
		soon := l.after(2, dag.After{Delay: time.Minute}, a)
		later := l.after(3, dag.After{NotBefore: now.Add(24 * time.Hour)}, a)
		l.report(a, job.OutcomeSucceeded)
		if r := l.Row(soon.Key); !r.DueAt.Equal(stagetest.Now().Add(time.Minute)) || !r.Near ||
			!r.WakeAt.Equal(r.DueAt.Add(contract.AfterDue)) {
			l.Errorf("the one after a minute is due at %s, near %v", r.DueAt, r.Near)
		}
		if r := l.Row(later.Key); !r.DueAt.Equal(now.Add(24*time.Hour)) || r.Near || !r.WakeAt.Equal(r.DueAt) {
			l.Errorf("the one after a day is due at %s, near %v", r.DueAt, r.Near)
		}
		l.RequireSilence()
	})
}

func TestAfter_EndsWithItsParents(t *testing.T) {
	t.Parallel()
	withWaiters(t, "a failure cancels a whole chain of followers", func(l *waiting) {
		chain := []job.Row{l.open(0)}
		for n := range 20 {
			chain = append(chain, l.after(n+1, dag.After{}, chain[n]))
		}
		l.report(chain[0], job.OutcomeFailed)
		for _, c := range chain[1:] {
			l.is(c, job.Cancelled, dag.ReasonParentFailed)
			if now := l.Row(c.Key); !now.WakeAt.IsZero() || now.PendingEffects != job.NoPendingEffects {
				l.Errorf("job %s has pending effects %q and wakes at %s", c.ID, now.PendingEffects, now.WakeAt)
			}
		}
	})
	withWaiters(t, "a job whose rule asks for a failure is skipped after a success", func(l *waiting) {
		a := l.open(1)
		b := l.after(2, dag.After{Rule: dag.AllFailed}, a)
		c := l.after(3, dag.After{}, b)
		l.report(a, job.OutcomeSucceeded)
		l.is(b, job.Skipped, dag.ReasonRuleNotMet)
		l.is(c, job.Skipped, dag.ReasonParentSkipped)
	})
	withWaiters(t, "a job is cancelled when its parent is cancelled or expires", func(l *waiting) {
		a, b := l.open(1), l.Overdue(2, stagetest.Late, func(r *job.Row) { r.StartWithin = time.Second })
		c, d := l.after(3, dag.After{}, a), l.after(4, dag.After{}, b)
		_, err := l.Cancel(l.Context(), a.Key, func(job.Row, time.Time) error { return nil })
		l.Must(err)
		_, err = l.Entry(l.Context(), stagetest.Entry(l.Row(b.Key)))
		l.Must(err)
		l.is(c, job.Cancelled, dag.ReasonParentFailed)
		l.is(d, job.Cancelled, dag.ReasonParentFailed)
	})
}

func TestAfter_WakesUpItself(t *testing.T) {
	t.Parallel()
	withWaiters(t, "a blocked job wakes up ever less often and remembers an end that is forgotten", func(l *waiting) {
		a, b := l.open(1), l.open(2)
		c := l.after(3, dag.After{}, a, b)
		l.report(a, job.OutcomeSucceeded)
		var gaps []time.Duration
		for range 6 {
			at := l.Row(c.Key).WakeAt
			time.Sleep(time.Until(at) + time.Second)
			if step, err := l.Entry(l.Context(), stagetest.Entry(l.Row(c.Key))); err != nil ||
				step != job.StepEvaluate {
				l.Fatalf("%s, %v", step, err)
			}
			gaps = append(gaps, l.Row(c.Key).WakeAt.Sub(at.Add(time.Second)))
		}
		if got := fmt.Sprint(gaps); got != "[3m0s 6m0s 12m0s 24m0s 48m0s 48m0s]" {
			l.Errorf("it wakes up after %s", got)
		}
		l.Write(item.Write{Ref: a.Ref(), Name: "test.expire", Delete: true})
		l.report(b, job.OutcomeSucceeded)
		l.is(c, job.Scheduled, "")
	})
	withWaiters(t, "a blocked job reads the end of a deleted parent from its tombstone", func(l *waiting) {
		a, b := l.open(1), l.open(2)
		c := l.after(3, dag.After{}, a, b)
		l.report(a, job.OutcomeFailed)
		dead, write := job.Bury(l.Row(a.Key), stagetest.Now())
		l.Write(write)
		l.Write(job.Forget(dead, stagetest.Now()))
		l.report(b, job.OutcomeSucceeded)
		l.is(c, job.Cancelled, dag.ReasonParentFailed)
	})
	withWaiters(t, "a blocked job counts a parent of which nothing is left as failed", func(l *waiting) {
		a, b := l.open(1), l.open(2)
		c := l.after(3, dag.After{}, a)
		below := l.after(4, dag.After{}, c)
		failed := l.after(5, dag.After{Rule: dag.OneFailed}, b)
		l.Write(item.Write{Ref: a.Ref(), Name: "test.expire", Delete: true})
		l.Write(item.Write{Ref: b.Ref(), Name: "test.expire", Delete: true})
		l.sweep(c, failed)
		l.is(c, job.Cancelled, dag.ReasonParentFailed)
		l.is(below, job.Cancelled, dag.ReasonParentFailed)
		l.is(failed, job.Scheduled, "")
		if n := l.Fired()[string(failed.ID)]; n != 1 {
			l.Errorf("fired %d times", n)
		}
	})
	withWaiters(t, "a blocked job is released and parked while everything is paused", func(l *waiting) {
		a := l.open(1)
		c, steps := l.request(2, dag.After{}, a)
		l.Must(steps[0]())
		l.report(a, job.OutcomeSucceeded) // the follower has no row yet
		l.Must(steps[1]())
		l.Pause(job.PauseAll, time.Time{})
		l.sweep(c)
		l.is(c, job.Scheduled, "")
		l.sweep(c)
		if !l.Row(c.Key).Parked {
			l.Error("it is not parked")
		}
	})
}

func TestAfter_SeesAnEndBetweenTwoStepsOfItsRequest(t *testing.T) {
	t.Parallel()
	for _, crashes := range []bool{false, true} {
		for at := range 5 {
			withWaiters(t, fmt.Sprintf("parents end before step %d of the request, crash there: %v", at, crashes),
				func(l *waiting) {
					a, b := l.open(1), l.open(2)
					c, steps := l.request(3, dag.After{}, a, b)
					for n, step := range steps {
						if n == at {
							l.report(a, job.OutcomeSucceeded)
							l.report(b, job.OutcomeSucceeded)
							if crashes {
								break
							}
						}
						l.Must(step())
					}
					if at == len(steps) {
						l.report(a, job.OutcomeSucceeded)
						l.report(b, job.OutcomeSucceeded)
					}
					if crashes && at <= 2 {
						return // the job was not accepted
					}
					if crashes {
						l.sweep(c)
					}
					l.is(c, job.Scheduled, "")
					// No worker takes it, so the sweeper fires it, too.
					if n := l.Fired()[string(c.ID)]; n == 0 || n > 1 && !crashes {
						l.Errorf("fired %d times", n)
					}
				})
		}
	}
}

func TestAfter_HasOneResultOfARace(t *testing.T) {
	t.Parallel()
	cancel := func(l *waiting, r job.Row) job.Row {
		after, err := l.Cancel(l.Context(), r.Key, func(job.Row, time.Time) error { return nil })
		l.Must(err)
		return after
	}
	withWaiters(t, "a cancel just before the release wins", func(l *waiting) {
		a := l.open(1)
		c := l.after(2, dag.After{}, a)
		l.Before(stagetest.Named(job.WriteRelease), func() { cancel(l, c) })
		l.report(a, job.OutcomeSucceeded)
		l.is(c, job.Cancelled, job.CodeCancelled)
		if n := l.Fired()[string(c.ID)]; n != 0 {
			l.Errorf("fired %d times", n)
		}
	})
	withWaiters(t, "a cancel just after the release ends the released job", func(l *waiting) {
		a := l.open(1)
		c := l.after(2, dag.After{Delay: time.Minute}, a)
		l.Before(stagetest.Named(job.WriteCancelBlocked), func() { l.report(a, job.OutcomeSucceeded) })
		if after := cancel(l, c); after.Status != job.Cancelled || l.Claim(c.Key).Token == 0 {
			l.Errorf("it is %s, and not fenced", after.Status)
		}
	})
	withWaiters(t, "a job that begins to follow just before its parent ends is released", func(l *waiting) {
		a := l.open(1)
		c, steps := l.request(2, dag.After{}, a)
		l.Before(stagetest.Named(job.WriteSucceed), func() {
			l.Must(steps[0]())
			l.Must(steps[1]())
		})
		l.report(a, job.OutcomeSucceeded)
		l.is(c, job.Scheduled, "")
	})
	withWaiters(t, "two parents that end at once release the job once", func(l *waiting) {
		a, b := l.open(1), l.open(2)
		c := l.after(3, dag.After{}, a, b)
		l.Before(stagetest.Named(job.WriteNotify), func() { l.report(b, job.OutcomeSucceeded) })
		l.report(a, job.OutcomeSucceeded)
		l.is(c, job.Scheduled, "")
		if n := l.Fired()[string(c.ID)]; n != 1 {
			l.Errorf("fired %d times", n)
		}
	})
}

//proof:of 39
func TestAfter_IsJudgedAfterACrash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind job.OutcomeKind
		want job.Status
	}{"a success": {job.OutcomeSucceeded, job.Scheduled}, "a failure": {job.OutcomeFailed, job.Cancelled}} {
		for _, lost := range []bool{false, true} {
			for _, repeated := range []bool{false, true} {
				what := fmt.Sprintf("%s, any crash, last answer lost: %v, report repeated: %v", name, lost, repeated)
				withWaiters(t, what, func(l *waiting) {
					var a, b, below job.Row
					var claim job.Claim
					l.Crashes(lost, func(n int) {
						a, b = l.open(3*n), job.Row{}
						b = l.after(3*n+1, dag.After{}, a)
						below = l.after(3*n+2, dag.After{}, b)
						claim = l.claimed(a, c.kind)
					}, func() error {
						return l.Settle(l.Context(), a.Key, claim.Attempt, claim.Token, decide.Arrival{})
					}, func(n int) {
						l.Engine = l.Bench.Engine()
						if repeated {
							l.Must(l.Settle(l.Context(), a.Key, claim.Attempt, claim.Token,
								decide.Arrival{Repeated: true}))
						} else {
							l.sweep(a) // it repeats the report, or does the pending effects
							if l.Row(a.Key).Status == job.Scheduled {
								l.Must(l.Settle(l.Context(), a.Key, claim.Attempt, claim.Token,
									decide.Arrival{Repeated: true}))
							}
						}
						for range 3 {
							l.sweep(a, b, below)
						}
						l.is(b, c.want, map[bool]string{true: dag.ReasonParentFailed}[c.want == job.Cancelled])
						if c.want == job.Cancelled {
							l.is(below, job.Cancelled, dag.ReasonParentFailed)
						} else if fired := l.Fired(); fired[string(b.ID)] == 0 || fired[string(below.ID)] > 0 {
							l.Errorf("crashed at call %d: fired %v", n, fired)
						}
						if left := l.Row(a.Key).PendingEffects; left.Children() {
							l.Errorf("crashed at call %d: the pending effects are %q", n, left)
						}
					})
				})
			}
		}
	}
}
