package bulk

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/show"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/operation"
	"punctual/shared/process"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// WorkTime is how long one message works on an operation, at most.
const WorkTime = 5 * time.Second

// Store is what the stage reads and writes.
type Store interface {
	engine.Store
	edit.Store
	operate.Store
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store Store
	Queue message.Queues
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
	Search    store.SearchReader // nil: jobs are not indexed
	Entropy   io.Reader          // of leases; nil: crypto/rand
}

// Stage is the consumer of the bulk queue. It is safe for concurrent use.
type Stage struct {
	Deps
	operator *operate.Operator
	records  batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	if d.Entropy == nil {
		d.Entropy = rand.Reader
	}
	schemas := schema.NewCache()
	e := engine.New(engine.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue, RateLimit: d.RateLimit, Schemas: schemas})
	read := &show.Reader{Base: d.Base, Store: d.Store, Nodes: e.Runs.Nodes, Search: d.Search}
	return &Stage{
		Deps: d,
		operator: &operate.Operator{
			Base: d.Base, Store: d.Store, Queue: d.Queue, Read: read, Runs: e.Runs, Schemas: schemas,
			Edit: &edit.Editor{Store: d.Store, Read: read, Accept: e.Accept, Decisions: e, Queue: d.Queue,
				Log: d.Log, Gathers: true},
			Entropy: &accept.Entropy{R: d.Entropy}, Notify: e.Notify,
		},
		records: batch.Runner{Stage: telemetry.StageBulk, Log: d.Log, Meter: d.Meter,
			Queue: contract.BulkQueue, Queues: d.Queue},
	}
}

// Handle continues the operations that messages name, and names those messages to redeliver.
func (s *Stage) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	return s.records.SQS(ctx, ev, s.operate), nil
}

func (s *Stage) operate(ctx context.Context, d message.Delivery) error {
	k, err := keyOf(d.Body)
	if err != nil {
		return err
	}
	until := s.Clock.Now().Add(WorkTime)
	wait, more, err := s.operator.Work(ctx, k, func() bool { return ctx.Err() == nil && s.Clock.Now().Before(until) })
	if err != nil || !more {
		return err
	}
	return arm.Asker{Queue: s.Queue}.Operate(ctx, k, wait)
}

// keyOf reads which operation a message names. The tenant becomes part of keys, so it is checked as strictly as that of
// a token.
func keyOf(body string) (k operation.Key, err error) {
	m, err := message.Decode[message.Dispatch](body)
	if err == nil {
		m, err = m.Asked()
	}
	if err == nil && m.Operate == nil {
		err = errors.New("it names no operation")
	}
	if err != nil {
		return k, fault.New(fault.Undecodable, err, "reading a message of the bulk queue")
	}
	if k.Tenant, err = tenant.Parse(m.Operate.Tenant); err == nil {
		k.ID, err = job.ParseID(m.Operate.OperationID)
	}
	if err != nil {
		return k, fault.New(fault.Undecodable, err, "reading a message of the bulk queue")
	}
	return k, nil
}
