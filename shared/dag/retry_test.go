package dag_test

import (
	"encoding/json"
	"testing"
	"time"

	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
)

func TestRetryOf_KeepsOfTheTaskWhatTheNodeDoesNotSay(t *testing.T) {
	t.Parallel()
	of := job.RetryPolicy{MaxAttempts: 6, InitialDelay: time.Second, Factor: 2, MaxDelay: time.Minute, Jitter: 0.3}
	got, err := dag.RetryOf(of, json.RawMessage(`{"max_attempts":1.0,"max_delay":"2m","on_worker_lost":"fail"}`))
	want := of
	want.MaxAttempts, want.MaxDelay, want.FailOnLost = 1, 2*time.Minute, true
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = dag.RetryOf(of, json.RawMessage(`{"initial_delay":"3s"}`))
	if err != nil || got.InitialDelay != 3*time.Second || got.MaxDelay != of.MaxDelay {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{`{"max_delay":"soon"}`, `{"initial_delay":"soon"}`} {
		if _, err := dag.RetryOf(of, json.RawMessage(bad)); fault.KindOf(err) != fault.Undecodable {
			t.Errorf("%s, which is no length of time: %v", bad, err)
		}
	}
}

func TestParseDefinition_GivesBackWhatIsAbsent(t *testing.T) {
	t.Parallel()
	d := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo"}}}
	got, err := dag.ParseDefinition(d.Encode())
	if err != nil || got.Nodes["a"].Payload != nil || got.Nodes["a"].Retry != nil || got.ParamsSchema != nil {
		t.Errorf("read %+v, %v", got, err)
	}
	if got.Hash() != d.Hash() {
		t.Error("it has another hash")
	}
}
