package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

func TestWorker_HoldsAMessageBeforeItClaims(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a")
		r := b.put(5 * time.Second)
		b.fire(r, 0)
		b.sleep(5*time.Second - contract.HoldUntil - time.Millisecond)
		if c := b.Claim(r.Key); c.Attempt != 0 {
			t.Errorf("it was claimed before due − 500 ms: %+v", c)
		}
		if d := b.depth(); d.InFlight != 1 {
			t.Errorf("it is not held: %+v", d)
		}
		b.sleep(2 * time.Millisecond)
		if c := b.Claim(r.Key); c.Attempt != 1 {
			t.Error("it was not claimed at due − 500 ms")
		}
		if b.started() != 0 {
			t.Error("it was started before it was due")
		}
	})
}

func TestWorker_GivesBackAMessageThatIsFarTooEarly(t *testing.T) {
	within(t, func(b *bench) {
		w := b.start("a")
		r := b.put(10 * time.Minute)
		b.fire(r, 0)
		b.sleep(9 * time.Minute)
		if n := len(w.intake.close()); n != 0 {
			t.Error("it is held in memory, where it dies with the worker")
		}
		b.start("b")
		if n := len(b.Claim(r.Key).Worker); n != 0 || b.started() != 0 {
			t.Error("it was claimed minutes early")
		}
		b.sleep(2 * time.Minute)
		if b.started() != 1 || b.at[0] != r.DueAt {
			t.Errorf("it ran %d times, at %v", b.started(), b.at)
		}
	})
}

// S13: a firing delivered a moment early.
//
//proof:of S13
func TestWorker_RunsAnEarlyFiringOnceAndNotBeforeItsTime(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a")
		r := b.put(50 * time.Millisecond)
		b.fire(r, 0)
		b.sleep(time.Minute)
		if b.started() != 1 || b.at[0].Before(r.DueAt) || b.at[0].After(r.DueAt.Add(time.Millisecond)) {
			t.Errorf("it is due at %v and ran at %v", r.DueAt, b.at)
		}
	})
}

//proof:of S13
func TestWorker_StartsNoAttemptBeforeItIsDueByItsClock(t *testing.T) {
	for name, offset := range map[string]time.Duration{"a clock behind": -3 * time.Second,
		"a clock ahead": 3 * time.Second} {
		t.Run("starts no attempt early with "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				skewed := clock.Skewed{Offset: offset}
				b.start("a", func(d *Deps, _ *Options) { d.Clock = skewed })
				r := b.put(8 * time.Second)
				b.fire(r, 0)
				b.sleep(20 * time.Second)
				if b.started() != 1 || b.at[0].Add(offset) != r.DueAt {
					t.Errorf("it is due at %v and ran at %v of its clock", r.DueAt, b.at[0].Add(offset))
				}
			})
		})
	}
}

//proof:of 114
func TestWorker_GivesBackAnUnknownTaskUnclaimed(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0, func(r *job.Row) { r.Executor, r.Task = job.ExecutorGo, "charge" })
		b.fire(r, 0)
		old := b.start("old")
		b.sleep(30 * time.Second)
		if c := b.Claim(r.Key); c.Attempt != 0 {
			t.Errorf("it was claimed by a worker that does not know it: %+v", c)
		}
		old.stop()
		old.wait()
		b.start("new", func(d *Deps, _ *Options) {
			d.Registry = NewRegistry()
			Register(d.Registry, "charge", func(_ context.Context, _ Job[any]) (string, error) {
				return "charged",
					nil
			})
		})
		b.sleep(time.Minute)
		got := b.outcomes()
		if len(got) != 1 || got[0].Kind != job.OutcomeSucceeded || string(got[0].Result) != `"charged"` {
			t.Errorf("a fleet that knows it reported %+v", got)
		}
	})
}

func TestWorker_GivesUpATaskUnknownForAnHour(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0, func(r *job.Row) { r.Executor, r.Task = job.ExecutorGo, "charge" })
		b.fire(r, 0)
		b.start("a")
		b.sleep(contract.UnknownTaskFor - time.Second)
		if c := b.Claim(r.Key); c.Attempt != 0 || len(b.reports()) != 0 {
			t.Errorf("it was given up before an hour: %+v", c)
		}
		b.sleep(10 * time.Minute)
		got := b.outcomes()
		if len(got) != 1 || got[0].Kind != job.OutcomeFailed || !got[0].Permanent ||
			got[0].Error.Code != job.CodeUnknownTask || !got[0].StartedAt.IsZero() {
			t.Errorf("reported %+v", got)
		}
		if d := b.depth(); d != (message.Depth{}) {
			t.Errorf("the message is still there: %+v", d)
		}
	})
}

func TestWorker_LeavesAnUnreadableMessageToTheRedrivePolicy(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		for _, body := range []string{"{", `{"v":99}`,
			`{"v":1,"tenant":"shop","job_id":"no-id","version":1,"attempt":1,"due_at":"2000-01-01T00:00:00Z"}`} {
			b.send(r, body, 0)
		}
		b.fire(r, 0)
		b.start("a")
		b.sleep(time.Minute)
		if b.started() != 1 || b.Meter.Total(telemetry.Quarantined) != 3 {
			t.Errorf("ran %d, set aside %v", b.started(), b.Meter.Total(telemetry.Quarantined))
		}
		b.sleep(2 * time.Hour)
		dead, err := b.World.Queues().Receive(t.Context(), contract.FiringDead, 10, 0, 0)
		if err != nil || len(dead) != 3 {
			t.Fatalf("%d messages in the dead-letter queue, %v", len(dead), err)
		}
		if b.Meter.Total(telemetry.Quarantined) != 3 {
			t.Error("a message was counted each time that it came")
		}
	})
}

//proof:of 171
func TestWorker_GivesMessagesBackDuringAnOutageOfTheTable(t *testing.T) {
	for name, down := range map[string][]string{
		"nothing answers":          {memory.TableGet, memory.TableWrite, memory.TableQuery},
		"only reads are answered":  {memory.TableWrite},
		"pauses cannot be read":    {memory.TableQuery},
		"only writes are answered": {memory.TableGet, memory.TableQuery},
	} {
		t.Run("gives messages back while "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				for range 20 {
					b.fire(b.put(0), 0)
				}
				calls := 0
				b.World.SetFaults(func(c memory.Call) memory.Fault {
					if slices.Contains(down, c.Op) {
						b.mu.Lock()
						calls++
						b.mu.Unlock()
						return memory.Fault{Fail: fault.Unavailable}
					}
					return memory.Fault{}
				})
				b.start("a")
				b.sleep(10 * time.Minute)
				b.mu.Lock()
				if calls > 500 {
					t.Errorf("%d calls in ten minutes of outage", calls)
				}
				b.mu.Unlock()
				if d := b.depth(); d.Visible+d.InFlight != 20 {
					t.Errorf("messages were lost: %+v", d)
				}
				b.World.SetFaults(nil)
				b.sleep(2 * time.Minute)
				if b.started() != 20 {
					t.Errorf("two minutes after the outage %d of 20 had run", b.started())
				}
			})
		})
	}
}

func TestWorker_TakesOverAClaimLostInAnOutageAfterItsLease(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.fire(r, 0)
		begun := time.Now()
		early := func(c memory.Call) bool { return time.Since(begun) < 10*time.Second && c.Op == memory.TableWrite }
		b.Fault(early, memory.Fault{Lost: true})
		b.start("a")
		b.sleep(2 * time.Minute)
		if b.started() != 1 {
			t.Errorf("it ran %d times", b.started())
		}
	})
}

//proof:of 83
func TestReports_KeepTheMessageWhileTheirQueueIsDown(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.fire(r, 0)
		b.Fault(stagetest.To(memory.QueueSend, contract.ReportQueue), memory.Fault{Fail: fault.Throttled})
		b.start("a")
		b.sleep(10 * time.Second)
		if d := b.depth(); d.InFlight != 1 {
			t.Errorf("the message was deleted before its report was sent: %+v", d)
		}
		b.World.SetFaults(nil)
		b.sleep(10 * time.Second)
		if len(b.outcomes()) != 1 || b.depth() != (message.Depth{}) {
			t.Errorf("the report was not sent, or the message not deleted: %+v", b.depth())
		}
	})
}

// deaf fails the first sends without saying which of several failed.
type deaf struct {
	Queues
	times int
}

func (d *deaf) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	if d.times > 0 {
		d.times--
		return fault.New(fault.Unavailable, nil, "sending to %s", queue)
	}
	return d.Queues.Send(ctx, queue, out...)
}

func TestReports_RetryASendThatFailsAsAWhole(t *testing.T) {
	within(t, func(b *bench) {
		b.fire(b.put(0), 0)
		b.start("a", func(d *Deps, _ *Options) { d.Queues = &deaf{d.Queues, 3} })
		b.sleep(10 * time.Second)
		if n := len(b.outcomes()); n != 1 || b.depth() != (message.Depth{}) {
			t.Errorf("%d reports of 1 job; queue %+v", n, b.depth())
		}
	})
}

func TestReports_ResendOnlyWhatWasNotTaken(t *testing.T) {
	within(t, func(b *bench) {
		for range 3 {
			b.fire(b.put(time.Second), 0)
		}
		b.FailEntries(map[int]fault.Kind{0: fault.Throttled})
		b.start("a")
		b.sleep(10 * time.Second)
		if n := len(b.outcomes()); n != 3 || b.depth() != (message.Depth{}) {
			t.Errorf("%d reports of 3 jobs; queue %+v", n, b.depth())
		}
	})
}
