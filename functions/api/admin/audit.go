package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/fault"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *Handler) auditRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagAudit, Path: "/v1/audit"}
	rest.GetPage(on, "", "listAudit", "List who changed what", s.listAudit, rest.Route{
		Scope: tenant.Admin,
		About: "Lists the changes that callers made, newest first, except that jobs and runs were made. Each was " +
			"written together with its change, and no call changes it. A request that was refused, or changed " +
			"nothing, has none. A page reads a bounded number of days and entries, so that it can be empty and " +
			"have a cursor.",
	})
}

// Sizes of the filters.
const (
	MaxActor    = 512
	MaxResource = 256
)

type auditInput struct {
	rest.Paging
	Actor    string `query:"actor" doc:"Filter: sub of the actor" example:"ana@example.com"`
	Action   string `query:"action" doc:"Filter: action" example:"schedule.put"`
	Resource string `query:"resource" doc:"Filter: resource, which also selects the parts of it: run/ID selects the nodes of the run, too" example:"schedule/morning"`
	After    string `query:"after" format:"date-time" doc:"Filter: earliest time of the change"`
	Before   string `query:"before" format:"date-time" doc:"Filter: time before which the change was made"`
}

// auditView shows a change that a caller made.
type auditView struct {
	At        rest.Instant  `json:"at" doc:"Time of the request"`
	Actor     auditActor    `json:"actor" doc:"Caller that made the change"`
	Action    audit.Action  `json:"action" doc:"Kind of the change" example:"schedule.put"`
	Resource  string        `json:"resource" doc:"Kind and name of what was changed" example:"schedule/morning"`
	RequestID string        `json:"request_id" doc:"Identifier of the request, which its answer has in X-Request-Id"`
	Reason    string        `json:"reason" doc:"Reason that the caller gave; empty if there was none"`
	Changes   []auditChange `json:"changes" doc:"Values that changed; of an operation without such values, the fields of its request. At most {=audit_changes}."`
	More      int           `json:"more_changes,omitempty" doc:"Number of further changes, which are not kept"`
}

type auditActor struct {
	Subject string    `json:"sub" doc:"Subject of the token, or ARN of the signer; empty if the token had none"`
	Via     audit.Via `json:"via" enum:"token,signature,laptop" doc:"Means by which the caller was identified"`
}

type auditChange struct {
	Pointer string          `json:"pointer" doc:"JSON pointer of the value"`
	From    json.RawMessage `json:"from,omitempty" doc:"Value before; absent if there was none, or with omitted"`
	To      json.RawMessage `json:"to,omitempty" doc:"Value after; absent if there is none, or with omitted"`
	Omitted bool            `json:"omitted,omitempty" doc:"Whether the values are left out, because they belong to a payload, are large or resemble a secret"`
}

func viewAudit(e store.AuditEntry) auditView {
	v := auditView{
		At: rest.At(e.At), Actor: auditActor{e.Actor.Subject, e.Actor.Via}, Action: e.Action, Resource: e.Resource,
		RequestID: e.RequestID, Reason: e.Reason, Changes: make([]auditChange, len(e.Changes)), More: e.More,
	}
	for i, c := range e.Changes {
		v.Changes[i] = auditChange(c)
	}
	return v
}

// auditSlack is how far ahead the clock of another process may be.
const auditSlack = time.Minute

func (s *Handler) listAudit(
	ctx context.Context, who tenant.Identity, in *auditInput, after string, limit int,
) (page rest.Found[auditView], err error) {
	var wrong fault.Violations
	q := store.AuditQuery{Filter: audit.Filter{Actor: in.Actor, Action: audit.Action(in.Action),
		Resource: in.Resource}, Below: after, Limit: limit}
	q.From, q.Before = rest.ReadRange(&wrong, "after", in.After, "before", in.Before)
	rest.FilterWord(&wrong, "action", in.Action, rest.WordsOf(audit.Actions()))
	filterText(&wrong, "actor", in.Actor, MaxActor)
	filterText(&wrong, "resource", in.Resource, MaxResource)
	if len(wrong) > 0 {
		return page, wrong
	}
	now := s.Now()
	if latest := now.Add(auditSlack); q.Before.IsZero() || q.Before.After(latest) {
		q.Before = latest
	}
	if oldest := now.Add(-s.AuditKept); q.From.Before(oldest) {
		q.From = oldest
	}
	found, next, err := s.Store.AuditEntries(ctx, who.Tenant, q)
	page.Next, page.At = next, func(i int) string { return found[i].Position }
	for _, e := range found {
		page.Items = append(page.Items, viewAudit(e))
	}
	return page, err
}

// filterText adds a violation if a filter is given and cannot be the text of an entry.
func filterText(wrong *fault.Violations, parameter, value string, most int) {
	switch {
	case utf8.RuneCountInString(value) > most:
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: rest.CodeOutOfRange,
			Detail: parameter + " is too long", Allowed: fmt.Sprintf("at most %d characters", most)})
	case !utf8.ValidString(value) || strings.ContainsFunc(value, text.Hidden):
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: rest.CodeInvalidValue,
			Detail: parameter + " has control characters, or is not UTF-8", Allowed: "printable characters"})
	}
}
