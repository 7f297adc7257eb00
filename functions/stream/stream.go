package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine/arm"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Queue message.Sender
}

// Stage is the stream consumer. It is safe for concurrent use.
type Stage struct {
	Deps
	armer   arm.Armer
	slices  arm.Slices
	records batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{
		Deps:    d,
		armer:   arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		slices:  arm.Slices{Queue: d.Queue},
		records: batch.Runner{Stage: telemetry.StageStream, Log: d.Log, Meter: d.Meter},
	}
}

// Handle sends what the records call for, and names those to redeliver.
func (s *Stage) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return s.records.Stream(ctx, ev, s.arm, s.quarantine), nil
}

// arm decides about each change and then acts on all of them together.
func (s *Stage) arm(ctx context.Context, changes []item.Change) []error {
	now := s.Clock.Now()
	errs := make([]error, len(changes))
	var firings wanted[job.Firing]
	var slices wanted[horizon.Slice]
	var forget wanted[message.Outgoing]
	for i, c := range changes {
		errs[i] = fault.Guard(func() error {
			d, err := evaluate(c, now)
			firings.add(i, d.fire)
			slices.add(i, d.slice)
			forget.add(i, d.forget)
			return err
		})
	}
	for n, err := range s.armer.FireAll(ctx, "direct", firings.list, now) {
		if err != nil {
			errs[firings.of[n]] = fmt.Errorf("sending the firing of job %s: %w", firings.list[n].ID, err)
		}
	}
	for n, err := range s.slices.Ask(ctx, slices.list) {
		if err != nil {
			errs[slices.of[n]] = fmt.Errorf("asking for slice %s: %w", slices.list[n], err)
		}
	}
	// Deleting contents is left to dispatch: firings must not wait for it.
	for n, err := range arm.Send(ctx, s.Queue, contract.DispatchQueue, forget.list) {
		if err != nil {
			errs[forget.of[n]] = err
		}
	}
	return errs
}

// wanted lists what changes call for, all of one kind, with the index of the change that each belongs to.
type wanted[T any] struct {
	list []T
	of   []int
}

func (w *wanted[T]) add(change int, v *T) {
	if v != nil {
		w.list, w.of = append(w.list, *v), append(w.of, change)
	}
}

// decision is what a change calls for; nil for what it does not.
type decision struct {
	fire   *job.Firing
	slice  *horizon.Slice    // dispatch is to read it at its time
	forget *message.Outgoing // asks dispatch to delete the contents of a row that is gone
}

func evaluate(c item.Change, now time.Time) (d decision, err error) {
	if c.New == nil {
		return gone(c.Old), nil
	}
	if c.New.Str(contract.AttrNear) == "" { // the event source filters these; without one nothing does
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
	switch {
	case !job.Rearm(old, row):
	case job.WaitsForSlice(row, now):
		slice := horizon.SliceOf(row.WakeAt, row.Shard)
		d.slice = &slice
	default:
		f := row.Firing()
		d.fire = &f
	}
	return d, nil
}

// gone decides about an item that has expired. Only a row has contents; those of a row that cannot be read cannot be
// found.
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

func (s *Stage) quarantine(ctx context.Context, a batch.Aside) error {
	return s.Queue.Send(ctx, contract.FiringDead, message.Outgoing{Body: a.Body()})
}
