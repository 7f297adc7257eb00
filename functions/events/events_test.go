package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine/notify"
	"punctual/functions/events"
	"punctual/functions/stagetest"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/telemetry"
	"punctual/shared/webhook"
)

type bench struct {
	*stagetest.Bench
	stage *events.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		b := &bench{Bench: s}
		b.restart()
		do(b)
	})
}

// restart begins a new process, which has read nothing yet.
func (b *bench) restart() {
	b.stage = events.New(events.Deps{Store: b.Store, Queue: b.World.Queues(), Base: process.Base{Meter: b.Meter}})
}

// hook puts a webhook that counts from now on.
func (b *bench) hook(name string, change ...func(*webhook.Webhook)) {
	b.Helper()
	now := stagetest.Now()
	w := webhook.Webhook{Tenant: jobtest.Tenant, Name: name, URL: "https://example.com/" + name,
		Events: []string{"job.*", "webhook.disabled"}, Enabled: true, CreatedAt: now, UpdatedAt: now}
	for _, c := range change {
		c(&w)
	}
	_, err := b.Store.UpdateWebhook(b.Context(), jobtest.Tenant, name,
		func(*webhook.Webhook) (webhook.Webhook, error) { return w, nil })
	b.Must(err)
	b.restart()
}

// handle gives the stage the change of a row.
func (b *bench) handle(old, next job.Row) (redelivered int) {
	b.Helper()
	for _, err := range b.stage.Changes(b.Context(), []item.Change{{Old: old.Item(), New: next.Item()}}) {
		if fault.Retryable(err) {
			redelivered++
			continue
		}
		b.Must(err)
	}
	return redelivered
}

// sent are the deliveries to a webhook, as they were accepted: each with the type of its event.
func (b *bench) sent(name string) (rows []job.Row, types string) {
	b.Helper()
	found, _, err := b.Store.Deliveries(b.Context(), jobtest.Tenant, name, "", 100)
	b.Must(err)
	var all []string
	for _, d := range found {
		r := b.Row(d.Key)
		payload, err := b.Store.Payload(b.Context(), r)
		b.Must(err)
		var p struct {
			executor.WebhookPayload
			Event struct{ Type string } `json:"event"`
		}
		b.Must(json.Unmarshal(payload, &p))
		rows, all = append(rows, r), append(all, p.Event.Type)
	}
	return rows, strings.Join(all, " ")
}

func died(n int) (old, next job.Row) {
	old = jobtest.Row(n, time.Now(), time.Now())
	next = old
	next.Status, next.FinishedAt, next.Failures = job.Dead, stagetest.Now(), 1
	return old, next
}

func TestEvents_AreDeliveredByOneJobEach(t *testing.T) {
	t.Parallel()
	bubble(t, "a dead job is announced to each webhook that asks, once, however often it is read", func(b *bench) {
		b.hook("all")
		b.hook("ends", func(w *webhook.Webhook) { w.Events = []string{"job.dead"} })
		b.hook("none", func(w *webhook.Webhook) { w.Events = []string{"job.succeeded"} })
		old, next := died(1)
		for range 3 {
			if n := b.handle(old, next); n != 0 {
				b.Fatalf("%d redelivered", n)
			}
			b.restart()
		}
		_, all := b.sent("all")
		rows, ends := b.sent("ends")
		_, none := b.sent("none")
		if len(strings.Fields(all)) != 2 || ends != "punctual.job.dead" || none != "" {
			b.Fatalf("all %q, ends %q, none %q", all, ends, none)
		}
		r := rows[0]
		if r.Task != "webhook" || r.Executor != executor.Webhook || r.Status != job.Scheduled ||
			r.Retry.MaxAttempts < 30 {
			b.Errorf("the delivery is %+v", r)
		}
		fired := b.Fired()
		if len(fired) == 0 {
			b.Error("it was not fired")
		}
	})
	bubble(t, "a filter by tags reads those of the job", func(b *bench) {
		b.hook("mine", func(w *webhook.Webhook) { w.Filter.Tags = map[string]string{"team": "a"} })
		b.hook("theirs", func(w *webhook.Webhook) { w.Filter.Tags = map[string]string{"team": "b"} })
		old, next := died(1)
		next.Tagged = true
		b.Write(next.PutContent(job.TagsContent, `{"team":"a"}`))
		b.handle(old, next)
		_, mine := b.sent("mine")
		_, theirs := b.sent("theirs")
		if len(strings.Fields(mine)) != 2 || theirs != "" {
			b.Errorf("mine %q, theirs %q", mine, theirs)
		}
	})
	bubble(t, "without webhooks nothing is written, and the list is read once", func(b *bench) {
		reads := 0
		b.Each(stagetest.Queries(webhook.ListKey(jobtest.Tenant)), func(memory.Call) { reads++ })
		before := b.World.Counts().Total().Write
		for n := range 5 {
			b.handle(died(n))
		}
		if after := b.World.Counts().Total().Write; after != before || reads != 1 {
			b.Errorf("%v writes, %d reads", after-before, reads)
		}
	})
	bubble(t, "the failure of a delivery is no event", func(b *bench) {
		b.hook("ops")
		old, next := died(1)
		old.Webhook, next.Webhook = "ops", "ops"
		b.handle(old, next)
		if _, types := b.sent("ops"); types != "" {
			b.Errorf("delivered %q", types)
		}
	})
}

func TestEvents_AreReadOnceMoreAfterAFailure(t *testing.T) {
	t.Parallel()
	bubble(t, "a delivery that cannot be accepted is tried once more", func(b *bench) {
		b.hook("ops")
		old, next := died(1)
		b.FaultFirst(1, stagetest.Named(job.WriteAccept), memory.Fault{Fail: fault.Throttled})
		if n := b.handle(old, next); n != 1 {
			b.Fatalf("%d redelivered", n)
		}
		b.World.SetFaults(nil)
		if n := b.handle(old, next); n != 0 {
			b.Fatalf("%d redelivered", n)
		}
		if _, types := b.sent("ops"); len(strings.Fields(types)) != 2 {
			b.Errorf("delivered %q", types)
		}
	})
	bubble(t, "a row that cannot be read can never be announced, and the others are", func(b *bench) {
		b.hook("ops")
		old, next := died(1)
		bad := next.Item()
		bad["version"] = "x"
		errs := b.stage.Changes(b.Context(), []item.Change{{New: bad}, {Old: old.Item(), New: next.Item()}})
		if len(errs) != 2 || errs[0] == nil || fault.Retryable(errs[0]) || errs[1] != nil {
			b.Errorf("the errors are %v", errs)
		}
		if _, types := b.sent("ops"); types == "" {
			b.Error("the other is not announced")
		}
	})
}

// attempt gives the stage the end of an attempt of a delivery that was made at a time.
func (b *bench) attempt(name string, made time.Time, good bool, code string) {
	b.Helper()
	old := jobtest.Row(1, made, made)
	old.Webhook = name
	next := old
	if next.Status, next.FinishedAt = job.Succeeded, stagetest.Now(); !good {
		next.Status, next.Failures, next.Waiting, next.Reason = job.Scheduled, 1, "retry", job.Reason{Code: code}
		next.Attempts = []job.Attempt{{Attempt: 1, FinishedAt: stagetest.Now()}}
	}
	if n := b.handle(old, next); n != 0 {
		b.Fatalf("%d redelivered", n)
	}
}

func (b *bench) webhook(name string) webhook.Webhook {
	b.Helper()
	w, err := b.Store.Webhook(b.Context(), jobtest.Tenant, name)
	b.Must(err)
	return w
}

func TestWebhooks_AreDisabledByTheirFailures(t *testing.T) {
	t.Parallel()
	bubble(t, "after three days of nothing but failures, and the others hear of it", func(b *bench) {
		b.hook("ops")
		b.hook("other")
		made := stagetest.Now()
		for range 72 {
			b.attempt("ops", made, false, "network")
			if !b.webhook("ops").Enabled {
				b.Fatal("it was disabled early")
			}
			time.Sleep(time.Hour)
		}
		b.attempt("ops", made, false, "network")
		w := b.webhook("ops")
		_, own := b.sent("ops")
		_, other := b.sent("other")
		if w.Enabled || w.Disabled.Code != webhook.CodeFailing || own != "" || other != "punctual.webhook.disabled" {
			b.Errorf("%+v, itself %q, other %q", w, own, other)
		}
		b.attempt("ops", made, false, "network")
		if _, more := b.sent("other"); more != other || b.Meter.Total(telemetry.WebhooksDisabled) != 1 {
			b.Errorf("a later failure: %q, counted %v", more, b.Meter.Total(telemetry.WebhooksDisabled))
		}
	})
	bubble(t, "a success in between begins the three days anew", func(b *bench) {
		b.hook("ops")
		made := stagetest.Now()
		b.attempt("ops", made, false, "network")
		time.Sleep(48 * time.Hour)
		b.attempt("ops", made, true, "")
		time.Sleep(time.Hour)
		b.attempt("ops", made, false, "network")
		time.Sleep(48 * time.Hour)
		b.attempt("ops", made, false, "network")
		if !b.webhook("ops").Enabled {
			b.Error("it was disabled")
		}
	})
	bubble(t, "a 410 disables at once, but not a webhook that was changed since", func(b *bench) {
		made := stagetest.Now()
		b.hook("ops")
		b.attempt("ops", made, false, executor.CodeWebhookGone)
		if w := b.webhook("ops"); w.Enabled || w.Disabled.Code != webhook.CodeGone {
			b.Errorf("%+v", w)
		}
		time.Sleep(time.Minute)
		b.hook("new")
		b.attempt("new", made, false, executor.CodeWebhookGone)
		if !b.webhook("new").Enabled {
			b.Error("a delivery to its earlier address has disabled it")
		}
		b.attempt("absent", made, false, executor.CodeWebhookGone)
	})
	bubble(t, "a process that ends before it announces that is made up for by the next failure", func(b *bench) {
		b.hook("ops")
		b.hook("other")
		made := stagetest.Now()
		b.Fault(stagetest.Named(job.WriteAccept), memory.Fault{Fail: fault.Throttled})
		old := jobtest.Row(1, made, made)
		old.Webhook = "ops"
		next := old
		next.Failures, next.Waiting, next.Reason = 1, "retry", job.Reason{Code: executor.CodeWebhookGone}
		if n := b.handle(old, next); n != 1 || b.webhook("ops").Enabled {
			b.Fatalf("%d redelivered, enabled %v", n, b.webhook("ops").Enabled)
		}
		b.World.SetFaults(nil)
		b.restart()
		b.handle(old, next)
		if _, types := b.sent("other"); types != "punctual.webhook.disabled" {
			b.Errorf("the other heard %q", types)
		}
	})
	bubble(t, "a webhook that works costs no write", func(b *bench) {
		b.hook("ops")
		before := b.World.Counts().Total().Write
		for range 5 {
			b.attempt("ops", stagetest.Now(), true, "")
		}
		if after := b.World.Counts().Total().Write; after != before {
			b.Errorf("%v writes", after-before)
		}
	})
}

func TestWebhooks_CountASomeSecondsAfterTheyArePut(t *testing.T) {
	t.Parallel()
	bubble(t, "a process that has read the list reads it once more after its age", func(b *bench) {
		b.handle(died(1))
		stage := b.stage
		b.hook("late")
		b.stage = stage
		time.Sleep(notify.Age + time.Millisecond)
		b.handle(died(2))
		if _, types := b.sent("late"); len(strings.Fields(types)) != 2 {
			b.Errorf("delivered %q", types)
		}
	})
}
