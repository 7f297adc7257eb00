package search_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/search"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func dead() search.Entry {
	return search.Entry{
		Key: jobtest.Key(1), Status: job.Dead, Task: "load", Schedule: "nightly", DAG: "etl", RunID: "R", Pool: "short",
		Priority: job.High, Code: "handler_failed", Group: "0123456789abcdef",
		Tags:      map[string]string{"customer": "42", "env": "prod"},
		CreatedAt: noon, DueAt: noon.Add(time.Hour), FinishedAt: noon.Add(2 * time.Hour),
		DeadAt: noon.Add(2 * time.Hour),
	}
}

func TestFilter_MatchesByEachOfItsFields(t *testing.T) {
	t.Parallel()
	id := string(jobtest.Key(1).ID)
	for name, c := range map[string]struct{ right, wrong search.Filter }{
		"status":         {search.Filter{Status: job.Dead}, search.Filter{Status: job.Running}},
		"task":           {search.Filter{Task: "load"}, search.Filter{Task: "loa"}},
		"schedule":       {search.Filter{Schedule: "nightly"}, search.Filter{Schedule: "daily"}},
		"dag":            {search.Filter{DAG: "etl"}, search.Filter{DAG: "elt"}},
		"run_id":         {search.Filter{RunID: "R"}, search.Filter{RunID: "S"}},
		"pool":           {search.Filter{Pool: "short"}, search.Filter{Pool: "long"}},
		"priority":       {search.Filter{Priority: job.High}, search.Filter{Priority: job.Low}},
		"code":           {search.Filter{Code: "handler_failed"}, search.Filter{Code: "timeout"}},
		"group":          {search.Filter{Group: "0123456789abcdef"}, search.Filter{Group: "0123456789abcdee"}},
		"id":             {search.Filter{IDPrefix: id[:12]}, search.Filter{IDPrefix: "01ZZZZ"}},
		"tag.env":        {search.Filter{}.With("env", "prod"), search.Filter{}.With("env", "test")},
		"tag.absent":     {search.Filter{}.With("customer", "42"), search.Filter{}.With("absent", "")},
		"created_after":  {search.Filter{CreatedAfter: noon}, search.Filter{CreatedAfter: noon.Add(1)}},
		"created_before": {search.Filter{CreatedBefore: noon.Add(1)}, search.Filter{CreatedBefore: noon}},
		"due_after":      {search.Filter{DueAfter: noon}, search.Filter{DueAfter: noon.Add(2 * time.Hour)}},
		"due_before":     {search.Filter{DueBefore: noon.Add(2 * time.Hour)}, search.Filter{DueBefore: noon}},
		"finished_after": {search.Filter{FinishedAfter: noon}, search.Filter{FinishedAfter: noon.Add(3 * time.Hour)}},
		"finished_before": {search.Filter{FinishedBefore: noon.Add(3 * time.Hour)},
			search.Filter{FinishedBefore: noon}},
		"dead_after":  {search.Filter{DeadAfter: noon}, search.Filter{DeadAfter: noon.Add(3 * time.Hour)}},
		"dead_before": {search.Filter{DeadBefore: noon.Add(3 * time.Hour)}, search.Filter{DeadBefore: noon}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !c.right.Matches(dead()) {
				t.Error("it does not match what it names")
			}
			if c.wrong.Matches(dead()) {
				t.Error("it matches what it does not name")
			}
			if len(c.right.Names()) != 1 || name != "tag.absent" && c.right.Names()[0] != name {
				t.Errorf("its names are %v", c.right.Names())
			}
		})
	}
}

func TestFilter_MatchesNothingThatAnEntryDoesNotHave(t *testing.T) {
	t.Parallel()
	e := search.Entry{Key: jobtest.Key(1), Status: job.Scheduled, Task: "load", CreatedAt: noon, DueAt: noon}
	for _, f := range []search.Filter{
		{Schedule: "x"}, {DAG: "x"}, {RunID: "x"}, {Code: "x"}, {Group: "x"}, search.Filter{}.With("env", "prod"),
		{FinishedAfter: noon.Add(-time.Hour)}, {FinishedBefore: noon.Add(time.Hour)}, {DeadBefore: noon.Add(time.Hour)},
	} {
		if f.Matches(e) {
			t.Errorf("%v matches", f.Names())
		}
	}
	if !(search.Filter{Status: job.Queued}).Matches(e) {
		t.Error("QUEUED, which is never stored, does not match SCHEDULED")
	}
}

func TestFilter_HidesDeliveriesOfWebhooks(t *testing.T) {
	t.Parallel()
	e := search.Entry{Key: jobtest.Key(1), Status: job.Dead, Task: search.WebhookTask}
	if (search.Filter{Status: job.Dead}).Matches(e) || !(search.Filter{Task: search.WebhookTask}).Matches(e) {
		t.Error("a delivery is found without its task, or not with it")
	}
}

func TestFilter_IsTheSameAfterItsJSON(t *testing.T) {
	t.Parallel()
	f := search.Filter{Status: job.Dead, Group: "0123456789abcdef", DeadAfter: noon}.With("env", "prod")
	text, err := json.Marshal(f)
	want := `{"status":"DEAD","group":"0123456789abcdef","tags":{"env":"prod"},"dead_after":"2027-03-01T12:00:00Z"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var back search.Filter
	err = json.Unmarshal(text, &back)
	if err != nil || !slices.Equal(back.Names(), f.Names()) || !back.Matches(dead()) {
		t.Errorf("%+v, %v", back, err)
	}
	if f.Empty() || !(search.Filter{}).Empty() {
		t.Error("it is empty, or nothing is not")
	}
}

func TestStageOf_NeverFalls(t *testing.T) {
	t.Parallel()
	for _, c := range job.Transitions {
		for _, from := range c.From {
			for _, to := range c.To {
				next := job.Row{Status: to, Version: 3, Attempt: 2}
				switch c.Name { // of a row that represents a run, and of one that begins another attempt
				case job.WriteBeginRun, job.WriteForget:
					continue
				case job.WriteRetry, job.WriteSnooze:
					next.Attempt++
				}
				was := search.StageOf(job.Row{Status: from, Version: 3, Attempt: 2})
				switch got := search.StageOf(next); {
				case slices.Equal(c.From, c.To) && from != to: // it keeps the status
				case got < was:
					t.Errorf("%s from %s to %s falls from %d to %d", c.Name, from, to, was, got)
				}
			}
		}
	}
}

func TestEntryOf_HoldsWhatTheRowSays(t *testing.T) {
	t.Parallel()
	r := jobtest.Row(1, noon, noon, func(r *job.Row) {
		r.Status, r.DeadAt, r.FinishedAt, r.RunID = job.Dead, noon, noon, "R"
		r.Reason = job.Reason{Code: "handler_failed", Message: "no luck with 7"}
	})
	e := search.EntryOf(r, `{"env":"prod"}`, "etl")
	f := search.Filter{Status: job.Dead, Task: "echo", RunID: "R", DAG: "etl", Code: "handler_failed",
		Group: search.Group("echo", "handler_failed", "no luck with 8"), DeadAfter: noon}
	if !f.With("env", "prod").Matches(e) {
		t.Errorf("%+v", e)
	}
	if open := search.EntryOf(jobtest.Row(1, noon, noon), "nonsense", ""); open.Group != "" || open.Tags != nil ||
		open.Stage >= e.Stage {
		t.Errorf("%+v", open)
	}
}
