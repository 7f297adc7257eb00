package webhook

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// FailingMost is how long nothing but failures may last before a webhook is disabled.
const FailingMost = 72 * time.Hour

// Health says how the deliveries to a webhook fare. The zero Health is that of one without failures. It is written when
// failures begin and when they end: a webhook that works costs no write.
type Health struct {
	FailingSince time.Time // the first failure after the last success; zero: none
	SucceededAt  time.Time // the success that ended the failures before; zero: none did
}

// Attempt is the outcome of an attempt to deliver.
type Attempt struct {
	At        time.Time // its end
	CreatedAt time.Time // that of the delivery
	Succeeded bool
	Gone      bool // the endpoint wants no events any more
}

// After is the health after an attempt. Attempts may come in any order, and more than once.
func (h Health) After(a Attempt) Health {
	switch {
	case a.Succeeded && !h.FailingSince.IsZero() && a.At.After(h.SucceededAt):
		h.SucceededAt = a.At
		if !a.At.Before(h.FailingSince) {
			h.FailingSince = time.Time{}
		}
	case !a.Succeeded && a.At.After(h.SucceededAt) && (h.FailingSince.IsZero() || a.At.Before(h.FailingSince)):
		h.FailingSince = a.At
	}
	return h
}

// Disables says by which code an attempt disables the webhook, with the health after it; "" if it does not. Only a
// delivery counts that was made for the webhook as it is now: one to an earlier URL says nothing of this one.
func (w Webhook) Disables(a Attempt, h Health) string {
	since := h.FailingSince
	if since.Before(w.UpdatedAt) {
		since = w.UpdatedAt
	}
	switch {
	case !w.Enabled || a.Succeeded || a.CreatedAt.Before(w.UpdatedAt):
		return ""
	case a.Gone:
		return CodeGone
	case !h.FailingSince.IsZero() && a.At.Sub(since) >= FailingMost:
		return CodeFailing
	}
	return ""
}

// HealthRef is where the health of a webhook is.
func HealthRef(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "webhook_health#" + string(t), SK: name}
}

// ParseHealth decodes what a write of SetHealth wrote; an absent item is the zero Health.
func ParseHealth(i item.Item) (h Health) {
	if at := i.Int("failing_since"); at != 0 {
		h.FailingSince = time.UnixMilli(at).UTC()
	}
	if at := i.Int("succeeded_at"); at != 0 {
		h.SucceededAt = time.UnixMilli(at).UTC()
	}
	return h
}

// healthKept is how long the health of a webhook is kept after its last change.
const healthKept = 120 * 24 * time.Hour

// Become writes the health after it was read as h: refused if it has changed since.
func (h Health) Become(t tenant.ID, name string, after Health, now time.Time) item.Write {
	set := map[string]any{contract.AttrExpiresAt: now.Add(healthKept).Unix()}
	var when item.All
	for attr, times := range map[string][2]time.Time{
		"failing_since": {h.FailingSince, after.FailingSince}, "succeeded_at": {h.SucceededAt, after.SucceededAt},
	} {
		was, next := times[0], times[1]
		if set[attr] = nil; !next.IsZero() {
			set[attr] = next.UnixMilli()
		}
		if was.IsZero() {
			when = append(when, item.Cond{Attr: attr, Op: item.Missing})
		} else {
			when = append(when, item.Cond{Attr: attr, Op: item.Eq, Value: was.UnixMilli()})
		}
	}
	return item.Write{Ref: HealthRef(t, name), Name: WriteHealth, Set: set, When: []item.All{when}}
}
