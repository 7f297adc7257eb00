package worker

import (
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
)

// A job is claimed half a second before it is due. What is answered in that half second counts.
//
//proof:of F15
func TestWorker_StartsNothingThatWasStoppedBeforeItWasDue(t *testing.T) {
	cancel := func(b *bench, r job.Row, _ schedule.Schedule) {
		after, w := job.RequestStop(r, job.StopCancel, job.Reason{Code: job.CodeCancelled}, time.Now())
		b.Write(w)
		b.Write(job.FlagCancel(after.Key, after.Attempt, b.Claim(after.Key).Token))
	}
	hold := func(scope string) func(*bench, job.Row, schedule.Schedule) {
		return func(b *bench, r job.Row, _ schedule.Schedule) {
			p := job.Pause{Scope: scope, Since: time.Now()}
			b.Write(item.Write{Ref: job.PauseRef(r.Tenant, scope), Name: "test.pause", Put: p.Item(r.Tenant)})
		}
	}
	pauseSchedule := func(b *bench, _ job.Row, s schedule.Schedule) {
		_, w := schedule.PauseSchedule(s, schedule.Pause{}, time.Now().UTC().Truncate(time.Millisecond))
		b.Write(w)
	}
	expire := func(b *bench, r job.Row, _ schedule.Schedule) {
		after, w := job.RequestStop(r, job.StopExpire, job.Reason{Code: job.CodeExpireAfter}, time.Now())
		b.Write(w)
		b.Write(job.FlagCancel(after.Key, after.Attempt, b.Claim(after.Key).Token))
	}
	for name, stop := range map[string]func(*bench, job.Row, schedule.Schedule){
		"a cancel":                cancel,
		"an expiry":               expire,
		"a pause of the task":     hold(job.PauseTaskPrefix + "echo"),
		"a pause of the tenant":   hold(job.PauseAll),
		"a pause of the schedule": pauseSchedule,
	} {
		for _, early := range []time.Duration{contract.HoldUntil - time.Millisecond, 100 * time.Millisecond,
			time.Millisecond} {
			t.Run(name+" "+early.String()+" before due", func(t *testing.T) {
				within(t, func(b *bench) {
					b.start("a")
					s := b.rule()
					r := b.put(2*time.Second, of(s))
					b.fire(r, 0)
					b.sleep(2*time.Second - early)
					if c := b.Claim(r.Key); !c.Live(1, time.Now()) {
						t.Fatalf("it is not claimed yet: %+v", c)
					}
					stop(b, r, s)
					b.sleep(10 * time.Second)
					if n := b.started(); n != 0 {
						t.Errorf("it started %d times", n)
					}
					if c := b.Claim(r.Key); c.Live(1, time.Now()) || c.Takeovers != 0 {
						t.Errorf("its claim was not let go: %+v", c)
					}
					if got := b.reports(); len(got) != 1 || got[0].Kind != message.Reevaluate {
						t.Errorf("reported %+v, want one look", got)
					}
				})
			})
		}
	}
}

//proof:of F15
func TestWorker_DropsAnAttemptWhoseClaimIsNoLongerItsOwnWhenDue(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a")
		r := b.put(2 * time.Second)
		b.fire(r, 0)
		b.sleep(2*time.Second - 100*time.Millisecond)
		b.Write(job.Fence(r, job.Claim{}, r.DueAt, time.Now().Add(time.Hour))) // by a clock far ahead
		r2 := r
		r2.Version = 2 // what was fenced for: an edit
		b.Write(item.Write{Ref: r.Ref(), Name: "test.edit", Put: r2.Item()})
		b.sleep(10 * time.Second)
		if n := b.started(); n != 0 {
			t.Errorf("it started %d times", n)
		}
	})
}

// What the last look costs: nothing for a job that was due when it was claimed; otherwise one read
// of its claim, and one read of the pauses for all that are due at one moment.
//
//proof:of F15
func TestWorker_RereadsOnlyJobsClaimedBeforeTheyWereDue(t *testing.T) {
	for name, c := range map[string]struct {
		due            time.Duration
		claims, pauses int
	}{
		"due at once":  {0, 0, 2}, // the tenant's pauses and everyone's
		"due later on": {2 * time.Second, 20, 4},
	} {
		t.Run("rereads only a job claimed early: "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				claims, pauses := 0, 0
				b.World.SetFaults(func(call memory.Call) memory.Fault {
					b.mu.Lock()
					defer b.mu.Unlock()
					switch {
					case call.Op == memory.TableGet && call.Ref.Table == contract.Claims:
						claims++
					case call.Op == memory.TableQuery:
						pauses++
					}
					return memory.Fault{}
				})
				for range 20 {
					b.fire(b.put(c.due), 0)
				}
				b.start("a")
				b.sleep(5 * time.Second)
				b.mu.Lock()
				defer b.mu.Unlock()
				if len(b.runs) != 20 {
					t.Fatalf("%d of 20 ran", len(b.runs))
				}
				if claims != c.claims || pauses > c.pauses {
					t.Errorf("20 jobs cost %d reads of claims and %d of pauses, want %d and at most %d", claims, pauses,
						c.claims, c.pauses)
				}
			})
		})
	}
}
