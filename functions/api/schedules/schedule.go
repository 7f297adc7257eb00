package schedules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/amend"
	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *Handler) scheduleRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagSchedules, Path: "/v1/schedules"}
	rest.Put(on, "/{name}", "putSchedule", "Create or replace a schedule", s.putSchedule, rest.Route{
		Action: audit.SchedulePut,
		Body:   scheduleRequest, Errors: []int{http.StatusTooManyRequests},
		About: fmt.Sprintf("Answers 201 if the schedule is new. Repeating the same body changes nothing. A replaced "+
			"schedule continues with its first time after now, and paused, if given, pauses or resumes it in the "+
			"same step: times due up to effective_at keep their former job, overlap and catch_up. The schedules of "+
			"a tenant may run %d times a minute in total, each counted at its busiest minute and at least once (a "+
			"deployment may set another number); beyond that the answer is 429.", contract.ScheduleQuota),
	})
	rest.Post(on, "/{name}/dry-run", "dryRunSchedule", "Preview the effect of putting a schedule", s.dryRunSchedule,
		rest.Route{
			Body: scheduleRequest, Errors: []int{http.StatusTooManyRequests},
			About: "Dry run. Returns the same errors as PUT and writes nothing. The answer lists the times of the " +
				"next {=dry_run_days} days that would be added, lost and moved.",
		})
	rest.Get(on, "/{name}", "getSchedule", "Get a schedule", s.getSchedule,
		rest.Route{About: "Answers the schedule with its next times and its last one."})
	rest.Patch(on, "/{name}", "patchSchedule", "Change a part of a schedule, or preview the change", s.patchSchedule,
		rest.Route{
			Action: audit.SchedulePatch,
			Body:   schedulePatchRequest, MergePatch: true, Errors: []int{http.StatusTooManyRequests},
			About: "The body is a merge patch (RFC 7396): objects merge at every depth, null removes a field or " +
				"restores its default, and any other value replaces. A calendar of another form replaces the " +
				"calendar, and another task brings its own settings. With dry_run=true nothing is written, and the " +
				"answer lists the times of the next {=dry_run_days} days that would be added, lost and moved.",
		})
	rest.Delete(on, "/{name}", "deleteSchedule", "Delete a schedule", s.deleteSchedule, rest.Route{
		Action: audit.ScheduleDelete,
		About: "Nothing of the schedule starts after the time in the header Punctual-Effective-At; running jobs, " +
			"named in Punctual-In-Flight, continue. The name is free for a new schedule, and the occurrences stay " +
			"readable for {=finished_days} days.",
	})
	rest.GetPage(on, "", "listSchedules", "List schedules", s.listSchedules,
		rest.Route{About: "Lists schedules by name, without payloads and last runs."})
	rest.Post(on, "/{name}/run-now", "runScheduleNow", "Run the job or the dag of a schedule once, now",
		s.runScheduleNow, rest.Route{
			Action: audit.ScheduleRunNow,
			Status: http.StatusAccepted, Body: runNowRequest, OptionalBody: true, Conflict: true,
			About: "Makes a job or a run in addition to the schedule's times. A pause of the schedule and max_runs " +
				"do not apply to it, and the overlap policy applies only on request: with overlap obey, and an " +
				"earlier run that has not ended, the answer is a job that is SKIPPED or waits for that run. " +
				"payload, payload_patch or params hold for this run alone, and are checked like those of a new job " +
				"or run. A run that has not begun is also answered as a job, with the same id. The occurrences list " +
				"it as manual.",
		})
	s.backfillRoutes(on)
	rest.Post(on, "/{name}/pause", "pauseSchedule", "Pause a schedule", s.pauseSchedule, rest.Route{
		Action: audit.SchedulePause,
		Status: http.StatusOK, Body: spec.PauseRequest, OptionalBody: true,
		About: "Nothing of the schedule starts after effective_at; running jobs, listed in in_flight, continue. " +
			"Which of the nominal times in the pause run is decided when the schedule is resumed or until has " +
			"passed; jobs that were due before the pause wait, and run then. A second pause replaces the first.",
	})
	rest.Post(on, "/{name}/resume", "resumeSchedule", "Resume a schedule", s.resumeSchedule, rest.Route{
		Action: audit.ScheduleResume,
		Status: http.StatusOK, Body: resumeRequest, OptionalBody: true,
		About: "Runs the nominal times in the pause that missed selects; default: the missed of the pause. Resuming " +
			"a schedule that is not paused changes nothing.",
	})
	rest.GetPage(on, "/{name}/occurrences", "listOccurrences", "List the occurrences of a schedule", s.listOccurrences,
		rest.Route{
			About: "Lists the outcome of each nominal time, from now backwards, newest first. With outcome=pending " +
				"the list goes forward instead, soonest first, from after, or else from the last {=pending_before} " +
				"jobs before now. Consecutive times with the same outcome and reason may share one item, with until " +
				"and count; if one of them has a job, the item of that job counts. A run on request is listed at the " +
				"time of the request, marked manual. Occurrences are kept for {=finished_days} days, also after the " +
				"schedule is deleted.",
		})
	rest.Post(on, "/preview", "previewCalendar", "Preview a calendar", s.previewDraft, rest.Route{
		Status: http.StatusOK, Scope: tenant.Read, Body: previewRequest, AlsoName: true,
		About: "Lists the times of a calendar and saves nothing. The exclusions are those of the tenant. All times " +
			"may lie in the past, although a schedule with a calendar that has ended is refused.",
	})
	rest.Get(on, "/{name}/preview", "previewSchedule", "Preview a schedule", s.previewSchedule, rest.Route{
		About: "Lists the times of the schedule's calendar, without regard to pauses, to overlap and to the number " +
			"of runs so far.",
	})
}

// One is the input of a request that changes a schedule, or one version of it.
type One struct {
	rest.Named
	rest.Match
	Key schedule.Key
}

// Prepare makes the key of the schedule and reads its version.
func (in *One) Prepare(ctx context.Context, who tenant.Identity) error {
	in.Key = schedule.Key{Tenant: who.Tenant, Name: in.Name}
	return in.Match.Prepare(ctx, who)
}

type scheduleAnswer struct {
	Status int
	ETag   string `header:"ETag" doc:"Version in quotes, for If-Match"`
	Body   scheduleView
}

// answerSchedule answers with a schedule, or with the error that there was.
func (s *Handler) answerSchedule(
	ctx context.Context, after schedule.Schedule, status int, err error,
) (*scheduleAnswer, error) {
	if err != nil {
		return nil, err
	}
	v, err := s.showSchedule(ctx, after)
	return &scheduleAnswer{status, spec.Etag(after.Epoch), v}, err
}

func (s *Handler) getSchedule(ctx context.Context, who tenant.Identity, in *rest.Named) (*scheduleAnswer, error) {
	found, err := s.schedule(ctx, schedule.Key{Tenant: who.Tenant, Name: in.Name})
	return s.answerSchedule(ctx, found, http.StatusOK, err)
}

type patchScheduleInput struct {
	One
	DryRun string `query:"dry_run" doc:"Whether to answer what the patch would change, and to write nothing; default: false"`
}

type patchScheduleAnswer struct {
	ETag string `header:"ETag" doc:"Version in quotes, for If-Match"`
	Body rest.Either[scheduleView, scheduleDiff]
}

type deletedAnswer struct {
	EffectiveAt string `header:"Punctual-Effective-At" doc:"Time after which nothing of the schedule starts"`
	InFlight    string `header:"Punctual-In-Flight" doc:"Identifiers of the jobs that are running, among the newest {=in_flight_read} of the schedule, separated by commas; absent if there are none"`
}

func (s *Handler) listSchedules(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, limit int,
) (page rest.Found[scheduleView], err error) {
	found, more, err := s.Store.Schedules(ctx, who.Tenant, after, limit)
	now := s.Now()
	for _, f := range found {
		if f.Err != nil { // the others are still listed
			s.Read.UnreadableSchedule(ctx, f)
			continue
		}
		page.Items = append(page.Items, viewSchedule(f.Schedule, now))
	}
	if more {
		page.Next = found[len(found)-1].Name
	}
	page.At = func(i int) string { return page.Items[i].Name }
	return page, err
}

func errNoSchedule() error { return rest.NoSuch("schedule") }

// asProblem turns an error about a schedule into a problem.
func asProblem(err error) error {
	var stale *amend.Stale
	var quota *amend.QuotaExceeded
	var gone *amend.DagGone
	var bad *calendar.Error
	var noRun *amend.NoRun
	switch {
	case errors.As(err, &stale):
		return rest.NewProblem(spec.CodeStaleVersion, "%s", stale.Error())
	case errors.As(err, &quota): // without Retry-After: waiting does not help
		return rest.NewProblem(rest.CodeRateLimited, "%s", quota.Error())
	case errors.As(err, &gone):
		return fault.Violations{{Pointer: "/dag/name", Code: spec.CodeUnknownDag, Detail: gone.Error()}}
	case errors.As(err, &noRun):
		return rest.NewProblem(spec.CodeWrongState, "%s", noRun.Error())
	case errors.As(err, &bad):
		return fault.Violations{{Pointer: bad.Pointer(), Code: bad.Code, Detail: bad.Detail,
			Allowed: bad.Allowed}}
	}
	return rest.Absent(err, "schedule")
}

// schedule reads a schedule. Absent and deleted schedules give the same error.
func (s *Handler) schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	if !rest.IsName(k.Name) {
		return schedule.Schedule{}, errNoSchedule()
	}
	found, err := s.Store.Schedule(ctx, k)
	if err == nil && found.Deleted() {
		err = errNoSchedule()
	}
	return found, rest.Absent(err, "schedule")
}

func (s *Handler) putSchedule(ctx context.Context, who tenant.Identity, in *One) (*scheduleAnswer, error) {
	ask, err := s.whole(ctx, who, in)
	if err != nil {
		return nil, err
	}
	after, err := s.Editor.Put(ctx, amend.Request{Key: in.Key, Epoch: in.Version, By: who.Subject, Ask: ask,
		Note: noteChange(ctx)})
	status := http.StatusOK
	if after.Created {
		status = http.StatusCreated
	}
	out, err := s.answerSchedule(ctx, after.Schedule, status, asProblem(err))
	if err == nil && after.Changed && !after.Created {
		out.Body.EffectiveAt = rest.At(after.EffectiveAt)
	}
	return out, err
}

// whole reads the body of a PUT.
func (s *Handler) whole(ctx context.Context, who tenant.Identity, in *One) (amend.Asked, error) {
	if err := rest.CheckName(in.Name, "a schedule"); err != nil {
		return nil, err
	}
	doc, err := scheduleBody(ctx)
	return func(_ *schedule.Schedule, now time.Time) (amend.Change, error) {
		return s.readSchedule(ctx, doc, true, who.Tenant, now)
	}, err
}

type dryRunAnswer struct{ Body scheduleDiff }

func (s *Handler) dryRunSchedule(ctx context.Context, who tenant.Identity, in *One) (*dryRunAnswer, error) {
	ask, err := s.whole(ctx, who, in)
	if err != nil {
		return nil, err
	}
	_, tried, err := s.Editor.Try(ctx, amend.Request{Key: in.Key, Epoch: in.Version, By: who.Subject, Ask: ask})
	return &dryRunAnswer{viewDiff(tried)}, asProblem(err)
}

func (s *Handler) patchSchedule(
	ctx context.Context, who tenant.Identity, in *patchScheduleInput,
) (*patchScheduleAnswer, error) {
	if in.DryRun != "" && in.DryRun != "true" && in.DryRun != "false" {
		return nil, rest.OneViolation("dry_run", rest.CodeInvalidValue, "true, false", "this is neither true nor false")
	}
	doc, err := scheduleBody(ctx)
	if err != nil {
		return nil, err
	}
	if !rest.IsName(in.Name) {
		return nil, errNoSchedule()
	}
	ask := func(old *schedule.Schedule, now time.Time) (amend.Change, error) {
		merged, err := s.mergedSchedule(ctx, *old, doc)
		if err != nil {
			return amend.Change{}, err
		}
		return s.readSchedule(ctx, merged, false, who.Tenant, now)
	}
	q := amend.Request{Key: in.Key, Epoch: in.Version, Patch: true, By: who.Subject, Ask: ask,
		Note: noteChange(ctx)}
	out := &patchScheduleAnswer{}
	if in.DryRun == "true" {
		found, tried, err := s.Editor.Try(ctx, q)
		out.ETag, out.Body.Other = spec.Etag(found.Epoch), new(viewDiff(tried))
		return out, asProblem(err)
	}
	after, err := s.Editor.Put(ctx, q)
	if err != nil {
		return nil, asProblem(err)
	}
	v, err := s.showSchedule(ctx, after.Schedule)
	if after.Changed {
		v.EffectiveAt = rest.At(after.UpdatedAt)
	}
	out.ETag, out.Body.One = spec.Etag(after.Epoch), &v
	return out, err
}

func (s *Handler) deleteSchedule(ctx context.Context, _ tenant.Identity, in *One) (*deletedAnswer, error) {
	if !rest.IsName(in.Name) {
		return nil, errNoSchedule()
	}
	if err := s.Editor.Delete(ctx, in.Key, in.Version); err != nil {
		return nil, asProblem(err)
	}
	// The delete happened just now; a worker may still use what it read before.
	out := &deletedAnswer{EffectiveAt: s.Now().Add(contract.EffectiveAfter).Format(text.InstantLayout)}
	running, err := s.Read.InFlight(ctx, in.Key)
	if err != nil { // the schedule is deleted anyway, and a second DELETE would be 404
		s.Log.WarnContext(ctx, "the running jobs of a deleted schedule could not be read", telemetry.Tenant,
			in.Key.Tenant, "schedule", in.Key.Name, telemetry.Err, err)
	}
	out.InFlight = strings.Join(rest.WordsOf(running), ", ")
	return out, nil
}
