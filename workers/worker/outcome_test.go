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

func TestOutcome_CutsALongResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string
		whole  bool
	}{
		"none":                      {"", true},
		"one that just fits":        {`"` + strings.Repeat("x", contract.MaxResult-2) + `"`, true},
		"one byte too long":         {`"` + strings.Repeat("x", contract.MaxResult-1) + `"`, false},
		"much too long":             {`{"rows":[` + strings.Repeat(`{"a":"b"},`, 100_000) + `0]}`, false},
		"full of what JSON escapes": {`"` + strings.Repeat(`\"<>`, 10_000) + `"`, false},
		"of many bytes a letter":    {`"` + strings.Repeat("日本", 5_000) + `"`, false},
	} {
		t.Run("cuts a long result: "+name, func(t *testing.T) {
			t.Parallel()
			got := cutResult(json.RawMessage(c.result))
			if len(got) > contract.MaxResult {
				t.Fatalf("%d bytes are kept", len(got))
			}
			if c.whole {
				if string(got) != c.result {
					t.Error("it was changed")
				}
				return
			}
			var cut struct {
				Truncated bool
				Preview   string
			}
			if err := json.Unmarshal(got, &cut); err != nil || !cut.Truncated {
				t.Fatalf("%.60s… is not marked as cut: %v", got, err)
			}
			if !strings.HasPrefix(c.result, strings.TrimSuffix(cut.Preview, "…")) || len(cut.Preview) < 1000 {
				t.Errorf("the preview %.60s… is not its beginning", cut.Preview)
			}
		})
	}
}

func TestOutcome_KeepsAResultThatIsNotJSONAsAString(t *testing.T) {
	t.Parallel()
	if got := cutResult(json.RawMessage("plain text")); string(got) != `"plain text"` {
		t.Errorf("kept %s", got)
	}
}

func TestOutcome_CutsALongError(t *testing.T) {
	t.Parallel()
	o := outcomeOf(ended{err: errors.New(strings.Repeat("é", 5000)), at: time.Unix(0, 0)})
	if n := len(o.Error.Message); n > contract.MaxErrorMessage || n < contract.MaxErrorMessage-8 {
		t.Errorf("%d bytes are kept", n)
	}
}

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
