package schedules

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/recur"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *Handler) scheduleRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagSchedules, Path: "/v1/schedules"}
	rest.Put(on, "/{name}", "putSchedule", "Create or replace a schedule", s.putSchedule, rest.Route{
		Body: scheduleRequest, Errors: []int{http.StatusTooManyRequests},
		About: fmt.Sprintf("Answers 201 if the schedule is new. Repeating the same body changes nothing. A replaced "+
			"schedule continues with its first time after now, and stays paused if it is: times due up to "+
			"effective_at keep their former job, overlap and catch_up. The schedules of a tenant may run %d times a "+
			"minute in total, each counted at its busiest minute and at least once (a deployment may set another "+
			"number); beyond that the answer is 429.", contract.ScheduleQuota),
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
			Body: schedulePatchRequest, MergePatch: true, Errors: []int{http.StatusTooManyRequests},
			About: "The body is a merge patch (RFC 7396): objects merge at every depth, null removes a field or " +
				"restores its default, and any other value replaces. A calendar of another form replaces the " +
				"calendar, and another task brings its own settings. With dry_run=true nothing is written, and the " +
				"answer lists the times of the next {=dry_run_days} days that would be added, lost and moved.",
		})
	rest.Delete(on, "/{name}", "deleteSchedule", "Delete a schedule", s.deleteSchedule, rest.Route{
		About: "Nothing of the schedule starts after the time in the header Punctual-Effective-At; running jobs, " +
			"named in Punctual-In-Flight, continue. The name is free for a new schedule, and the occurrences stay " +
			"readable for {=finished_days} days.",
	})
	rest.GetPage(on, "", "listSchedules", "List schedules", s.listSchedules,
		rest.Route{About: "Lists schedules by name, without payloads and last runs."})
	rest.Post(on, "/{name}/run-now", "runScheduleNow", "Run the job or the dag of a schedule once, now",
		s.runScheduleNow, rest.Route{
			Status: http.StatusAccepted, Body: runNowRequest, OptionalBody: true, Conflict: true,
			About: "Makes a job or a run in addition to the schedule's times. A pause of the schedule and max_runs " +
				"do not apply to it, and the overlap policy applies only on request: with overlap obey, and an " +
				"earlier run that has not ended, the answer is a job that is SKIPPED or waits for that run. A run " +
				"that has not begun is also answered as a job, with the same id. The occurrences list it as manual.",
		})
	rest.Post(on, "/{name}/pause", "pauseSchedule", "Pause a schedule", s.pauseSchedule, rest.Route{
		Status: http.StatusOK, Body: spec.PauseRequest, OptionalBody: true,
		About: "Nothing of the schedule starts after effective_at; running jobs, listed in in_flight, continue. " +
			"Which of the nominal times in the pause run is decided when the schedule is resumed or until has " +
			"passed; jobs that were due before the pause wait, and run then. A second pause replaces the first.",
	})
	rest.Post(on, "/{name}/resume", "resumeSchedule", "Resume a schedule", s.resumeSchedule, rest.Route{
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

func errNoSchedule() error { return rest.NoSuch("schedule") }

// checkVersion returns a problem unless the schedule exists and has that epoch; 0 is any.
func checkVersion(found *schedule.Schedule, epoch int64) error {
	switch {
	case found == nil || found.Deleted():
		return errNoSchedule()
	case epoch != 0 && found.Epoch != epoch:
		return rest.NewProblem(spec.CodeStaleVersion, "the schedule has version %d, not %d", found.Epoch, epoch)
	}
	return nil
}

// schedule reads a schedule. Absent and deleted schedules give the same error.
func (s *Handler) schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	if !rest.IsName(k.Name) {
		return schedule.Schedule{}, errNoSchedule()
	}
	found, err := s.Store.Schedule(ctx, k)
	if err != nil {
		return found, rest.Absent(err, "schedule")
	}
	return found, checkVersion(&found, 0)
}

// changeSchedule reads a schedule, calls decide, and writes what that returns. It returns the schedule after the
// change, and whether anything was written.
func (s *Handler) changeSchedule(
	ctx context.Context, k schedule.Key, epoch int64, decide func(schedule.Schedule, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	if !rest.IsName(k.Name) {
		return after, false, errNoSchedule()
	}
	return s.updateSchedule(ctx, k, func(old *schedule.Schedule, now time.Time) ([]item.Write, error) {
		if err := checkVersion(old, epoch); err != nil {
			return nil, err
		}
		return decide(*old, now)
	})
}

// updateSchedule is changeSchedule for a schedule that may be absent (decide gets nil) or deleted. It deletes a payload
// that the write has replaced.
func (s *Handler) updateSchedule(
	ctx context.Context, k schedule.Key, decide func(*schedule.Schedule, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	var old *schedule.Schedule
	after, err = s.Store.UpdateSchedule(ctx, k, func(found *schedule.Schedule) ([]item.Write, error) {
		writes, err := decide(found, s.Now())
		old, changed = found, len(writes) > 0
		return writes, err
	})
	if err != nil {
		return after, false, err
	}
	if changed && old != nil && !old.Deleted() {
		s.forgetReplaced(ctx, *old, after)
	}
	return after, changed, nil
}

func (s *Handler) putSchedule(ctx context.Context, who tenant.Identity, in *One) (*scheduleAnswer, error) {
	status := http.StatusOK
	after, changed, err := s.putOrTry(ctx, who, in,
		func(old *schedule.Schedule, c scheduleChange, now time.Time) ([]item.Write, error) {
			status = http.StatusOK
			if old == nil || old.Deleted() {
				status = http.StatusCreated
			}
			return s.changeWrites(ctx, who, in.Key, old, c, now)
		})
	if changed {
		s.promote(ctx, after.Key)
	}
	out, err := s.answerSchedule(ctx, after, status, err)
	if err == nil && changed && status == http.StatusOK {
		out.Body.EffectiveAt = rest.At(after.UpdatedAt)
	}
	return out, err
}

// promoteFirst makes the jobs of a schedule's times that are due by now, so that they are made before an edit or a
// pause takes effect. Usually they exist already.
func (s *Handler) promoteFirst(ctx context.Context, k schedule.Key) error {
	found, err := s.Store.Schedule(ctx, k)
	now := s.Now()
	if err != nil || found.Deleted() || found.Next.IsZero() || found.Next.After(now) {
		return nil // the change itself reports what is wrong
	}
	if found.Paused != nil && !found.Paused.Over(now) {
		return nil // changeWrites decides about its times, if something changes
	}
	within, cancel := context.WithTimeout(ctx, promoteTimeout)
	defer cancel()
	if _, err = s.Engine.Recur.Promote(within, k); fault.Retryable(err) {
		return err
	}
	return nil // an unreadable calendar has no times
}

type dryRunAnswer struct{ Body scheduleDiff }

func (s *Handler) dryRunSchedule(ctx context.Context, who tenant.Identity, in *One) (*dryRunAnswer, error) {
	out := &dryRunAnswer{}
	_, _, err := s.putOrTry(ctx, who, in,
		func(old *schedule.Schedule, c scheduleChange, now time.Time) (_ []item.Write, err error) {
			out.Body, err = s.dryRun(ctx, who, in.Key, old, c, now)
			return nil, err
		})
	return out, err
}

// putOrTry reads a whole schedule, and calls decide with it and with what is there: nil for nothing, or what is left of
// a deleted one.
func (s *Handler) putOrTry(
	ctx context.Context, who tenant.Identity, in *One,
	decide func(*schedule.Schedule, scheduleChange, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	if err := rest.CheckName(in.Name, "a schedule"); err != nil {
		return after, false, err
	}
	doc, err := scheduleBody(ctx)
	if err != nil {
		return after, false, err
	}
	if err := s.promoteFirst(ctx, in.Key); err != nil {
		return after, false, err
	}
	return s.updateSchedule(ctx, in.Key, func(old *schedule.Schedule, now time.Time) ([]item.Write, error) {
		c, err := s.readSchedule(ctx, doc, true, who.Tenant, now)
		if err == nil && in.Version != 0 {
			if err = checkVersion(old, in.Version); rest.IsNotFound(err) {
				err = rest.NewProblem(spec.CodeStaleVersion, "the schedule no longer exists")
			}
		}
		if err != nil {
			return nil, err
		}
		return decide(old, c, now)
	})
}

// plan returns a schedule after a change, and the writes that make it; none if nothing changes. old is nil if there
// is no schedule, or what is left of a deleted one.
func (s *Handler) plan(
	ctx context.Context, who tenant.Identity, k schedule.Key, old *schedule.Schedule, c scheduleChange, now time.Time,
) (schedule.Schedule, []item.Write, error) {
	if old == nil || old.Deleted() {
		wanted := schedule.Schedule{Key: k, Shard: horizon.ShardOf(k.ID(), s.Shards), Overlap: schedule.OverlapAllow,
			CatchUp: schedule.DefaultCatchUp}
		if old != nil {
			wanted.Epoch = old.Epoch // so its payload gets a name that was never used
		}
		c.apply(&wanted, nil, who.Subject)
		after, write, err := schedule.Create(old, wanted, now)
		return after, []item.Write{write}, calendarProblem(err)
	}
	wanted := *old
	var kept []byte // a payload that is equal as JSON is not replaced
	if c.job != nil && c.job.Payload != nil && old.Template.PayloadSize > 0 {
		var err error
		if kept, err = s.Store.SchedulePayload(ctx, *old); err != nil && fault.KindOf(err) != fault.NotFound {
			return wanted, nil, err
		}
	}
	c.apply(&wanted, kept, who.Subject)
	after, writes, err := s.edited(ctx, *old, wanted, now)
	return after, writes, calendarProblem(err)
}

// edited returns a schedule after an edit, and its writes; none if nothing changes. The error may be a *calendar.Error.
func (s *Handler) edited(
	ctx context.Context, old, wanted schedule.Schedule, now time.Time,
) (schedule.Schedule, []item.Write, error) {
	if schedule.Unchanged(old, wanted) {
		return old, nil, nil
	}
	has, err := s.Store.HaveJobs(ctx, old.Key, old.Leaves(now))
	if err != nil {
		return old, nil, err
	}
	wanted.Before = old.Before
	if old.Overlap == schedule.OverlapBufferAll {
		slot, err := s.Store.Slot(ctx, old.Key)
		if err != nil {
			return old, nil, err
		}
		if wanted.Before, err = schedule.OpenBefore(ctx, s.Store.Rows, old, slot, now); err != nil {
			return old, nil, err
		}
	}
	return schedule.Edit(old, wanted, has, now)
}

// changeWrites returns the writes of a change; none if nothing changes.
func (s *Handler) changeWrites(
	ctx context.Context, who tenant.Identity, k schedule.Key, old *schedule.Schedule, c scheduleChange, now time.Time,
) ([]item.Write, error) {
	after, writes, err := s.plan(ctx, who, k, old, c, now)
	if err == nil && len(writes) > 0 && old != nil && old.HoldsTimes(now) {
		var settled schedule.Schedule
		if settled, err = s.Engine.Recur.Settle(ctx, *old, now); err == nil {
			after, writes, err = s.plan(ctx, who, k, &settled, c, now)
		}
	}
	if err != nil || len(writes) == 0 {
		return nil, err
	}
	takes := after.Weight()
	if old != nil {
		takes -= old.Weight()
	}
	return s.scheduleWrites(ctx, who, takes, after, c, writes)
}

// forgetReplaced deletes a payload that a write has replaced. A failure only leaves a blob without use.
func (s *Handler) forgetReplaced(ctx context.Context, old, after schedule.Schedule) {
	if err := s.Store.ForgetReplaced(ctx, old, after); err != nil {
		s.warn(ctx, "the former payload of a schedule was not deleted", after.Key, err)
	}
}

func (s *Handler) warn(ctx context.Context, sentence string, k schedule.Key, err error) {
	s.Log.WarnContext(ctx, sentence, telemetry.Tenant, k.Tenant, "schedule", k.Name, telemetry.Err, err)
}

// scheduleWrites writes the schedule's payload, and returns the writes of the schedule and of its share of the tenant's
// quota.
func (s *Handler) scheduleWrites(
	ctx context.Context, who tenant.Identity, takes int64, after schedule.Schedule, c scheduleChange,
	writes []item.Write,
) ([]item.Write, error) {
	if c.job != nil {
		if err := s.Store.PutSchedulePayload(ctx, after, c.job.Payload); err != nil {
			return nil, fmt.Errorf("keeping the payload of schedule %q: %w", after.Name, err)
		}
		if n := len(c.job.Literals); n > 0 {
			s.Log.InfoContext(ctx, "a schedule declared that literals are not secrets", telemetry.Tenant, after.Tenant,
				"schedule", after.Name, "literals", n, "by", who.Subject)
		}
	}
	// These conditions fit into the transaction unless the edit records very much in the ledger.
	if c.calendar != nil && len(writes)+len(c.calendar.asRead) < mostWrites {
		writes = append(writes, c.calendar.asRead...)
	}
	if c.job != nil && after.Template.StartsRun() { // the dag must not be deleted in the meantime
		use := store.UseDag(after.Tenant, after.Template.Dag)
		use.Else = errDagGone(after.Template.Dag)
		writes = append(writes, use)
	}
	if takes > int64(s.ScheduleQuota) {
		return nil, s.errQuota(takes)
	}
	if takes != 0 {
		writes = append(writes, s.takeQuota(after.Tenant, takes))
	}
	return writes, nil
}

// mostWrites is how many writes one transaction can have.
const mostWrites = 100

// promoteTimeout bounds how long a request makes the jobs of the next half hour: an every-second schedule has 1,800.
const promoteTimeout = 15 * time.Second

// promote makes the jobs of a schedule that are within the horizon. If it fails, dispatch makes them, so the request
// does not fail.
func (s *Handler) promote(ctx context.Context, k schedule.Key) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), promoteTimeout)
	defer cancel()
	_, err := s.Engine.Recur.Promote(within, k)
	if err == nil {
		return
	}
	s.warn(ctx, "making a schedule's near jobs was left to dispatch", k, err)
	within, cancel = context.WithTimeout(context.WithoutCancel(ctx), spec.SendTimeout)
	defer cancel()
	ask := message.Outgoing{Group: string(k.Tenant), Body: message.Encode(recur.Ask(k, s.Now()))}
	if err := s.Queues.Send(within, contract.DispatchQueue, ask); err != nil {
		s.warn(ctx, "making a schedule's near jobs was left to the sweeper", k, err)
	}
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
	if err := s.promoteFirst(ctx, in.Key); err != nil {
		return nil, err
	}
	out := &patchScheduleAnswer{}
	after, changed, err := s.changeSchedule(ctx, in.Key, in.Version,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			merged, err := s.mergedSchedule(ctx, old, doc)
			if err != nil {
				return nil, err
			}
			c, err := s.readSchedule(ctx, merged, false, who.Tenant, now)
			if err != nil {
				return nil, err
			}
			if in.DryRun == "true" {
				diff, err := s.dryRun(ctx, who, in.Key, &old, c, now)
				out.Body.Other = &diff
				return nil, err
			}
			return s.changeWrites(ctx, who, in.Key, &old, c, now)
		})
	if changed {
		s.promote(ctx, in.Key)
	}
	if err != nil {
		return nil, err
	}
	out.ETag = spec.Etag(after.Epoch)
	if out.Body.Other == nil {
		v, err := s.showSchedule(ctx, after)
		if err != nil {
			return nil, err
		}
		if changed {
			v.EffectiveAt = rest.At(after.UpdatedAt)
		}
		out.Body.One = &v
	}
	return out, nil
}

// changedParts lists the fields that an edit changes, as JSON pointers in order.
func changedParts(was, is schedule.Schedule, now time.Time) []string {
	old, after, changed := viewSchedule(was, now), viewSchedule(is, now), []string{}
	part := func(name string, was, is any) {
		a, _ := document.Fields(text.MustJSON(was))
		b, _ := document.Fields(text.MustJSON(is))
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, field := range slices.Sorted(maps.Keys(names)) {
			if field != "payload_size" && !bytes.Equal(a[field], b[field]) {
				changed = append(changed, "/"+name+"/"+field)
			}
		}
	}
	part("calendar", old.Calendar, after.Calendar)
	part("job", old.Job, after.Job)
	part("dag", old.Dag, after.Dag)
	if was.Template.PayloadHash != is.Template.PayloadHash || was.Template.Payload != is.Template.Payload {
		changed = append(changed, map[bool]string{true: "/dag/params", false: "/job/payload"}[after.Dag != nil])
	}
	if old.Overlap != after.Overlap {
		changed = append(changed, "/overlap")
	}
	part("catch_up", old.CatchUp, after.CatchUp)
	if old.PauseAfterFailures != after.PauseAfterFailures {
		changed = append(changed, "/pause_after_failures")
	}
	slices.Sort(changed)
	return changed
}

func (s *Handler) deleteSchedule(ctx context.Context, _ tenant.Identity, in *One) (*deletedAnswer, error) {
	leave := func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
		has, err := s.Store.HaveJobs(ctx, in.Key, old.Leaves(now))
		if err != nil {
			return nil, err
		}
		_, writes := schedule.Delete(old, has, now)
		return append(writes, s.takeQuota(in.Key.Tenant, -old.Weight())), nil
	}
	if _, _, err := s.changeSchedule(ctx, in.Key, in.Version, leave); err != nil {
		return nil, err
	}
	// The delete happened just now; a worker may still use what it read before.
	out := &deletedAnswer{EffectiveAt: s.Now().Add(contract.EffectiveAfter).Format(text.InstantLayout)}
	running, err := s.Read.InFlight(ctx, in.Key)
	if err != nil { // the schedule is deleted anyway, and a second DELETE would be 404
		s.warn(ctx, "the running jobs of a deleted schedule could not be read", in.Key, err)
	}
	out.InFlight = strings.Join(rest.WordsOf(running), ", ")
	return out, nil
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

// rereads is how often withContents reads a schedule before it gives up.
const rereads = 8

// withContents reads a schedule and the contents of its jobs. An edit between the two reads may have replaced the
// contents; then it reads both once more.
func (s *Handler) withContents(ctx context.Context, k schedule.Key) (schedule.Schedule, job.Contents, error) {
	for range rereads {
		found, err := s.schedule(ctx, k)
		if err != nil {
			return found, job.Contents{}, err
		}
		contents, err := s.Store.ScheduleContents(ctx, found)
		if fault.KindOf(err) != fault.NotFound {
			return found, contents, err
		}
	}
	return schedule.Schedule{}, job.Contents{}, fault.New(fault.Conflict, nil,
		"reading schedule %q: its payload was replaced %d times meanwhile", k.Name, rereads)
}

type runNowAnswer struct {
	Location string `header:"Location" doc:"Path of the job or run"`
	ETag     string `header:"ETag" doc:"Version of the job in quotes, for If-Match; absent for a run"`
	Body     rest.Either[spec.JobView, spec.RunView]
}

var (
	runNowOverlap = field.Word[string]("overlap", "Whether the overlap policy of the schedule applies to this run: "+
		"ignore (default) or obey", rest.CodeInvalidValue, []string{"ignore", "obey"})

	runNowRequest = field.NewObject("RunNowRequest", "Options of a run of a schedule now.", runNowOverlap)
)

// runScheduleNow accepts a job of the template that is due now, or begins a run.
func (s *Handler) runScheduleNow(ctx context.Context, who tenant.Identity, in *rest.Named) (*runNowAnswer, error) {
	overlap := ""
	err := spec.OptionalBody(ctx, runNowRequest, func(r *rest.Reader, f rest.Fields) {
		runNowOverlap.Into(r, f, &overlap)
	})
	if err != nil {
		return nil, err
	}
	obey := overlap == "obey"
	found, contents, err := s.withContents(ctx, schedule.Key{Tenant: who.Tenant, Name: in.Name})
	if err != nil {
		return nil, err
	}
	random, err := s.Entropy.Next()
	if err != nil {
		return nil, err
	}
	now := s.Now()
	r, send := found.RunNow(job.NewID(now, random), obey, s.Shards, now)
	if err := s.Store.KeepContents(ctx, r, contents); err != nil {
		return nil, err
	}
	if err := s.Engine.Accept.Put(ctx, accept.Job{Row: r, Unique: true}); err != nil {
		return nil, err
	}
	if r.StartsRun() {
		return s.beginNow(ctx, r)
	}
	if schedule.Obeys(r) {
		r = s.decideNow(ctx, r)
	} else if send {
		s.Fire(ctx, r.Firing())
	}
	s.Meter.Count(telemetry.JobsAccepted, 1)
	return s.answerRunNow(ctx, r)
}

// decideNow decides at once about a job that obeys the overlap policy, and returns it as it then is. If that fails, the
// job is fired, and its worker asks for the decision.
func (s *Handler) decideNow(ctx context.Context, r job.Row) job.Row {
	if _, err := s.Engine.Reevaluate(ctx, r.Key, r.Version, r.Attempt); err != nil {
		s.Fire(ctx, r.Firing())
		return r
	}
	if is, err := s.Store.Row(ctx, r.Key); err == nil {
		return is
	}
	return r
}

func (s *Handler) answerRunNow(ctx context.Context, r job.Row) (*runNowAnswer, error) {
	out, err := s.AnswerJob(ctx, r, http.StatusAccepted)
	if err != nil {
		return nil, err
	}
	return &runNowAnswer{Location: "/v1/jobs/" + string(r.ID), ETag: out.ETag,
		Body: rest.Either[spec.JobView, spec.RunView]{One: &out.Body}}, nil
}

// beginNow begins the run of a row that was just written. If it fails, the row's wake-up begins it.
func (s *Handler) beginNow(ctx context.Context, r job.Row) (*runNowAnswer, error) {
	if _, err := s.Engine.Reevaluate(ctx, r.Key, r.Version, r.Attempt); err != nil {
		s.Fire(ctx, r.Firing())
		return nil, err
	}
	v, err := s.DagRuns.ShowRun(ctx, run.Key{Tenant: r.Tenant, ID: r.ID})
	if rest.IsNotFound(err) && schedule.Obeys(r) {
		if is, err := s.Store.Row(ctx, r.Key); err == nil && (is.QueuedBehind || is.Reason.Code == job.CodeOverlap) {
			out, err := s.answerRunNow(ctx, is)
			if err == nil {
				out.Location, out.ETag = "/v1/runs/"+string(r.ID), ""
			}
			return out, err
		}
	}
	if rest.IsNotFound(err) {
		return nil, s.notBegun(ctx, r)
	}
	return &runNowAnswer{Location: "/v1/runs/" + string(r.ID), Body: rest.Either[spec.JobView,
		spec.RunView]{Other: &v}}, err
}

// notBegun returns why a run did not begin at once.
func (s *Handler) notBegun(ctx context.Context, r job.Row) error {
	is, err := s.Store.Row(ctx, r.Key)
	switch {
	case err != nil:
		return err
	case is.Status.Final():
		return rest.NewProblem(spec.CodeWrongState, "no run can be made: %s", is.Reason.Message)
	}
	return fault.New(fault.Unavailable, nil, "beginning run %s: it is %s", r.ID, is.Status)
}
