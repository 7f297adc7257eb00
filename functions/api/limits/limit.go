package limits

import (
	"context"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/limit"
	"punctual/shared/message"
	"punctual/shared/span"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Handler serves limits of work.
type Handler struct {
	*spec.Core
}

// New registers the routes of limits.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	h.routes()
	return h
}

func (s *Handler) routes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagLimits, Path: "/v1/limits"}
	rest.Put(on, "/{name}", "putLimit", "Create or replace a limit", s.putLimit, rest.Route{
		Action: audit.LimitPut,
		Scope:  tenant.Admin, Body: limitRequest,
		About: "Answers 201 if it is new. A change counts for the next start of a job. Safe to repeat.",
	})
	rest.Get(on, "/{name}", "getLimit", "Get a limit", s.getLimit)
	rest.Delete(on, "/{name}", "deleteLimit", "Delete a limit", s.deleteLimit, rest.Route{
		Action: audit.LimitDelete,
		Scope:  tenant.Admin, Conflict: true,
		About: "A limit that a task, a schedule or a dag uses cannot be deleted. Jobs that name a deleted limit " +
			"start without it.",
	})
	rest.GetPage(on, "", "listLimits", "List limits", s.listLimits, rest.Route{About: "Ordered by name."})
	rest.GetPage(on, "/{name}/keys", "listLimitKeys", "List the keys of a limit", s.listKeys, rest.Route{
		Cursor: "limit keys",
		About: "Lists the keys that jobs have used in the last two days, busiest first: by the share of the limit " +
			"that is used, then by the number of jobs that run and wait. Of a limit with more than " +
			"{=limit_keys_read} such keys, some are read; the {=limit_keys_shown} that are used most are listed.",
	})
}

// Fields of a limit.
var (
	maxRunning = field.Whole("max_running", "Maximum number of jobs of a key that run at a time; default: no maximum",
		1, contract.MaxRunning)
	rateField = field.Value("rate", "Maximum number of starts of a key in any window of time; default: no maximum",
		rateRequest.Schema)
	whenFull = field.Word[limit.Policy]("when_full", "Treatment of a job that is due while its key is full: it waits "+
		"(default), it ends SKIPPED with limit_full, or it waits while the job that runs longest is asked to stop. "+
		"cancel_oldest needs max_running.", rest.CodeInvalidValue, limit.Policies)

	rateCount = field.Whole("count", "Maximum number of starts in a window; at most {=limit_rate} for each "+
		"second of it", 1, contract.MaxRateCount).Required()
	ratePer = field.Duration("per", "Length of the window", contract.MinRatePer, contract.MaxRatePer).Required()

	rateRequest  = field.NewObject("RateRequest", "Maximum number of starts in any window of time", rateCount, ratePer)
	limitRequest = field.NewObject("LimitRequest", "Bounds for the jobs of each key: at least one of max_running and "+
		"rate.", maxRunning, rateField, whenFull)
)

type rateView struct {
	Count int    `json:"count" doc:"Maximum number of starts in a window"`
	Per   string `json:"per" doc:"Length of the window"`
}

type limitView struct {
	Name       string       `json:"name" doc:"Name of the limit"`
	MaxRunning int          `json:"max_running,omitempty" doc:"Maximum number of jobs of a key that run at a time; absent if there is none"`
	Rate       *rateView    `json:"rate,omitempty" doc:"Maximum number of starts of a key in any window of time; absent if there is none"`
	WhenFull   limit.Policy `json:"when_full" enum:"wait,skip,cancel_oldest" doc:"Treatment of a job that is due while its key is full"`
	Version    int64        `json:"version" doc:"Version, which grows with every change; in quotes it is the ETag"`
	CreatedAt  rest.Instant `json:"created_at" doc:"Time at which the limit was created"`
	UpdatedAt  rest.Instant `json:"updated_at" doc:"Time of the newest change"`
}

func viewLimit(l limit.Limit) limitView {
	v := limitView{Name: l.Name, MaxRunning: l.MaxRunning, WhenFull: l.WhenFull, Version: l.Version,
		CreatedAt: rest.At(l.CreatedAt), UpdatedAt: rest.At(l.UpdatedAt)}
	if l.Rate != (limit.Rate{}) {
		v.Rate = &rateView{l.Rate.Count, span.Format(l.Rate.Per)}
	}
	return v
}

// shownLimit is the view of a limit for the audit; nil for none.
func shownLimit(l *limit.Limit) any {
	if l == nil {
		return nil
	}
	return viewLimit(*l)
}

type limitAnswer struct {
	Status int
	ETag   string `header:"ETag" doc:"Version in quotes, for If-Match"`
	Body   limitView
}

func answer(l limit.Limit, status int) *limitAnswer {
	return &limitAnswer{status, spec.Etag(l.Version), viewLimit(l)}
}

// one is the input of a request that changes a limit, or one version of it.
type one struct {
	rest.Named
	rest.Match
}

// fits returns a problem if a limit has another version than the request wants; nil is none.
func (in *one) fits(l *limit.Limit) error {
	has := int64(0)
	if l != nil {
		has = l.Version
	}
	return spec.FitsVersion("limit", in.Version, has)
}

func (s *Handler) putLimit(ctx context.Context, who tenant.Identity, in *one) (*limitAnswer, error) {
	if err := rest.CheckName(in.Name, "a limit"); err != nil {
		return nil, err
	}
	wanted, err := readLimit(ctx)
	if err != nil {
		return nil, err
	}
	status, before := http.StatusOK, int64(0)
	after, err := s.Store.UpdateLimit(ctx, who.Tenant, in.Name, s.Now(), func(old *limit.Limit) (limit.Limit, error) {
		if status, before = http.StatusCreated, 0; old != nil {
			status, before = http.StatusOK, old.Version
		}
		audit.From(ctx).Changed(shownLimit(old), viewLimit(wanted))
		return wanted, in.fits(old)
	})
	if err != nil {
		return nil, err
	}
	if before != 0 && after.Version != before { // for a new limit, or the same one, no other job may start
		s.wakeWaiting(ctx, who.Tenant, in.Name)
	}
	return answer(after, status), nil
}

func readLimit(ctx context.Context) (limit.Limit, error) {
	l := limit.Limit{WhenFull: limit.Wait}
	r, f, err := spec.ReadBody(ctx, limitRequest, "a limit")
	if err != nil {
		return l, err
	}
	bounded := maxRunning.Into(r, f, &l.MaxRunning)
	whenFull.Into(r, f, &l.WhenFull)
	v, rated := f[rateField.Name()]
	if rated {
		l.Rate = readRate(r, v)
	}
	switch {
	case f == nil:
	case !bounded && !rated:
		r.Violation("/max_running", rest.CodeMissingField, "max_running, rate or both",
			"a limit needs max_running or rate")
	case !bounded && l.WhenFull == limit.CancelOldest:
		r.Violation(f[whenFull.Name()].Pointer, rest.CodeConflictingFields,
			"wait, skip, or cancel_oldest with max_running",
			"cancel_oldest needs max_running: a job that is cancelled makes no room in a rate")
	}
	return l, r.Wrong.Err()
}

func readRate(r *rest.Reader, v rest.Value) (rate limit.Rate) {
	before := len(r.Wrong)
	f := rateRequest.Read(r, v)
	if f == nil {
		return rate
	}
	for _, name := range []string{rateCount.Name(), ratePer.Name()} {
		if _, ok := f[name]; !ok {
			r.Missing(v.Pointer, name)
		}
	}
	rateCount.Into(r, f, &rate.Count)
	ratePer.Into(r, f, &rate.Per)
	most := int(int64(contract.MaxRatePerSecond) * rate.Per.Milliseconds() / time.Second.Milliseconds())
	if len(r.Wrong) == before && rate.Count > most {
		r.Violation(f[rateCount.Name()].Pointer, rest.CodeOutOfRange,
			rest.Between("1", text.PlainNumber(float64(most))), "a rate is at most %d starts a second, so %d in %s",
			contract.MaxRatePerSecond, most, span.Format(rate.Per))
	}
	return rate
}

// find reads a limit that is not deleted.
func (s *Handler) find(ctx context.Context, t tenant.ID, name string) (limit.Limit, error) {
	if err := rest.CheckName(name, "a limit"); err != nil {
		return limit.Limit{}, err
	}
	l, err := s.Store.Limit(ctx, t, name)
	if err == nil && l.Deleted {
		err = fault.New(fault.NotFound, nil, "reading limit %q", name)
	}
	return l, rest.Absent(err, "limit")
}

func (s *Handler) getLimit(ctx context.Context, who tenant.Identity, in *rest.Named) (*limitAnswer, error) {
	l, err := s.find(ctx, who.Tenant, in.Name)
	return answer(l, http.StatusOK), err
}

func (s *Handler) deleteLimit(ctx context.Context, who tenant.Identity, in *one) (*rest.NoContent, error) {
	if _, err := s.find(ctx, who.Tenant, in.Name); err != nil {
		return nil, err
	}
	users, err := s.users(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	if len(users) > 0 {
		return nil, rest.NewProblem(spec.CodeInUse, "the limit is used by %s", text.SomeNames(users))
	}
	err = s.Store.DeleteLimit(ctx, who.Tenant, in.Name, s.Now(), func(l limit.Limit) error { return in.fits(&l) })
	if err == nil {
		s.wakeWaiting(ctx, who.Tenant, in.Name)
	}
	return &rest.NoContent{}, rest.Absent(err, "limit")
}

// wakeWaiting has the jobs decided about that wait for a permit of a limit that has changed. What is not asked for here
// the sweeper's next pass does.
func (s *Handler) wakeWaiting(ctx context.Context, t tenant.ID, name string) {
	keys, _, err := s.Store.LimitKeys(ctx, t, name, KeysRead)
	if err != nil {
		s.Log.WarnContext(ctx, "jobs that wait for a permit wait for the sweeper: the keys of a limit were not read",
			telemetry.Tenant, t, telemetry.Err, err.Error())
	}
	asks := make([]message.Dispatch, len(keys))
	for n, k := range keys {
		asks[n] = message.Ask(message.Verb{
			Limit: &message.LimitKey{Tenant: string(t), Limit: k.Name, Key: k.Key},
		})
	}
	s.Wake.Later(ctx, t, s.Now(), asks...)
}

func (s *Handler) listLimits(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, most int,
) (rest.Found[limitView], error) {
	found, more, err := s.Store.Limits(ctx, who.Tenant, after, most)
	return rest.FoundRows(found, more, viewLimit, func(l limit.Limit) string { return l.Name }), err
}
