package schedules

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/amend"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Fields of a run on request.
var (
	runNowOverlap = field.Word[string]("overlap", "Whether the overlap policy of the schedule applies to this run: "+
		"ignore (default) or obey", rest.CodeInvalidValue, []string{"ignore", "obey"})

	runNowRequest = field.NewObject("RunNowRequest", "Options of a run of a schedule now.", runNowOverlap,
		spec.Payload.About("Payload of this job in place of the schedule's. It excludes payload_patch. Only for a "+
			"schedule of jobs."),
		spec.PayloadPatch.About("Changes of the schedule's payload for this job, as a merge patch (RFC 7396). It "+
			"excludes payload. Only for a schedule of jobs."),
		spec.Params.About("Params of this run by name; the others have the values of the schedule, or else the dag's "+
			"defaults. Only for a schedule of a dag."),
		spec.AllowLiterals.About("JSON pointers of strings in payload or params, one of which is required with them, "+
			"that resemble secrets and are none; those of the schedule apply, too."),
	).Excluding("payload", "payload_patch")
)

// contentFields are those that say what the job or the run of a request has in place of the schedule's.
var contentFields = []string{spec.Payload.Name(), spec.PayloadPatch.Name(), spec.Params.Name()}

type runNowAnswer struct {
	Location string `header:"Location" doc:"Path of the job or run"`
	ETag     string `header:"ETag" doc:"Version of the job in quotes, for If-Match; absent for a run"`
	Body     rest.Either[spec.JobView, spec.RunView]
}

// runScheduleNow accepts a job of the template that is due now, or begins a run.
func (s *Handler) runScheduleNow(ctx context.Context, who tenant.Identity, in *rest.Named) (*runNowAnswer, error) {
	q := amend.NowRequest{Key: schedule.Key{Tenant: who.Tenant, Name: in.Name}, By: who.Subject}
	if err := s.readRunNow(ctx, &q); err != nil {
		return nil, err
	}
	if !rest.IsName(in.Name) {
		return nil, errNoSchedule()
	}
	started, err := s.Editor.RunNow(ctx, q)
	if err != nil {
		return nil, asProblem(err)
	}
	r, out := started.Row, &runNowAnswer{Location: "/v1/runs/" + string(started.Row.ID)}
	if started.Begun {
		v, err := s.DagRuns.ShowRun(ctx, run.Key{Tenant: r.Tenant, ID: r.ID})
		out.Body.Other = &v
		return out, err
	}
	v, err := s.AnswerJob(ctx, r, http.StatusAccepted)
	if err != nil {
		return nil, err
	}
	if out.Body.One = &v.Body; !r.StartsRun() {
		s.Meter.Count(telemetry.JobsAccepted, 1)
		out.Location, out.ETag = "/v1/jobs/"+string(r.ID), v.ETag
	}
	return out, nil
}

// readRunNow reads the body of a run on request. What it has in place of the schedule's payload or params is checked
// when the schedule has been read.
func (s *Handler) readRunNow(ctx context.Context, q *amend.NowRequest) error {
	doc, err := rest.ReadBody(ctx, contract.MaxBody)
	if err != nil || doc == nil {
		return err
	}
	r, overlap := spec.NewReader(doc), ""
	f := runNowRequest.Body(r)
	runNowOverlap.Into(r, f, &overlap)
	spec.AllowLiterals.Into(r, f, &q.Literals)
	q.Obey = overlap == "obey"
	if !spec.HasAny(f, contentFields) {
		if _, ok := f[spec.AllowLiterals.Name()]; ok {
			r.Missing("", spec.Payload.Name()) // they are literals of it
		}
		return r.Wrong.Err()
	}
	q.Correct = func(of schedule.Schedule, payload []byte) ([]byte, error) {
		r := spec.NewReader(doc)
		payload, err := s.correctNow(ctx, r, f, of, payload, q.Literals)
		if err != nil {
			return nil, err
		}
		return payload, r.Wrong.Err()
	}
	return r.Wrong.Err()
}

// correctNow returns the payload, or the params, that a run on request has in place of those of its schedule.
func (s *Handler) correctNow(
	ctx context.Context, r *rest.Reader, f rest.Fields, of schedule.Schedule, payload []byte, literals []string,
) ([]byte, error) {
	is, makes, has := spec.Params.Name(), "jobs, which have a payload", "payload or payload_patch"
	if of.Template.StartsRun() {
		makes, has = "runs of a dag, which have params", "params"
	}
	for _, name := range contentFields {
		if v, ok := f[name]; ok && (name == is) != of.Template.StartsRun() {
			r.Violation(v.Pointer, rest.CodeConflictingFields, has, "the schedule makes %s", makes)
		}
	}
	if len(r.Wrong) > 0 {
		return nil, nil
	}
	if l := of.Template.Literals; l != nil {
		literals = slices.Concat(l.Pointers, literals)
	}
	if of.Template.StartsRun() {
		return s.correctParams(ctx, r, f[spec.Params.Name()], of, payload, literals)
	}
	task, err := s.TaskOf(ctx, of.Tenant, of.Template.Settings)
	if err != nil {
		return nil, err
	}
	return s.ReplacePayload(ctx, r, f, payload, task, of.Tenant, literals)
}

// correctParams reads params, merges them over those of a schedule, and checks them by the dag as it is now.
func (s *Handler) correctParams(
	ctx context.Context, r *rest.Reader, v rest.Value, of schedule.Schedule, params []byte, literals []string,
) ([]byte, error) {
	given := spec.ReadParams(r, v, literals)
	if len(r.Wrong) > 0 {
		return nil, nil
	}
	_, g, err := s.Dag(ctx, of.Tenant, of.Template.Dag, of.Template.DagVersion)
	if err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	if old, ok := document.Fields(params); ok {
		merged = old
	}
	maps.Copy(merged, given)
	_, err = s.OverParams(ctx, r, "", merged, g)
	return document.EncodeObject(merged), err
}
