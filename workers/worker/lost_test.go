package worker

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

func failOnLost(r *job.Row) { r.Retry.FailOnLost = true }

//proof:of F16
func TestWorker_RestartsAnAttemptWhoseWorkerDiedUnlessItIsToFail(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*job.Row)
		starts int
		kind   job.OutcomeKind
	}{
		"on_worker_lost rerun starts it again": {func(*job.Row) {}, 2, job.OutcomeSucceeded},
		"on_worker_lost fail fails it":         {failOnLost, 1, job.OutcomeFailed},
	} {
		for _, after := range []time.Duration{time.Second, 15 * time.Second} { // before and after a heartbeat
			t.Run(fmt.Sprintf("%s, killed after %s", name, after), func(t *testing.T) {
				within(t, func(b *bench) {
					b.sleeps(20 * time.Second)
					_, kill := b.killable("doomed")
					r := b.put(0, c.change)
					b.fire(r, 0)
					b.sleep(after)
					if b.started() != 1 {
						t.Fatal("it did not start")
					}
					first := b.at[0].UTC().Truncate(time.Millisecond)
					kill()
					b.start("next")
					b.sleep(2 * time.Minute)
					got := b.outcomes()
					if len(got) != 1 || b.started() != c.starts || got[0].Kind != c.kind {
						t.Fatalf("it started %d times and ended as %+v", b.started(), got)
					}
					o := got[0]
					if c.kind == job.OutcomeFailed {
						if o.Error.Code != job.CodeWorkerLost || o.Permanent || o.Worker != "doomed" ||
							!o.StartedAt.Equal(first) || len(o.Lost) != 0 {
							t.Errorf("the outcome is %+v", o)
						}
						return
					}
					if len(o.Lost) != 1 || o.Lost[0].Worker != "doomed" || !o.Lost[0].StartedAt.Equal(first) ||
						o.Lost[0].Outcome != job.OutcomeLost || o.Lost[0].Start != 1 {
						t.Errorf("the lost start is noted as %+v", o.Lost)
					}
				})
			})
		}
	}
}

//proof:of F16
func TestWorker_NotesEveryStartOfAnAttemptThatKillsItsWorkers(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(20 * time.Second)
		r := b.put(0)
		b.fire(r, 0)
		for n := range contract.MaxTakeovers {
			_, kill := b.killable(fmt.Sprint("doomed-", n))
			for b.started() <= n {
				b.sleep(time.Second)
			}
			kill()
		}
		b.start("last")
		b.sleep(10 * time.Minute)
		got := b.outcomes()
		if len(got) != 1 || got[0].Error == nil || got[0].Error.Code != job.CodePoison || !got[0].StartedAt.IsZero() {
			t.Fatalf("ended as %+v", got)
		}
		if b.started() != contract.MaxTakeovers || len(got[0].Lost) != contract.MaxTakeovers {
			t.Fatalf("%d starts, of which %d are noted", b.started(), len(got[0].Lost))
		}
		for n, lost := range got[0].Lost {
			if late := b.at[n].Sub(lost.StartedAt); lost.Start != int64(n+1) || late < 0 || late > time.Millisecond ||
				lost.Worker != fmt.Sprint("doomed-", n) {
				t.Errorf("start %d at %s is noted as %+v", n, b.at[n], lost)
			}
		}
	})
}

//proof:of F16
func TestWorker_NotesAStartThatItsDrainBrokeOff(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*job.Row)
		starts int
	}{
		"on_worker_lost rerun": {func(*job.Row) {}, 2},
		"on_worker_lost fail":  {failOnLost, 1},
	} {
		t.Run("notes a start that a drain broke off with "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				b.sleeps(30 * time.Second)
				old := b.start("old", options(func(o *Options) { o.Drain = time.Second }))
				r := b.put(0, c.change)
				b.fire(r, 0)
				b.sleep(time.Second)
				old.stop()
				old.wait()
				b.start("new")
				b.sleep(time.Minute)
				got := b.outcomes()
				if len(got) != 1 || b.started() != c.starts {
					t.Fatalf("it started %d times and ended as %+v", b.started(), got)
				}
				if c.starts == 1 {
					if got[0].Error == nil || got[0].Error.Code != job.CodeWorkerLost || got[0].StartedAt.IsZero() {
						t.Errorf("ended as %+v", got[0])
					}
				} else if len(got[0].Lost) != 1 || got[0].Lost[0].Worker != "old" || b.Claim(r.Key).Takeovers != 1 {
					t.Errorf("ended as %+v, claim %+v", got[0], b.Claim(r.Key))
				}
			})
		})
	}
}
