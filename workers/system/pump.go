package system

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/shared/clock"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// pump does the work of Lambda's event sources: it receives, calls a stage, and deletes what did
// not fail.
type pump struct {
	queues message.Queues
	stream Stream
	clock  clock.Clock
	log    *slog.Logger
}

const (
	sqsBatch    = 10
	sqsWait     = 20 * time.Second
	streamBatch = 100
	streamWait  = 20 * time.Second
	retryAfter  = 200 * time.Millisecond // after a failed call; doubles up to retryMost
	retryMost   = 10 * time.Second
)

// pause waits after a failure, longer each time, or until ctx ends.
func pause(ctx context.Context, failures int) {
	d := min(retryAfter<<min(failures, 6), retryMost)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// messages feeds a queue's messages to a stage.
func (p pump) messages(queue string, handle func(context.Context,
	events.SQSEvent) (events.SQSEventResponse, error)) func(context.Context) {
	return func(ctx context.Context) {
		for failures := 0; ctx.Err() == nil; {
			got, err := p.queues.Receive(ctx, queue, sqsBatch, sqsWait, 0)
			if err != nil {
				if ctx.Err() == nil {
					p.log.Error("receiving failed", "queue", queue, telemetry.Err, err)
				}
				failures++
				pause(ctx, failures)
				continue
			}
			failures = 0
			if len(got) == 0 {
				continue
			}
			// Received messages are finished, even during a shutdown.
			p.batch(context.WithoutCancel(ctx), queue, got, handle)
		}
	}
}

func (p pump) batch(ctx context.Context, queue string, got []message.Delivery,
	handle func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) {
	resp, err := handle(ctx, batch.SQSEventOf(got...))
	if err != nil {
		p.log.Error("a batch failed", "queue", queue, telemetry.Err, err)
		return // all of them become visible once more
	}
	failed := map[string]bool{}
	for _, f := range resp.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	var done []string
	for _, d := range got {
		if !failed[d.ID] {
			done = append(done, d.Receipt)
		}
	}
	if len(done) == 0 {
		return
	}
	if err := p.queues.Delete(ctx, queue, done...); err != nil {
		p.log.Error("deleting handled messages failed", "queue", queue, telemetry.Err, err)
	}
}

// onChanges is a consumer of all changes of the table. It returns one error for each.
type onChanges func(context.Context, []item.Change) []error

// changes feeds the table's stream to its consumer, with the filter of the event source, and then to the others,
// without one. A failed record stops the stream until it succeeds; the stage sets aside a record that can never
// succeed.
func (p pump) changes(handle func(context.Context,
	events.DynamoDBEvent) (events.DynamoDBEventResponse, error), others ...onChanges) func(context.Context) {
	return func(ctx context.Context) {
		after := ""
		for failures := 0; ctx.Err() == nil; {
			changes, err := p.stream.Stream(ctx, after, streamBatch, streamWait)
			if err != nil {
				if ctx.Err() == nil {
					p.log.Error("reading the stream failed", telemetry.Err, err)
				}
				failures++
				pause(ctx, failures)
				continue
			}
			last, ok := p.records(context.WithoutCancel(ctx), changes, handle)
			done := upTo(changes, last)
			for _, other := range others { // each gets what those before it have done, so that no record is left out
				n := p.all(context.WithoutCancel(ctx), done, other)
				done, ok = done[:n], ok && n == len(done)
			}
			if len(done) > 0 {
				after = done[len(done)-1].Seq
			}
			if ok {
				failures = 0
				continue
			}
			failures++
			pause(ctx, failures)
		}
	}
}

// records calls the stage with a batch and returns the number of the last record that is done.
func (p pump) records(ctx context.Context, changes []item.Change,
	handle func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)) (done string, ok bool) {
	ev := batch.StreamEventOf(changes...)
	before := map[string]string{} // by record: the number of the record before it
	for _, c := range changes {
		before[c.Seq] = done
		done = c.Seq
	}
	if len(ev.Records) == 0 {
		return done, true
	}
	resp, err := handle(ctx, ev)
	if err != nil {
		p.log.Error("a batch of stream records failed", telemetry.Err, err)
		return "", false
	}
	// As in Lambda, everything from the first failed record on is repeated.
	for _, r := range ev.Records {
		for _, f := range resp.BatchItemFailures {
			if f.ItemIdentifier == r.Change.SequenceNumber {
				return before[f.ItemIdentifier], false
			}
		}
	}
	return done, true
}

// upTo returns the changes up to a record; "" is before all of them.
func upTo(changes []item.Change, last string) []item.Change {
	n := len(changes)
	for n > 0 && changes[n-1].Seq != last {
		n--
	}
	return changes[:n]
}

// all calls a consumer of all changes and returns how many of them are done. A change that fails for good is reported
// and counts as done.
func (p pump) all(ctx context.Context, changes []item.Change, other onChanges) (done int) {
	for n, err := range other(ctx, changes) {
		switch {
		case fault.Retryable(err):
			p.log.Error("a change failed and will be repeated", telemetry.Err, err)
			return n
		case err != nil:
			p.log.Error("a change failed", telemetry.Err, err)
		}
	}
	return len(changes)
}

// once runs a pass at the start only. What it misses if it fails, a later pass of another kind finds.
func (p pump) once(name string, pass func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("a pass failed", "pass", name, telemetry.Err, err)
		}
	}
}

// minutes runs a pass at once and then at the start of every minute.
func (p pump) minutes(name string, pass func(context.Context) error) func(context.Context) {
	return p.every(time.Minute, name, pass)
}

// every runs a pass at once and then at each multiple of a period. Here a slow pass delays the
// next one; in AWS two may overlap, which the stages tolerate.
func (p pump) every(period time.Duration, name string, pass func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			if err := pass(ctx); err != nil && ctx.Err() == nil {
				p.log.Error("a pass failed", "pass", name, telemetry.Err, err)
			}
			p.until(ctx, p.clock.Now().Truncate(period).Add(period))
		}
	}
}

// A leaper is a clock that leaps forward at times: a wait for an instant looks at it again then.
type leaper interface {
	// Leapt is closed by the next leap.
	Leapt() <-chan struct{}
}

// until waits for an instant, or until ctx ends.
func (p pump) until(ctx context.Context, at time.Time) {
	for {
		var leapt <-chan struct{}
		if c, ok := p.clock.(leaper); ok {
			leapt = c.Leapt() // before the time is read, so that no leap is missed
		}
		timer := time.NewTimer(at.Sub(p.clock.Now()))
		select {
		case <-leapt:
			timer.Stop()
			continue
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		return
	}
}
