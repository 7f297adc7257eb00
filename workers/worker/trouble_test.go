package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

//proof:of F01
func TestWorker_SendsReportsOfResultsWithCharactersThatQueuesRefuse(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			if string(w.Payload) == "fail" {
				return nil, &executor.Failure{Code: "odd\uffff", Message: "a\x00b \uffff \xed\xa0\x80"}
			}
			return json.RawMessage("{\"a\":\"x\uffff\ufffe\xffy\",\"" + "\uffff" + "\":1}"), nil
		}
		b.start("a")
		for n := range 30 {
			b.fire(b.put(0, func(r *job.Row) {
				if n%2 == 0 {
					r.Payload = "fail"
				}
			}), 0)
		}
		b.sleep(30 * time.Second)
		got := b.outcomes()
		if len(got) != 30 || b.depth() != (message.Depth{}) {
			t.Fatalf("%d of 30 are reported, and the queue holds %+v", len(got), b.depth())
		}
		for _, o := range got {
			var result map[string]any
			if o.Kind == job.OutcomeSucceeded && (json.Unmarshal(o.Result, &result) != nil ||
				result["a"] != "x\uffff\ufffe\ufffdy" || result["\uffff"] != 1.0) {
				t.Errorf("the result came out as %s", o.Result)
			}
		}
	})
}

// picky takes no message that holds a word, and says so as SQS does, until it has come round.
type picky struct {
	Queues
	word  string
	kind  fault.Kind
	round atomic.Bool
}

func (p *picky) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	failed := map[int]error{}
	for i, o := range out {
		if !p.round.Load() && strings.Contains(o.Body, p.word) {
			failed[i] = fault.New(p.kind, nil, "sending to %s", queue)
		} else if err := p.Queues.Send(ctx, queue, o); err != nil {
			failed[i] = err
		}
	}
	if len(failed) > 0 {
		return &message.Unsent{Failed: failed}
	}
	return nil
}

//proof:of F01
func TestWorker_GivesUpReportsThatCanNeverBeSentAndSendsTheOthers(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Invalid, fault.Forbidden, ""} {
		t.Run(fmt.Sprintf("refused as %q", kind), func(t *testing.T) {
			within(t, func(b *bench) {
				p := &picky{Queues: b.World.Queues(), word: `"version":7`, kind: kind}
				b.start("a", func(d *Deps, _ *Options) { d.Queues = p })
				const bad = reportsWaiting + 100
				for n := range bad + 100 {
					b.fire(b.put(0, func(r *job.Row) {
						if n < bad {
							r.Version = 7
						}
					}), 0)
				}
				b.sleep(5 * time.Minute)
				if got := len(b.outcomes()); got != 100 {
					t.Errorf("%d of the other 100 are reported", got)
				}
				if d := b.depth(); d.Visible+d.InFlight != bad {
					t.Errorf("of %d messages whose reports cannot be sent the queue holds %+v", bad, d)
				}
				if b.Meter.Total(telemetry.Quarantined) < bad || b.Meter.Total(telemetry.Faults) == 0 {
					t.Errorf("%v were counted", b.Meter.Total(telemetry.Quarantined))
				}
				if b.started() != bad+100 {
					t.Errorf("%d attempts ran, want each once", b.started())
				}
				p.round.Store(true)
				b.sleep(40 * time.Minute)
				if got := len(b.outcomes()); got != bad || b.depth() != (message.Depth{}) {
					t.Errorf("once reports are taken %d of %d come, and the queue holds %+v", got, bad, b.depth())
				}
			})
		})
	}
}

//proof:of F02
func TestWorker_ResumesAfterAnOutageWhileALongAttemptRuns(t *testing.T) {
	for name, deaf := range map[string]bool{"its heartbeats get through": false,
		"it ignores that its lease is lost": true} {
		t.Run("resumes after an outage: "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				end := make(chan struct{})
				defer close(end)
				b.does = func(ctx context.Context, w executor.Work) (json.RawMessage, error) {
					if string(w.Payload) == `"long"` {
						if deaf {
							<-end
						}
						select {
						case <-time.After(6 * time.Hour):
						case <-ctx.Done():
						}
					}
					return w.Payload, nil
				}
				b.start("a")
				b.fire(b.put(0, func(r *job.Row) { r.Payload, r.Timeout = `"long"`, 7*time.Hour }), 0)
				b.sleep(time.Minute)
				outage := 15 * time.Second
				if deaf {
					outage = time.Minute // longer than its lease
				}
				var others []job.Row
				for range 7 {
					others = append(others, b.put(0))
				}
				table := func(c memory.Call) bool { return strings.HasPrefix(c.Op, "table.") }
				b.Fail(table)
				for _, r := range others {
					b.fire(r, 0)
				}
				b.sleep(outage)
				b.World.SetFaults(nil)
				b.sleep(2 * time.Minute)
				if n := b.started(); n < 8 {
					t.Errorf("two minutes after the outage %d of 7 others have started", n-1)
				}
			})
		})
	}
}

//proof:of F02
func TestWorker_KeepsTakingWorkWhileOneKeyIsInTrouble(t *testing.T) {
	for name, kind := range map[string]fault.Kind{
		"a transaction holds it": fault.Conflict, "its partition is hot": fault.Throttled, "what lies there is " +
			"broken": fault.Undecodable,
	} {
		for _, op := range []string{memory.TableGet, memory.TableWrite} {
			t.Run(name+", at a "+op, func(t *testing.T) {
				within(t, func(b *bench) {
					bad := b.put(0)
					its := func(c memory.Call) bool {
						return c.Op == op && (c.Ref == bad.Ref() || c.Ref == bad.ClaimRef())
					}
					b.Fault(its, memory.Fault{Fail: kind})
					b.start("a")
					for range 30 { // copies of the bad one's firing, so that it is met again and again
						b.fire(bad, 0)
					}
					late := time.Duration(0)
					for range 60 {
						r := b.put(0)
						b.fire(r, 0)
						b.sleep(time.Second)
						at, ok := b.startOf(r)
						if !ok {
							t.Fatal("another job did not start within a second")
						}
						late = max(late, at.Sub(r.DueAt))
					}
					if late > 300*time.Millisecond {
						t.Errorf("another job started %s late", late)
					}
				})
			})
		}
	}
}

// A tenant's rows, claims or pauses that get no answer are no reason to poll less for the others, however many of its
// jobs are due and however long each call takes.
//
//proof:of F76
func TestWorker_RunsOtherTenantsJobsWhileOneTenantsKeysDoNotAnswer(t *testing.T) {
	rows := func(c memory.Call) bool { return c.Op == memory.TableGet && c.Ref.Table == contract.Jobs }
	claims := func(c memory.Call) bool { return c.Op == memory.TableWrite && c.Ref.Table == contract.Claims }
	pauses := func(c memory.Call) bool { return c.Op == memory.TableQuery }
	for name, c := range map[string]struct {
		of func(memory.Call) bool
		is memory.Fault
	}{
		"its rows answer with an error":    {rows, memory.Fault{Fail: fault.Unavailable}},
		"its rows do not answer":           {rows, memory.Fault{Hang: true}},
		"its rows answer with a new error": {rows, memory.Fault{Fail: "unheard of"}},
		"its claims answer with an error":  {claims, memory.Fault{Fail: fault.Unavailable}},
		"its claims do not answer":         {claims, memory.Fault{Hang: true}},
		"its pauses answer with an error":  {pauses, memory.Fault{Fail: fault.Unavailable}},
		"its pauses do not answer":         {pauses, memory.Fault{Hang: true}},
	} {
		t.Run("runs other tenants' jobs while of one tenant "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				b.World.SetFaults(func(call memory.Call) memory.Fault {
					if strings.Contains(call.Ref.PK, "sick") && c.of(call) {
						return c.is
					}
					return memory.Fault{}
				})
				var sick []job.Row
				for range 400 {
					sick = append(sick, b.put(0, func(r *job.Row) { r.Tenant = "sick" }))
					b.fire(sick[len(sick)-1], 0)
				}
				b.start("a")
				b.sleep(2 * time.Second)
				for range 200 {
					r := b.put(0)
					b.fire(r, 0)
				}
				b.sleep(30 * time.Second)
				if n := b.started(); n != 200 {
					t.Errorf("after 30 s %d of another tenant's 200 jobs have started", n)
				}
				b.sleep(10 * time.Minute)
				b.World.SetFaults(nil)
				b.sleep(3 * time.Minute)
				if n := b.started() - 200; n != len(sick) {
					t.Errorf("3 min after the trouble %d of the tenant's own %d jobs have started", n, len(sick))
				}
			})
		})
	}
}

func TestWorker_PollsLessWhileTheStoreTakesNoWrites(t *testing.T) {
	within(t, func(b *bench) {
		for range 200 {
			b.fire(b.put(0), 0)
		}
		receives := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			switch c.Op {
			case memory.TableWrite:
				return memory.Fault{Fail: fault.Unavailable}
			case memory.QueueReceive:
				b.mu.Lock()
				defer b.mu.Unlock()
				receives++
			}
			return memory.Fault{}
		})
		b.start("a")
		b.sleep(5 * time.Minute)
		b.mu.Lock()
		if receives > 400 { // of four queues
			t.Errorf("the worker has received %d times in five minutes", receives)
		}
		b.mu.Unlock()
		b.World.SetFaults(nil)
		b.sleep(2 * time.Minute)
		if n := b.started(); n != 200 {
			t.Errorf("two minutes after the outage %d of 200 jobs have started", n)
		}
	})
}

//proof:of F02
func TestWorker_KeepsTakingWorkWhileASlotsHolderCannotBeRead(t *testing.T) {
	within(t, func(b *bench) {
		s := b.rule(func(s *schedule.Schedule) { s.Overlap = schedule.OverlapSkip })
		h := b.put(-time.Minute, of(s))
		b.Write(s.TakeSlot(h.ID))
		broken := h.Item()
		broken["schema_v"] = int64(99)
		b.Write(item.Write{Ref: h.Ref(), Name: "test.broken", Put: broken})
		for range 10 {
			b.fire(b.put(0, of(s)), 0)
		}
		b.start("a")
		for range 60 {
			r := b.put(0)
			b.fire(r, 0)
			b.sleep(time.Second)
			if at, ok := b.startOf(r); !ok || at.Sub(r.DueAt) > 300*time.Millisecond {
				t.Fatalf("another job started at %s, due at %s", at, r.DueAt)
			}
		}
		if b.Meter.Total(telemetry.Quarantined) != 0 { // the holder's claim says that it holds nothing
			t.Errorf("%v messages are set aside", b.Meter.Total(telemetry.Quarantined))
		}
	})
}

//proof:of F06
func TestWorker_CountsTheLeaseFromTheClaimAndNotFromARetry(t *testing.T) {
	within(t, func(b *bench) {
		b.sleeps(20 * time.Second)
		var claimed, beat time.Time
		missed := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			b.mu.Lock()
			defer b.mu.Unlock()
			switch {
			case stagetest.Writes(job.WriteClaimNew)(c) && claimed.IsZero():
				claimed = time.Now()
			case stagetest.Writes(job.WriteClaimLetGo)(c): // it keeps its lease
				return memory.Fault{Fail: fault.Unavailable}
			case stagetest.Writes(job.WriteClaimHeartbeat)(c) && beat.IsZero():
				beat = time.Now()
			case readsBlob(c) && missed == 0:
				missed++
				return memory.Fault{Fail: fault.Throttled}
			}
			return memory.Fault{}
		})
		r := b.put(0, func(r *job.Row) { r.PayloadIn, r.PayloadVer = job.InItem, 1 })
		b.Write(r.PutContent(job.PayloadContent(1), "1"))
		b.fire(r, 0)
		b.start("a")
		b.sleep(15 * time.Second)
		if after := beat.Sub(claimed); b.started() != 1 || after != contract.HeartbeatEvery {
			t.Errorf("the first heartbeat came %s after the claim that stands", after)
		}
	})
}

func TestWorker_DropsAFiringThatNoRowAsksFor(t *testing.T) {
	for name, change := range map[string]func(*job.Row){
		"of a later attempt": func(r *job.Row) { r.Attempt = 9 },
		"of a later version": func(r *job.Row) { r.Version = 9 },
	} {
		t.Run("drops a firing "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				r := b.put(0)
				c := b.foreign(r, contract.Lease)
				b.Write(job.RecordOutcome(r.Key, 1, c.Token, job.Outcome{Kind: job.OutcomeSucceeded}))
				forged := r
				change(&forged)
				b.fire(forged, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				if c := b.Claim(r.Key); c.Attempt != 1 || c.Outcome == nil || b.depth() != (message.Depth{}) {
					t.Errorf("the claim is %+v, the queue holds %+v", c, b.depth())
				}
			})
		})
	}
}

// A tenant whose pauses cannot be read has many jobs due; each would wait in a slot for an answer.
//
//proof:of F02
func TestWorker_KeepsSlotsForOthersWhileOneTenantsPausesAreOutOfReach(t *testing.T) {
	within(t, func(b *bench) {
		b.Fault(stagetest.Queries(job.PausesKey("hot")), memory.Fault{Wait: 2 * time.Second, Fail: fault.Throttled})
		b.start("a")
		for range 200 {
			b.fire(b.put(0, func(r *job.Row) { r.Tenant = "hot" }), 0)
		}
		waited := 0
		for range 120 {
			r := b.put(0)
			b.fire(r, 0)
			b.sleep(3 * time.Second)
			at, ok := b.startOf(r)
			if !ok {
				t.Fatal("another tenant's job did not start within three seconds")
			}
			if at.Sub(r.DueAt) > 500*time.Millisecond {
				waited++
			}
		}
		if waited > 30 {
			t.Errorf("%d of another tenant's 120 jobs waited for a slot", waited)
		}
	})
}
