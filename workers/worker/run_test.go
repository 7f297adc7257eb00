package worker

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

// S25: visibility 30 s, a job of 95 s, three workers polling.
//
//proof:of 118 S25
func TestRun_LastsLongerThanTheVisibility(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(95 * time.Second)
		beats := b.Count(stagetest.Writes(job.WriteClaimHeartbeat))
		for _, name := range []string{"a", "b", "c"} {
			b.start(name)
		}
		r := b.put(0, func(r *job.Row) { r.Timeout = 10 * time.Minute })
		b.fire(r, 0)
		b.sleep(10 * time.Minute)
		if b.started() != 1 || len(b.outcomes()) != 1 {
			t.Errorf("it ran %d times", b.started())
		}
		if b.depth() != (message.Depth{}) {
			t.Errorf("the message is still there: %+v", b.depth())
		}
		if beats() != 9 {
			t.Errorf("%d heartbeats in 95 s and after", beats())
		}
		if b.Meter.Total(telemetry.Duplicates) != 0 {
			t.Error("its message was seen by others meanwhile")
		}
	})
}

//proof:of 115
func TestRun_SendsNoHeartbeatForAShortJob(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(9 * time.Second)
		b.Once(stagetest.Writes(job.WriteClaimHeartbeat), func() memory.Fault {
			t.Error("there was a heartbeat")
			return memory.Fault{}
		})
		b.start("a")
		b.fire(b.put(0), 0)
		b.sleep(time.Minute)
	})
}

//proof:of 120
func TestRun_ReportsRunningAndProgressAtTheFirstHeartbeat(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			w.Progress(1, 4, "one")
			w.Progress(2, 4, "two")
			time.Sleep(25 * time.Second)
			return nil, nil
		}
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(12 * time.Second)
		reports := b.reports()
		if len(reports) != 1 || reports[0].Kind != message.Running || reports[0].Version != 1 ||
			reports[0].Attempt != 1 {
			t.Fatalf("reported %+v", reports)
		}
		var o job.Outcome
		if err := json.Unmarshal(reports[0].Outcome, &o); err != nil || !o.StartedAt.Equal(r.DueAt) {
			t.Errorf("it says of its start %s, %v", reports[0].Outcome, err)
		}
		if p := b.Claim(r.Key).Progress; p == nil || p.Done != 2 || p.Total != 4 || p.Note != "two" ||
			!p.At.Equal(r.DueAt) {
			t.Errorf("progress on the claim is %+v", p)
		}
		b.sleep(20 * time.Second)
		if reports := b.reports(); len(reports) != 1 || reports[0].Kind != message.Ended {
			t.Errorf("later it reported %+v", reports)
		}
	})
}

func TestRun_SeesACancelAtItsHeartbeat(t *testing.T) {
	within(t, func(b *bench) {
		var cause error
		b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, ctx.Err()
		}
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(12 * time.Second)
		b.Write(job.FlagCancel(r.Key, 1, 1))
		b.sleep(10 * time.Second)
		if !errors.Is(cause, ErrCancelled) {
			t.Errorf("the handler's cause is %v", cause)
		}
		o := b.outcomes()
		if len(o) != 1 || o[0].Kind != job.OutcomeFailed || o[0].Error.Code != job.CodeCancelled {
			t.Errorf("ended as %+v", o)
		}
	})
}

func TestRun_SucceedsDespiteACancel(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
			<-ctx.Done()
			return json.RawMessage(`"done all the same"`), nil
		}
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(2 * time.Second)
		b.Write(job.FlagCancel(r.Key, 1, 1))
		b.sleep(20 * time.Second)
		if o := b.outcomes(); len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
			t.Errorf("ended as %+v", o)
		}
	})
}

//proof:of 104
func TestRun_EndsRetryableAtItsTimeout(t *testing.T) {
	within(t, func(b *bench) {
		var cause error
		b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, ctx.Err()
		}
		b.start("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = 3 * time.Second })
		b.fire(r, 0)
		b.sleep(5 * time.Second)
		o := b.outcomes()
		if len(o) != 1 || o[0].Kind != job.OutcomeFailed || o[0].Permanent || o[0].Error.Code != job.CodeTimeout {
			t.Fatalf("ended as %+v", o)
		}
		if took := o[0].FinishedAt.Sub(o[0].StartedAt); took != 3*time.Second {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(cause, ErrTimeout) {
			t.Errorf("the handler's cause is %v", cause)
		}
	})
}

func TestRun_KeepsTheSlotOfAHandlerThatIgnoresItsTimeout(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(context.Context, executor.Work) (json.RawMessage, error) {
			time.Sleep(time.Minute)
			return nil, nil
		}
		b.start("a", options(func(o *Options) { o.Slots = 1 }))
		first := b.put(0, func(r *job.Row) { r.Timeout = 3 * time.Second })
		b.fire(first, 0)
		b.sleep(time.Second)
		b.fire(b.put(0), 0)
		b.sleep(10 * time.Second)
		o := b.outcomes()
		if len(o) != 1 || o[0].Error == nil || o[0].Error.Code != job.CodeTimeout {
			t.Errorf("its timeout was not recorded while it goes on: %+v", o)
		}
		if b.started() != 1 {
			t.Error("another attempt got the slot of a handler that goes on")
		}
		b.sleep(2 * time.Minute)
		if b.started() != 2 {
			t.Error("the slot was never given back")
		}
	})
}

func TestRun_TimesOutAHandlerThatIgnoresACancel(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(context.Context, executor.Work) (json.RawMessage, error) {
			time.Sleep(10 * time.Minute)
			return nil, nil
		}
		b.start("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = 40 * time.Second })
		b.fire(r, 0)
		b.sleep(2 * time.Second)
		b.Write(job.FlagCancel(r.Key, 1, 1))
		b.sleep(time.Minute)
		o := b.outcomes()
		if len(o) != 1 || o[0].Error.Code != job.CodeCancelled {
			t.Errorf("ended as %+v", o)
		}
		b.sleep(10 * time.Minute)
	})
}

func TestRun_CancelsTheHandlerAndReportsNothingWhenTheLeaseIsLost(t *testing.T) {
	within(t, func(b *bench) {
		var cause error
		b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return json.RawMessage("1"), nil
		}
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(5 * time.Second)
		b.Write(job.TakeOver(r.Key, b.Claim(r.Key), job.Owner{Worker: "other", Nonce: "others",
			LeaseUntil: time.Now().Add(time.Hour)}, time.Now().Add(time.Minute)))
		b.sleep(10 * time.Second)
		if !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("the handler's cause is %v", cause)
		}
		if got := b.reports(); len(got) != 0 {
			t.Errorf("reported %+v", got)
		}
		if d := b.depth(); d.InFlight != 1 {
			t.Errorf("the message was deleted: %+v", d)
		}
		if c := b.Claim(r.Key); c.Worker != "other" || c.Outcome != nil || c.Takeovers != 2 {
			t.Errorf("the other's claim was touched: %+v", c)
		}
		if n := b.Meter.Total(telemetry.ClaimsLost); n != 1 {
			t.Errorf("one lost claim was counted as %v", n)
		}
	})
}

func TestRun_CancelsTheHandlerBeforeItsLeaseEnds(t *testing.T) {
	within(t, func(b *bench) {
		var ended time.Time
		b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
			<-ctx.Done()
			ended = time.Now()
			return nil, context.Cause(ctx)
		}
		b.Fail(stagetest.Writes(job.WriteClaimHeartbeat))
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(contract.Lease - time.Second)
		if want := r.DueAt.Add(contract.Lease - contract.SkewMargin); ended.Sub(want).Abs() > time.Millisecond {
			t.Errorf("cancelled at %v, want %v", ended, want)
		}
		if got := b.outcomes(); len(got) != 0 {
			t.Errorf("reported %+v", got)
		}
		b.then(nil)
		b.sleep(time.Minute)
		if c := b.Claim(r.Key); b.started() != 2 || c.Takeovers != 2 {
			t.Errorf("it was not taken over: ran %d times, %+v", b.started(), c)
		}
	})
}

func TestRun_RetriesAFailedHeartbeatInTime(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(50 * time.Second)
		begun := time.Now()
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			switch at := time.Since(begun); {
			case !stagetest.Writes(job.WriteClaimHeartbeat)(c):
			case at < 15*time.Second:
				return memory.Fault{Hang: true}
			case at < 24*time.Second:
				return memory.Fault{Fail: fault.Throttled}
			}
			return memory.Fault{}
		})
		b.start("a")
		b.fire(b.put(0), 0)
		b.sleep(2 * time.Minute)
		if o := b.outcomes(); b.started() != 1 || len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
			t.Errorf("it ran %d times and ended as %+v", b.started(), o)
		}
	})
}

//proof:of 118 S25
func TestRun_OutlivesItsMessage(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(20 * time.Hour)
		long := options(func(o *Options) { o.Poll = 20 * time.Second })
		b.start("a", long)
		b.start("b", long)
		r := b.put(0, func(r *job.Row) { r.Timeout = contract.MaxTimeoutLong })
		b.fire(r, 0)
		b.sleep(12 * time.Hour) // as long as a message can be kept out of sight
		if b.depth() != (message.Depth{}) {
			t.Errorf("its message would come back: %+v", b.depth())
		}
		b.sleep(9 * time.Hour)
		if o := b.outcomes(); b.started() != 1 || len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
			t.Errorf("it ran %d times and ended as %+v", b.started(), o)
		}
		if dead, _ := b.World.Queues().Depth(t.Context(), contract.FiringDead); dead.Visible != 0 {
			t.Error("its message ended as a dead one")
		}
	})
}

// S47 and others: what the handler returns, and what is recorded.
func TestRun_RecordsWhatAHandlerReturns(t *testing.T) {
	type result struct {
		kind      job.OutcomeKind
		permanent bool
		after     time.Duration
		code      string
	}
	for name, c := range map[string]struct {
		does func(context.Context, executor.Work) (json.RawMessage, error)
		want result
	}{
		"an error is retried": {
			func(context.Context, executor.Work) (json.RawMessage, error) { return nil, errors.New("no") },
			result{job.OutcomeFailed, false, 0, job.CodeHandler},
		},
		//proof:of 105
		"a permanent one is not": {
			func(context.Context, executor.Work) (json.RawMessage, error) { return nil, Permanent(errors.New("no")) },
			result{job.OutcomeFailed, true, 0, job.CodePermanent},
		},
		"the target may ask for time": {
			func(context.Context, executor.Work) (json.RawMessage, error) {
				return nil, RetryAfter(time.Minute, errors.New("busy"))
			},
			result{job.OutcomeFailed, false, time.Minute, job.CodeHandler},
		},
		"a snooze is no failure": {
			func(context.Context, executor.Work) (json.RawMessage, error) { return nil, Snooze(time.Hour) },
			result{job.OutcomeSnoozed, false, time.Hour, ""},
		},
		"a panic is retried": {
			func(context.Context, executor.Work) (json.RawMessage, error) { panic("first line\nsecond line") },
			result{job.OutcomeFailed, false, 0, job.CodePanic},
		},
		"an ended goroutine is a panic": {
			func(context.Context, executor.Work) (json.RawMessage, error) { runtime.Goexit(); return nil, nil },
			result{job.OutcomeFailed, false, 0, job.CodePanic},
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				b.does = c.does
				b.start("a")
				b.fire(b.put(0), 0)
				b.sleep(5 * time.Second)
				all := b.outcomes()
				if len(all) != 1 {
					t.Fatalf("%d outcomes", len(all))
				}
				o := all[0]
				got := result{o.Kind, o.Permanent, time.Duration(o.RetryAfterMS) * time.Millisecond, ""}
				if o.Error != nil {
					got.code = o.Error.Code
				}
				if got != c.want {
					t.Errorf("recorded %+v, want %+v", got, c.want)
				}
			})
		})
	}
}
