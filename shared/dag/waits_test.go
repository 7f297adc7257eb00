package dag_test

import (
	"testing"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestSnapshot_SaysForWhichLimitANodeWaits(t *testing.T) {
	t.Parallel()
	g, err := dag.Compile(dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo"}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	row := job.Row{Status: job.Scheduled, Attempt: 1, DueAt: now.Add(-time.Minute)}
	row.Limits = job.LimitsOf(job.LimitKey{Name: "all"}, job.LimitKey{Name: "github", Key: "acct-42"})
	row.Parked, row.WaitsLimit = true, 2
	s := &dag.Snapshot{Run: run.Run{Status: run.Running}, Graph: g, Rows: map[string]job.Row{"a": row}, Now: now}
	for no, want := range map[int64]string{1: "waits for limit all", 2: "waits for limit github, key acct-42"} {
		row.WaitsLimit = no
		if word, why := s.Waits("a", row, s.Status(row), nil); word != "limit" || why != want {
			t.Errorf("waits for %q: %q, want %q", word, why, want)
		}
	}
}
