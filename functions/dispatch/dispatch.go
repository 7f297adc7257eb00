package dispatch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
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
	Timer message.Timers
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
}

// Stage is the consumer of the dispatch queue. It is safe for concurrent use.
type Stage struct {
	Deps
	engine  *engine.Engine
	records batch.Runner
	armed   arm.Recent   // names of timers that were made
	skips   atomic.Int64 // until when no timer is made, in Unix ns
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	e := engine.New(engine.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue, RateLimit: d.RateLimit})
	return &Stage{
		Deps: d, engine: e,
		records: batch.Runner{Stage: telemetry.StageDispatch, Log: d.Log, Meter: d.Meter,
			Queue: contract.DispatchQueue, Queues: d.Queue},
	}
}

// Handle does what the messages ask for, and names those to redeliver.
func (s *Stage) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	return s.records.SQS(ctx, ev, s.dispatch), nil
}

func (s *Stage) dispatch(ctx context.Context, delivery message.Delivery) error {
	d, err := message.Decode[message.Dispatch](delivery.Body)
	if err != nil {
		return err
	}
	if d.Firing == nil {
		d, err = d.Asked()
	}
	operation, err2 := s.work(d)
	if err := errors.Join(err, err2); err != nil {
		return fault.New(fault.Undecodable, err, "reading a dispatch message")
	}
	early := earlyBy(d, s.Clock.Now())
	switch {
	case early <= 0:
		return operation(ctx)
	case early > contract.TimerGuard:
		if d.Fire != nil {
			return s.await(ctx, d, sliceOf(d), early)
		}
	}
	return s.resend(ctx, d, early)
}

// work is what the message asks for. The tenant that it names becomes part of keys, so it is checked as strictly as
// that of a token.
func (s *Stage) work(d message.Dispatch) (operation func(context.Context) error, err error) {
	if d.Firing != nil {
		id, err := job.ParseID(d.Firing.JobID)
		return func(ctx context.Context) error { return s.fire(ctx, d, id) }, err
	}
	switch v := d.Verb; {
	case v.Unpark != nil:
		t := job.Everyone
		if v.Unpark.Tenant != string(job.Everyone) {
			t, err = tenant.Parse(v.Unpark.Tenant)
		}
		return func(ctx context.Context) error { return s.unpark(ctx, d, t) }, err
	case v.Line != nil:
		_, err := tenant.Parse(v.Line.Tenant)
		return func(ctx context.Context) error { return s.parked(ctx, d) }, err
	case v.Promote != nil:
		t, err := tenant.Parse(v.Promote.Tenant)
		k := schedule.Key{Tenant: t, Name: v.Promote.Schedule}
		return func(ctx context.Context) error { return s.promote(ctx, k) }, err
	case v.Reconcile != nil:
		t, err := tenant.Parse(v.Reconcile.Tenant)
		id, err2 := job.ParseID(v.Reconcile.RunID)
		k := run.Key{Tenant: t, ID: id}
		return func(ctx context.Context) error { return s.engine.Runs.Due(ctx, k) }, errors.Join(err, err2)
	case v.Limit != nil:
		t, err := tenant.Parse(v.Limit.Tenant)
		k := limit.Key{Tenant: t, LimitKey: job.LimitKey{Name: v.Limit.Limit, Key: v.Limit.Key}}
		return func(ctx context.Context) error { return s.engine.Waiting(ctx, k) }, err
	case v.Forget != nil:
		row, err := forgotten(*v.Forget)
		return func(ctx context.Context) error { return s.forget(ctx, row) }, err
	case v.Fire != nil:
		return func(ctx context.Context) error { return s.slice(ctx, d, sliceOf(d)) }, nil
	}
	return nil, nil // it asks for nothing known
}

// sliceOf is the slice that a message is about.
func sliceOf(d message.Dispatch) horizon.Slice {
	return horizon.Slice{Minute: d.Fire.At, Shard: d.Fire.Shard}
}

// forgotten is what the message knows of a row that is gone.
func forgotten(f message.Forget) (row job.Row, err error) {
	row.PayloadVer, row.ResultRef = f.Payload, f.Result
	if f.Payload > 0 {
		row.PayloadIn = job.InBlob
	}
	if f.Result != "" {
		row.ResultIn = job.InBlob
	}
	if row.Tenant, err = tenant.Parse(f.Tenant); err == nil {
		row.ID, err = job.ParseID(f.JobID)
	}
	return row, err
}

// forget deletes the contents of a row that has expired, unless there is a new row with the same derived id.
func (s *Stage) forget(ctx context.Context, row job.Row) error {
	_, err := s.Store.Row(ctx, row.Key)
	if fault.KindOf(err) == fault.NotFound {
		return s.Store.ForgetContents(ctx, row)
	}
	return err
}

// earlyBy is how long the message must wait: until its own time, or until the firing queue can delay the firing to its
// due time.
func earlyBy(d message.Dispatch, now time.Time) time.Duration {
	early := d.At.Sub(now)
	if d.Firing != nil {
		early = max(early, d.Firing.DueAt.Sub(now)-contract.MaxDelay)
	}
	return early
}

// resend sends the message once more with a delay, but no longer than the queue allows.
func (s *Stage) resend(ctx context.Context, d message.Dispatch, in time.Duration) error {
	delay := min((in + time.Second - 1).Truncate(time.Second), contract.MaxDelay)
	return s.Queue.Send(ctx, contract.DispatchQueue, message.Outgoing{Body: message.Encode(d), Delay: delay})
}

// beginsAhead is how long before its due time a run may be decided about. A firing that arrives earlier waits in the
// queue.
const beginsAhead = contract.NowLane + time.Second

// fire sends the firing of one job, for timers of an older version, which had one for each job. A run near its time is
// decided about instead.
func (s *Stage) fire(ctx context.Context, d message.Dispatch, id job.ID) error {
	f := job.Firing{
		Key: job.Key{Tenant: tenant.ID(d.Firing.Tenant), ID: id}, Version: d.Firing.Version, Attempt: d.Firing.Attempt,
		Pool: d.Pool, Priority: job.Priority(d.Priority), DueAt: d.Firing.DueAt,
	}
	now := s.Clock.Now()
	if f.OfRun() && f.DueAt.Sub(now) <= beginsAhead {
		_, err := s.engine.Reevaluate(ctx, f.Key, f.Version, f.Attempt)
		return err
	}
	return s.engine.Arm.Fire(ctx, "timer", f, now)
}
