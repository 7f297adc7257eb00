package worker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/workers/executor"
)

//proof:of 70
func TestOutcome_MarksTheResultThatIsNotKept(t *testing.T) {
	t.Parallel()
	const most = contract.MaxResult
	for name, c := range map[string]struct {
		result string
		whole  bool
	}{
		"none":                      {"", true},
		"one that just fits":        {`"` + strings.Repeat("x", most-2) + `"`, true},
		"one that looks like a cut": {`{"truncated":true,"preview":"a"}`, true},
		"one byte too long":         {`"` + strings.Repeat("x", most-1) + `"`, false},
		"much too long":             {`{"rows":[` + strings.Repeat(`{"a":"b"},`, 100_000) + `0]}`, false},
		"full of what JSON escapes": {`"` + strings.Repeat(`\"<>`, most/2) + `"`, false},
		"of many bytes a letter":    {`"` + strings.Repeat("日本", most/2) + `"`, false},
	} {
		t.Run("marks a result that is not kept: "+name, func(t *testing.T) {
			t.Parallel()
			o := outcomeOf(ended{result: json.RawMessage(c.result)}, keeping{most: most})
			if o.Kind != job.OutcomeSucceeded || (o.Partial == job.Whole) != c.whole {
				t.Fatalf("it is %s, partial %q", o.Kind, o.Partial)
			}
			if c.whole {
				if string(o.Result) != c.result {
					t.Error("it was changed")
				}
				return
			}
			if len(o.Result) > contract.MaxPreview {
				t.Fatalf("%d bytes are shown", len(o.Result))
			}
			var cut struct {
				Truncated bool
				Preview   string
			}
			if err := json.Unmarshal(o.Result, &cut); err != nil || !cut.Truncated {
				t.Fatalf("%.60s… is not marked as cut: %v", o.Result, err)
			}
			if !strings.HasPrefix(c.result, strings.TrimSuffix(cut.Preview, "…")) || len(cut.Preview) < 1000 {
				t.Errorf("the preview %.60s… is not its beginning", cut.Preview)
			}
		})
	}
}

func TestOutcome_KeepsToTheLimitOfTheTask(t *testing.T) {
	t.Parallel()
	large := ended{result: json.RawMessage(`"` + strings.Repeat("x", 1<<10) + `"`)}
	short := ended{result: json.RawMessage(`{"status":200}`), shortens: true, shortened: true}
	for name, end := range map[string]ended{"large": large, "shortened by its executor": short} {
		t.Run("a result that is "+name, func(t *testing.T) {
			t.Parallel()
			if o := outcomeOf(end, keeping{most: 1 << 10}); o.Kind != job.OutcomeSucceeded ||
				o.Partial != job.PartialSize || len(o.Result) > 1<<10 {
				t.Errorf("recorded %+v", o)
			}
			o := outcomeOf(end, keeping{1 << 10, true})
			if o.Kind != job.OutcomeFailed || !o.Permanent || o.Error.Code != job.CodeResultTooLarge ||
				o.Result != nil {
				t.Errorf("recorded %+v", o)
			}
		})
	}
	whole := ended{result: json.RawMessage(`"` + strings.Repeat("x", 2<<10) + `"`), shortens: true}
	if o := outcomeOf(whole, keeping{1 << 10, true}); o.Kind != job.OutcomeSucceeded || o.Partial != job.Whole {
		t.Errorf("what its executor has kept whole was recorded as %+v", o)
	}
}

func TestOutcome_KeepsAResultThatIsNotJSONAsAString(t *testing.T) {
	t.Parallel()
	if got := sendable(json.RawMessage("plain text")); string(got) != `"plain text"` {
		t.Errorf("kept %s", got)
	}
}

//proof:of S35
func TestOutcome_CutsALongError(t *testing.T) {
	t.Parallel()
	o := outcomeOf(ended{err: errors.New(strings.Repeat("é", 5000)), at: time.Unix(0, 0)}, keeping{})
	if n := len(o.Error.Message); n > contract.MaxErrorMessage || n < contract.MaxErrorMessage-8 {
		t.Errorf("%d bytes are kept", n)
	}
}

//proof:of 87 189
func TestOutcome_LeavesAPanicsStackInTheLog(t *testing.T) {
	within(t, func(b *bench) {
		b.does = panics
		b.start("a")
		b.fire(b.put(0), 0)
		b.sleep(time.Second)
		o := b.outcomes()
		if len(o) != 1 || o[0].Error.Code != job.CodePanic || o[0].Error.Message != "the handler panicked: first line" {
			t.Errorf("recorded %+v", o)
		}
		if !strings.Contains(b.logs.String(), "outcome_test.go") {
			t.Error("the log has no stack")
		}
		b.then(nil)
		b.fire(b.put(0), 0)
		b.sleep(time.Second)
		if b.started() != 2 {
			t.Error("the worker did not survive")
		}
	})
}

func panics(context.Context, executor.Work) (json.RawMessage, error) {
	panic("first line\nsecond line")
}
