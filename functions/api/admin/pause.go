package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

func (s *Handler) pauseRoutes() {
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPut, Path: "/v1/pauses/{scope}", ID: "putPause", Tag: spec.TagPauses, Scope: spec.MayManage,
		Body: spec.PauseRequest, OptionalBody: true,
		Summary: "Pause all jobs, or one task",
		About: "201 for a new pause. No job that it holds starts after effective_at; running attempts continue. " +
			"After the pause is lifted, or has ended by until, the held jobs start within {=held_starts_s} s.",
	}, s.putPause)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodDelete, Path: "/v1/pauses/{scope}", ID: "deletePause", Tag: spec.TagPauses,
		Scope:   spec.MayManage,
		Summary: "Lift a pause", About: "The held jobs start within {=held_starts_s} s.",
		Errors: []int{http.StatusNotFound},
	}, s.liftPause)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodGet, Path: "/v1/pauses", ID: "listPauses", Tag: spec.TagPauses, Scope: spec.MayRead,
		Summary: "List pauses",
		About:   "Ordered by scope. The pauses that the operator has set for all tenants are included.",
	}, s.listPauses)
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
	return pauseView{p.Scope, p.Reason, p.By, rest.Instant{Time: p.Since}, rest.Instant{Time: p.EffectiveAt},
		rest.Instant{Time: p.Until}, p.Missed}
}

type pauseInput struct {
	Scope string `path:"scope" doc:"Scope of the pause: all, or task:NAME" example:"task:http"`
}

func readScope(scope string) (string, error) {
	name, isTask := strings.CutPrefix(scope, job.PauseTaskPrefix)
	if scope == job.PauseAll || isTask && rest.IsName(name) {
		return scope, nil
	}
	return "", rest.OneMistake("scope", rest.CodeInvalidValue, "all, or task:NAME", "this is not the scope of a pause")
}

func (s *Handler) putPause(
	ctx context.Context, who tenant.Identity, in *pauseInput,
) (*rest.StatusAnswer[pauseView], error) {
	scope, err := readScope(in.Scope)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	p, err := spec.ReadPause(ctx, now)
	if err != nil {
		return nil, err
	}
	p.Scope, p.By, p.Since, p.EffectiveAt = scope, who.Subject, now, now.Add(contract.EffectiveAfter)
	old, err := s.Store.Pause(ctx, who.Tenant, scope)
	status := http.StatusOK
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && spec.Passed(old, now):
		status = http.StatusCreated
	case old.Unreadable: // this PUT repairs it
	case err != nil:
		return nil, err
	default: // it holds jobs already, since its own time
		p.Since, p.EffectiveAt = old.Since, old.EffectiveAt
	}
	err = s.Store.PutPause(ctx, who.Tenant, p)
	s.Pauses.Forget(who.Tenant)
	if err != nil {
		return nil, err
	}
	if p.Since.Equal(now) {
		p.EffectiveAt = s.EffectiveAt(p.EffectiveAt)
	}
	if !p.Until.IsZero() {
		s.WakeParked(ctx, who.Tenant, p.Until)
	}
	return &rest.StatusAnswer[pauseView]{Status: status, Body: viewPause(p)}, nil
}

func (s *Handler) liftPause(ctx context.Context, who tenant.Identity, in *pauseInput) (*rest.NoContent, error) {
	scope, err := readScope(in.Scope)
	if err != nil {
		return nil, err
	}
	err = s.Store.DeletePause(ctx, who.Tenant, scope, s.Now())
	s.Pauses.Forget(who.Tenant)
	absent := fault.KindOf(err) == fault.NotFound
	if err != nil && !absent {
		return nil, err
	}
	s.WakeParked(ctx, who.Tenant, s.Now()) // also if it is absent: an earlier request may have failed after its delete
	if absent {
		return nil, rest.NewProblem(rest.CodeNotFound, "there is no such pause")
	}
	return &rest.NoContent{}, nil
}

// listPauses reads all pauses, because the store does, and answers one page of them.
func (s *Handler) listPauses(
	ctx context.Context, who tenant.Identity, in *rest.PageInput,
) (*rest.Listing[pauseView], error) {
	l := rest.NewList(who.Tenant, "pauses")
	return rest.ReadPage(l, in.Paging, func(after string, limit int) (found rest.Found[pauseView], err error) {
		pauses, err := s.Store.Pauses(ctx, who.Tenant)
		if err != nil {
			return found, err
		}
		slices.SortStableFunc(pauses, func(a, b job.Pause) int { return strings.Compare(a.Scope, b.Scope) })
		now := s.Now()
		for i, p := range pauses {
			at := pausePosition(pauses, i)
			switch {
			case spec.Passed(p, now) || at <= after:
			case len(found.Items) == limit:
				found.Next = after
				return found, nil
			default:
				found.Items = append(found.Items, viewPause(p))
				after = at
			}
		}
		return found, nil
	})
}

// pausePosition is the position of a pause in the list. The operator and the tenant may both have a pause of one scope.
func pausePosition(all job.Pauses, i int) string {
	nth := "#0"
	if i > 0 && all[i-1].Scope == all[i].Scope {
		nth = "#1"
	}
	return all[i].Scope + nth
}
