package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/workers/executor"
)

// An attempt is admitted after its claim, by a row read after it: what changes the row between the
// worker's first look and its claim is the interesting moment.
func TestWorker_StartsAClaimedAttemptOnlyIfTheRowAllows(t *testing.T) {
	stop := func(s job.Stop) func(job.Row) item.Write {
		return func(r job.Row) item.Write {
			_, w := job.RequestStop(r, s, job.Reason{Code: "test"}, time.Now())
			return w
		}
	}
	hold := func(owner, scope string) func(job.Row) item.Write {
		return func(r job.Row) item.Write {
			p := job.Pause{Scope: scope, Since: time.Now()}
			i := p.Item(r.Tenant)
			ref := job.PauseRef(r.Tenant, scope)
			if owner == "everyone" {
				i, ref = p.Item(job.Everyone), job.PauseRef(job.Everyone, scope)
			}
			return item.Write{Ref: ref, Name: "test.pause", Put: i}
		}
	}
	succeed := func(r job.Row) item.Write {
		d, err := job.Settle(&r, 1, job.Outcome{Kind: job.OutcomeSucceeded}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return d.Write
	}
	nextAttempt := func(r job.Row) item.Write {
		d, err := job.Settle(&r, 1, job.Outcome{Kind: job.OutcomeFailed, Error: &job.Reason{Code: "x"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return d.Write
	}
	edit := func(r job.Row) item.Write {
		due := r.DueAt.Add(time.Hour)
		_, w, _ := job.Reschedule(r, job.Edit{DueAt: &due}, time.Now())
		return w
	}
	gone := func(r job.Row) item.Write { return item.Write{Ref: r.Ref(), Name: "test.gone", Delete: true} }
	for name, c := range map[string]struct {
		row    func(*job.Row)
		change func(job.Row) item.Write
		polls  bool // a report asks the status stage to decide now
	}{
		"open: a final row runs nothing":                       {change: succeed},
		"same attempt: a later attempt makes the firing stale": {change: nextAttempt},
		"same version: a patched row makes the firing stale":   {change: edit},
		"a forgotten row runs nothing":                         {change: gone},
		"no stop: a cancel":                                    {change: stop(job.StopCancel), polls: true},
		"no stop: an expiry":                                   {change: stop(job.StopExpire), polls: true},
		"not paused: everything of the tenant":                 {change: hold("tenant", job.PauseAll), polls: true},
		"not paused: the task": {change: hold("tenant", job.PauseTaskPrefix+"echo"),
			polls: true},
		"not paused: everybody": {change: hold("everyone", job.PauseAll), polls: true},
		"not paused: the job": {change: func(r job.Row) item.Write {
			after, _ := job.PauseRow(r, job.Claim{}, job.OwnPause{Since: time.Now()}, time.Now())
			return item.Write{Ref: r.Ref(), Name: "test.pause",
				Set: map[string]any{"paused": after.Item().Str("paused")}}
		}, polls: true},
		"start_within not passed": {row: func(r *job.Row) {
			r.DueAt = r.DueAt.Add(-2 * time.Second)
			r.StartWithin = time.Second
		}, polls: true},
		"expire_after not passed": {row: func(r *job.Row) {
			r.DueAt = r.DueAt.Add(-2 * time.Second)
			r.ExpireAfter, r.ExpiryAt = time.Second, r.DueAt.Add(time.Second)
		}, polls: true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				row := c.row
				if row == nil {
					row = func(*job.Row) {}
				}
				r := b.put(0, row)
				b.Once(stagetest.Writes(job.WriteClaimNew), func() memory.Fault {
					if c.change != nil {
						b.Write(c.change(r))
					}
					return memory.Fault{}
				})
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)

				if b.started() != 0 {
					t.Error("it was started")
				}
				if claim := b.Claim(r.Key); claim.Token != 1 || claim.Takeovers != 0 || claim.Live(1, time.Now()) ||
					claim.Outcome != nil {
					t.Errorf("its claim was not let go: %+v", claim)
				}
				if d := b.depth(); d != (message.Depth{}) {
					t.Errorf("its message is still there: %+v", d)
				}
				reports := b.reports()
				switch {
				case !c.polls && len(reports) > 0:
					t.Errorf("reported %+v", reports)
				case c.polls &&
					(len(reports) != 1 || reports[0].Kind != message.Reevaluate || reports[0].Version != 1 ||
						reports[0].Attempt != 1):
					t.Errorf("reported %+v, want one that asks for a look", reports)
				}
			})
		})
	}
}

//proof:of S48
func TestWorker_DropsAStaleFiringWithoutAClaim(t *testing.T) {
	for name, change := range map[string]func(*job.Row){
		"a version that was replaced by a PATCH": func(r *job.Row) { r.Version = 2 },
		"an attempt that has ended":              func(r *job.Row) { r.Attempt = 2 },
		"a job that is over":                     func(r *job.Row) { r.Status = job.Cancelled },
	} {
		t.Run("drops without a claim a firing of "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				r := b.put(0, change)
				r.Version, r.Attempt = 1, 1
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				if b.started() != 0 || b.Claim(r.Key).Token != 0 || b.depth() != (message.Depth{}) {
					t.Errorf("ran %d, claim %+v, queue %+v", b.started(), b.Claim(r.Key), b.depth())
				}
			})
		})
	}
}

func TestPauses_AreReadOnceASecondForATenant(t *testing.T) {
	within(t, func(b *bench) {
		reads := b.Count(stagetest.Every(memory.TableQuery))
		b.start("a")
		for range 100 {
			b.fire(b.put(0), 0)
			b.sleep(20 * time.Millisecond)
		}
		if b.started() < 99 {
			t.Fatalf("%d ran", b.started())
		}
		if reads() > 2*3 { // two partitions: the tenant's, and everyone's
			t.Errorf("two seconds of jobs read the pauses %d times", reads())
		}
	})
}

//proof:of 105 184
func TestWorker_GivesUpAnAttemptOverWhichTooManyOwnersDied(t *testing.T) {
	for name, c := range map[string]struct {
		owners int
		poison bool
	}{
		"five owners are not too many": {4, false}, // the worker is the fifth
		"six are":                      {5, true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				r := b.put(0)
				b.foreign(r, -time.Second)
				for n := 1; n < c.owners; n++ {
					b.Write(job.TakeOver(r.Key, b.Claim(r.Key), job.Owner{Worker: "other", Nonce: "others",
						LeaseUntil: time.Now().Add(-time.Second)}, time.Now()))
				}
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				o := b.outcomes()
				if len(o) != 1 {
					t.Fatalf("%d outcomes", len(o))
				}
				poisoned := o[0].Error != nil && o[0].Error.Code == job.CodePoison && o[0].Permanent &&
					o[0].StartedAt.IsZero()
				if poisoned != c.poison || b.started() == 1 == c.poison {
					t.Errorf("after %d owners it ran %d times and ended as %+v", c.owners, b.started(), o[0])
				}
			})
		})
	}
}

func TestWorker_NeverGivesUpAnAttemptForItsReceives(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.fire(r, 0)
		queue := contract.FiringQueue("short", "normal")
		for range 20 {
			got, err := b.World.Queues().Receive(t.Context(), queue, 1, time.Second, 0)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if err := b.World.Queues().SetVisibility(t.Context(), queue, got[0].Receipt, 0); err != nil {
				t.Fatal(err)
			}
		}
		b.start("a")
		b.sleep(5 * time.Second)
		if b.started() != 1 {
			t.Error("a message received often was not run")
		}
	})
}

//proof:of F05
func TestWorker_AsksForANewFiringAfterVeryManyGiveBacks(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0, func(r *job.Row) { r.Executor, r.Task = job.ExecutorGo, "charge" })
		b.fire(r, 0)
		queue := contract.FiringQueue("short", "normal")
		for range renewFrom {
			got, err := b.World.Queues().Receive(t.Context(), queue, 1, time.Second, 0)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if err := b.World.Queues().SetVisibility(t.Context(), queue, got[0].Receipt, 0); err != nil {
				t.Fatal(err)
			}
		}
		b.start("a")
		b.sleep(5 * time.Second)
		if got := b.reports(); len(got) != 1 || got[0].Kind != message.Reevaluate || got[0].JobID != string(r.ID) ||
			b.depth() != (message.Depth{}) {
			t.Errorf("reported %+v, queue %+v", got, b.depth())
		}
		if d, err := b.World.Queues().Depth(t.Context(), contract.FiringDead); err != nil || d.Visible != 0 {
			t.Errorf("it was given up: %+v, %v", d, err)
		}
	})
}

//proof:of F30
func TestWorker_NotesAtOnceThatATaskWaitsForAHandlerAndLogsItOnce(t *testing.T) {
	within(t, func(b *bench) {
		var rows []job.Row
		for range 5 {
			r := b.put(0, func(r *job.Row) { r.Executor, r.Task = job.ExecutorGo, "charge" })
			b.fire(r, 0)
			rows = append(rows, r)
		}
		b.start("a")
		b.sleep(2 * time.Second)
		for _, r := range rows {
			if c := b.Claim(r.Key); c.WaitsFor(1) != job.WaitsForHandler ||
				job.WaitingFor(r, c, false, time.Now()) != "handler" || c.Attempt != 0 {
				t.Errorf("its claim is %+v", c)
			}
		}
		b.sleep(10 * time.Minute)
		if n := strings.Count(b.logs.String(), "met a task that this worker has no handler for"); n != 1 {
			t.Errorf("the log says it %d times", n)
		}
	})
}

func TestWorker_GivesUpAnAttemptOnlyAfterReadingTheRow(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		b.Write(item.Write{
			Ref: job.PauseRef(shop, job.PauseAll), Name: "test.pause", Put: job.Pause{Scope: job.PauseAll}.Item(shop),
		})
		b.foreign(r, -time.Second)
		for range 9 {
			b.Write(job.TakeOver(r.Key, b.Claim(r.Key), job.Owner{Worker: "other", Nonce: "others",
				LeaseUntil: time.Now().Add(-time.Second)}, time.Now()))
		}
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		if got := b.reports(); len(got) != 1 || got[0].Kind != message.Reevaluate {
			t.Errorf("a paused job was given up as poison: %+v", got)
		}
	})
}

func TestWorker_RereadsARowThatIsTwoSecondsOldAtTheStart(t *testing.T) {
	within(t, func(b *bench) {
		payload := strings.Repeat("x", contract.MaxInlinePayload)
		r := b.put(0, func(r *job.Row) { r.PayloadIn, r.PayloadVer = job.InItem, 1 })
		b.Write(r.PutContent(job.PayloadContent(1), `"`+payload+`"`))
		// Reading the payload takes three seconds, and in these the job is cancelled.
		b.Once(readsBlob, func() memory.Fault {
			_, w := job.RequestStop(r, job.StopCancel, job.Reason{}, time.Now())
			b.Write(w)
			return memory.Fault{Wait: 3 * time.Second}
		})
		b.fire(r, 0)
		b.start("a")
		b.sleep(10 * time.Second)
		if got := b.reports(); b.started() != 0 || len(got) != 1 || got[0].Kind != message.Reevaluate {
			t.Errorf("it ran %d times by a row three seconds old; reported %+v", b.started(), got)
		}
	})
}

func TestWorker_CountsTheAgeOfFactsFromBeforeTheirRead(t *testing.T) {
	within(t, func(b *bench) {
		// the pauses: two reads, 2.2 s together
		b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Wait: 1100 * time.Millisecond})
		r := b.put(0)
		b.fire(r, 0)
		b.start("a")
		b.sleep(15 * time.Second)
		if b.started() != 0 {
			t.Error("it was started on pauses asked for more than two seconds before")
		}
		b.World.SetFaults(nil)
		b.sleep(15 * time.Second)
		if b.started() != 1 || b.Claim(r.Key).Takeovers != 1 {
			t.Errorf("it ran %d times, claim %+v", b.started(), b.Claim(r.Key))
		}
	})
}

func TestWorker_StartsNoAttemptWithoutLeaseLeft(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		slow := true
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			b.mu.Lock()
			defer b.mu.Unlock()
			if slow && c.Op == memory.TableGet && b.claimed(c) {
				return memory.Fault{Wait: 9 * time.Second}
			}
			return memory.Fault{}
		})
		b.fire(r, 0)
		b.start("a")
		b.sleep(28 * time.Second) // three reads of nine seconds: more than lease less margin
		if b.started() != 0 {
			t.Fatalf("it was started %s after its claim", b.at[0].Sub(r.DueAt))
		}
		if c := b.Claim(r.Key); c.Takeovers != 0 || c.Live(1, time.Now()) {
			t.Errorf("the attempt was not let go: %+v", c)
		}
		b.mu.Lock()
		slow = false
		b.mu.Unlock()
		b.sleep(20 * time.Second)
		if b.started() != 1 {
			t.Error("it never ran")
		}
	})
}

// claimed says whether a read of the row comes after the claim: the second and later ones.
func (b *bench) claimed(c memory.Call) bool {
	if c.Ref.Table != contract.Jobs {
		return false
	}
	b.ids++
	return b.ids > 2 // put counted one, the first look is another
}

func TestWorker_StartsNoAttemptWhoseClaimSaysCancel(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0)
		// The claim is made, its answer lost; before it is asked for again, a caller asks to stop.
		b.Once(stagetest.Writes(job.WriteClaimNew), func() memory.Fault {
			time.AfterFunc(100*time.Millisecond, func() { b.Write(job.FlagCancel(r.Key, 1, 1)) })
			return memory.Fault{Lost: true}
		})
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		if got := b.reports(); b.started() != 0 || len(got) != 1 || got[0].Kind != message.Reevaluate {
			t.Errorf("it ran %d times; reported %+v", b.started(), got)
		}
	})
}

func TestWorker_FailsForGoodWhenThePayloadIsGone(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0, func(r *job.Row) { r.PayloadIn, r.PayloadVer = job.InItem, 1 })
		b.fire(r, 0)
		b.start("a")
		b.sleep(5 * time.Second)
		o := b.outcomes()
		if b.started() != 0 || len(o) != 1 || !o[0].Permanent || o[0].Error.Code != job.CodeUnreadablePayload {
			t.Errorf("ended as %+v", o)
		}
	})
}

func TestWorker_RereadsAPayloadThatIsOutOfReach(t *testing.T) {
	within(t, func(b *bench) {
		r := b.put(0, func(r *job.Row) { r.PayloadIn, r.PayloadVer = job.InItem, 1 })
		b.Write(r.PutContent(job.PayloadContent(1), "1"))
		b.FaultFirst(1, readsBlob, memory.Fault{Fail: fault.Throttled})
		b.does = func(_ context.Context, w executor.Work) (json.RawMessage, error) { return w.Payload, nil }
		b.fire(r, 0)
		b.start("a")
		b.sleep(10 * time.Second)
		o := b.outcomes()
		if len(o) != 1 || string(o[0].Result) != "1" || b.Claim(r.Key).Takeovers != 1 {
			t.Errorf("ended as %+v, claim %+v", o, b.Claim(r.Key))
		}
	})
}

func TestWorker_CountsLatenessFromDueOrLaterAcceptance(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*job.Row)
		delay  time.Duration
		want   int64
	}{
		"a job due in time": {func(*job.Row) {}, 2 * time.Second, 2000},
		"a job accepted with its due time gone by": {func(r *job.Row) { r.DueAt = r.CreatedAt.Add(-30 * time.Second) },
			2 * time.Second, 2000},
		"a later attempt: only its due time counts": {func(r *job.Row) {
			r.Attempt, r.DueAt = 2,
				r.CreatedAt.Add(-30*time.Second)
		}, 2 * time.Second, 32000},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				r := b.put(0, c.change)
				b.fire(r, c.delay)
				b.start("a")
				b.sleep(10 * time.Second)
				o := b.outcomes()
				if len(o) != 1 || o[0].LatenessMS != c.want {
					t.Errorf("lateness in %+v, want %d ms", o, c.want)
				}
			})
		})
	}
}
