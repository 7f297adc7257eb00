package status

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine"
	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Queue is what the stage needs of the queues.
type Queue interface {
	decide.Queue
	message.Visibility
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store engine.Store
	Queue Queue
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
}

// Stage is the consumer of the report queue. It is safe for concurrent use.
type Stage struct {
	Deps
	engine  *engine.Engine
	records batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	e := engine.New(engine.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue, RateLimit: d.RateLimit})
	return &Stage{
		Deps: d, engine: e,
		records: batch.Runner{Stage: telemetry.StageStatus, Log: d.Log, Meter: d.Meter, Queue: contract.ReportQueue,
			Queues: d.Queue},
	}
}

// Handle settles the reports and names those to redeliver.
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
		began := job.Outcome{StartedAt: s.Clock.Now()}
		if len(rep.Outcome) > 0 { // the start time and lateness of the attempt
			if err := text.Read(rep.Outcome, &began); err != nil {
				return fault.New(fault.Undecodable, nil, "reading a running report")
			}
		}
		return s.engine.Began(ctx, k, rep.Version, rep.Attempt, rep.Token, began)
	case message.Reevaluate:
		_, err := s.engine.Reevaluate(ctx, k, rep.Version, rep.Attempt)
		return err
	default:
		late := !d.SentAt.IsZero() && s.Clock.Now().Sub(d.SentAt) > contract.ReportsBehind
		return s.engine.Settle(ctx, k, rep.Attempt, rep.Token, decide.Arrival{
			Repeated: d.Receives > 1, Late: late, Freed: rep.Freed,
		})
	}
}
