package status_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/functions/status"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

type bench struct {
	*stagetest.Bench
	stage *status.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{s, status.New(status.Deps{
			Store: s.Store, Queue: s.World.Queues(), Base: process.Base{Meter: s.Meter},
		})})
	})
}

// handle gives the stage those bodies, received for the n-th time, and returns the indexes of those to redeliver.
func (b *bench) handle(receives int, bodies ...string) (failed string) {
	b.Helper()
	return b.Handle(b.Context(), b.stage.Handle, receives, bodies...)
}

// ended records the outcome of an attempt of r on its claim, unless there is one, and returns the worker's report.
func (b *bench) ended(r job.Row, attempt int64, o job.Outcome) string {
	b.Helper()
	b.claimed(r, attempt, map[string]any{"outcome": job.EncodeOutcome(o)})
	return ended(r, attempt, o)
}

// claimed makes a worker with token 1 the owner of an attempt of r.
func (b *bench) claimed(r job.Row, attempt int64, more map[string]any) {
	b.Helper()
	set := map[string]any{"attempt": attempt, "token": int64(1), "lease_until": time.Now().UnixMilli(), "worker": "w1"}
	maps.Copy(set, more)
	err := b.Store.Put(b.Context(), item.Write{Ref: r.ClaimRef(), Name: "test.claim", Set: set, When: []item.All{
		{{Attr: contract.AttrPK, Op: item.Missing}}, {{Attr: "attempt", Op: item.Lt, Value: attempt}},
	}})
	if err != nil && store.Refused(err) == nil {
		b.Fatal(err)
	}
}

// ended is the report of an attempt of r with that outcome.
func ended(r job.Row, attempt int64, o job.Outcome) string {
	return message.Encode(message.Report{
		V: message.V, Kind: message.Ended, Tenant: string(r.Tenant), JobID: string(r.ID), Version: r.Version,
		Attempt: attempt, Token: 1, Worker: "w1", Outcome: []byte(job.EncodeOutcome(o)),
	})
}

func success() job.Outcome {
	return job.Outcome{Kind: job.OutcomeSucceeded, Worker: "w1", StartedAt: time.Now().UTC(),
		FinishedAt: time.Now().UTC()}
}

func failure(change ...func(*job.Outcome)) job.Outcome {
	o := job.Outcome{Kind: job.OutcomeFailed, Worker: "w1", StartedAt: time.Now().UTC(),
		Error: &job.Reason{Code: job.CodeHandler, Message: "no"}}
	for _, f := range change {
		f(&o)
	}
	return o
}

func permanent(o *job.Outcome) { o.Permanent = true }

// report gives the stage one report and requires that it is settled.
func (b *bench) report(body string) {
	b.Helper()
	if failed := b.handle(1, body); failed != "" {
		b.Fatal("the report is to be redelivered")
	}
}

// running puts a job whose attempt a worker has just ended.
func (b *bench) running(n int, change ...func(*job.Row)) job.Row {
	b.Helper()
	return b.Put(jobtest.Row(n, time.Now().Add(-time.Second), time.Now().Add(-2*time.Second), change...))
}

//proof:of 122
func TestStatus_SettlesASuccess(t *testing.T) {
	t.Parallel()
	bubble(t, "a success ends the job and takes it out of the index", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Near = true })
		b.report(b.ended(r, 1, success()))
		after := b.Row(r.Key)
		if after.Status != job.Succeeded || !after.WakeAt.IsZero() || after.Near || len(after.Attempts) != 1 ||
			after.ExpiresAt.IsZero() {
			b.Errorf("it is %+v", after)
		}
		b.RequireSilence()
	})
	bubble(t, "a success wins over a cancel that was only asked for", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Stop = job.StopCancel })
		b.report(b.ended(r, 1, success()))
		if after := b.Row(r.Key); after.Status != job.Succeeded {
			b.Errorf("it is %s", after.Status)
		}
	})
	bubble(t, "a success is settled although an edit has raised the row's version", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Version = 7 })
		r.Version = 6
		b.report(b.ended(r, 1, success()))
		if after := b.Row(r.Key); after.Status != job.Succeeded {
			b.Errorf("it is %s", after.Status)
		}
	})
	//proof:of 204
	bubble(t, "a large result is written before the row that refers to it", func(b *bench) {
		r := b.running(1)
		body := `"` + strings.Repeat("x", 5000) + `"`
		b.Fail(stagetest.Writes(job.WriteSucceed))
		o := success()
		o.Result = json.RawMessage(body)
		if failed := b.handle(1, b.ended(r, 1, o)); failed != "0" {
			b.Fatal("the report is lost")
		}
		if got, err := b.Store.Content(b.Context(), r.Key, job.ResultContent); err != nil || got != body {
			b.Errorf("the result was not there first: %v", err)
		}
		b.World.SetFaults(nil)
		b.report(b.ended(r, 1, o))
		if after := b.Row(r.Key); after.ResultIn != job.InItem || after.Status != job.Succeeded {
			b.Errorf("it is %s with its result in %q", after.Status, after.ResultIn)
		}
	})
	//proof:of 78
	bubble(t, "a success reported twice is recorded once", func(b *bench) {
		r := b.running(1)
		body := b.ended(r, 1, success())
		b.report(body)
		first := b.Row(r.Key)
		units := b.World.Counts().Total()
		time.Sleep(time.Second)
		b.report(body)
		if after := b.Row(r.Key); after.FinishedAt != first.FinishedAt || len(after.Attempts) != 1 ||
			b.World.Counts().Total().Write != units.Write {
			b.Error("the second report changed something")
		}
		if n := b.Meter.Total(telemetry.JobsSettled); n != 1 {
			b.Errorf("counted %v settled", n)
		}
	})
}

func TestStatus_SettlesAFailure(t *testing.T) {
	t.Parallel()
	//proof:of 62
	bubble(t, "a failure with attempts left is due later, and is fired if that is now", func(b *bench) {
		r := b.running(1)
		b.report(b.ended(r, 1, failure()))
		after := b.Row(r.Key)
		if after.Status != job.Scheduled || after.Attempt != 2 || after.Failures != 1 || after.Waiting != "retry" ||
			after.Near || after.WakeAt != after.DueAt {
			b.Errorf("it is %+v", after)
		}
		got := b.Received(stagetest.FiringQueue)
		if len(got) != 1 || got[0].Body != message.Encode(after.Firing().Message()) {
			b.Errorf("fired %+v", got)
		}
	})
	bubble(t, "a retry that is due later is left to the stream consumer", func(b *bench) {
		r := b.running(1)
		b.report(b.ended(r, 1, failure(func(o *job.Outcome) { o.RetryAfterMS = 60_000 })))
		if after := b.Row(r.Key); !after.Near || time.Until(after.DueAt) != time.Minute {
			b.Errorf("it is due in %s, near: %v", time.Until(after.DueAt), after.Near)
		}
		b.RequireSilence()
	})
	bubble(t, "a retry reported twice costs one attempt, and its firing is sent twice", func(b *bench) {
		r := b.running(1)
		b.report(b.ended(r, 1, failure()))
		b.report(b.ended(r, 1, failure()))
		if after := b.Row(r.Key); after.Attempt != 2 || after.Failures != 1 {
			b.Errorf("it is at attempt %d after %d failures", after.Attempt, after.Failures)
		}
		if got := b.Received(stagetest.FiringQueue); len(got) != 2 || got[0].Body != got[1].Body {
			b.Errorf("fired %+v", got)
		}
	})
	bubble(t, "the report of a retry whose firing cannot be sent is redelivered", func(b *bench) {
		r := b.running(1)
		b.Fail(stagetest.To(memory.QueueSend, stagetest.FiringQueue))
		if failed := b.handle(1, b.ended(r, 1, failure())); failed != "0" {
			b.Fatal("the firing is lost")
		}
		b.World.SetFaults(nil)
		if failed := b.handle(2, b.ended(r, 1, failure())); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Errorf("%d firings", len(got))
		}
	})
	for name, change := range map[string]func(*job.Row){
		"is due later":                   func(r *job.Row) { r.DueAt = time.Now().Add(time.Hour) },
		"the stream consumer has sent":   func(r *job.Row) { r.Near = true },
		"has a stop":                     func(r *job.Row) { r.Stop = job.StopCancel },
		"a pause has parked":             func(r *job.Row) { r.Parked = true },
		"is running":                     func(r *job.Row) { r.Status = job.Running },
		"is older than the reported one": func(r *job.Row) { r.Attempt = 1 },
	} {
		bubble(t, "a late report does not fire an attempt that "+name, func(b *bench) {
			r := b.running(1, func(r *job.Row) { r.Attempt = 3 })
			change(&r)
			b.Put(r)
			b.report(b.ended(r, 2, failure()))
			b.RequireSilence()
		})
	}
	//proof:of S47
	bubble(t, "a failure of a job with a stop ends it, with no retry and no dead letter", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Stop, r.CancelRequestedAt = job.StopCancel, time.Now() })
		b.report(b.ended(r, 1, failure()))
		if after := b.Row(r.Key); after.Status != job.Cancelled || after.Attempt != 1 || !after.WakeAt.IsZero() {
			b.Errorf("it is %+v", after)
		}
		b.RequireSilence()
	})
	bubble(t, "a failure that meets a cancel ends the job as cancelled", func(b *bench) {
		r := b.running(1)
		b.Before(stagetest.Named(job.WriteRetry), func() {
			_, w := job.RequestStop(r, job.StopCancel, job.Reason{}, time.Now())
			b.Write(w)
		})
		b.report(b.ended(r, 1, failure()))
		if after := b.Row(r.Key); after.Status != job.Cancelled {
			b.Errorf("it is %s", after.Status)
		}
		b.RequireSilence()
	})
	bubble(t, "a report whose row keeps changing is redelivered", func(b *bench) {
		r := b.running(1)
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Name == job.WriteRetry {
				flip := b.Row(r.Key)
				if flip.Stop == job.NoStop {
					flip.Stop = job.StopCancel
				}
				b.Put(flip)
			}
			if c.Name == job.WriteFinishStop {
				b.Put(r)
			}
			return memory.Fault{}
		})
		if failed := b.handle(1, b.ended(r, 1, failure())); failed != "0" {
			b.Error("it was given up")
		}
	})
}

func TestStatus_SnoozesWithoutCostingATry(t *testing.T) {
	t.Parallel()
	bubble(t, "a snooze starts a new attempt without counting a failure", func(b *bench) {
		r := b.running(1)
		b.report(b.ended(r, 1, job.Outcome{Kind: job.OutcomeSnoozed, RetryAfterMS: 60_000}))
		if after := b.Row(r.Key); after.Attempt != 2 || after.Failures != 0 || after.Waiting != "snooze" ||
			time.Until(after.DueAt) != time.Minute {
			b.Errorf("it is %+v", after)
		}
	})
}

func TestStatus_SettlesADeadJob(t *testing.T) {
	t.Parallel()
	//proof:of 63 73 110
	bubble(t, "a row becomes DEAD before its dead letter is sent and stamped", func(b *bench) {
		labels := job.Labels{Metadata: `{"ticket":7}`}
		r := b.running(1, func(r *job.Row) { r.Labelled = labels.Labelled() })
		b.Write(r.PutLabels(labels))
		var before job.Status
		b.Each(stagetest.To(memory.QueueSend, contract.RedriveQueue), func(memory.Call) {
			before = b.Row(r.Key).Status
		})
		b.report(b.ended(r, 1, failure(permanent)))
		dead := b.Received(contract.RedriveQueue)
		if before != job.Dead || len(dead) != 1 {
			b.Fatalf("%d dead letters, the first sent while the job was %s", len(dead), before)
		}
		l, err := message.Decode[message.DeadLetter](dead[0].Body)
		after := b.Row(r.Key)
		if err != nil || !reflect.DeepEqual(l, job.DeadLetterOf(after, labels, time.Now())) ||
			l.Code != job.CodeHandler || l.Message != "no" {
			b.Errorf("the dead letter is %+v, %v", l, err)
		}
		if after.PendingEffects != job.PendingDeadLetter || after.WakeAt.IsZero() {
			b.Errorf("it has pending effects %q and wakes at %s", after.PendingEffects, after.WakeAt)
		}
		if n := b.Meter.Total(telemetry.DeadLetters); n != 1 {
			b.Errorf("counted %v dead letters", n)
		}
	})
	//proof:of 111
	bubble(t, "the report of a dead job whose dead letter cannot be sent is redelivered", func(b *bench) {
		r := b.running(1)
		b.Fail(stagetest.To(memory.QueueSend, contract.RedriveQueue))
		if failed := b.handle(1, b.ended(r, 1, failure(permanent))); failed != "0" {
			b.Fatal("the dead letter is left to the sweeper")
		}
		b.World.SetFaults(nil)
		if failed := b.handle(2, b.ended(r, 1, failure(permanent))); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		if got := b.Received(contract.RedriveQueue); len(got) != 1 {
			b.Errorf("%d dead letters", len(got))
		}
	})
	bubble(t, "a dead job that is reported twice sends one dead letter", func(b *bench) {
		r := b.running(1)
		b.report(b.ended(r, 1, failure(permanent)))
		b.report(b.ended(r, 1, failure(permanent)))
		if got := b.Received(contract.RedriveQueue); len(got) != 1 {
			b.Errorf("%d dead letters", len(got))
		}
	})
	bubble(t, "a dead letter that hangs is given up before it would be taken for a redriven one", func(b *bench) {
		r := b.running(1)
		b.Fault(stagetest.To(memory.QueueSend, contract.RedriveQueue), memory.Fault{Hang: true})
		start := time.Now()
		if failed := b.handle(1, b.ended(r, 1, failure(permanent))); failed != "0" {
			b.Error("the dead letter is left to the sweeper")
		}
		if took := time.Since(start); took >= contract.DeadLetterCameBackAfter {
			b.Errorf("it hung for %s", took)
		}
	})
}

//proof:of 76 S47
func TestStatus_DropsALateReport(t *testing.T) {
	t.Parallel()
	for _, s := range []job.Status{job.Cancelled, job.Expired, job.Succeeded, job.Dead} {
		for name, o := range map[string]job.Outcome{"success": success(), "failure": failure()} {
			bubble(t, fmt.Sprintf("a report of a %s changes nothing about a job that is %s", name, s), func(b *bench) {
				r := b.running(1, func(r *job.Row) { r.Status, r.FinishedAt = s, time.Now() })
				b.report(b.ended(r, 1, o))
				if after := b.Row(r.Key); after.Status != s || len(after.Attempts) != 0 {
					b.Errorf("it is %s", after.Status)
				}
				b.RequireSilence()
			})
		}
	}
	bubble(t, "a report about a job that is gone is deleted", func(b *bench) {
		b.report(b.ended(jobtest.Row(1, time.Now(), time.Now()), 1, success()))
	})
	bubble(t, "a report about a forgotten job leaves its tombstone", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Status = job.Cancelled })
		b.Write(job.Forget(r, time.Now()))
		b.report(b.ended(r, 1, success()))
		i, err := b.World.Table().Get(b.Context(), r.Ref())
		if err != nil || !job.IsGone(i) {
			b.Errorf("it is %v again, %v", i, err)
		}
	})
}

//proof:of 60
func TestStatus_MarksRunning(t *testing.T) {
	t.Parallel()
	report := func(r job.Row, outcome string) string {
		return message.Encode(message.Report{
			V: message.V, Kind: message.Running, Tenant: string(r.Tenant), JobID: string(r.ID), Version: r.Version,
			Attempt: r.Attempt, Token: 1,
			Outcome: json.RawMessage(outcome),
		})
	}
	bubble(t, "a start makes the row RUNNING, with the worker's time", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Waiting = "retry" })
		b.claimed(r, 1, nil)
		at := time.Now().Add(-3 * time.Second).UTC()
		b.report(report(r, job.EncodeOutcome(job.Outcome{StartedAt: at, LatenessMS: 12})))
		after := b.Row(r.Key)
		if after.Status != job.Running || !after.StartedAt.Equal(at) || after.LatenessMS != 12 || after.Waiting != "" ||
			after.WakeAt.IsZero() {
			b.Errorf("it is %+v", after)
		}
	})
	bubble(t, "a start without a time counts from now", func(b *bench) {
		r := b.running(1)
		b.claimed(r, 1, nil)
		b.report(report(r, ""))
		if after := b.Row(r.Key); !after.StartedAt.Equal(time.Now()) {
			b.Errorf("it started at %s", after.StartedAt)
		}
	})
	for name, change := range map[string]func(*job.Row){
		"an older version":     func(r *job.Row) { r.Version++ },
		"an older attempt":     func(r *job.Row) { r.Attempt++ },
		"a job that has ended": func(r *job.Row) { r.Status = job.Succeeded },
	} {
		bubble(t, "of "+name+" is ignored", func(b *bench) {
			r := b.running(1)
			b.claimed(r, 1, nil)
			moved := r
			change(&moved)
			b.Put(moved)
			b.report(report(r, ""))
			if after := b.Row(r.Key); after.Status != moved.Status || !after.StartedAt.IsZero() {
				b.Errorf("it is %s", after.Status)
			}
		})
	}
}

func TestStatus_ReevaluatesAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that a worker refuses because of a pause is parked", func(b *bench) {
		p := job.Pause{Scope: job.PauseAll, Since: time.Now()}
		b.Write(item.Write{Ref: job.PauseRef(jobtest.Tenant, p.Scope), Name: "test.pause", Put: p.Item(jobtest.Tenant)})
		r := b.Put(jobtest.Row(1, time.Now().Add(300*time.Millisecond), time.Now()))
		b.report(message.Encode(message.Report{V: message.V, Kind: message.Reevaluate, Tenant: string(r.Tenant),
			JobID: string(r.ID), Version: 1, Attempt: 1}))
		if !b.Row(r.Key).Parked {
			b.Error("it is not parked")
		}
	})
}

//proof:of 87 S21
func TestStatus_RedeliversOnlyTheBadReportOfTen(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]string{
		"a body that is not JSON":                "{",
		"an unknown version":                     `{"v":2,"kind":"ended","tenant":"acme","job_id":"01KX0000000000000000000000","attempt":1,"outcome":{"kind":"succeeded"}}`,
		"an unknown kind":                        `{"v":1,"kind":"gone","tenant":"acme","job_id":"01KX0000000000000000000000","attempt":1}`,
		"an end that no claim confirms":          `{"v":1,"kind":"ended","tenant":"acme","job_id":"` + string(jobtest.Key(7).ID) + `","attempt":1,"outcome":{"kind":"succeeded"}}`,
		"an end of a later attempt than claimed": `{"v":1,"kind":"ended","tenant":"acme","job_id":"` + string(jobtest.Key(7).ID) + `","attempt":2,"outcome":{"kind":"succeeded"}}`,
		"a report without a job id":              `{"v":1,"kind":"look","tenant":"acme","job_id":"../x","attempt":1}`,
		"a running report that cannot be read":   `{"v":1,"kind":"running","tenant":"acme","job_id":"01KX0000000000000000000000","attempt":1,"outcome":{"started_at":"soon"}}`,
	} {
		bubble(t, "one of ten reports comes back: "+name, func(b *bench) {
			bodies := make([]string, 10)
			for i := range bodies {
				r := b.running(i)
				bodies[i] = poison
				if i != 7 {
					bodies[i] = b.ended(r, 1, success())
				}
			}
			if failed := b.handle(1, bodies...); failed != "7" {
				b.Errorf("%q are redelivered", failed)
			}
			for i := range bodies {
				if got := b.Row(jobtest.Key(i)).Status; (got == job.Succeeded) != (i != 7) {
					b.Errorf("job %d is %s", i, got)
				}
			}
			if n := b.Meter.Total(telemetry.Quarantined); n != 1 {
				b.Errorf("%v set aside", n)
			}
		})
	}
	bubble(t, "a report is retried when its row becomes unreadable before the write", func(b *bench) {
		r := b.running(1)
		b.Before(stagetest.Named(job.WriteSucceed), func() {
			bad := r.Item()
			bad["status"] = "LOST"
			b.Overwrite(r.Ref(), bad)
		})
		if failed := b.handle(1, b.ended(r, 1, success())); failed != "0" {
			b.Error("its outcome is lost")
		}
	})
	bubble(t, "a report is retried when its row cannot be read", func(b *bench) {
		bad := b.running(1).Item()
		bad["schema_v"] = int64(99)
		b.Overwrite(jobtest.Key(1).Ref(), bad)
		good := b.running(2)
		if failed := b.handle(1, b.ended(jobtest.Row(1, time.Now(), time.Now()), 1, success()),
			b.ended(good, 1, success())); failed != "0" {
			b.Errorf("%q are redelivered", failed)
		}
	})
}

func TestStatus_WritesARowOnceForASuccess(t *testing.T) {
	t.Parallel()
	bubble(t, "a success writes its row and its index entry once", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Payload = `{"message":"hello"}` })
		body := b.ended(r, 1, success())
		before := b.World.Counts().Total()
		b.report(body)
		after := b.World.Counts().Total()
		if row, index := after.Write-before.Write, after.IndexWrite-before.IndexWrite; row != 1 || index != 1 {
			b.Errorf("settling cost %v units of the table and %v of its indexes", row, index)
		}
	})
}

// A sender to the report queue that does not hold the claim changes nothing.
//
//proof:of F34
func TestStatus_SettlesOnlyWhatTheClaimSays(t *testing.T) {
	t.Parallel()
	outcome := map[string]any{"outcome": job.EncodeOutcome(failure())}
	for name, claim := range map[string]func(b *bench, r job.Row){
		"no claim":                func(*bench, job.Row) {},
		"a claim that still runs": func(b *bench, r job.Row) { b.claimed(r, 1, nil) },
		"a claim of another token": func(b *bench, r job.Row) {
			b.claimed(r, 1, map[string]any{"token": int64(2), "outcome": outcome["outcome"]})
		},
		"a claim of an older attempt": func(b *bench, r job.Row) { r.Attempt = 0; b.claimed(r, 0, outcome) },
		"an outcome of an unknown kind": func(b *bench, r job.Row) {
			b.claimed(r, 1, map[string]any{"outcome": `{"kind":"melted"}`})
		},
	} {
		bubble(t, "an end is refused with "+name, func(b *bench) {
			r := b.running(1)
			claim(b, r)
			if failed := b.handle(1, ended(r, 1, success())); failed != "0" {
				b.Error("the report is not kept for an operator")
			}
			if after := b.Row(r.Key); after.Status != job.Scheduled || len(after.Attempts) != 0 {
				b.Errorf("it is %s", after.Status)
			}
			if n := b.Meter.Total(telemetry.Quarantined); n != 1 {
				b.Errorf("%v set aside", n)
			}
			b.RequireSilence()
		})
	}
	bubble(t, "an end of an attempt older than the claim's is ignored", func(b *bench) {
		r := b.running(1, func(r *job.Row) { r.Attempt = 2 })
		b.claimed(r, 2, nil)
		b.report(ended(r, 1, success()))
		if after := b.Row(r.Key); after.Status != job.Scheduled || after.Attempt != 2 {
			b.Errorf("it is %s at attempt %d", after.Status, after.Attempt)
		}
	})
	bubble(t, "an end is settled as the claim says, not as the report says", func(b *bench) {
		r := b.running(1)
		b.claimed(r, 1, map[string]any{"outcome": job.EncodeOutcome(failure(permanent))})
		b.report(ended(r, 1, success()))
		if after := b.Row(r.Key); after.Status != job.Dead {
			b.Errorf("it is %s", after.Status)
		}
	})
	bubble(t, "an end without an outcome is settled as the claim says", func(b *bench) {
		r := b.running(1)
		b.claimed(r, 1, map[string]any{"outcome": "{\"kind\":\"succeeded\",\"result\":{\"a\":\"x\uffffy\"}}"})
		b.report(message.Encode(message.Report{
			V: message.V, Kind: message.Ended, Tenant: string(r.Tenant), JobID: string(r.ID), Version: 1, Attempt: 1,
			Token: 1,
		}))
		if after := b.Row(r.Key); after.Status != job.Succeeded || after.Result == "" {
			b.Errorf("it is %s with the result %q", after.Status, after.Result)
		}
	})
	for name, token := range map[string]int64{"no claim": 0, "another token": 2} {
		bubble(t, "a start is refused with "+name, func(b *bench) {
			r := b.running(1)
			if token > 0 {
				b.claimed(r, 1, map[string]any{"token": token})
			}
			b.report(message.Encode(message.Report{
				V: message.V, Kind: message.Running, Tenant: string(r.Tenant), JobID: string(r.ID), Version: r.Version,
				Attempt: 1, Token: 1,
			}))
			if after := b.Row(r.Key); after.Status != job.Scheduled {
				b.Errorf("it is %s", after.Status)
			}
		})
	}
	for _, owner := range []string{"", "*", "acme#x", "a/b", "\uffff", strings.Repeat("a", 65)} {
		bubble(t, fmt.Sprintf("a report of the tenant %.20q is set aside", owner), func(b *bench) {
			r := b.running(1)
			r.Tenant = tenant.ID(owner)
			failed := b.handle(1, ended(r, 1, success()))
			if failed != "0" || b.Meter.Total(telemetry.Quarantined) != 1 {
				b.Error("a report of no tenant is not set aside")
			}
		})
	}
}

func TestStatus_ReadsClaimAndRowOnceEach(t *testing.T) {
	t.Parallel()
	bubble(t, "a success reads its claim and its row once each", func(b *bench) {
		body := b.ended(b.running(1), 1, success())
		before := b.World.Counts().Total()
		b.report(body)
		if read := b.World.Counts().Total().Read - before.Read; read != 2 {
			b.Errorf("settling cost %v read units", read)
		}
	})
}
