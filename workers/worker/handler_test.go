package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/workers/executor"
)

type invoice struct {
	Number string    `json:"number"`
	Cents  int       `json:"cents"`
	Due    time.Time `json:"due,omitzero"`
}

//proof:of F17
func TestHandler_ReceivesTheNominalTime(t *testing.T) {
	within(t, func(b *bench) {
		r := NewRegistry()
		var saw []time.Time
		Register(r, "charge", func(_ context.Context, j Job[any]) (any, error) {
			saw = append(saw, j.NominalAt)
			return nil, nil
		})
		b.start("a", func(d *Deps, _ *Options) { d.Registry = r })
		nominal := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Minute)
		for _, at := range []time.Time{nominal, {}} {
			b.fire(b.put(0, func(r *job.Row) { r.Executor, r.Task, r.NominalAt = job.ExecutorGo, "charge", at }), 0)
			b.sleep(time.Second)
		}
		if len(saw) != 2 || !saw[0].Equal(nominal) || !saw[1].IsZero() {
			t.Errorf("the handlers saw %v", saw)
		}
	})
}

//proof:of F17
func TestHandler_KeepsEveryDigitOfANumberInAny(t *testing.T) {
	t.Parallel()
	const payload = `{"a":[9007199254740993,1.10,1e400],"n":12345678901234567890.12345678901234567890}`
	r := NewRegistry()
	Register(r, "any", func(_ context.Context, j Job[any]) (any, error) { return j.Payload, nil })
	Register(r, "map", func(_ context.Context, j Job[map[string]any]) (map[string]any, error) { return j.Payload, nil })
	Register(r, "field", func(_ context.Context, j Job[struct {
		A []any       `json:"a"`
		N json.Number `json:"n"`
	}]) (any, error) {
		return j.Payload, nil
	})
	for _, task := range []string{"any", "map", "field"} {
		o, err := Attempt(t.Context(), r, executor.Work{Task: task, Payload: json.RawMessage(payload)})
		if err != nil || string(o.Result) != payload {
			t.Errorf("%s: %s came back as %s, %v", task, payload, o.Result, err)
		}
	}
}

//proof:of 85
func TestRegistry_HandsAHandlerItsPayloadAndIdentity(t *testing.T) {
	within(t, func(b *bench) {
		r := NewRegistry()
		var saw []Job[invoice]
		Register(r, "charge", func(_ context.Context, j Job[invoice]) (string, error) {
			j.Progress(1, 2, "half")
			saw = append(saw, j)
			return "receipt of " + j.Payload.Number, nil
		})
		b.start("a", func(d *Deps, _ *Options) { d.Registry = r })
		first := job.DeterministicID(time.Unix(0, 0), "first")
		row := b.put(0, func(r *job.Row) {
			r.Executor, r.Task, r.Payload, r.Attempt, r.RootID = job.ExecutorGo, "charge", `{"number":"R-1",`+
				`"cents":5}`, 3, first
		})
		b.fire(row, 0)
		b.sleep(time.Second)
		if len(saw) != 1 {
			t.Fatalf("it ran %d times", len(saw))
		}
		j := saw[0]
		if j.Payload != (invoice{Number: "R-1", Cents: 5}) || j.Key != string(first) || j.JobID != string(row.ID) ||
			j.Attempt != 3 || j.Token != 1 || !j.DueAt.Equal(row.DueAt) {
			t.Errorf("it saw %+v", j)
		}
		if o := b.outcomes(); len(o) != 1 || string(o[0].Result) != `"receipt of R-1"` {
			t.Errorf("ended as %+v", o)
		}
	})
}

func runHandler[P, R any](payload string, fn func(context.Context, Job[P]) (R, error)) (json.RawMessage, error) {
	r := NewRegistry()
	Register(r, "task", fn)
	w := executor.Work{Task: "task", Progress: func(int64, int64, string) {}}
	if payload != "" {
		w.Payload = json.RawMessage(payload)
	}
	return r.Run(context.Background(), w)
}

func TestRegistry_DecodesPayloads(t *testing.T) {
	t.Parallel()
	t.Run("a missing payload leaves the zero value", func(t *testing.T) {
		t.Parallel()
		_, err := runHandler("", func(_ context.Context, j Job[*invoice]) (any, error) {
			if j.Payload != nil {
				return nil, errors.New("not nil")
			}
			return nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("a payload that does not fit fails for good and is not quoted", func(t *testing.T) {
		t.Parallel()
		for _, payload := range []string{`{"number":"R","cents":4711.25}`, `{"due":"secret-4711.25"}`, `["4711.25"]`} {
			_, err := runHandler(payload, func(context.Context, Job[invoice]) (any, error) { return nil, nil })
			var f *executor.Failure
			if !errors.As(err, &f) || !f.Permanent || f.Code != job.CodeUnreadablePayload ||
				strings.Contains(err.Error(), "4711") {
				t.Errorf("%s gave %v", payload, err)
			}
		}
	})
}

func TestRegistry_EncodesResults(t *testing.T) {
	t.Parallel()
	t.Run("a handler that returns nothing has no result", func(t *testing.T) {
		t.Parallel()
		if got, err := runHandler("", func(context.Context, Job[any]) (any, error) { return nil, nil }); got != nil ||
			err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("a result that JSON cannot hold fails for good", func(t *testing.T) {
		t.Parallel()
		_, err := runHandler("", func(context.Context, Job[any]) (any, error) { return func() {}, nil })
		var f *executor.Failure
		if !errors.As(err, &f) || !f.Permanent {
			t.Errorf("got %v", err)
		}
	})
}

func TestRegistry_FindsWrappedVerdicts(t *testing.T) {
	t.Parallel()
	o := outcomeOf(ended{err: fmt.Errorf("charging: %w", Permanent(errors.New("card stolen")))}, keeping{})
	if !o.Permanent || o.Error.Code != job.CodePermanent || o.Error.Message != "charging: card stolen" {
		t.Errorf("recorded %+v %+v", o, o.Error)
	}
	if Permanent(nil) != nil || RetryAfter(time.Second, nil) != nil {
		t.Error("no error became one")
	}
}

func TestRegister_PanicsOnWhatCannotBeRegistered(t *testing.T) {
	t.Parallel()
	none := func(context.Context, Job[any]) (any, error) { return nil, nil }
	for name, register := range map[string]func(*Registry){
		"a name that no task can have": func(r *Registry) { Register(r, "no spaces", none) },
		"a name that is taken":         func(r *Registry) { Register(r, "a", none); Register(r, "a", none) },
	} {
		t.Run("registering panics on "+name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("it was registered")
				}
			}()
			register(NewRegistry())
		})
	}
}
