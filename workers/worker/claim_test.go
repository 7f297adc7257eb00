package worker

import (
	"context"
	"encoding/json"
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

// foreign is a claim that another worker makes.
func (b *bench) foreign(r job.Row, lease time.Duration) job.Claim {
	b.Helper()
	c, err := b.Store.WriteClaim(b.Context(), job.ClaimNew(r.Key, r.Attempt, job.Owner{
		Worker: "other", Nonce: "others", LeaseUntil: time.Now().Add(lease), DueAt: r.DueAt,
	}))
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func TestClaim_RecognisesItsNonceAfterALostAnswer(t *testing.T) {
	within(t, func(b *bench) {
		b.FaultFirst(1, stagetest.Writes(job.WriteClaimNew), memory.Fault{Lost: true})
		r := b.put(0)
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second) // far less than a lease

		if b.started() != 1 || len(b.outcomes()) != 1 {
			t.Fatalf("it ran %d times", b.started())
		}
		if c := b.Claim(r.Key); c.Token != 1 || c.Takeovers != 1 {
			t.Errorf("it was claimed more than once: %+v", c)
		}
	})
}

func TestClaim_CountsItsLeaseFromTheFirstRequest(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(20 * time.Second)
		var claimed, beat time.Time
		reads := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			b.mu.Lock()
			defer b.mu.Unlock()
			switch {
			case stagetest.Writes(job.WriteClaimNew)(c) && claimed.IsZero():
				claimed = time.Now()
				return memory.Fault{Lost: true}
			case stagetest.Writes(job.WriteClaimHeartbeat)(c) && beat.IsZero():
				beat = time.Now()
			case c.Op == memory.TableGet:
				if reads++; reads == 2 { // before the claim is asked for again
					return memory.Fault{Wait: 5 * time.Second}
				}
			}
			return memory.Fault{}
		})
		b.fire(b.put(0), 0)
		b.start("a")
		b.sleep(20 * time.Second)
		if after := beat.Sub(claimed); after != contract.HeartbeatEvery {
			t.Errorf("the first heartbeat came %s after the claim was first asked for", after)
		}
	})
}

//proof:of 160
func TestClaim_WaitsForALiveOwnersLeaseToEnd(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.foreign(r, contract.Lease)
		b.fire(r, 0)
		var tries []time.Duration
		begun := time.Now()
		b.Each(func(c memory.Call) bool {
			return stagetest.Writes(job.WriteClaimNew)(c) || stagetest.Writes(job.WriteClaimTakeOver)(c)
		}, func(memory.Call) {
			b.mu.Lock()
			tries = append(tries, time.Since(begun))
			b.mu.Unlock()
		})
		b.start("a")
		b.sleep(contract.Lease - time.Second)
		b.mu.Lock()
		if len(tries) != 3 || tries[1]-tries[0] != 200*time.Millisecond || tries[2]-tries[1] != time.Second {
			t.Errorf("tried at %v", tries)
		}
		b.mu.Unlock()
		b.sleep(4 * time.Second)
		if b.started() != 1 {
			t.Fatalf("after its owner's lease it ran %d times", b.started())
		}
		if c := b.Claim(r.Key); c.Token != 2 || c.Takeovers != 2 {
			t.Errorf("it was not taken over: %+v", c)
		}
		if b.Meter.Total(telemetry.ClaimsTakenOver) != 1 || b.Meter.Total(telemetry.Duplicates) != 1 {
			t.Error("the duplicate and the take-over were not counted once each")
		}
	})
}

//proof:of 86
func TestClaim_RepeatsTheReportOfARecordedOutcome(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		c := b.foreign(r, contract.Lease)
		b.Write(job.RecordOutcome(r.Key, 1, c.Token, job.Outcome{Kind: job.OutcomeSucceeded, Worker: "other",
			Result: json.RawMessage("7")}))
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		got := b.outcomes()
		if b.started() != 0 || len(got) != 1 || got[0].Worker != "other" || string(got[0].Result) != "7" {
			t.Errorf("it ran %d times and reported %+v", b.started(), got)
		}
		if d := b.depth(); d != (message.Depth{}) {
			t.Errorf("the message is still there: %+v", d)
		}
	})
}

//proof:of 76
func TestClaim_DeletesTheMessageOfAnOlderAttempt(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		newer := r
		newer.Attempt = 2
		b.foreign(newer, contract.Lease)
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		if b.started() != 0 || len(b.reports()) != 0 || b.depth() != (message.Depth{}) {
			t.Error("a firing of an older attempt was not just dropped")
		}
		if c := b.Claim(r.Key); c.Attempt != 2 || c.Worker != "other" {
			t.Errorf("it touched the newer claim: %+v", c)
		}
	})
}

func TestSettle_ReportsOnceAfterALostAnswer(t *testing.T) {
	within(t, func(b *bench) {
		b.FaultFirst(1, stagetest.Writes(job.WriteClaimOutcome), memory.Fault{Lost: true})
		r := b.put(0)
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		if got := b.outcomes(); b.started() != 1 || len(got) != 1 {
			t.Errorf("it ran %d times and was reported %d times", b.started(), len(got))
		}
	})
}

//proof:of 122
func TestSettle_ReportsNothingWhenRefused(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.fire(r, 0)
		b.does = func(context.Context, executor.Work) (json.RawMessage, error) {
			// While it runs, another process takes over: as if this process had been frozen for a lease.
			b.Write(job.TakeOver(r.Key, b.Claim(r.Key), job.Owner{Worker: "other", Nonce: "others",
				LeaseUntil: time.Now().Add(2 * time.Hour)}, time.Now().Add(time.Hour)))
			return nil, nil
		}
		b.start("a")
		b.sleep(5 * time.Second)
		if got := b.reports(); len(got) != 0 {
			t.Errorf("a fenced worker reported %+v", got)
		}
		if d := b.depth(); d.InFlight != 1 {
			t.Errorf("a fenced worker deleted the message: %+v", d)
		}
		if b.Meter.Total(telemetry.ClaimsLost) != 1 {
			t.Error("the lost claim was not counted")
		}
	})
}

//proof:of 83
func TestSettle_RetriesUntilTheOutcomeIsRecorded(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.fire(r, 0)
		begun := time.Now()
		b.Fail(func(c memory.Call) bool {
			return stagetest.Writes(job.WriteClaimOutcome)(c) && time.Since(begun) < 20*time.Second
		})
		b.start("a")
		b.sleep(19 * time.Second)
		if len(b.reports()) != 0 {
			t.Error("an outcome was reported that is on no record")
		}
		b.sleep(10 * time.Second)
		if got := b.outcomes(); b.started() != 1 || len(got) != 1 {
			t.Errorf("it ran %d times and was reported %d times", b.started(), len(got))
		}
	})
}

// S27: the same message on the queue twice within 10 ms, 200 times, with ten workers.
//
//proof:of 78 81 172 S27
func TestWorker_RunsAMessageOnceThoughTenWorkersGetIt(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(300 * time.Millisecond)
		var rows []job.Row
		for range 200 {
			r := b.put(0)
			rows = append(rows, r)
			b.fire(r, 0)
			b.sleep(10 * time.Millisecond)
			b.fire(r, 0)
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			b.start(name)
		}
		b.sleep(2 * time.Minute)
		if b.started() != 200 {
			t.Errorf("200 jobs, each fired twice, had %d effects", b.started())
		}
		if d := b.depth(); d != (message.Depth{}) {
			t.Errorf("messages are left: %+v", d)
		}
		ended := map[string]bool{}
		for _, r := range b.reports() {
			ended[r.JobID] = true
		}
		if len(ended) != len(rows) {
			t.Errorf("%d of 200 jobs were reported", len(ended))
		}
	})
}

// S27, second half: the first worker dies before it finishes.
//
//proof:of 115 117 S27
func TestWorker_RunsTheSecondCopyWhenTheFirstWorkerDied(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(5 * time.Second)
		r := b.put(0)
		b.fire(r, 0)
		_, kill := b.killable("a")
		b.sleep(2 * time.Second)
		kill()
		b.fire(r, 0)
		b.start("b")
		b.sleep(time.Minute)

		if b.started() != 2 {
			t.Fatalf("it was started %d times", b.started())
		}
		first, second := b.runs[0], b.runs[1]
		if second.Token != first.Token+1 || second.Attempt != first.Attempt || second.HandlerKey != first.HandlerKey {
			t.Errorf("the fencing pair went from (%d, %d) to (%d, %d)", first.Attempt, first.Token, second.Attempt,
				second.Token)
		}
		c := b.Claim(r.Key)
		if c.Takeovers != 2 || c.Worker != "b" || c.Outcome == nil || c.Outcome.Worker != "b" {
			t.Errorf("the claim is %+v", c)
		}
		if wait := b.at[1].Sub(b.at[0]); wait < contract.Lease || wait > contract.Lease+5*time.Second {
			t.Errorf("it was taken over after %s", wait)
		}
		if got := b.outcomes(); len(got) == 0 || got[0].Worker != "b" {
			t.Errorf("reported %+v", got)
		}
	})
}

//proof:of 177
func TestWorker_RepeatsTheReportOfAWorkerThatDied(t *testing.T) {
	within(t, func(b *bench) {
		_, kill := b.killable("a")
		b.Once(stagetest.To(memory.QueueSend, contract.ReportQueue),
			func() memory.Fault { kill(); return memory.Fault{Fail: fault.Unavailable} })
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(2 * time.Second)
		if c := b.Claim(r.Key); c.Outcome == nil {
			t.Fatal("the outcome was not recorded before the report")
		}
		b.start("b")
		b.sleep(time.Minute)
		if got := b.outcomes(); b.started() != 1 || len(got) != 1 || got[0].Worker != "a" {
			t.Errorf("it ran %d times and reported %+v", b.started(), got)
		}
		if d := b.depth(); d != (message.Depth{}) {
			t.Errorf("the message is still there: %+v", d)
		}
	})
}
