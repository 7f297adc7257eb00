package webhook_test

import (
	"testing"
	"time"

	"punctual/shared/event"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/webhook"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func TestWebhook_IsStoredWithEveryField(t *testing.T) {
	t.Parallel()
	w := webhook.Webhook{
		Tenant: "acme", Name: "ops", URL: "https://example.com", Events: []string{"job.*"},
		Filter:   webhook.Filter{Task: "t", Schedule: "s", Dag: "d", Tags: map[string]string{"a": "b"}},
		SignWith: "arn", Headers: map[string]string{"X-A": "b"}, Enabled: true, Version: 3, CreatedAt: noon,
		UpdatedAt: noon.Add(time.Hour), Disabled: job.Reason{Code: "gone", Message: "m"}, DisabledAt: noon,
	}
	got, err := webhook.Parse(w.Item(), "acme")
	if err != nil || !got.Same(w) || got.Version != 3 || got.CreatedAt != w.CreatedAt || got.UpdatedAt != w.UpdatedAt ||
		got.Disabled != w.Disabled || got.DisabledAt != w.DisabledAt {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := webhook.Parse(item.Item{"body": "{"}, "acme"); err == nil {
		t.Error("half a body can be read")
	}
}

func TestWebhook_WantsWhatItAsksFor(t *testing.T) {
	t.Parallel()
	dead := event.Event{Tenant: "acme", Type: event.JobDead, Subject: "job/1", Task: "mail", Schedule: "daily"}
	for name, c := range map[string]struct {
		w    webhook.Webhook
		want bool
	}{
		"its type":      {webhook.Webhook{Events: []string{"job.succeeded", "job.dead"}}, true},
		"its group":     {webhook.Webhook{Events: []string{"job.*"}}, true},
		"another type":  {webhook.Webhook{Events: []string{"job.expired"}}, false},
		"another group": {webhook.Webhook{Events: []string{"run.*"}}, false},
		"its task":      {webhook.Webhook{Events: []string{"job.*"}, Filter: webhook.Filter{Task: "mail"}}, true},
		"another task":  {webhook.Webhook{Events: []string{"job.*"}, Filter: webhook.Filter{Task: "x"}}, false},
		"its schedule": {webhook.Webhook{Events: []string{"job.*"},
			Filter: webhook.Filter{Schedule: "daily"}}, true},
		"a field it lacks": {webhook.Webhook{Events: []string{"job.*"}, Filter: webhook.Filter{Dag: "etl"}}, false},
		"another schedule of the task": {webhook.Webhook{Events: []string{"job.*"},
			Filter: webhook.Filter{Task: "mail", Schedule: "x"}}, false},
	} {
		c.w.Enabled = true
		if got := c.w.Wants(dead); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		c.w.Enabled = false
		if c.w.Wants(dead) {
			t.Errorf("%s: it is disabled, and wants it", name)
		}
	}
	tagged := webhook.Webhook{Filter: webhook.Filter{Tags: map[string]string{"team": "billing", "env": ""}}}
	for _, c := range []struct {
		tags map[string]string
		want bool
	}{
		{map[string]string{"team": "billing", "env": "", "more": "x"}, true}, {nil, false},
		{map[string]string{"team": "billing"}, false}, {map[string]string{"team": "x", "env": ""}, false},
	} {
		if got := tagged.WantsTags(c.tags); got != c.want {
			t.Errorf("tags %v: %v", c.tags, got)
		}
	}
	self := webhook.Webhook{Name: "ops", Enabled: true, Events: []string{"webhook.disabled"}}
	if self.Wants(event.OfDisabled("acme", "ops", "", 1, job.Reason{}, noon)) ||
		!self.Wants(event.OfDisabled("acme", "other", "", 1, job.Reason{}, noon)) {
		t.Error("a webhook hears of itself, or not of another")
	}
}

func failure(at time.Time) webhook.Attempt { return webhook.Attempt{At: at, CreatedAt: noon} }

func success(at time.Time) webhook.Attempt {
	return webhook.Attempt{At: at, CreatedAt: noon, Succeeded: true}
}

func TestHealth_IsThatOfTheAttemptsInAnyOrder(t *testing.T) {
	t.Parallel()
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		attempts []webhook.Attempt
		since    time.Time
	}{
		"only successes":                {[]webhook.Attempt{success(hour(1)), success(hour(2))}, time.Time{}},
		"failures":                      {[]webhook.Attempt{failure(hour(1)), failure(hour(2))}, hour(1)},
		"failures, the later one first": {[]webhook.Attempt{failure(hour(2)), failure(hour(1))}, hour(1)},
		"a success ends them":           {[]webhook.Attempt{failure(hour(1)), success(hour(2))}, time.Time{}},
		"a failure after a success": {[]webhook.Attempt{failure(hour(1)), success(hour(2)),
			failure(hour(3))}, hour(3)},
		"a failure that is read late": {[]webhook.Attempt{failure(hour(1)), success(hour(3)),
			failure(hour(2))}, time.Time{}},
		"a success from before the failure": {[]webhook.Attempt{failure(hour(2)), success(hour(1))}, hour(2)},
	} {
		var h webhook.Health
		for range 2 {
			for _, a := range c.attempts {
				h = h.After(a)
			}
		}
		if name == "a failure after a success" {
			continue // once more from the beginning, the success is older than the failures are
		}
		if !h.FailingSince.Equal(c.since) {
			t.Errorf("%s: failing since %s, want %s", name, h.FailingSince, c.since)
		}
	}
}

func TestWebhook_IsDisabledByThreeDaysOfFailuresOrA410(t *testing.T) {
	t.Parallel()
	w := webhook.Webhook{Enabled: true, UpdatedAt: noon}
	since := webhook.Health{FailingSince: noon.Add(time.Minute)}
	late := noon.Add(time.Minute + webhook.FailingMost)
	gone := failure(noon.Add(time.Minute))
	gone.Gone = true
	old := failure(late)
	old.CreatedAt = noon.Add(-time.Second)
	off := w
	off.Enabled = false
	for name, c := range map[string]struct {
		w    webhook.Webhook
		a    webhook.Attempt
		h    webhook.Health
		want string
	}{
		"three days":                  {w, failure(late), since, "failing"},
		"a moment less":               {w, failure(late.Add(-time.Millisecond)), since, ""},
		"a success":                   {w, success(late), since, ""},
		"the endpoint has gone":       {w, gone, since, "gone"},
		"made before the last change": {w, old, since, ""},
		"disabled already":            {off, failure(late), since, ""},
		"changed since the failures began": {webhook.Webhook{Enabled: true, UpdatedAt: noon.Add(time.Hour)},
			webhook.Attempt{At: late, CreatedAt: noon.Add(2 * time.Hour)}, since, ""},
	} {
		if got := c.w.Disables(c.a, c.h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
