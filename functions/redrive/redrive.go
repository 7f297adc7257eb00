package redrive

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store engine.Store
	Queue message.Queues
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
}

// Stage is the consumer of the redrive queue. It is safe for concurrent use.
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
		Deps:    d,
		engine:  e,
		records: batch.Runner{Stage: telemetry.StageRedrive, Log: d.Log, Meter: d.Meter},
	}
}

// Handle buries new dead letters, and makes a new job for each redriven one. A message that the answer names stays in
// the queue until SQS moves it to the DLQ.
func (s *Stage) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	return s.records.SQS(ctx, ev, s.deadLetter), nil
}

func (s *Stage) deadLetter(ctx context.Context, d message.Delivery) error {
	if message.IsCollect(d.Body) {
		return s.collect(ctx, d)
	}
	l, err := message.Decode[message.DeadLetter](d.Body)
	if err != nil {
		return err
	}
	id, err := job.ParseID(l.JobID)
	if err != nil {
		return fault.New(fault.Undecodable, err, "reading a dead letter")
	}
	k := job.Key{Tenant: tenant.ID(l.Tenant), ID: id}
	if job.CameBack(l, d) {
		held, err := s.bringBack(ctx, k)
		if err != nil || !held {
			return err
		}
	} else if done, err := s.bury(ctx, k); err != nil || done {
		return err
	}
	if err := s.Queue.SetVisibility(ctx, contract.RedriveQueue, d.Receipt, 0); err != nil {
		return fmt.Errorf("hurrying the dead letter of job %s on: %w", id, err) // SQS redelivers it later
	}
	return batch.ErrRedeliver
}

// bringBack redrives a job. held says that another job holds its unique key: the letter goes back to the DLQ.
func (s *Stage) bringBack(ctx context.Context, k job.Key) (held bool, err error) {
	by, already, err := s.engine.Redrive(ctx, k, nil)
	log := s.Log.With(telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID)
	var notUnique *accept.NotUnique
	switch kind := fault.KindOf(err); {
	case errors.As(err, &notUnique):
		log.WarnContext(ctx, "redriven dead letter goes back to the DLQ: another job holds the unique key of its job",
			"holder", notUnique.Holder)
		return true, nil
	case kind == fault.NotFound || kind == fault.Refused:
		log.WarnContext(ctx, "redriven dead letter was dropped: its job is gone or not DEAD", telemetry.Err,
			err.Error())
		return false, nil
	case err != nil:
		return false, err
	}
	log.InfoContext(ctx, "dead job was redriven", "by", by, "already", already)
	return false, nil
}

// bury notes on the row that the dead letter has reached the redrive queue, from which SQS moves it to the DLQ. done
// says that there is nothing to bury: the dead letter can be deleted.
func (s *Stage) bury(ctx context.Context, k job.Key) (done bool, err error) {
	_, err = s.Store.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		if done = row.Status != job.Dead || row.RedrivenBy != ""; done || !row.PendingEffects.DeadLetter() {
			return nil, nil // it is buried already
		}
		_, write := job.Bury(row, s.Clock.Now())
		return []item.Write{write}, nil
	})
	if fault.KindOf(err) == fault.NotFound {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("burying job %s: %w", k.ID, err)
	}
	return done, nil
}
