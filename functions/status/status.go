package status

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine/decide"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Deps is what the stage needs. A nil Meter drops metrics.
type Deps struct {
	Store *store.Store
	Queue decide.Inbox
	Clock clock.Clock
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Stage is the consumer of the report queue. It is safe for concurrent use.
type Stage struct {
	Deps
	waker   *decide.Waker
	records batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	return &Stage{
		Deps:    d,
		waker:   decide.New(decide.Deps{Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter}),
		records: batch.Runner{Log: d.Log, Meter: d.Meter, Queue: contract.ReportQueue, Queues: d.Queue},
	}
}

// Handle settles the reports and names those that must come again.
func (s *Stage) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	return s.records.SQS(ctx, ev, s.report), nil
}

func (s *Stage) report(ctx context.Context, d message.Delivery) error {
	rep, err := message.Decode[message.Report](d.Body)
	if err != nil {
		return err
	}
	id, err := job.ParseID(rep.JobID)
	if err != nil {
		return fault.New(fault.Undecodable, err, "reading a report")
	}
	k := job.Key{Tenant: tenant.ID(rep.Tenant), ID: id}
	switch rep.Kind {
	case message.Running:
		return s.running(ctx, k, rep)
	case message.Look:
		_, err := s.waker.Look(ctx, k, rep.Version, rep.Attempt)
		return err
	default:
		return s.ended(ctx, k, rep, d.Receives > 1)
	}
}

// ended settles an attempt by what its claim says. The report only says that there is something
// to settle: whatever else it holds, nothing comes of it that its worker has not recorded. One
// that its claim knows nothing of is set aside for people to look at.
func (s *Stage) ended(ctx context.Context, k job.Key, rep message.Report, repeated bool) error {
	c, err := s.Store.Claim(ctx, k)
	switch {
	case err != nil:
		return fmt.Errorf("reading the claim of job %s: %w", k.ID, err)
	case c.Attempt > rep.Attempt:
		return nil // there is a newer one only because this one was settled
	case c.Attempt < rep.Attempt || c.Token != rep.Token || c.Outcome == nil:
		return fault.New(fault.Undecodable, nil, "reading a report of attempt %d, token %d of job %s: its claim is of attempt %d, token %d, ended %t",
			rep.Attempt, rep.Token, k.ID, c.Attempt, c.Token, c.Outcome != nil)
	}
	return s.settle(ctx, k, rep.Attempt, *c.Outcome, repeated)
}

// running makes RUNNING a fact, unless the job or its claim has moved on since.
func (s *Stage) running(ctx context.Context, k job.Key, rep message.Report) error {
	began := job.Outcome{StartedAt: s.Clock.Now()}
	if len(rep.Outcome) > 0 { // what is known of the attempt so far
		if err := json.Unmarshal(rep.Outcome, &began); err != nil {
			return fault.New(fault.Undecodable, nil, "reading a running report")
		}
	}
	c, err := s.Store.Claim(ctx, k)
	if err != nil {
		return fmt.Errorf("reading the claim of job %s: %w", k.ID, err)
	}
	if c.Attempt != rep.Attempt || c.Token != rep.Token {
		return nil // somebody else owns it by now
	}
	err = s.Store.Put(ctx, job.MarkRunning(k, rep.Version, rep.Attempt, began.StartedAt, began.LatenessMS))
	if store.Refused(err) != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("marking job %s running: %w", k.ID, err)
	}
	return nil
}
