package webhook

import (
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/event"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Filter selects events. An empty field selects any; one that is given selects no event that lacks it.
type Filter struct {
	Task     string            `json:"task,omitempty"`
	Schedule string            `json:"schedule,omitempty"`
	Dag      string            `json:"dag,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// MaxTags is how many tags a filter may have.
const MaxTags = 3

// Webhook is an address that is sent events.
type Webhook struct {
	Tenant   tenant.ID
	Name     string
	URL      string
	Events   []string // types of events, and groups of them
	Filter   Filter
	SignWith string            // ARN of the secret that signs; "" for none
	Headers  map[string]string // a value may be the ARN of a secret
	Enabled  bool
	Version  int64 // grows with every change

	CreatedAt time.Time
	UpdatedAt time.Time
	// Disabled is why Punctual has disabled it; zero if it has not.
	Disabled   job.Reason
	DisabledAt time.Time
}

// The codes of the reasons for which a webhook is disabled.
const (
	CodeFailing = "failing"
	CodeGone    = "gone"
)

// body is what is stored of a webhook.
type body struct {
	URL        string            `json:"url"`
	Events     []string          `json:"events"`
	Filter     Filter            `json:"filter"`
	SignWith   string            `json:"sign_with,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Enabled    bool              `json:"enabled"`
	Created    int64             `json:"created_at"`
	Updated    int64             `json:"updated_at"`
	Disabled   job.Reason        `json:"disabled,omitzero"`
	DisabledAt int64             `json:"disabled_at,omitempty"`
}

// ListKey is the partition of a tenant's webhooks, in the order of their names.
func ListKey(t tenant.ID) string { return "webhook#" + string(t) }

// Ref is where a tenant's webhook of that name is.
func Ref(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: ListKey(t), SK: name}
}

// MadeRef is where it is counted how many webhooks a tenant has made.
func MadeRef(t tenant.ID) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "webhooks_made#" + string(t), SK: "made"}
}

// CountMade counts another new webhook: refused if another one was made since the count was read. So of two requests at
// once, the second decides anew about how many there may be.
func CountMade(t tenant.ID, made int64) item.Write {
	when := item.Cond{Attr: "made", Op: item.Eq, Value: made}
	if made == 0 {
		when = item.Cond{Attr: "made", Op: item.Missing}
	}
	return item.Write{Ref: MadeRef(t), Name: WriteMade, Set: map[string]any{"made": made + 1},
		When: []item.All{{when}}}
}

// Item encodes the webhook.
func (w Webhook) Item() item.Item {
	b := body{w.URL, w.Events, w.Filter, w.SignWith, w.Headers, w.Enabled, w.CreatedAt.UnixMilli(),
		w.UpdatedAt.UnixMilli(), w.Disabled, 0}
	if !w.DisabledAt.IsZero() {
		b.DisabledAt = w.DisabledAt.UnixMilli()
	}
	ref := Ref(w.Tenant, w.Name)
	return item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(text.MustJSON(b)),
		"version": w.Version}
}

// Parse decodes what Item encoded, of a tenant.
func Parse(i item.Item, t tenant.ID) (Webhook, error) {
	var b body
	w := Webhook{Tenant: t, Name: i.Str(contract.AttrSK), Version: i.Int("version")}
	if err := text.Read([]byte(i.Str("body")), &b); err != nil {
		return w, fault.New(fault.Undecodable, err, "reading webhook %q", w.Name)
	}
	w.URL, w.Events, w.Filter, w.SignWith, w.Headers = b.URL, b.Events, b.Filter, b.SignWith, b.Headers
	w.Enabled, w.Disabled = b.Enabled, b.Disabled
	w.CreatedAt, w.UpdatedAt = time.UnixMilli(b.Created).UTC(), time.UnixMilli(b.Updated).UTC()
	if b.DisabledAt != 0 {
		w.DisabledAt = time.UnixMilli(b.DisabledAt).UTC()
	}
	return w, nil
}

// Asks reports whether the webhook asks for events of a type.
func (w Webhook) Asks(what event.Type) bool {
	return w.Enabled && slices.ContainsFunc(w.Events, func(pattern string) bool {
		group, isGroup := strings.CutSuffix(pattern, "*")
		return pattern == string(what) || isGroup && strings.HasPrefix(string(what), group)
	})
}

// Wants reports whether the webhook asks for an event as far as its type, task, schedule and dag say. Tags are looked
// at by WantsTags.
func (w Webhook) Wants(e event.Event) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	f := w.Filter
	return w.Asks(e.Type) && e.Subject != "webhook/"+w.Name &&
		is(f.Task, e.Task) && is(f.Schedule, e.Schedule) && is(f.Dag, e.Dag)
}

// WantsTags reports whether the webhook asks for an event with these tags.
func (w Webhook) WantsTags(tags map[string]string) bool {
	for name, want := range w.Filter.Tags {
		if have, ok := tags[name]; !ok || have != want {
			return false
		}
	}
	return true
}

// Same reports whether another webhook says the same in all that a request can set.
func (w Webhook) Same(as Webhook) bool {
	w.Version, w.CreatedAt, w.UpdatedAt = as.Version, as.CreatedAt, as.UpdatedAt
	w.Disabled, w.DisabledAt = as.Disabled, as.DisabledAt
	return string(text.MustJSON(w)) == string(text.MustJSON(as))
}
