package redrive_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// before is the stage as it was before it knew requests to collect: a body that is no dead letter cannot be read.
// A dead letter goes the same way in both, so that the stage of today has them.
func (b *bench) before(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	var letters []message.Delivery
	read := func(_ context.Context, d message.Delivery) error {
		if _, err := message.Decode[message.DeadLetter](d.Body); err != nil {
			return err
		}
		letters = append(letters, d)
		return nil
	}
	resp := batch.Runner{Log: telemetry.Silent(), Meter: b.Meter, Limit: 1}.SQS(ctx, ev, read)
	rest, err := b.stage.Handle(ctx, batch.SQSEventOf(letters...))
	resp.BatchItemFailures = append(resp.BatchItemFailures, rest.BatchItemFailures...)
	return resp, err
}

// settle lets code have whatever comes, until SQS has moved what that code cannot read.
func (b *bench) settle(code stagetest.SQS) {
	b.Helper()
	for range contract.DeadLetterMaxReceives + 1 {
		b.Deliver(contract.RedriveQueue, code)
		time.Sleep(contract.DeadLetterVisibility + time.Second)
	}
}

// bodies are those of the messages in a queue, which stay in it, out of sight for contract.DeadLetterVisibility.
func (b *bench) bodies(queue string) []string {
	b.Helper()
	var all []string
	for _, d := range b.Receive(queue, 0) {
		all = append(all, d.Body)
	}
	return all
}

// A canary leaves old and new code at work for minutes, and a rollback leaves messages of the new to the old.
func TestRedrive_StandsBesideOlderAndNewerCode(t *testing.T) {
	t.Parallel()
	ask := message.Encode(message.Collect{V: message.V, Collect: true})
	bubble(t, "takes a request that older code has received before", func(b *bench) {
		back := b.die(1)
		b.redriven(back)
		b.Send(contract.RedriveQueue, ask)
		for range contract.DeadLetterMaxReceives - 1 {
			if n := b.Deliver(contract.RedriveQueue, b.before); n != 1 {
				b.Fatalf("older code received %d messages", n)
			}
			time.Sleep(contract.DeadLetterVisibility + time.Second)
		}
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "takes a request out of the DLQ that older code let go there", func(b *bench) {
		back, dead := b.die(1), b.die(2)
		b.redriven(back)
		b.Send(contract.RedriveQueue, ask)
		b.settle(b.before)
		b.requireDepths(0, 3, 0)
		if n := b.Meter.Total(telemetry.Quarantined); n != 1 {
			b.Errorf("it was counted %v times as set aside", n)
		}
		b.collect()
		b.requireDepths(0, 1, 0)
		if left := b.bodies(contract.DeadLetters); len(left) != 1 || !holds(b, left[0], string(dead.ID)) {
			b.Errorf("in the DLQ is left %v", left)
		}
	})
	bubble(t, "takes a request that an operator redrives to its source", func(b *bench) {
		gone := b.die(1)
		b.Send(contract.RedriveQueue, ask)
		b.settle(b.before)
		b.Write(item.Write{Ref: gone.Ref(), Name: "test.delete", Delete: true})
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 0)
	})
	bubble(t, "lets older code bury and bring back while requests are in flight", func(b *bench) {
		r := b.dead(1)
		b.send(r)
		b.Send(contract.RedriveQueue, ask)
		b.settle(b.before)
		b.requireDepths(0, 2, 0)
		time.Sleep(time.Hour)
		b.redriveToSource()
		b.Deliver(contract.RedriveQueue, b.before)
		if b.Row(r.Key).RedrivenBy == "" {
			b.Error("the job was not brought back")
		}
	})
	bubble(t, "keeps a message of newer code unchanged until that code takes it", func(b *bench) {
		const unknown = `{"v":1,"of_next_year":true}`
		b.Send(contract.RedriveQueue, unknown)
		b.settle(b.stage.Handle)
		b.requireDepths(0, 1, 0)
		b.collect()
		if left := b.bodies(contract.DeadLetters); len(left) != 1 || left[0] != unknown {
			b.Fatalf("in the DLQ is left %v", left)
		}
		time.Sleep(contract.DeadLetterVisibility + time.Second)
		b.redriveToSource()
		taken := ""
		b.Deliver(contract.RedriveQueue, func(_ context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
			for _, m := range ev.Records {
				taken = m.Body
			}
			return events.SQSEventResponse{}, nil
		})
		if taken != unknown {
			b.Errorf("newer code receives %q", taken)
		}
		b.requireDepths(0, 0, 0)
	})
}

// holds says whether a dead letter is of the job.
func holds(b *bench, body, id string) bool {
	b.Helper()
	l, err := message.Decode[message.DeadLetter](body)
	return err == nil && l.JobID == id
}
