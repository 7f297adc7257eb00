package worker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/workers/executor"
)

func peeks(c memory.Call) bool { return c.Op == memory.TableQuery && c.Ref.Table == contract.Claims }

// hears runs one attempt, flags a cancel that long after its start, and returns when its handler heard of it.
func (b *bench) hears(after time.Duration) time.Duration {
	b.Helper()
	heard := make(chan time.Time, 1)
	b.then(func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrCancelled) {
			b.Errorf("its context ended with %v", context.Cause(ctx))
		}
		heard <- time.Now()
		return nil, ctx.Err()
	})
	r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
	b.fire(r, 0)
	b.sleep(after)
	b.Write(job.FlagCancel(r.Key, 1, 1))
	flagged := time.Now()
	return (<-heard).Sub(flagged)
}

func TestCancel_ReachesARunningHandlerBetweenHeartbeats(t *testing.T) {
	for _, ms := range []int{10, 3_990, 4_010, 9_000, 10_010, 25_000, 61_234} {
		after := time.Duration(ms) * time.Millisecond
		t.Run("flagged after "+after.String(), func(t *testing.T) {
			within(t, func(b *bench) {
				b.start("a")
				if took := b.hears(after); took > contract.CancelCheckEvery {
					t.Errorf("it heard after %s", took)
				}
			})
		})
	}
}

func TestCancel_IsHeardSoonerWhereLookingIsFree(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a", options(func(o *Options) { o.CancelCheck = time.Second }))
		if took := b.hears(20 * time.Second); took > time.Second {
			t.Errorf("it heard after %s", took)
		}
	})
}

func TestCancel_IsHeardAtTheNextLookAfterAFailedOne(t *testing.T) {
	within(t, func(b *bench) {
		b.Fault(func(c memory.Call) bool { return peeks(c) && c.N == 1 }, memory.Fault{Fail: fault.Unavailable})
		b.start("a")
		if took := b.hears(time.Second); took > 2*contract.CancelCheckEvery {
			t.Errorf("it heard after %s", took)
		}
	})
}

func TestCancel_OfAnotherOwnerEndsNoAttempt(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(9 * time.Second)
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(time.Second)
		c := b.Claim(r.Key)
		w := job.FlagCancel(r.Key, 1, c.Token)
		w.Set["token"] = c.Token + 1 // another worker has the attempt, and is asked to stop
		b.Write(w)
		b.sleep(7 * time.Second)
		if b.started() != 1 || len(b.reports()) != 0 {
			t.Error("the attempt ended")
		}
	})
}

func TestCancel_IsLookedForOnlyByWhatRunsLong(t *testing.T) {
	for lasts, want := range map[time.Duration]int{3 * time.Second: 0, 9 * time.Second: 2, time.Minute: 12} {
		t.Run("looks of a job of "+lasts.String(), func(t *testing.T) {
			within(t, func(b *bench) {
				polls := b.Count(peeks)
				b.sleeps(lasts)
				b.start("a")
				b.fire(b.put(0, func(r *job.Row) { r.Timeout = time.Hour }), 0)
				b.sleep(5 * time.Minute)
				if polls() != want {
					t.Errorf("it looked %d times, want %d", polls(), want)
				}
			})
		})
	}
}
