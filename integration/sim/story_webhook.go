package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/engine"
	"punctual/shared/dag"
	"punctual/shared/event"
	kind "punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/workers/executor"
	"punctual/workers/worker"
)

// Announced are stories about events, and their deliveries to webhooks.
var Announced = slices.Concat(announcedJobs, announcedRuns, announcedOthers)

// announcedJobs are stories about the events of jobs.
var announcedJobs = []Story{
	{Name: "jobs end, and a webhook hears of each", Held: true, Webhooks: true, Workers: 2, Play: func(w *Client) (
		end func(),
	) {
		w.webhook("ops", object{"events": []string{"job.*"}})
		w.webhook("dead", object{"events": []string{"job.dead"}})
		w.Post("good", object{})
		w.Post("retried", object{"payload": Work{Fail: 2}})
		w.Post("dead", object{"payload": Work{Permanent: true}})
		late := w.Post("cancelled", object{"delay": "20s"})
		w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(late)+"/cancel", nil)
		w.heard("ops", "dead")
		return func() {
			w.Delivered("ops", "job.")
			w.Delivered("dead", "job.dead")
		}
	}},
	{Name: "an endpoint is down for a while", Held: true, Webhooks: true, Redo: time.Hour, Play: func(w *Client) (
		end func(),
	) {
		w.webhook("ops", object{"events": []string{"job.*"}})
		w.down(time.Now().Add(10 * time.Minute))
		w.Post("good", object{})
		w.Post("retried", object{"payload": Work{Fail: 1}})
		w.heard("ops")
		return func() { w.Delivered("ops", "job.") }
	}},
	{Name: "everything is paused, and a webhook still hears", Held: true, Webhooks: true, Play: func(w *Client) func() {
		w.webhook("ops", object{"events": []string{"job.cancelled"}})
		n := w.Pause(object{})
		time.Sleep(5 * time.Second)
		id := w.Post("held", object{})
		w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
		w.heard("ops")
		w.Delivered("ops", "job.cancelled")
		w.Lift(n)
		return func() {}
	}},
}

// announcedRuns are stories about the events of runs.
var announcedRuns = []Story{
	{Name: "runs end, and a webhook hears of each", Webhooks: true, Redo: afterOperation, Play: func(w *Client) func() {
		w.webhook("ops", object{"events": []string{"run.*"}})
		good := w.Start("good", w.graphOf(nil, "a", "b: a"))
		bad := w.Start("bad", w.graphOf(map[string]Work{"a": {Permanent: true}}, "a", "b: a"))
		want := []string{"punctual.run.failed run/" + string(bad.ID), "punctual.run.succeeded run/" + string(good.ID)}
		w.heardOf("ops", want)
		return func() { w.DeliveredOf("ops", want) }
	}},
	{Name: "a run is held and cancelled, and a webhook hears of both", Webhooks: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			w.webhook("ops", object{"events": []string{"run.held", "run.cancelled"}})
			d := w.graphOf(map[string]Work{"a": {Permanent: true}}, "a", "b: a")
			d.OnFailure = dag.Hold
			g := w.Start("g", d)
			held := "punctual.run.held run/" + string(g.ID)
			w.heardOf("ops", []string{held})
			w.ask("cancel", func(ctx context.Context, r *engine.Runs) error {
				_, err := r.Cancel(ctx, g.Key, sam)
				return err
			})
			want := []string{"punctual.run.cancelled run/" + string(g.ID), held}
			w.heardOf("ops", want)
			return func() { w.DeliveredOf("ops", want) }
		}},
}

// announcedOthers are stories about the events of schedules and operations.
var announcedOthers = []Story{
	{Name: "a backfill ends and its schedule is paused, and a webhook receives both", Recurs: true, Held: true,
		Webhooks: true, Play: func(w *Client) func() {
			w.webhook("ops", object{"events": []string{"schedule.paused", "operation.*"}})
			past := w.putPast("s", 3, nil)
			o := w.backfill("s", "k", past, object{"max_running": 2})
			w.operationEnds(o, "SUCCEEDED", 3, 0)
			w.Do("s", "pause", object{"reason": "maintenance"})
			want := []string{"punctual.operation.ended operation/" + o, "punctual.schedule.paused schedule/s"}
			w.heardOf("ops", want)
			w.Do("s", "resume", object{})
			return func() { w.DeliveredOf("ops", want) }
		}},
}

// sentOf are the types and subjects of what was sent to a webhook, in their order.
func (w *Client) sentOf(name string) (all []string) {
	for _, r := range w.rows() {
		if r.Webhook != name {
			continue
		}
		var p struct {
			Event struct {
				Type, Subject string
				Data          struct {
					RunID  job.ID     `json:"run_id"`
					Reason job.Reason `json:"status_reason"`
				}
			}
		}
		payload, err := store.New(w.ledger, w.memory.Blobs()).Payload(w.over, r)
		if err == nil {
			err = json.Unmarshal(payload, &p)
		}
		ofRun := strings.HasPrefix(p.Event.Type, "punctual.run.")
		if d := p.Event.Data; err != nil || ofRun && (p.Event.Subject != "run/"+string(d.RunID) ||
			(d.Reason.Code == "") != strings.HasSuffix(p.Event.Type, "succeeded")) {
			w.violation("delivery %s sends %s, %v", short(r.ID), payload, err)
		}
		all = append(all, p.Event.Type+" "+p.Event.Subject)
	}
	slices.Sort(all)
	return all
}

// heardOf waits until a webhook has these deliveries.
func (w *Client) heardOf(name string, want []string) {
	for from := time.Now(); time.Since(from) < hearsWithin; time.Sleep(5 * time.Second) {
		if len(w.sentOf(name)) >= len(want) {
			return
		}
	}
}

// DeliveredOf verifies that a webhook was sent these events, each by one job.
func (w *Client) DeliveredOf(name string, want []string) {
	if sent := w.sentOf(name); !slices.Equal(sent, want) {
		w.violation("webhook %s was sent %v, want %v", name, sent, want)
	}
}

// webhook puts a webhook and waits until it counts.
func (w *Client) webhook(name string, body object) {
	body["url"] = "https://hooks.example.com/" + name
	w.Want([]int{200, 201}, "PUT", "/webhooks/"+name, body)
	time.Sleep(10 * time.Second)
}

// down makes every endpoint refuse what comes before that time.
func (w *World) down(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.downUntil = until
}

// deliveries is the executor of deliveries in a worker process: the endpoints of all webhooks.
type deliveries struct {
	w *World
	p *process
}

// Run receives an event.
func (d deliveries) Run(_ context.Context, work executor.Work) (json.RawMessage, error) {
	if d.p.dead.Load() {
		<-d.w.released
		return nil, context.Canceled
	}
	d.p.separate("start", string(work.Key.ID))
	r := d.w.starts(d.p, work.Key.Tenant, worker.Job[Work]{JobID: string(work.Key.ID), Attempt: work.Attempt,
		Token: work.Token, Key: string(work.HandlerKey), DueAt: work.DueAt})
	d.w.mu.Lock()
	down := time.Now().Before(d.w.downUntil)
	d.w.mu.Unlock()
	var err error
	if down {
		err = errors.New("the endpoint is down")
	}
	d.w.ends(r, err)
	return nil, err
}

// expected are the ids of the events that the rows of a tenant's jobs say have happened, of types that begin so.
func (w *Client) expected(prefix string) (ids []string) {
	for _, r := range w.rows() {
		if r.Delivery() {
			continue
		}
		for n := range r.Failures { // each failed attempt is an event; there are no snoozes
			was := r
			was.Status, was.Attempt, was.Failures, was.Attempts = job.Scheduled, n+1, n, nil
			now := was
			now.Failures = n + 1
			ids = append(ids, eventsOf(event.Change{Old: &was, New: now}, prefix)...)
		}
		if r.Status.Final() {
			was := r
			was.Status = job.Scheduled
			ids = append(ids, eventsOf(event.Change{Old: &was, New: r}, prefix)...)
		}
	}
	slices.Sort(ids)
	return ids
}

func eventsOf(c event.Change, prefix string) (ids []string) {
	for _, e := range event.Of(c) {
		if strings.HasPrefix(string(e.Type), prefix) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// sent are the events of the deliveries to a webhook, each as the body has it.
func (w *Client) sent(name string) (ids []string, bad string) {
	for _, r := range w.rows() {
		if r.Webhook != name {
			continue
		}
		payload, err := store.New(w.ledger, w.memory.Blobs()).Payload(w.over, r)
		var p kind.WebhookPayload
		if err == nil {
			err = json.Unmarshal(payload, &p)
		}
		var body struct {
			ID, Type string
			Data     struct {
				JobID    job.ID     `json:"job_id"`
				Status   job.Status `json:"status"`
				Sequence int64      `json:"sequence"`
			}
		}
		if err == nil {
			err = json.Unmarshal(p.Event, &body)
		}
		about, there := w.row(body.Data.JobID)
		switch {
		case err != nil:
			return nil, fmt.Sprintf("delivery %s: %v", short(r.ID), err)
		case body.ID != p.EventID, !there, body.Data.Sequence == 0,
			body.Type != "punctual.job.failed_attempt" && body.Data.Status != about.Status:
			return nil, fmt.Sprintf("delivery %s sends %s about %s, which is %s", short(r.ID), p.Event,
				short(about.ID), about.Status)
		}
		ids = append(ids, p.EventID)
	}
	slices.Sort(ids)
	return ids, ""
}

// hearsWithin is how long after the ends of all jobs their events are delivered at the latest: a stream that is
// redelivered, and a delivery that is tried once more.
const hearsWithin = 3 * time.Hour

// heard waits until all jobs have ended and these webhooks have as many deliveries as events, all ended.
func (w *Client) heard(names ...string) {
	for from := time.Now(); time.Since(from) < hearsWithin; time.Sleep(5 * time.Second) {
		open := slices.ContainsFunc(w.rows(), func(r job.Row) bool { return !r.Status.Final() })
		for _, name := range names {
			ids, _ := w.sent(name)
			prefix := "job."
			if name == "dead" {
				prefix = "job.dead"
			}
			open = open || len(ids) < len(w.expected(prefix))
		}
		if !open {
			return
		}
	}
}

// Delivered verifies that each event of types that begin so was delivered to a webhook, by one job.
func (w *Client) Delivered(name, prefix string) {
	want := w.expected(prefix)
	ids, bad := w.sent(name)
	if bad != "" || !slices.Equal(ids, want) {
		w.violation("webhook %s was sent %v, want %v; %s", name, ids, want, bad)
	}
	for _, r := range w.rows() {
		if r.Webhook == name && r.Status != job.Succeeded {
			w.violation("delivery %s to webhook %s is %s", short(r.ID), name, r.Status)
		}
	}
}
