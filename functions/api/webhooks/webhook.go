package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/event"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

// Handler serves webhooks.
type Handler struct {
	*spec.Core
}

// New registers the routes of webhooks.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	h.routes()
	return h
}

func (s *Handler) routes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagWebhooks, Path: "/v1/webhooks"}
	rest.Put(on, "/{name}", "putWebhook", "Create or replace a webhook", s.putWebhook, rest.Route{
		Action: audit.WebhookPut,
		Scope:  tenant.Admin, Body: webhookRequest,
		About: "Answers 201 if it is new. A tenant has up to {=webhooks} webhooks. A change counts for what happens " +
			"from {=webhook_age_s} s after it. Safe to repeat.",
	})
	rest.Get(on, "/{name}", "getWebhook", "Get a webhook", s.getWebhook)
	rest.Delete(on, "/{name}", "deleteWebhook", "Delete a webhook", s.deleteWebhook, rest.Route{
		Action: audit.WebhookDelete,
		Scope:  tenant.Admin, About: "Deliveries that are open are still tried.",
	})
	rest.GetPage(on, "", "listWebhooks", "List webhooks", s.listWebhooks, rest.Route{About: "Ordered by name."})
	s.deliveryRoutes(on)
}

// Fields of a webhook.
var (
	urlField = field.Value("url", "Address to which events are sent by POST: http or https, to a public address",
		field.TextSchema(func(s *huma.Schema) { s.Format = "uri" })).Required().
		Example("https://ops.example.com/punctual")
	eventsField = field.List("events", "Types of events that are sent; job.* is every type that begins with job.",
		1, len(patterns), field.Word[string]("", "", rest.CodeInvalidValue, patterns)).Required()
	filterField = field.Value("filter", "Selection among these events; default: all", filterRequest.Schema)
	signField   = field.Value("sign_with", "ARN of the secret with which events are signed (Standard Webhooks); "+
		"default: none are signed", field.TextSchema(func(s *huma.Schema) { s.Format = "secret-arn" }))
	headersField = field.Value("headers", "Headers of the request by name; a value may be the ARN of a secret, which "+
		"is sent over https only", func(huma.Registry) *huma.Schema {
		return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}}
	})
	enabledField = field.Flag("enabled", "Whether events are sent; default: true. It becomes false when every "+
		"delivery of {=webhook_failing_days} days has failed, and when the endpoint answers 410.")

	filterRequest = field.NewObject("WebhookFilterRequest", "Selection of events. An event that has no such field is "+
		"not sent.", spec.Name("task", "Name of the task"), spec.Name("schedule", "Name of the schedule"),
		spec.Name("dag", "Name of the dag"),
		spec.Tags.About("Tags that the job must have, up to {=webhook_tags}"))
	webhookRequest = field.NewObject("WebhookRequest", "Address, and the events that are sent there.", urlField,
		eventsField, filterField, signField, headersField, enabledField)
)

// patterns are the types of events, and the groups of them.
var patterns = slices.Concat(event.Groups, rest.WordsOf(event.Types))

type filterView struct {
	Task     string            `json:"task,omitempty" doc:"Name of the task"`
	Schedule string            `json:"schedule,omitempty" doc:"Name of the schedule"`
	Dag      string            `json:"dag,omitempty" doc:"Name of the dag"`
	Tags     map[string]string `json:"tags,omitempty" doc:"Tags that the job must have"`
}

type disabledView struct {
	Code    string       `json:"code" enum:"failing,gone" doc:"Code of the reason"`
	Message string       `json:"message" doc:"Reason"`
	At      rest.Instant `json:"at" doc:"Time at which Punctual disabled the webhook"`
}

type webhookView struct {
	Name         string            `json:"name" doc:"Name of the webhook"`
	URL          string            `json:"url" doc:"Address to which events are sent"`
	Events       []string          `json:"events" doc:"Types of events that are sent"`
	Filter       *filterView       `json:"filter,omitempty" doc:"Selection among these events"`
	SignWith     string            `json:"sign_with,omitempty" doc:"ARN of the secret with which events are signed"`
	Headers      map[string]string `json:"headers,omitempty" doc:"Headers of the request by name"`
	Enabled      bool              `json:"enabled" doc:"Whether events are sent"`
	Disabled     *disabledView     `json:"disabled,omitempty" doc:"Reason for which Punctual has disabled the webhook; absent if it has not"`
	FailingSince rest.Instant      `json:"failing_since,omitzero" doc:"Time of the first failure since which no delivery has succeeded; not in lists"`
	Version      int64             `json:"version" doc:"Version, which grows with every change; in quotes it is the ETag"`
	CreatedAt    rest.Instant      `json:"created_at" doc:"Time at which the webhook was created"`
	UpdatedAt    rest.Instant      `json:"updated_at" doc:"Time of the newest change"`
}

func viewWebhook(w webhook.Webhook) webhookView {
	v := webhookView{
		Name: w.Name, URL: w.URL, Events: w.Events, SignWith: w.SignWith, Headers: w.Headers, Enabled: w.Enabled,
		Version: w.Version, CreatedAt: rest.At(w.CreatedAt), UpdatedAt: rest.At(w.UpdatedAt),
	}
	if f := filterView(w.Filter); f.Task+f.Schedule+f.Dag != "" || len(f.Tags) > 0 {
		v.Filter = &f
	}
	if w.Disabled.Code != "" {
		v.Disabled = &disabledView{w.Disabled.Code, w.Disabled.Message, rest.At(w.DisabledAt)}
	}
	return v
}

type webhookAnswer struct {
	Status int
	ETag   string `header:"ETag" doc:"Version in quotes, for If-Match"`
	Body   webhookView
}

func answer(w webhook.Webhook, status int) *webhookAnswer {
	return &webhookAnswer{status, spec.Etag(w.Version), viewWebhook(w)}
}

// one is the input of a request that changes a webhook, or one version of it.
type one struct {
	rest.Named
	rest.Match
}

// fits returns a problem if a webhook has another version than the request wants; nil is none.
func (in *one) fits(w *webhook.Webhook) error {
	has := int64(0)
	if w != nil {
		has = w.Version
	}
	return spec.FitsVersion("webhook", in.Version, has)
}

func (s *Handler) putWebhook(ctx context.Context, who tenant.Identity, in *one) (*webhookAnswer, error) {
	if err := s.check(in.Name); err != nil {
		return nil, err
	}
	wanted, err := s.read(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	wanted.Tenant, wanted.Name = who.Tenant, in.Name
	status, now := http.StatusOK, s.Now()
	after, err := s.Store.UpdateWebhook(ctx, who.Tenant, in.Name,
		func(old *webhook.Webhook) (webhook.Webhook, error) {
			next := wanted
			next.CreatedAt, next.UpdatedAt = now, now
			if status = http.StatusCreated; old == nil {
				if err := s.fitsIn(ctx, who.Tenant); err != nil {
					return next, err
				}
				audit.From(ctx).Changed(nil, viewWebhook(next))
				return next, in.fits(nil)
			}
			if status = http.StatusOK; next.Same(*old) {
				return *old, in.fits(old)
			}
			if !old.CreatedAt.IsZero() {
				next.CreatedAt = old.CreatedAt
			}
			audit.From(ctx).Changed(viewWebhook(*old), viewWebhook(next))
			return next, in.fits(old)
		})
	if err != nil {
		return nil, err
	}
	return answer(after, status), nil
}

// fitsIn returns a violation if a tenant has as many webhooks as it may have.
func (s *Handler) fitsIn(ctx context.Context, t tenant.ID) error {
	all, _, err := s.Store.Webhooks(ctx, t, "", contract.MaxWebhooks)
	if err != nil || len(all) < contract.MaxWebhooks {
		return err
	}
	return rest.OneViolation("name", rest.CodeOutOfRange, fmt.Sprintf("at most %d webhooks", contract.MaxWebhooks),
		"the tenant has as many webhooks as it may have")
}

// read reads a webhook from a body.
func (s *Handler) read(ctx context.Context, t tenant.ID) (w webhook.Webhook, err error) {
	r, f, err := spec.ReadBody(ctx, webhookRequest, "a webhook")
	if err != nil {
		return w, err
	}
	if f == nil {
		return w, r.Wrong.Err()
	}
	w.Enabled = true
	enabledField.Into(r, f, &w.Enabled)
	site := executor.Site{Tenant: t, Deployment: s.Deployment, HTTPAllow: s.HTTPAllow, OwnPorts: s.OwnPorts}
	executor.CheckWebhook(r, f, "", site)
	w.URL, _ = r.Peek(f[urlField.Name()])
	w.SignWith, _ = r.Peek(f[signField.Name()])
	if v, ok := f[headersField.Name()]; ok {
		r.AllDuplicates(v.Node)
		r.NoSecrets(v, nil)
		w.Headers = map[string]string{}
		for name, value := range r.Members(v) {
			w.Headers[name], _ = r.Peek(value)
		}
	}
	if !eventsField.Into(r, f, &w.Events) {
		r.Missing("", eventsField.Name())
	} else if len(w.Events) == 0 && len(r.Wrong) == 0 {
		r.Violation(f[eventsField.Name()].Pointer, rest.CodeOutOfRange, "at least one type of event",
			"a webhook needs an event")
	}
	slices.Sort(w.Events)
	w.Events = slices.Compact(w.Events)
	if v, ok := f[filterField.Name()]; ok {
		w.Filter = readFilter(r, v)
	}
	return w, r.Wrong.Err()
}

func readFilter(r *rest.Reader, v rest.Value) (to webhook.Filter) {
	f := filterRequest.Read(r, v)
	for name, into := range map[string]*string{"task": &to.Task, "schedule": &to.Schedule, "dag": &to.Dag} {
		if v, ok := f[name]; ok {
			*into, _ = r.Name(v)
		}
	}
	if spec.Tags.Into(r, f, &to.Tags); len(to.Tags) > webhook.MaxTags {
		r.Violation(f[spec.Tags.Name()].Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d tags", webhook.MaxTags),
			"there are more than %d tags", webhook.MaxTags)
	}
	return to
}

// check returns a problem if events are sent to no webhook here, or if none can have that name.
func (s *Handler) check(name string) error {
	if err := s.announced(); err != nil {
		return err
	}
	return rest.CheckName(name, "a webhook")
}

// announced returns a problem if events are sent to no webhook here.
func (s *Handler) announced() error {
	if s.Announced {
		return nil
	}
	return rest.NewProblem(spec.CodeNotIndexed, "this deployment reads no events from its stream, and sends none")
}

// find reads a webhook.
func (s *Handler) find(ctx context.Context, t tenant.ID, name string) (webhook.Webhook, error) {
	if err := s.check(name); err != nil {
		return webhook.Webhook{}, err
	}
	w, err := s.Store.Webhook(ctx, t, name)
	return w, rest.Absent(err, "webhook")
}

func (s *Handler) getWebhook(ctx context.Context, who tenant.Identity, in *rest.Named) (*webhookAnswer, error) {
	w, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	health, err := s.Store.WebhookHealth(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	a := answer(w, http.StatusOK)
	if since := health.FailingSince; since.After(w.UpdatedAt) {
		a.Body.FailingSince = rest.At(since)
	}
	return a, nil
}

func (s *Handler) deleteWebhook(ctx context.Context, who tenant.Identity, in *one) (*rest.NoContent, error) {
	w, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	if err := in.fits(&w); err != nil {
		return nil, err
	}
	err = s.Store.DeleteWebhook(ctx, w)
	if store.Refused(err) != nil {
		return nil, rest.NewProblem(spec.CodeStaleVersion, "the webhook has changed meanwhile")
	}
	return &rest.NoContent{}, err
}

func (s *Handler) listWebhooks(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, most int,
) (rest.Found[webhookView], error) {
	if err := s.announced(); err != nil {
		return rest.Found[webhookView]{}, err
	}
	found, more, err := s.Store.Webhooks(ctx, who.Tenant, after, most)
	return rest.FoundRows(found, more, viewWebhook, func(w webhook.Webhook) string { return w.Name }), err
}

// newID returns the id of a new delivery.
func (s *Handler) newID() (job.ID, error) {
	random, err := s.Entropy.Next()
	return job.NewID(s.Now(), random), err
}
