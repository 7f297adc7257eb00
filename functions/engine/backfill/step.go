package backfill

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
)

// rowsAtOnce is how many rows one transaction puts, each with its labels.
const rowsAtOnce = 20

// step is one step of an operation.
type step struct {
	*Backfiller
	row   *job.Row // its end is noted; nil for none
	reads bool     // reads which of the open jobs have ended

	after  operation.Operation
	now    time.Time
	writes []item.Write // rows of new jobs, and their labels
	made   []job.Row
	fire   []job.Firing
	more   bool // another step has something to do
}

// take takes the step, and fires what it has made. A crash before the firing leaves jobs that are due, with their
// wake-ups.
func (s *step) take(ctx context.Context, k operation.Key) error {
	after, err := s.Store.UpdateOperation(ctx, k, func(o operation.Operation) ([]item.Write, error) {
		s.after, s.now, s.writes, s.made, s.fire, s.more = o, s.Backfiller.now(), nil, nil, nil, false
		if o.Status.Over() || o.Action != operation.Backfill {
			return nil, nil
		}
		if err := s.noteEnds(ctx); err != nil {
			return nil, err
		}
		if o.Status == operation.Running && len(s.after.Open) < o.Most {
			if err := s.makeNext(ctx); err != nil {
				return nil, err
			}
		}
		if reflect.DeepEqual(s.after, o) {
			return nil, nil
		}
		s.Notify.NoteEnd(ctx, o, &s.after)
		return append([]item.Write{o.Become(s.after)}, s.writes...), nil
	})
	if err != nil {
		return fmt.Errorf("a step of backfill %s: %w", k.ID, err)
	}
	s.Notify.AnnounceEndsOrLater(ctx, s.Store, after)
	for _, row := range s.made {
		if !row.StartsRun() {
			s.Meter.Count(telemetry.JobsAccepted, 1)
		}
	}
	if len(s.fire) > 0 {
		s.Accept.FireNow(ctx, s.fire...)
	}
	return nil
}

// noteEnds notes which of the open jobs have ended.
func (s *step) noteEnds(ctx context.Context) error {
	if s.row != nil {
		s.after.End(s.row.ID, s.row)
	}
	if !s.reads {
		return nil
	}
	open := s.after.Open
	keys := make([]job.Key, len(open))
	for n, id := range open {
		keys[n] = job.Key{Tenant: s.after.Tenant, ID: id}
	}
	found, err := s.Store.Existing(ctx, keys)
	if err != nil {
		return err
	}
	for n, f := range found {
		switch {
		case f.Err != nil: // the sweeper quarantines it; it stays open until it can be read
		case f.Row == nil:
			s.after.End(open[n], nil)
		case f.Row.Status.Final():
			s.after.End(open[n], f.Row)
		}
	}
	return nil
}

// makeNext makes jobs of the times that come next, and ends the operation if nothing is left of it.
func (s *step) makeNext(ctx context.Context) error {
	of, contents, err := s.withContents(ctx, s.after)
	if errors.Is(err, errGone) {
		s.after.Abort(job.Reason{Code: operation.CodeDeleted, Message: "the schedule was deleted"}, s.now)
		return nil
	}
	if err != nil {
		return err
	}
	cal, err := of.Calendar()
	if wrong := new(calendar.Error); errors.As(err, &wrong) {
		s.after.Abort(job.Reason{Code: wrong.Code, Message: wrong.Detail}, s.now)
		return nil
	}
	if err != nil {
		return err
	}
	if of.Epoch != s.after.Epoch && !s.recount(cal, of.Epoch) {
		return nil
	}
	end, err := s.decide(ctx, of, cal, contents)
	switch {
	case err != nil:
		return err
	case end && len(s.after.Open) == 0:
		s.after.Finish(s.now)
	default:
		s.more = !end && len(s.after.Open) < s.after.Most
	}
	return nil
}

// recount counts the times anew, because the schedule has changed. It ends the operation if they are too many.
func (s *step) recount(cal calendar.Union, epoch int64) (goesOn bool) {
	o := &s.after
	decided := o.Done + o.Skipped + o.Failed + len(o.Open)
	left, more := o.Left(cal, operation.MaxTimes-decided)
	if more {
		o.Abort(job.Reason{Code: operation.CodeTooMany, Message: fmt.Sprintf(
			"after an edit the schedule has more than %d times in the range", operation.MaxTimes)}, s.now)
		return false
	}
	o.Matched, o.Epoch = decided+left, epoch
	return true
}

// decide decides about the times that come next: at first about as many as there are free places, then about ever more
// if those are left out. end says that no time is left.
func (s *step) decide(
	ctx context.Context, of schedule.Schedule, cal calendar.Union, contents job.Contents,
) (end bool, err error) {
	free := min(s.after.Most-len(s.after.Open), rowsAtOnce)
	for decided, most := 0, free; decided < timesAtOnce; most *= 2 {
		times, last := s.after.Next(cal, min(most, timesAtOnce-decided))
		chosen, err := s.choose(ctx, of.Key, times, s.after.Repeat)
		if err != nil {
			return false, err
		}
		for n, c := range chosen {
			switch {
			case c.leftOut:
				s.after.Skipped++
			case c.used:
				s.after.Refuse(operation.Error{
					JobID: of.BackfillID(times[n], schedule.MaxBackfills-1), Code: operation.CodeTooMany,
					Detail: "the time was made " + strconv.Itoa(schedule.MaxBackfills) + " times already",
				})
			case free == 0:
				return false, nil
			default:
				if err := s.make(ctx, of, times[n], c.number, contents); err != nil {
					return false, err
				}
				free--
			}
			s.after.Cursor = times[n]
		}
		if decided += len(times); last {
			return true, nil
		}
		if free == 0 {
			return false, nil
		}
	}
	return false, nil
}

// make adds the job of a nominal time to the transaction. What goes before that is written now.
func (s *step) make(
	ctx context.Context, of schedule.Schedule, at time.Time, number int, contents job.Contents,
) error {
	row, send := of.Backfill(s.after.ID, at, number, s.Shards, s.now)
	if err := s.Store.KeepContents(ctx, row, job.Contents{Payload: contents.Payload}); err != nil {
		return err
	}
	if err := s.Store.PrepareAccept(ctx, row); err != nil {
		return err
	}
	s.writes = append(s.writes, job.Accept(row))
	if contents.Labels != (job.Labels{}) {
		s.writes = append(s.writes, row.PutLabels(contents.Labels))
	}
	s.made = append(s.made, row)
	if send {
		s.fire = append(s.fire, row.Firing())
	}
	s.after.Open = append(s.after.Open[:len(s.after.Open):len(s.after.Open)], row.ID)
	return nil
}
