package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

func (s *stage) pauseRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPut, Path: "/v1/pauses/{scope}", ID: "putPause", Tag: tagPauses, Scope: mayManage,
		Body: pauseRequest, OptionalBody: true,
		Summary: "Pause everything, or one task",
		About: "201 when it is new. Nothing that it holds starts after effective_at. What runs already goes on. " +
			"When it is lifted, or until has passed, what it held starts within {=held_starts_s} s.",
	}, s.putPause)
	wire.Register(s.router, wire.Route{
		Method: http.MethodDelete, Path: "/v1/pauses/{scope}", ID: "deletePause", Tag: tagPauses, Scope: mayManage,
		Summary: "Lift a pause", About: "What it held starts within {=held_starts_s} s.",
		Errors: []int{http.StatusNotFound},
	}, s.liftPause)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/pauses", ID: "listPauses", Tag: tagPauses, Scope: mayRead,
		Summary: "List pauses", About: "Those that the operator has set for everybody are among them.",
	}, s.listPauses)
}

// heldStartsWithin is how soon the document promises that a job starts after its pause.
const heldStartsWithin = 5 * time.Second

// Fields of a pause.
var (
	pauseReason = spec.Reason.About("Reason for the pause.")
	pauseUntil  = spec.Instant("until", "Time at which the pause ends by itself; default: none.")
	pauseMissed = spec.Missed.About("Which of the schedules' nominal times in the pause run after it; default: the " +
		"catch-up policy of each schedule. Jobs without a schedule always run.")

	pauseRequest = field.NewObject("PauseRequest", "Pause of everything, of one task or of one schedule.", pauseReason,
		pauseUntil, pauseMissed)
)

type pauseView struct {
	Scope       string       `json:"scope" doc:"all, or task:NAME"`
	Reason      string       `json:"reason,omitempty"`
	By          string       `json:"by,omitempty"`
	Since       wire.Instant `json:"since"`
	EffectiveAt wire.Instant `json:"effective_at"`
	Until       wire.Instant `json:"until,omitzero"`
	Missed      string       `json:"missed,omitempty" doc:"Absent: as each schedule's catch_up says"`
}

func viewPause(p job.Pause) pauseView {
	return pauseView{p.Scope, p.Reason, p.By, wire.Instant{Time: p.Since}, wire.Instant{Time: p.EffectiveAt},
		wire.Instant{Time: p.Until}, p.Missed}
}

type pauseInput struct {
	Scope string `path:"scope" doc:"all, or task:NAME" example:"task:http"`
}

func readScope(scope string) (string, error) {
	name, isTask := strings.CutPrefix(scope, job.PauseTaskPrefix)
	if scope == job.PauseAll || isTask && wire.IsName(name) {
		return scope, nil
	}
	return "", wire.OneMistake("scope", wire.CodeInvalidValue, "all, or task:NAME", "this is not what a pause can hold")
}

func (s *stage) putPause(ctx context.Context, who tenant.Identity, in *pauseInput) (*statusAnswer[pauseView], error) {
	scope, err := readScope(in.Scope)
	if err != nil {
		return nil, err
	}
	now := s.now()
	p, err := readPause(ctx, now)
	if err != nil {
		return nil, err
	}
	p.Scope, p.By, p.Since, p.EffectiveAt = scope, who.Subject, now, now.Add(contract.EffectiveAfter)
	old, err := s.Store.Pause(ctx, who.Tenant, scope)
	status := http.StatusOK
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && passed(old, now):
		status = http.StatusCreated
	case old.Unreadable: // this PUT repairs it
	case err != nil:
		return nil, err
	default: // it holds jobs already, since its own time
		p.Since, p.EffectiveAt = old.Since, old.EffectiveAt
	}
	err = s.Store.PutPause(ctx, who.Tenant, p)
	s.pauses.forget(who.Tenant)
	if err != nil {
		return nil, err
	}
	if p.Since.Equal(now) {
		p.EffectiveAt = s.effectiveAt(p.EffectiveAt)
	}
	if !p.Until.IsZero() {
		s.wakeParked(ctx, who.Tenant, p.Until)
	}
	return &statusAnswer[pauseView]{status, viewPause(p)}, nil
}

// effectiveAt returns from when a pause that was just written holds: from the time stored with it, unless the write
// came so long after that time was chosen that a worker may still act on what it read before the write.
func (s *stage) effectiveAt(stored time.Time) time.Time {
	if read := s.now().Add(decide.FactAge); read.After(stored) {
		return read
	}
	return stored
}

// passed reports whether a pause has ended by its until.
func passed(p job.Pause, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

func readPause(ctx context.Context, now time.Time) (job.Pause, error) {
	var p job.Pause
	doc, err := wire.ReadBody(ctx, contract.MaxBody)
	if err != nil || doc == nil {
		return p, err
	}
	r := newReader(doc)
	f := pauseRequest.Body(r)
	if pauseReason.Into(r, f, &p.Reason) {
		r.NoSecrets(f[pauseReason.Name()], nil)
	}
	if v, ok := f[pauseUntil.Name()]; ok {
		if t, ok := r.Ahead(v, now); ok {
			p.Until = t
			if !t.After(now) {
				r.Mistake(v.Pointer, wire.CodeInThePast, "a time ahead", "a pause cannot end before it begins")
			}
		}
	}
	pauseMissed.Into(r, f, &p.Missed)
	return p, r.Wrong.Err()
}

func (s *stage) liftPause(ctx context.Context, who tenant.Identity, in *pauseInput) (*empty, error) {
	scope, err := readScope(in.Scope)
	if err != nil {
		return nil, err
	}
	err = s.Store.DeletePause(ctx, who.Tenant, scope, s.now())
	s.pauses.forget(who.Tenant)
	absent := fault.KindOf(err) == fault.NotFound
	if err != nil && !absent {
		return nil, err
	}
	s.wakeParked(ctx, who.Tenant, s.now()) // also if it is absent: an earlier request may have failed after its delete
	if absent {
		return nil, wire.NewProblem(wire.CodeNotFound, "there is no such pause")
	}
	return &empty{}, nil
}

// wakeParked lets dispatch look at all parked jobs of a tenant at a given time: by a message, or by a timer if the time
// is beyond a message's delay. A failure does not fail the request, because the sweeper finds the jobs later.
func (s *stage) wakeParked(ctx context.Context, t tenant.ID, at time.Time) {
	s.wakePlaces(ctx, t, at, horizon.Parkings(string(t)))
}

// wakePlaces is wakeParked for any parking places.
func (s *stage) wakePlaces(ctx context.Context, t tenant.ID, at time.Time, places []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	now := s.now()
	near := horizon.LaneOf(now, at) == horizon.Now || horizon.LaneOf(now, at) == horizon.Direct
	var out []message.Outgoing
	var failed error
	for _, place := range places {
		body := message.Encode(message.Dispatch{V: message.V, Slice: place, At: at})
		if near {
			out = append(out, message.Outgoing{Body: body, Delay: horizon.Delay(now, at)})
			continue
		}
		err := s.Timers.Arm(ctx, message.Timer{
			Name: parkingTimer(place, at), At: at.Add(-contract.TimerLead).Truncate(time.Second), Body: body,
			MaxAge: parkingMaxAge,
		})
		if err != nil {
			failed = err
		}
	}
	if len(out) > 0 {
		failed = s.Queues.Send(ctx, contract.DispatchQueue, out...)
	}
	if failed != nil {
		s.Log.WarnContext(ctx, "parked jobs wait for the sweeper: what wakes them was not sent", telemetry.Tenant, t,
			telemetry.Err, failed)
	}
}

// parkingMaxAge is how late such a timer may still fire. After that the sweeper has done its work.
const parkingMaxAge = time.Hour

// parkingTimer is the name of the timer of a parking place; the same place and time give the same name.
func parkingTimer(place string, at time.Time) string {
	sum := sha256.Sum256([]byte(place + " " + at.UTC().Format(time.RFC3339Nano)))
	return "p-" + hex.EncodeToString(sum[:16])
}

// listPauses reads all pauses, because the store does, and answers one page of them.
func (s *stage) listPauses(ctx context.Context, who tenant.Identity, in *pageInput) (*page[pauseView], error) {
	l := wire.NewList(who.Tenant, "pauses")
	limit, after, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	pauses, err := s.Store.Pauses(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pauses, func(a, b job.Pause) int { return strings.Compare(a.Scope, b.Scope) })
	now := s.now()
	out := &page[pauseView]{Body: wire.Page[pauseView]{Items: []pauseView{}}}
	for i, p := range pauses {
		at := pausePosition(pauses, i)
		switch {
		case passed(p, now) || at <= after:
		case len(out.Body.Items) == limit:
			out.Body.NextCursor = l.Cursor(after)
			return out, nil
		default:
			out.Body.Items = append(out.Body.Items, viewPause(p))
			after = at
		}
	}
	return out, nil
}

// pausePosition is the position of a pause in the list. The operator and the tenant may both have a pause of one scope.
func pausePosition(all job.Pauses, i int) string {
	nth := "#0"
	if i > 0 && all[i-1].Scope == all[i].Scope {
		nth = "#1"
	}
	return all[i].Scope + nth
}

// pausesSeen caches the pauses of each tenant for a moment. The view of an accepted job shows whether a pause holds it,
// and reading the pauses for every job would put all reads on one partition.
type pausesSeen struct {
	mu   sync.Mutex
	seen map[tenant.ID]seenPauses
}

type seenPauses struct {
	pauses job.Pauses
	at     time.Time
}

// pausesFor is how long pauses are cached.
const pausesFor = time.Second

// maxPausesSeen is how many tenants are cached; beyond that all are forgotten.
const maxPausesSeen = 1000

// forget drops the cached pauses of a tenant.
func (p *pausesSeen) forget(t tenant.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, t)
}

// held reports whether a pause seems to hold a job that is about to be accepted. It is only for the view.
func (s *stage) held(ctx context.Context, r job.Row, now time.Time) bool {
	if !startsSoon(r, now) {
		return false
	}
	p := &s.pauses
	p.mu.Lock()
	known, ok := p.seen[r.Tenant]
	p.mu.Unlock()
	if !ok || now.Sub(known.at) >= pausesFor {
		pauses, err := s.Store.Pauses(ctx, r.Tenant)
		if err != nil {
			return false
		}
		known = seenPauses{pauses, now}
		p.mu.Lock()
		if p.seen == nil || len(p.seen) >= maxPausesSeen {
			p.seen = map[tenant.ID]seenPauses{}
		}
		p.seen[r.Tenant] = known
		p.mu.Unlock()
	}
	_, held := known.pauses.Hold(r.Task, now)
	return held
}
