package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine/arm"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// Deps is what the stage needs. A nil Meter drops metrics.
type Deps struct {
	Queue arm.Sender
	Timer arm.Timers
	Clock clock.Clock
	Log   *slog.Logger
	Meter *telemetry.Meter
}

// Stage is the stream consumer. It is safe for concurrent use.
type Stage struct {
	Deps
	armer   arm.Armer
	records batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	return &Stage{
		Deps:    d,
		armer:   arm.Armer{Queue: d.Queue, Timers: d.Timer, Log: d.Log, Meter: d.Meter},
		records: batch.Runner{Log: d.Log, Meter: d.Meter},
	}
}

// Handle arms what the records call for and names those that must come again.
func (s *Stage) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return s.records.Stream(ctx, ev, s.arm, s.setAside), nil
}

// arm decides about each change and then acts on all of them together.
func (s *Stage) arm(ctx context.Context, changes []item.Change) []error {
	now := s.Clock.Now()
	errs := make([]error, len(changes))
	var plans []job.Plan
	var of []int // the change that a plan belongs to
	var stale []job.Firing
	var forget []message.Outgoing
	var ofForget []int
	for i, c := range changes {
		errs[i] = fault.Guard(func() error {
			d, err := judge(c, now)
			if d.arm != nil {
				plans, of = append(plans, *d.arm), append(of, i)
			}
			if d.stale != nil {
				stale = append(stale, *d.stale)
			}
			if d.forget != nil {
				forget, ofForget = append(forget, *d.forget), append(ofForget, i)
			}
			return err
		})
	}
	for n, err := range s.armer.Do(ctx, "direct", plans) {
		if err != nil {
			errs[of[n]] = fmt.Errorf("arming job %s: %w", changes[of[n]].New.Str(contract.AttrJobID), err)
		}
	}
	s.armer.Disarm(ctx, stale)
	s.forget(ctx, forget, func(n int, err error) { errs[ofForget[n]] = err })
	return errs
}

// forget asks dispatch to forget what lay beside rows that are gone: that takes longer than
// firings may be kept waiting, and dispatch may be asked again.
func (s *Stage) forget(ctx context.Context, out []message.Outgoing, failed func(n int, err error)) {
	if len(out) == 0 {
		return
	}
	err := s.Queue.Send(ctx, contract.DispatchQueue, out...)
	if unsent := new(message.Unsent); errors.As(err, &unsent) {
		for n, why := range unsent.Failed {
			failed(n, why)
		}
	} else if err != nil {
		for n := range out {
			failed(n, err)
		}
	}
}

// decision is what a change calls for; nil for what it does not.
type decision struct {
	arm    *job.Plan
	stale  *job.Firing       // whose timer is to be taken back
	forget *message.Outgoing // asks for what lay beside a row that is gone
}

func judge(c item.Change, now time.Time) (d decision, err error) {
	if c.New == nil {
		return gone(c.Old), nil
	}
	if c.New.Str(contract.AttrNear) == "" { // the event source filters these; a pump may not
		return d, nil
	}
	row, err := job.ParseRow(c.New)
	if err != nil {
		return d, err
	}
	var old *job.Row
	if was, err := job.ParseRow(c.Old); err == nil {
		old = &was
	}
	arm, stale := job.Rearm(old, row, now)
	if arm {
		p := job.Arm(row.Firing(), now)
		d.arm = &p
	}
	d.stale = stale
	return d, nil
}

// gone decides about an item that the table has let go. A row that could not be read leaves
// nothing that could be found; a tombstone and what lies beside rows leave nothing.
func gone(old item.Item) (d decision) {
	row, err := job.ParseRow(old)
	if err != nil {
		return d
	}
	if ask, ok := job.Forgotten(row); ok {
		d.forget = &message.Outgoing{Body: message.Encode(ask), Group: string(row.Tenant)}
	}
	return d
}

func (s *Stage) setAside(ctx context.Context, a batch.Aside) error {
	return s.Queue.Send(ctx, contract.FiringDead, message.Outgoing{Body: a.Body()})
}
