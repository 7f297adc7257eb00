package redrive_test

import (
	"testing"
	"time"

	"punctual/functions/batch"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// die puts a DEAD job and its dead letter into the dead-letter queue.
func (b *bench) die(n int) job.Row {
	b.Helper()
	r := b.dead(n)
	b.send(r)
	for b.pump() > 0 { // until SQS has moved it
	}
	return r
}

// collect gives the stage the message of REST.
func (b *bench) collect() {
	b.Helper()
	b.World.SetFaults(nil)
	ask := message.Delivery{ID: "1", Receives: 1, Body: message.Encode(message.Collect{V: message.V, Collect: true})}
	resp, err := b.stage.Handle(b.Context(), batch.SQSEventOf(ask))
	if err != nil || len(resp.BatchItemFailures) > 0 {
		b.Errorf("the request stays: %+v, %v", resp, err)
	}
	time.Sleep(contract.LettersHidden + time.Second)
}

func (b *bench) redriven(r job.Row) {
	b.Helper()
	b.Write(item.Write{Ref: r.Ref(), Name: "test.redriven", Set: map[string]any{"redriven_by": string(r.ID)}})
}

func TestRedrive_DeletesDeadLettersOfRedrivenAndPurgedJobs(t *testing.T) {
	t.Parallel()
	bubble(t, "deletes dead letters of redriven and purged jobs and keeps the others", func(b *bench) {
		back, gone, dead := b.die(1), b.die(2), b.die(3)
		if n := b.Visible(contract.DeadLetters); n != 3 {
			b.Fatalf("there are %d dead letters", n)
		}
		b.redriven(back)
		b.Write(item.Write{Ref: gone.Ref(), Name: "test.delete", Delete: true})
		b.collect()
		if n := b.Visible(contract.DeadLetters); n != 1 {
			b.Errorf("%d dead letters are left", n)
		}
		b.redriven(dead)
		b.collect()
		if n := b.Visible(contract.DeadLetters); n != 0 {
			b.Errorf("%d dead letters are left", n)
		}
	})
	bubble(t, "goes through hundreds of dead letters", func(b *bench) {
		for n := range 300 {
			r := b.dead(n)
			if n%3 == 0 {
				b.redriven(r)
			}
			b.Send(contract.DeadLetters, message.Encode(job.DeadLetterOf(r, job.Labels{}, time.Now())))
		}
		b.collect()
		if n := b.Visible(contract.DeadLetters); n != 200 {
			b.Errorf("%d dead letters are left", n)
		}
	})
	bubble(t, "keeps dead letters that cannot be read, or whose rows cannot", func(b *bench) {
		b.Spoil(b.die(1).Ref())
		b.Send(contract.DeadLetters, "?")
		b.collect()
		if n := b.Visible(contract.DeadLetters); n != 2 {
			b.Errorf("%d dead letters are left", n)
		}
	})
	bubble(t, "never fails its own message, which would become a dead letter", func(b *bench) {
		b.redriven(b.die(1))
		b.World.SetFaults(func(memory.Call) memory.Fault { return memory.Fault{Fail: fault.Unavailable} })
		ask := message.Delivery{ID: "1", Receives: 3,
			Body: message.Encode(message.Collect{V: message.V, Collect: true})}
		if resp, err := b.stage.Handle(b.Context(), batch.SQSEventOf(ask)); err != nil ||
			len(resp.BatchItemFailures) > 0 {
			b.Errorf("it fails: %+v, %v", resp, err)
		}
	})
}
