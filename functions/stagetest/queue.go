package stagetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
)

// Received takes everything visible off a queue.
func (s *Bench) Received(queue string) []message.Delivery {
	s.Helper()
	var all []message.Delivery
	for {
		got, err := s.World.Queues().Receive(s.Context(), queue, 10, 0, time.Hour)
		s.Must(err)
		if len(got) == 0 {
			return all
		}
		for _, d := range got {
			s.Must(s.World.Queues().Delete(s.Context(), queue, d.Receipt))
		}
		all = append(all, got...)
	}
}

// Firings takes everything visible off the firing queue.
func (s *Bench) Firings() []message.Firing {
	s.Helper()
	var all []message.Firing
	for _, d := range s.Received(FiringQueue) {
		f, err := message.Decode[message.Firing](d.Body)
		s.Must(err)
		all = append(all, f)
	}
	return all
}

// HasFired takes everything visible off the firing queue and says whether a firing of r was among it.
func (s *Bench) HasFired(r job.Row) bool {
	s.Helper()
	return s.Fired()[string(r.ID)] > 0
}

// Fired takes everything visible off the firing queue and counts it by job.
func (s *Bench) Fired() map[string]int {
	s.Helper()
	n := map[string]int{}
	for _, f := range s.Firings() {
		n[f.JobID]++
	}
	return n
}

// RequireFired says that exactly this firing of r was sent.
func (s *Bench) RequireFired(r job.Row) {
	s.Helper()
	if got := s.Firings(); len(got) != 1 || got[0] != r.Firing().Message() {
		s.Fatalf("fired %+v, want one firing of attempt %d", got, r.Attempt)
	}
}

// RequireSilence says that nothing was sent to any queue of ours, not even with a delay.
func (s *Bench) RequireSilence() {
	s.Helper()
	for _, queue := range []string{FiringQueue, contract.ReportQueue, contract.RedriveQueue, contract.DispatchQueue} {
		if d := s.depth(queue); d != (message.Depth{}) {
			s.Fatalf("%s holds %+v", queue, d)
		}
	}
}

// RequireAsked takes everything visible off the dispatch queue and says that it was one message for each of the slices.
func (s *Bench) RequireAsked(want ...horizon.Slice) {
	s.Helper()
	var asked, wanted []string
	for _, d := range s.Received(contract.DispatchQueue) {
		asked = append(asked, d.Body)
	}
	for _, slice := range want {
		wanted = append(wanted, job.AskSlice(slice).Body)
	}
	slices.Sort(asked)
	slices.Sort(wanted)
	if !slices.Equal(asked, wanted) {
		s.Fatalf("asked for %v, want %v", asked, wanted)
	}
}

// Slices are those in which the rows wake up, each once.
func Slices(rows ...job.Row) (all []horizon.Slice) {
	for _, r := range rows {
		if at := horizon.SliceOf(r.WakeAt, r.Shard); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// Depth is how much a queue holds, visible or not.
func (s *Bench) Depth(queue string) int {
	s.Helper()
	d := s.depth(queue)
	return d.Visible + d.InFlight + d.Delayed
}

// Visible is how much of a queue a consumer would receive now.
func (s *Bench) Visible(queue string) int {
	s.Helper()
	return s.depth(queue).Visible
}

func (s *Bench) depth(queue string) message.Depth {
	s.Helper()
	d, err := s.World.Queues().Depth(s.Context(), queue)
	s.Must(err)
	return d
}

// Send sends bodies to a queue.
func (s *Bench) Send(queue string, bodies ...string) {
	s.Helper()
	out := make([]message.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i].Body = body
	}
	s.Must(s.World.Queues().Send(s.Context(), queue, out...))
}

// Receive receives up to ten messages as a consumer does: they stay in the queue, out of sight for that long, or for
// the queue's own time if that is zero.
func (s *Bench) Receive(queue string, hidden time.Duration) []message.Delivery {
	s.Helper()
	got, err := s.World.Queues().Receive(s.Context(), queue, 10, 0, hidden)
	s.Must(err)
	return got
}

// Deliver does what Lambda does once: it receives, calls the stage, and deletes the messages that did not fail.
func (s *Bench) Deliver(queue string, handle SQS) (received int) {
	s.Helper()
	got := s.Receive(queue, 0)
	resp, err := handle(s.Context(), batch.SQSEventOf(got...))
	s.Must(err)
	failed := map[string]bool{}
	for _, f := range resp.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, d := range got {
		if !failed[d.ID] {
			s.Must(s.World.Queues().Delete(s.Context(), queue, d.Receipt))
		}
	}
	return len(got)
}

// SQS is the handler of a stage that consumes a queue.
type SQS func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// Handle hands a stage those bodies, each received for the n-th time, and returns the indexes of
// those that must come again, such as "02"; "" is none.
func (s *Bench) Handle(ctx context.Context, handle SQS, receives int, bodies ...string) (returned string) {
	s.Helper()
	var deliveries []message.Delivery
	for i, body := range bodies {
		deliveries = append(deliveries, message.Delivery{
			ID: fmt.Sprint(i), Body: body, Receives: receives, SentAt: time.Now(),
		})
	}
	resp, err := handle(ctx, batch.SQSEventOf(deliveries...))
	s.Must(err)
	for _, f := range resp.BatchItemFailures {
		returned += f.ItemIdentifier
	}
	return returned
}
