package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

func (s *Handler) pauseRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagPauses, Path: "/v1/pauses"}
	rest.Put(on, "/{scope}", "putPause", "Pause all jobs, or one task", s.putPause, rest.Route{
		Action: audit.PausePut,
		Scope:  tenant.Admin, Body: spec.PauseRequest, OptionalBody: true,
		About: "201 for a new pause. No job that it holds starts after effective_at; running attempts continue. " +
			"After the pause is lifted, or has ended by until, the held jobs start within {=held_starts_s} s.",
	})
	rest.Delete(on, "/{scope}", "deletePause", "Lift a pause", s.liftPause,
		rest.Route{Action: audit.PauseDelete, Scope: tenant.Admin,
			About: "The held jobs start within {=held_starts_s} s."})
	rest.GetPage(on, "", "listPauses", "List pauses", s.listPauses, rest.Route{
		About: "Ordered by scope. The pauses that the operator has set for all tenants are included.",
	})
}

// HeldStartsWithin is how soon the document promises that a job starts after its pause.
const HeldStartsWithin = 5 * time.Second

type pauseView struct {
	Scope       string       `json:"scope" doc:"Scope of the pause: all, or task:NAME"`
	Reason      string       `json:"reason,omitempty"`
	By          string       `json:"by,omitempty" doc:"Subject of the token that set the pause"`
	Since       rest.Instant `json:"since" doc:"Time at which the pause was set"`
	EffectiveAt rest.Instant `json:"effective_at" doc:"Time after which no job that the pause holds starts"`
	Until       rest.Instant `json:"until,omitzero"`
	Missed      string       `json:"missed,omitempty" doc:"Treatment of the schedules' times under the pause; absent: the catch-up policy of each schedule"`
}

func viewPause(p job.Pause) pauseView {
	return pauseView{p.Scope, p.Reason, p.By, rest.At(p.Since), rest.At(p.EffectiveAt),
		rest.At(p.Until), p.Missed}
}

// ByScope is the input of a route about one pause.
type ByScope struct {
	Scope string `path:"scope" doc:"Scope of the pause: all, or task:NAME" example:"task:http"`
}

// Prepare checks the scope.
func (in *ByScope) Prepare(context.Context, tenant.Identity) error {
	name, isTask := strings.CutPrefix(in.Scope, job.PauseTaskPrefix)
	if in.Scope == job.PauseAll || isTask && rest.IsName(name) {
		return nil
	}
	return rest.OneViolation("scope", rest.CodeInvalidValue, "all, or task:NAME", "this is not the scope of a pause")
}

type pauseAnswer = rest.StatusAnswer[pauseView]

func (s *Handler) putPause(ctx context.Context, who tenant.Identity, in *ByScope) (*pauseAnswer, error) {
	now := s.Now()
	p, err := spec.ReadPause(ctx, now)
	if err != nil {
		return nil, err
	}
	p.Scope, p.By = in.Scope, who.Subject
	p, created, err := s.Pauses.Put(ctx, who.Tenant, p, now)
	return rest.Created(created, viewPause(p)), err
}

func (s *Handler) liftPause(ctx context.Context, who tenant.Identity, in *ByScope) (*rest.NoContent, error) {
	return &rest.NoContent{}, rest.Absent(s.Pauses.Lift(ctx, who.Tenant, in.Scope), "pause")
}

// listPauses reads all pauses, because the store does, and answers one page of them.
func (s *Handler) listPauses(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, limit int,
) (found rest.Found[pauseView], err error) {
	pauses, err := s.Store.Pauses(ctx, who.Tenant)
	if err != nil {
		return found, err
	}
	slices.SortStableFunc(pauses, func(a, b job.Pause) int { return strings.Compare(a.Scope, b.Scope) })
	now := s.Now()
	for i, p := range pauses {
		at := pausePosition(pauses, i)
		switch {
		case p.Ended(now) || at <= after:
		case len(found.Items) == limit:
			found.Next = after
			return found, nil
		default:
			found.Items = append(found.Items, viewPause(p))
			after = at
		}
	}
	return found, nil
}

// pausePosition is the position of a pause in the list. The operator and the tenant may both have a pause of one scope.
func pausePosition(all job.Pauses, i int) string {
	nth := "#0"
	if i > 0 && all[i-1].Scope == all[i].Scope {
		nth = "#1"
	}
	return all[i].Scope + nth
}
