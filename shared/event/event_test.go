package event_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/event"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/run"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func row(change func(*job.Row)) job.Row {
	r := jobtest.Row(1, noon, noon)
	if change != nil {
		change(&r)
	}
	return r
}

func ended(s job.Status, attempt int64) job.Row {
	return row(func(r *job.Row) { r.Status, r.Attempt, r.FinishedAt = s, attempt, noon.Add(time.Second) })
}

func TestOf_NamesEachEndOnce(t *testing.T) {
	t.Parallel()
	open := row(nil)
	for status, want := range map[job.Status]string{
		job.Succeeded: "job.succeeded", job.Dead: "job.dead", job.Expired: "job.expired",
		job.Cancelled: "job.cancelled", job.Skipped: "job.skipped",
	} {
		end := ended(status, 1)
		if got := types(event.Of(event.Change{Old: &open, New: end})); got != want {
			t.Errorf("%s is %s", status, got)
		}
		if got := types(event.Of(event.Change{New: end})); got != want {
			t.Errorf("%s of a row put as ended is %s", status, got)
		}
		if got := event.Of(event.Change{Old: &end, New: end}); got != nil {
			t.Errorf("a later write of a job that is %s is %v", status, got)
		}
	}
}

func TestOf_NamesFailedAttempts(t *testing.T) {
	t.Parallel()
	was := row(func(r *job.Row) { r.Attempt, r.Failures = 3, 1 })
	retried := row(func(r *job.Row) {
		r.Attempt, r.Failures, r.Waiting = 4, 2, "retry"
		r.Attempts = []job.Attempt{{Attempt: 3, Worker: "w", FinishedAt: noon, Error: &job.Reason{Code: "network"}}}
	})
	snoozed := row(func(r *job.Row) { r.Attempt, r.Failures, r.Waiting = 4, 1, "snooze" })
	died := ended(job.Dead, 3)
	died.Failures = 2
	for want, c := range map[string]event.Change{
		"job.failed_attempt":          {Old: &was, New: retried},
		"":                            {Old: &was, New: snoozed},
		"job.failed_attempt job.dead": {Old: &was, New: died},
	} {
		if got := types(event.Of(c)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var body struct {
		Data struct {
			Sequence      int64
			FailedAttempt struct {
				Attempt int64
				Error   job.Reason
			} `json:"failed_attempt"`
		}
	}
	text := event.Of(event.Change{Old: &was, New: retried})[0].Body(job.Labels{})
	if err := json.Unmarshal(text, &body); err != nil ||
		body.Data.FailedAttempt.Attempt != 3 || body.Data.FailedAttempt.Error.Code != "network" {
		t.Errorf("%+v, %v", body, err)
	}
}

func TestOf_GivesIDsThatRepeatAndSequencesThatGrow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last := int64(0)
	r := row(nil)
	for attempt := int64(1); attempt < 5; attempt++ {
		next := r
		next.Attempt, next.Failures, next.Waiting = attempt+1, attempt, "retry"
		if attempt == 4 {
			next.Status, next.Attempt, next.FinishedAt = job.Dead, attempt, noon
		}
		c := event.Change{Old: &r, New: next}
		for n, e := range event.Of(c) {
			if e.ID != event.Of(c)[n].ID || seen[e.ID] || e.Sequence <= last {
				t.Errorf("event %s of attempt %d: id %s, sequence %d after %d", e.Type, attempt, e.ID, e.Sequence, last)
			}
			seen[e.ID], last = true, e.Sequence
		}
		r = next
	}
	if len(seen) != 5 {
		t.Errorf("%d events", len(seen))
	}
	mine := event.Of(event.Change{New: ended(job.Dead, 1)})[0]
	theirs := ended(job.Dead, 1)
	theirs.Tenant = "globex"
	if event.Of(event.Change{New: theirs})[0].ID == mine.ID {
		t.Error("two tenants have the same event")
	}
}

func TestOf_LeavesOutDeliveriesAndMappedNodes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*job.Row){
		"a delivery":    func(r *job.Row) { r.Webhook = "ops" },
		"a mapped node": func(r *job.Row) { r.RunID, r.Node, r.Items = "r", "n", 2 },
	} {
		r := ended(job.Dead, 1)
		change(&r)
		if got := event.Of(event.Change{New: r}); got != nil {
			t.Errorf("%s has events: %v", name, types(got))
		}
	}
}

func TestMayMatter_SelectsWhatAnEventSourceCanSelect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row  job.Row
		want bool
	}{
		"a new job":             {row(nil), false},
		"a running job":         {row(func(r *job.Row) { r.Status = job.Running }), false},
		"a retry":               {row(func(r *job.Row) { r.Waiting = "retry" }), true},
		"a snooze":              {row(func(r *job.Row) { r.Waiting = "snooze" }), false},
		"an end":                {ended(job.Succeeded, 1), true},
		"a row that is for run": {row(func(r *job.Row) { r.Status, r.Dag = job.Succeeded, "d" }), false},
	} {
		if got := event.MayMatter(item.Change{New: c.row.Item()}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, s := range job.Statuses {
		if s.Final() != slices.Contains(contract.FinalStatuses, string(s)) {
			t.Errorf("the event source does not know %s as it is", s)
		}
	}
	if event.MayMatter(item.Change{Old: row(nil).Item()}) {
		t.Error("a row that is gone is an event")
	}
	if _, err := event.ReadChange(item.Change{New: item.Item{"status": "DEAD"}}); err == nil {
		t.Error("a row without a key can be read")
	}
}

func TestEvent_IsSentAsACloudEvent(t *testing.T) {
	t.Parallel()
	r := ended(job.Dead, 2)
	r.Reason, r.Payload, r.Result = job.Reason{Code: "network"}, `{"secret":1}`, `"secret"`
	body := event.Of(event.Change{New: r})[0].Body(job.Labels{Tags: `{"team":"billing"}`})
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"specversion": "1.0", "type": "punctual.job.dead", "source": "/punctual/acme", "subject": "job/" + string(r.ID),
		"time": "2027-03-28T12:00:01.000Z", "datacontenttype": "application/json",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %s", name, got[name], want)
		}
	}
	data := got["data"].(map[string]any)
	if data["status"] != "DEAD" || data["sequence"] != 5.0 || fmt.Sprint(data["tags"]) != "map[team:billing]" {
		t.Errorf("data: %v", data)
	}
	if strings.Contains(string(body), "secret") {
		t.Errorf("the payload or the result is sent: %s", body)
	}
}

func TestOfRun_IsTheRunAsItWas(t *testing.T) {
	t.Parallel()
	r := run.Run{Key: run.Key{Tenant: "acme", ID: "01KB4YJ2V0S6Y3Q4M5N6P7R8T9"}, Dag: "etl", DagVersion: 2,
		Status: run.Succeeded, CreatedAt: noon, DueAt: noon, Schedule: "nightly", Params: `{"a":"secret"}`}
	ids := map[string]bool{}
	for n, c := range []struct {
		status run.Status
		want   string
	}{
		{run.Held, "run.held"}, {run.Failed, "run.failed"}, {run.Succeeded, "run.succeeded"},
		{run.Cancelled, "run.cancelled"},
	} {
		a := run.Announcement{Status: c.status, At: noon.UnixMilli(), Sequence: int64(n), Reason: job.Reason{Code: "c"}}
		e := event.OfRun(r, a, map[string]string{"team": "a"})
		var got struct {
			ID, Type, Subject string
			Data              map[string]any
		}
		if err := json.Unmarshal(e.Body(job.Labels{}), &got); err != nil {
			t.Fatal(err)
		}
		if got.Type != "punctual."+c.want || string(e.Type) != c.want || event.OfStatus(c.status) != e.Type ||
			got.Subject != "run/01KB4YJ2V0S6Y3Q4M5N6P7R8T9" || got.Data["status"] != string(c.status) ||
			got.Data["sequence"] != float64(n) || got.Data["params"] != nil || ids[got.ID] {
			t.Errorf("%s: %+v", c.status, got)
		}
		if e.Dag != "etl" || e.Schedule != "nightly" || e.Task != "" || e.TagsWith(job.Labels{})["team"] != "a" {
			t.Errorf("%s is filtered by %+v", c.status, e)
		}
		ids[got.ID] = true
		if repeated := event.OfRun(r, a, nil); repeated.ID != e.ID {
			t.Errorf("%s has the ids %s and %s", c.status, e.ID, repeated.ID)
		}
	}
}

func types(events []event.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Type))
	}
	return strings.Join(all, " ")
}
