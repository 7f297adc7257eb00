package redrive_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/redrive"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

type bench struct {
	*stagetest.Bench
	stage *redrive.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{s, redrive.New(redrive.Deps{
			Store: s.Store, Queue: s.World.Queues(), Base: process.Base{Meter: s.Meter},
		})})
	})
}

// dead puts a DEAD job whose dead letter is pending.
func (b *bench) dead(n int, change ...func(*job.Row)) job.Row {
	b.Helper()
	r := jobtest.Row(n, time.Now(), time.Now(), func(r *job.Row) {
		r.Status, r.PendingEffects, r.DeadAt, r.WakeAt = job.Dead, job.PendingDeadLetter, time.Now().UTC(), time.Now()
	})
	for _, f := range change {
		f(&r)
	}
	return b.Put(r)
}

// send sends the dead letter of r, as the status consumer does.
func (b *bench) send(r job.Row) {
	b.Helper()
	b.Send(contract.RedriveQueue, message.Encode(job.DeadLetterOf(r, job.Labels{}, time.Now())))
}

// pump gives the stage what has come, once.
func (b *bench) pump() (received int) {
	b.Helper()
	return b.Deliver(contract.RedriveQueue, b.stage.Handle)
}

// drain pumps until the queue shows nothing.
func (b *bench) drain() {
	b.Helper()
	for n := 1; n > 0; n = b.pump() {
	}
}

// redriveToSource is the default redrive of the console, without a destination.
func (b *bench) redriveToSource() {
	b.Helper()
	if _, err := b.World.Queues().StartMoveTask(b.Context(), contract.DeadLetters, ""); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) requireDepths(redriveQueue, deadLetters, firings int) {
	b.Helper()
	if q, d, f := b.Depth(contract.RedriveQueue), b.Depth(contract.DeadLetters),
		b.Depth(stagetest.FiringQueue); q != redriveQueue || d != deadLetters || f != firings {
		b.Fatalf("redrive queue %d, dead letters %d, firings %d; want %d, %d, %d", q, d, f, redriveQueue, deadLetters,
			firings)
	}
}

func TestRedrive_BuriesANewDeadLetter(t *testing.T) {
	t.Parallel()
	//proof:of S23
	bubble(t, "a new dead letter is buried and moved into the DLQ by the queue's own policy", func(b *bench) {
		r := b.dead(1)
		start := time.Now()
		b.send(r)
		b.drain()
		b.requireDepths(0, 1, 0)
		after := b.Row(r.Key)
		if after.PendingEffects != job.NoPendingEffects || !after.WakeAt.IsZero() || !after.BuriedAt.Equal(start) ||
			after.Status != job.Dead {
			b.Errorf("pending effects %q, wake-up %s, buried at %s", after.PendingEffects, after.WakeAt, after.BuriedAt)
		}
		if took := time.Since(start); took != 0 {
			b.Errorf("it took %s", took)
		}
		if got := b.Receive(contract.DeadLetters, 0); len(got) != 1 || got[0].Source == "" {
			b.Errorf("in the DLQ lies %+v", got)
		}
	})
	bubble(t, "a dead letter sent more than once makes no new job", func(b *bench) {
		r := b.dead(1)
		b.send(r)
		time.Sleep(time.Hour)
		b.send(r)
		b.drain()
		b.requireDepths(0, 2, 0)
	})
	bubble(t, "a dead letter reaches the DLQ after a crash between its burial and its answer", func(b *bench) {
		r := b.dead(1)
		b.send(r)
		b.Fail(stagetest.Every(memory.QueueVisibility))
		b.pump()
		if b.Row(r.Key).BuriedAt.IsZero() {
			b.Fatal("it was not buried: the test is about nothing")
		}
		b.World.SetFaults(nil)
		time.Sleep(contract.DeadLetterVisibility)
		b.drain()
		b.requireDepths(0, 1, 0)
	})
	bubble(t, "a new dead letter of a job that is gone is deleted", func(b *bench) {
		b.send(jobtest.Row(1, time.Now(), time.Now(), func(r *job.Row) { r.DeadAt = time.Now() }))
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	//proof:of 180
	bubble(t, "a new dead letter of a redriven job is deleted", func(b *bench) {
		r := b.dead(1, func(r *job.Row) { r.RedrivenBy = jobtest.Key(2).ID })
		b.send(r)
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "a new dead letter of a job that is not dead is deleted", func(b *bench) {
		b.send(b.dead(1, func(r *job.Row) { r.Status, r.PendingEffects = job.Succeeded, job.NoPendingEffects }))
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "burying a dead letter leaves the children pending", func(b *bench) {
		r := b.dead(1, func(r *job.Row) { r.RunID, r.Node, r.PendingEffects = "run", "a", job.PendingBoth })
		b.send(r)
		b.drain()
		if after := b.Row(r.Key); after.PendingEffects != job.PendingChildren || after.WakeAt.IsZero() {
			b.Errorf("it has pending effects %q and wakes at %s", after.PendingEffects, after.WakeAt)
		}
	})
}

func TestRedrive_MakesANewJobForARedrivenDeadLetter(t *testing.T) {
	t.Parallel()
	// buried moves a dead letter into the DLQ and waits an hour.
	buried := func(b *bench, n int) job.Row {
		b.Helper()
		r := b.dead(n)
		b.send(r)
		b.drain()
		time.Sleep(time.Hour)
		return r
	}
	//proof:of 108
	bubble(t, "a redrive to source makes one new job and deletes the dead letter", func(b *bench) {
		r := buried(b, 1)
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 1)
		old := b.Row(r.Key)
		next := b.Row(job.Key{Tenant: r.Tenant, ID: old.RedrivenBy})
		if next.RedriveOf != r.ID || next.Status != job.Scheduled || next.Attempt != 1 {
			b.Errorf("the new job is %+v", next)
		}
		if n := b.Meter.Total(telemetry.Redriven); n != 1 {
			b.Errorf("counted %v", n)
		}
	})
	bubble(t, "two copies of a redriven dead letter make one new job", func(b *bench) {
		r := b.dead(1)
		b.send(r)
		b.send(r)
		b.drain()
		time.Sleep(time.Hour)
		b.redriveToSource()
		b.drain()
		if n := b.Meter.Total(telemetry.Redriven); n != 1 {
			b.Errorf("counted %v", n)
		}
		// The second finds the new job unclaimed: its firing may be missing.
		b.requireDepths(0, 0, 2)
		if by := b.Row(r.Key).RedrivenBy; b.Fired()[string(by)] != 2 {
			b.Errorf("fired %v", b.Fired())
		}
	})
	bubble(t, "a redriven dead letter is deleted when its job was redriven from its row", func(b *bench) {
		r := buried(b, 1)
		after := b.Row(r.Key)
		after.RedrivenBy = jobtest.Key(7).ID
		b.Overwrite(r.Ref(), after.Item())
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "a redriven dead letter is deleted when its job is not dead", func(b *bench) {
		r := buried(b, 1)
		after := b.Row(r.Key)
		after.Status = job.Cancelled
		b.Overwrite(r.Ref(), after.Item())
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "a redriven dead letter is deleted when its job is gone", func(b *bench) {
		r := buried(b, 1)
		b.Write(job.Forget(b.Row(r.Key), time.Now()))
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	//proof:of S23
	bubble(t, "a dead letter goes back to the DLQ when its redrive fails, and works the next time", func(b *bench) {
		buried(b, 1)
		b.redriveToSource()
		b.Fail(stagetest.Every(memory.TableCommit))
		for range contract.DeadLetterMaxReceives + 1 {
			b.pump()
			time.Sleep(contract.DeadLetterVisibility)
		}
		b.requireDepths(0, 1, 0)
		b.World.SetFaults(nil)
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 1)
	})
	bubble(t, "a redrive whose answer was lost makes one new job", func(b *bench) {
		buried(b, 1)
		b.redriveToSource()
		b.FaultFirst(1, stagetest.Every(memory.TableCommit), memory.Fault{Lost: true})
		b.pump()
		time.Sleep(contract.DeadLetterVisibility)
		b.drain()
		if q := b.Depth(contract.RedriveQueue); q != 0 {
			b.Errorf("%d dead letters are left", q)
		}
		if b.Row(jobtest.Key(1)).RedrivenBy == "" {
			b.Error("it was not brought back")
		}
	})
}

//proof:of S21
func TestRedrive_HandlesNineDespiteABadDeadLetter(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]string{
		"a body that is not JSON":   "{",
		"a version that is unknown": `{"v":9,"tenant":"acme","job_id":"01KX0000000000000000000000","dead_at":"2027-01-01T00:00:00Z"}`,
		"a body without a job id":   `{"v":1,"tenant":"acme","job_id":"x","dead_at":"2027-01-01T00:00:00Z"}`,
	} {
		bubble(t, "nine dead letters are handled and one is kept: "+name, func(b *bench) {
			for n := range 9 {
				b.send(b.dead(n))
			}
			b.Send(contract.RedriveQueue, poison)
			for range contract.DeadLetterMaxReceives + 1 {
				b.drain()
				time.Sleep(contract.DeadLetterVisibility)
			}
			b.requireDepths(0, 10, 0)
			intact := 0
			for _, d := range b.Received(contract.DeadLetters) {
				if d.Body == poison {
					intact++
				}
			}
			if intact != 1 {
				b.Error("its body did not arrive as it came")
			}
			if n := b.Meter.Total(telemetry.Quarantined); n != 1 {
				b.Errorf("%v set aside", n)
			}
			if n := fmt.Sprint(b.Meter.Total(telemetry.Faults)); n != "1" {
				b.Errorf("burying counted as %s faults", n)
			}
		})
	}
}
