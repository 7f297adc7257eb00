package changes_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/changes"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
)

// counter writes down what it was given.
type counter struct {
	state map[string]string
	seqs  []string
	last  bool
}

func (c *counter) Window(
	_ context.Context, state map[string]string, changes []item.Change, last bool,
) map[string]string {
	c.state, c.last = state, last
	for _, change := range changes {
		c.seqs = append(c.seqs, change.Seq)
	}
	if last {
		return nil
	}
	return map[string]string{"n": strconv.Itoa(len(changes))}
}

// follower fails at some records, and writes down those that it was given.
type follower struct {
	fails map[string]error // by number of the record; errPanic panics
	seen  []string
}

var (
	errLater = fault.New(fault.Unavailable, nil, "not now")
	errNever = fault.New(fault.Undecodable, nil, "never")
	errPanic = errors.New("panic")
)

func (f *follower) follow(_ context.Context, changes []item.Change) []error {
	errs := make([]error, len(changes))
	for n, c := range changes {
		f.seen = append(f.seen, c.Seq)
		if errs[n] = f.fails[c.Seq]; errors.Is(errs[n], errPanic) {
			panic("the record " + c.Seq)
		}
	}
	return errs
}

func records(n int) events.DynamoDBEvent {
	var all []item.Change
	for seq := range n {
		all = append(all, item.Change{Seq: strconv.Itoa(seq), New: item.Item{"pk": "acme#0", "job_id": "J",
			"schema_v": int64(1)}})
	}
	return batch.StreamEventOfAll(all...)
}

func TestHandle_GivesEachFollowerWhatIsDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second map[string]error
		seen          string // by the second follower
		failed, aside string
		counted       string
	}{
		{name: "all, where none fails", seen: "0123", counted: "0123"},
		{name: "those before the first that fails for now", first: map[string]error{"2": errLater}, seen: "01",
			failed: "2", counted: "01"},
		{name: "all but none twice, where one can never be handled", first: map[string]error{"1": errNever},
			seen: "0123", aside: "1", counted: "0123"},
		{name: "as many as each has done", first: map[string]error{"3": errLater},
			second: map[string]error{"1": errLater}, seen: "012", failed: "1", counted: "0"},
		{name: "none that comes after a failure is quarantined yet", first: map[string]error{"3": errNever},
			second: map[string]error{"1": errLater}, seen: "0123", failed: "1", counted: "0"},
		{name: "all others, where one panics", first: map[string]error{"1": errPanic}, seen: "0123", aside: "1",
			counted: "0123"},
		{name: "none after one that fails, where another panics", first: map[string]error{"0": errLater, "1": errPanic},
			failed: "0"},
	} {
		stagetest.Bubble(t, c.name, memory.Options{}, func(b *stagetest.Bench) {
			first, second, counts := &follower{fails: c.first}, &follower{fails: c.second}, &counter{}
			stage := changes.New(changes.Deps{Base: b.ProcessBase(), Counts: counts, Queue: b.World.Queues(),
				Followers: []changes.Follower{first.follow, second.follow}})
			to, err := stage.Handle(b.Context(), events.DynamoDBTimeWindowEvent{DynamoDBEvent: records(4)})
			b.Must(err)
			var failed []string
			for _, f := range to.BatchItemFailures {
				failed = append(failed, f.ItemIdentifier)
			}
			if got := strings.Join(slices.Compact(second.seen), ""); got != c.seen {
				b.Errorf("the second follower was given %q; want %q", got, c.seen)
			}
			if got := strings.Join(failed, ""); got != c.failed {
				b.Errorf("%q are to be delivered once more; want %q", got, c.failed)
			}
			if got := strings.Join(counts.seqs, ""); got != c.counted || !counts.last {
				b.Errorf("%q were counted, last: %t; want %q", got, counts.last, c.counted)
			}
			if to.BatchItemFailures == nil || to.State == nil {
				b.Errorf("an answer has %+v; an empty list and state are wanted", to)
			}
			set, err := b.World.Queues().Receive(b.Context(), contract.FiringDead, 10, 0, 0)
			b.Must(err)
			if len(set) != len(c.aside) || len(set) > 0 && !strings.Contains(set[0].Body, `"stream_seq":"`+c.aside+`"`) {
				b.Errorf("%+v were quarantined; want %q", set, c.aside)
			}
		})
	}
}

func TestHandle_CountsByWindows(t *testing.T) {
	t.Parallel()
	window := events.Window{Start: events.RFC3339EpochTime{Time: time.Unix(0, 0)},
		End: events.RFC3339EpochTime{Time: time.Unix(90, 0)}}
	for _, c := range []struct {
		name   string
		in     events.TimeWindowProperties
		failed bool
		last   bool
	}{
		{name: "a call within one", in: events.TimeWindowProperties{Window: window}},
		{name: "the last call of one", in: events.TimeWindowProperties{Window: window, IsFinalInvokeForWindow: true},
			last: true},
		{name: "one that ends early", in: events.TimeWindowProperties{Window: window, IsWindowTerminatedEarly: true},
			last: true},
		{name: "the last call, which is repeated", failed: true,
			in: events.TimeWindowProperties{Window: window, IsFinalInvokeForWindow: true}},
		{name: "a call without one", last: true},
	} {
		stagetest.Bubble(t, c.name, memory.Options{}, func(b *stagetest.Bench) {
			f, counts := &follower{}, &counter{}
			if c.failed {
				f.fails = map[string]error{"1": errLater}
			}
			stage := changes.New(changes.Deps{Base: b.ProcessBase(), Counts: counts, Queue: b.World.Queues(),
				Followers: []changes.Follower{f.follow}})
			c.in.State = map[string]string{"before": "1"}
			to, err := stage.Handle(b.Context(),
				events.DynamoDBTimeWindowEvent{DynamoDBEvent: records(2), TimeWindowProperties: c.in})
			b.Must(err)
			if counts.last != c.last || !maps.Equal(counts.state, c.in.State) {
				b.Errorf("counted with the state %v, last: %t; want the given one, and %t", counts.state, counts.last,
					c.last)
			}
			if given := len(to.State) > 0; given == c.last {
				b.Errorf("the next call is given %v", to.State)
			}
		})
	}
}
