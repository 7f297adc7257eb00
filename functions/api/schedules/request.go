package schedules

import (
	"context"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/amend"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Fields of a schedule.
var (
	calendarField = field.Value("calendar", "Calendar with the times at which the schedule runs",
		calendarRequest.Schema)
	calendarsField = field.Value("calendars", "List of calendars instead of calendar: the schedule runs at the times "+
		"of all of them. An instant that several of them have is one time.",
		field.ArrayOf(1, calendar.MaxCalendars, calendarRequest.Schema))
	jobField = field.Value("job", "Job that each nominal time makes: a job as in POST /v1/jobs, without run_at "+
		"and delay", jobTemplateRequest.Schema)
	dagField = field.Value("dag", "Dag of which each nominal time makes a run, instead of job. Statements about jobs "+
		"of the schedule then apply to runs; a FAILED run counts as a job that failed for good.",
		dagTemplateRequest.Schema)
	overlap = field.Word[schedule.Overlap]("overlap", "Treatment of a run that is due while an earlier one has not "+
		"ended (a job that waits for a retry counts as ended); default: allow. With buffer_all runs start in the "+
		"order of their nominal times.", rest.CodeInvalidValue, schedule.Overlaps)
	catchUp = field.Value("catch_up", "Policy for nominal times whose run could not start in time",
		catchUpRequest.Schema)
	pauseAfterFailures = field.Whole("pause_after_failures", "Number of jobs in a row that fail for good after which "+
		"the schedule is paused; default: 0, never", 0, schedule.MaxPauseAfter)

	// patchedFields are those that a PATCH may name.
	patchedFields = field.NewObject("ScheduleRequest", "Schedule: calendar or calendars, policies, and "+
		"either job or dag. One of each pair is required.", calendarField, calendarsField, jobField, dagField,
		overlap, catchUp, pauseAfterFailures)

	scheduleRequest = patchedFields.With(spec.Pausing).
			Excluding("job", "dag")
)

// Fields of a catch-up policy.
var (
	catchUpPolicy = field.Word[schedule.Policy]("policy", "Selection of late runs that start: none, the last one, "+
		"or all; default: last", rest.CodeInvalidValue, schedule.Policies)
	catchUpWindow = field.Duration("window", "Age of a nominal time beyond which its run does not start; default: "+
		"{=catch_up_window}", contract.MinWindow, schedule.MaxCatchUpWindow)
	catchUpCap = field.Whole("cap", "Maximum number of late runs that start with the policy all, the newest first; "+
		"default: {=catch_up_cap}", 1, schedule.MaxCatchUpCap)
	catchUpAfter = field.Duration("after", "Time after due_at from which a run that has not started, because of an "+
		"outage or because no worker was free, is late and the policy applies. Time spent behind an earlier run, "+
		"under a limit or under a pause does not count; default: {=catch_up_after}",
		schedule.MinCatchUpAfter, schedule.MaxCatchUpAfter)

	catchUpRequest = field.NewObject("CatchUpRequest", "Catch-up policy of a schedule", catchUpPolicy, catchUpWindow,
		catchUpCap, catchUpAfter)
)

// jobTemplateRequest is a JobRequest without a time.
var jobTemplateRequest = field.NewObject("JobTemplateRequest", "Job that each nominal time of a schedule makes",
	spec.Task, spec.Payload.About("Payload as in POST /v1/jobs"),
	spec.Priority.About("Priority; default: that of the task at the time when the schedule is put"),
	spec.Pool, spec.Timeout,
	spec.StartWithin.About("Maximum time from due_at to the start of the first attempt, after which the run is "+
		"missed; default: no limit"),
	spec.ExpireAfter, spec.Retry, spec.Limits, spec.Unique, spec.Tags, spec.Metadata,
	spec.AllowLiterals.About("JSON pointers below the job, such as /payload/x, of strings that look like secrets and "+
		"are not"))

func scheduleBody(ctx context.Context) (*document.Document, error) {
	return rest.NeededBody(ctx, contract.MaxBody, "an object", "a schedule is needed in the body")
}

// readSchedule reads a schedule or a part of one. In a whole schedule, a missing field means its default.
func (s *Handler) readSchedule(
	ctx context.Context, doc *document.Document, whole bool, t tenant.ID, now time.Time,
) (c amend.Change, err error) {
	r := spec.NewReader(doc)
	f := scheduleRequest.Body(r)
	if f == nil {
		return c, r.Wrong.Err()
	}
	if len(f) == 0 && len(r.Wrong) == 0 && !whole {
		r.Violation("", rest.CodeMissingField,
			"calendar, calendars, job, dag, overlap, catch_up or pause_after_failures",
			"the body changes nothing")
	}
	if hasCalendar(f) {
		p, fine, err := s.readCalendars(ctx, r, f, t)
		if err != nil {
			return c, err
		}
		if fine && admitted(r, p.Calendar.Check(now)) { // it has a coming time
			c.Calendar = &p
		}
	} else if whole {
		r.Missing("", "calendar")
	}
	_, ofDag := f[dagField.Name()]
	if v, ok := f[jobField.Name()]; ok && ofDag {
		r.Violation(f[dagField.Name()].Pointer, rest.CodeConflictingFields, "job or dag", "job and dag exclude each "+
			"other")
	} else if ofDag {
		if c.Job, err = s.readDagTemplate(ctx, r, f[dagField.Name()], t, now); err != nil {
			return c, err
		}
	} else if ok {
		if fields := jobTemplateRequest.Read(r, v); fields != nil {
			if c.Job, err = s.ReadJob(ctx, r, fields, v.Pointer, s.TaskBook(t), nil, now); err != nil {
				return c, err
			}
		}
	} else if whole {
		r.Violation("/job", rest.CodeMissingField, "job or dag", "a schedule needs a job or a dag")
	}
	policies(r, f, whole, &c)
	if v, ok := f[spec.Pausing.Name()]; ok {
		if on, reason, ok := spec.ReadPausing(r, v); ok {
			c.Pausing = &amend.Pausing{On: on, Reason: reason}
		}
	}
	return c, r.Wrong.Err()
}

func policies(r *rest.Reader, f rest.Fields, whole bool, c *amend.Change) {
	if whole {
		c.Overlap, c.CatchUp, c.PauseAfter = new(schedule.OverlapAllow), new(schedule.DefaultCatchUp), new(0)
	}
	overlap.Pointer(r, f, &c.Overlap)
	if v, ok := f[catchUp.Name()]; ok {
		c.CatchUp = new(readCatchUp(r, v))
	}
	pauseAfterFailures.Pointer(r, f, &c.PauseAfter)
}

func readCatchUp(r *rest.Reader, v rest.Value) schedule.CatchUp {
	c := schedule.DefaultCatchUp
	f := catchUpRequest.Read(r, v)
	catchUpPolicy.Into(r, f, &c.Policy)
	catchUpWindow.Into(r, f, &c.Window)
	catchUpCap.Into(r, f, &c.Cap)
	catchUpAfter.Into(r, f, &c.After)
	if c.After == schedule.DefaultAfter {
		c.After = 0 // as schedules of an older version have it: the same body again changes nothing
	}
	return c
}

// schedulePatchRequest is any part of a schedule; patchOf makes its schema.
var schedulePatchRequest = field.NewObject("SchedulePatchRequest", "")
