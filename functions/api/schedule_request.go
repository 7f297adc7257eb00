package api

import (
	"bytes"
	"context"
	"errors"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// scheduleRequest documents the body of PUT /v1/schedules/{name}.
type scheduleRequest struct {
	Calendar           calendarRequest    `json:"calendar" doc:"When"`
	Job                jobTemplateRequest `json:"job,omitempty" doc:"What each nominal time makes: a job as in POST /v1/jobs, without run_at and delay"`
	Dag                dagTemplateRequest `json:"dag,omitempty" doc:"In place of job: each nominal time makes a run of that dag. What is said of jobs here is then said of runs: a FAILED one counts as a job that failed for good"`
	Overlap            string             `json:"overlap,omitempty" doc:"What becomes of a run that is due while an earlier one is not over (one that waits for a retry is not): default allow. With buffer_all they start in the order of their times"`
	CatchUp            catchUpRequest     `json:"catch_up,omitempty" doc:"Which of the times still run that could not start in time"`
	PauseAfterFailures int                `json:"pause_after_failures,omitempty" doc:"So many jobs in a row that fail for good pause the schedule; default 0: none do"`
}

// schedulePatchRequest documents the body of PATCH: any part of a schedule.
type schedulePatchRequest struct {
	Calendar           calendarRequest    `json:"calendar,omitempty"`
	Job                jobTemplateRequest `json:"job,omitempty"`
	Dag                dagTemplateRequest `json:"dag,omitempty"`
	Overlap            string             `json:"overlap,omitempty"`
	CatchUp            catchUpRequest     `json:"catch_up,omitempty"`
	PauseAfterFailures int                `json:"pause_after_failures,omitempty"`
}

type catchUpRequest struct {
	Policy string        `json:"policy,omitempty" doc:"Default last"`
	Window wire.Duration `json:"window,omitempty" doc:"Older times do not run; default {=catch_up_window}"`
	Cap    int           `json:"cap,omitempty" doc:"With all: of these the newest are kept; default {=catch_up_cap}"`
	After  wire.Duration `json:"after,omitempty" doc:"Time after due_at from which a run that has not started is late, and the policy decides: because of an outage, or because no worker was free. Time behind an earlier run, under a limit or under a pause does not count; default {=catch_up_after}"`
}

// jobTemplateRequest is a JobRequest without a time.
type jobTemplateRequest struct {
	Task        string        `json:"task" example:"echo"`
	Payload     wire.Anything `json:"payload,omitempty" doc:"As in POST /v1/jobs"`
	Priority    string        `json:"priority,omitempty" doc:"Default: the task's, as it is when the schedule is put"`
	Pool        string        `json:"pool,omitempty" doc:"Default: the task's"`
	Timeout     wire.Duration `json:"timeout,omitempty" doc:"Of one attempt; default: the task's"`
	StartWithin wire.Duration `json:"start_within,omitempty" doc:"The run is missed if no attempt started this long after its due_at; default: no limit"`
	ExpireAfter wire.Duration `json:"expire_after,omitempty" doc:"EXPIRED if not over this long after due_at; default: no limit"`
	Retry       retryRequest  `json:"retry,omitempty" doc:"What is left out is the task's"`
	LabelsRequest
	AllowLiterals []string `json:"allow_literals,omitempty" doc:"JSON pointers below the job, such as /payload/x, of strings that look like secrets and are none"`
}

var (
	scheduleFields = wire.NamesOf[scheduleRequest]()
	templateFields = wire.NamesOf[jobTemplateRequest]()
	catchUpFields  = wire.NamesOf[catchUpRequest]()
)

// scheduleChange holds the new values of a schedule; nil for what does not change.
type scheduleChange struct {
	calendar   *planned
	job        *draft
	overlap    *schedule.Overlap
	catchUp    *schedule.CatchUp
	pauseAfter *int
}

// apply makes the change in a schedule, in the name of by. kept is the schedule's payload; a payload that is equal as
// JSON is no change.
func (c scheduleChange) apply(to *schedule.Schedule, kept []byte, by string) {
	if c.calendar != nil {
		to.Spec, to.Exclusions = c.calendar.spec, c.calendar.exclusions
	}
	if c.job != nil {
		if sameJSON(c.job.payload, kept) {
			c.job.payload = kept
		}
		old := to.Template
		to.Template = schedule.TemplateOf(c.job.row, c.job.labels)
		to.SetPayload(c.job.payload)
		if len(c.job.literals) > 0 {
			to.Template.Literals = &job.Literals{Pointers: c.job.literals, By: by}
		}
		to.Template.Keep(old, kept != nil && bytes.Equal(c.job.payload, kept))
	}
	if c.overlap != nil {
		to.Overlap = *c.overlap
	}
	if c.catchUp != nil {
		to.CatchUp = *c.catchUp
	}
	if c.pauseAfter != nil {
		to.PauseAfter = *c.pauseAfter
	}
}

func sameJSON(a, b []byte) bool {
	if a == nil || b == nil || bytes.Equal(a, b) {
		return false // there is no payload to keep
	}
	x, errX := wire.ReadDocument(a)
	y, errY := wire.ReadDocument(b)
	return errX == nil && errY == nil && x.Hash(0, "") == y.Hash(0, "")
}

// scheduleBody reads the body of a PUT or PATCH as JSON.
func scheduleBody(ctx context.Context) (*wire.Document, error) {
	return neededBody(ctx, contract.MaxBody, "an object", "a schedule is needed in the body")
}

// readSchedule reads a schedule or a part of one. In a whole schedule, a missing field means its default.
func (s *stage) readSchedule(
	ctx context.Context, doc *wire.Document, whole bool, t tenant.ID, now time.Time,
) (c scheduleChange, err error) {
	r := newReader(doc)
	f := r.Object(0, "", scheduleFields)
	if f == nil {
		return c, r.Wrong.Err()
	}
	if len(f) == 0 && len(r.Wrong) == 0 && !whole {
		r.Mistake("", wire.CodeMissingField, "calendar, job, dag, overlap, catch_up or pause_after_failures",
			"the body changes nothing")
	}
	if v, ok := f["calendar"]; ok {
		p, fine, err := s.readCalendar(ctx, r, v, t)
		if err != nil {
			return c, err
		}
		if fine && r.firing(v.Pointer, p.calendar, now) {
			c.calendar = &p
		}
	} else if whole {
		r.Missing("", "calendar")
	}
	_, ofDag := f["dag"]
	if v, ok := f["job"]; ok && ofDag {
		r.Mistake(f["dag"].Pointer, wire.CodeConflictingFields, "job or dag", "job and dag exclude each other")
	} else if ofDag {
		if c.job, err = s.readDagTemplate(ctx, r, f["dag"], t, now); err != nil {
			return c, err
		}
	} else if ok {
		if fields := r.Object(v.Node, v.Pointer, templateFields); fields != nil {
			if c.job, err = s.readJob(ctx, r, fields, v.Pointer, s.taskBook(t), now); err != nil {
				return c, err
			}
		}
	} else if whole {
		r.Mistake("/job", wire.CodeMissingField, "job, or dag in its place", "job is missing")
	}
	r.policies(f, whole, &c)
	return c, r.Wrong.Err()
}

// policies reads overlap, catch_up and pause_after_failures.
func (r *reader) policies(f wire.Fields, whole bool, c *scheduleChange) {
	if whole {
		c.overlap, c.catchUp, c.pauseAfter = new(schedule.OverlapAllow), new(schedule.DefaultCatchUp), new(0)
	}
	if v, ok := f["overlap"]; ok {
		overlap, _ := wordOf[schedule.Overlap](r, schedule.Overlaps)(v)
		c.overlap = &overlap
	}
	if v, ok := f["catch_up"]; ok {
		c.catchUp = new(r.catchUp(v))
	}
	if v, ok := f["pause_after_failures"]; ok {
		n, _ := r.Whole(v, 0, schedule.MaxPauseAfter)
		c.pauseAfter = &n
	}
}

func (r *reader) catchUp(v wire.Value) schedule.CatchUp {
	c := schedule.DefaultCatchUp
	f := r.Object(v.Node, v.Pointer, catchUpFields)
	set(f, "policy", &c.Policy, wordOf[schedule.Policy](r, schedule.Policies))
	set(f, "window", &c.Window, r.duration(contract.MinWindow, schedule.MaxCatchUpWindow))
	set(f, "cap", &c.Cap, r.whole(1, schedule.MaxCatchUpCap))
	set(f, "after", &c.After, r.duration(schedule.MinCatchUpAfter, schedule.MaxCatchUpAfter))
	if c.After == schedule.DefaultAfter {
		c.After = 0 // as schedules of an older version have it: the same body again changes nothing
	}
	return c
}

// calendarProblem turns an error of package calendar about a schedule into a problem.
func calendarProblem(err error) error {
	var e *calendar.Error
	if !errors.As(err, &e) {
		return err
	}
	return fault.Mistakes{{Pointer: "/calendar/" + e.Field, Code: e.Code, Detail: e.Detail, Allowed: e.Allowed}}
}
