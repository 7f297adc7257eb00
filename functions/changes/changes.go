package changes

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

// Follower is a stage that follows the jobs table. It handles changes in their order, and returns one error for each.
type Follower func(context.Context, []item.Change) []error

// Counter counts changes, as stats.Stage does: it is given what the calls before it in the same window have counted,
// and adds all to the table in the last one.
type Counter interface {
	Window(ctx context.Context, state map[string]string, changes []item.Change, last bool) (next map[string]string)
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Followers []Follower // in the order in which they get each change
	Counts    Counter
	Queue     message.Sender // for changes that cannot be handled
}

// Stage is the second reader. It is safe for concurrent use.
type Stage struct {
	Deps
	records batch.Runner
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{Deps: d, records: batch.Runner{Stage: telemetry.StageChanges, Log: d.Log, Meter: d.Meter}}
}

// Handle hands the records to the followers, counts those that are done, and names those to deliver once more. An event
// source without windows sends no time of one: then each call is the last of its own.
func (s *Stage) Handle(
	ctx context.Context, ev events.DynamoDBTimeWindowEvent,
) (to events.DynamoDBTimeWindowEventResponse, err error) {
	var done []item.Change
	followed := s.records.Stream(ctx, ev.DynamoDBEvent, func(ctx context.Context, all []item.Change) []error {
		done = all
		return s.follow(ctx, all)
	}, s.quarantine)
	to.BatchItemFailures = followed.BatchItemFailures
	last := ev.IsFinalInvokeForWindow || ev.IsWindowTerminatedEarly || ev.Window.Start.IsZero()
	if len(to.BatchItemFailures) > 0 { // the call is repeated from the first one on, and is then the last
		done, last = before(done, to.BatchItemFailures), last && ev.Window.Start.IsZero()
	}
	to.State = s.Counts.Window(ctx, ev.State, done, last)
	if to.State == nil {
		to.State = map[string]string{}
	}
	return to, nil
}

// before returns the changes before the first that failed.
func before(changes []item.Change, failed []events.DynamoDBBatchItemFailure) []item.Change {
	names := map[string]bool{}
	for _, f := range failed {
		names[f.ItemIdentifier] = true
	}
	for n, c := range changes {
		if names[c.Seq] {
			return changes[:n]
		}
	}
	return changes
}

// follow hands changes to the followers. Each gets what those before it are done with.
func (s *Stage) follow(ctx context.Context, changes []item.Change) []error {
	errs := make([]error, len(changes))
	for _, f := range s.Followers {
		for n, err := range ask(ctx, f, changes) {
			if err == nil {
				continue
			}
			if fault.Retryable(err) { // what comes after it is delivered once more, too
				errs[n], changes = err, changes[:n]
				clear(errs[n+1:])
				break
			}
			if errs[n] == nil {
				errs[n] = err
			}
		}
	}
	return errs
}

// ask hands changes to one follower. If it panics, it is asked for each change alone, so that one that it cannot bear
// is found.
func ask(ctx context.Context, f Follower, changes []item.Change) (errs []error) {
	err := fault.Guard(func() error {
		errs = f(ctx, changes)
		return nil
	})
	switch {
	case err == nil:
		return errs
	case len(changes) == 1:
		return []error{err}
	}
	for n := range changes {
		one := ask(ctx, f, changes[n:n+1])
		errs = append(errs, one...)
		if fault.Retryable(one[0]) {
			return append(errs, make([]error, len(changes)-n-1)...)
		}
	}
	return errs
}

func (s *Stage) quarantine(ctx context.Context, a batch.Aside) error {
	return s.Queue.Send(ctx, contract.FiringDead, message.Outgoing{Body: a.Body()})
}
