package jobs

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/edit"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

var jobPatchRequest = field.NewObject("JobPatchRequest", "Changes of a waiting job.",
	spec.Payload.About("New payload, which replaces the old one."),
	spec.RunAt, spec.Delay.About("Time from now until the job is due; for a BLOCKED job, from the end of the jobs "+
		"that it waits for."),
	spec.Priority.About("New priority."),
	spec.Limits.About("New limits of work, which replace the old; [] for none."),
	spec.Metadata.About("New metadata, which replaces the old; {} for none."),
	spec.AllowLiterals.About("JSON pointers of strings in the new payload and metadata, one of which is required with "+
		"them, that resemble secrets and are none."),
).Changes().Excluding("run_at", "delay")

type patchInput struct {
	ByID
	rest.Match
}

func (s *Handler) patchJob(ctx context.Context, who tenant.Identity, in *patchInput) (*spec.JobAnswer, error) {
	const changeable = "payload, metadata, run_at, delay, priority or limits"
	doc, err := rest.NeededBody(ctx, contract.MaxBody, changeable, "something to change is needed in the body")
	if err != nil {
		return nil, err
	}
	r := spec.NewReader(doc)
	f := jobPatchRequest.Body(r)
	if f != nil && len(f) == 0 && len(r.Wrong) == 0 {
		r.Violation("", rest.CodeMissingField, changeable, "the body changes nothing")
	}
	if len(r.Wrong) > 0 {
		return nil, r.Wrong
	}
	after, err := s.Jobs.Edit(ctx, in.Key, in.Version, func(row job.Row, now time.Time) (edit.Change, error) {
		return s.readPatch(ctx, who, spec.NewReader(doc), f, row, now)
	})
	return s.answerEdited(ctx, after, err)
}

// readPatch checks a patch against the row that it changes.
func (s *Handler) readPatch(
	ctx context.Context, who tenant.Identity, r *rest.Reader, f rest.Fields, row job.Row, now time.Time,
) (edit.Change, error) {
	c := edit.Change{By: who.Subject}
	at := now
	given := spec.Due(r, f, now, &at)
	switch {
	case row.Status == job.Blocked:
		of, _, err := dag.AfterOf(row)
		if err != nil {
			return c, err
		}
		if given {
			setTime(&of, f, at, now)
		}
		c.Parents = of.Encode()
	case given:
		c.DueAt = &at
	}
	spec.Priority.Pointer(r, f, &c.Priority)
	limits := row.Limits
	if err := s.TaskBook(row.Tenant).Limits(ctx, r, f, &limits); err != nil {
		return c, err
	}
	if limits != row.Limits {
		c.Limits = &limits
	}
	if spec.AllowLiterals.Into(r, f, &c.Literals) && !spec.HasAny(f, spec.LiteralFields) {
		r.Missing("", "payload") // they are literals of it
	}
	if v, ok := f["metadata"]; ok {
		kept, err := s.Store.LabelsOf(ctx, row)
		if err != nil {
			return c, err
		}
		labels := kept[0]
		spec.Metadata.Into(r, f, &labels.Metadata)
		c.Labels = &labels
		r.NoSecrets(v, c.Literals)
	}
	if v, ok := f["payload"]; ok {
		task, err := s.TaskOf(ctx, row.Tenant, row.Settings)
		if err != nil {
			return c, err
		}
		if c.Text, err = s.ReadPayload(ctx, r, v, true, "", task, row.Tenant, c.Literals); err != nil {
			return c, err
		}
		next := row
		next.Version++
		stored := job.Payload{}
		if c.Text != nil {
			stored = job.PayloadStorage(&next, c.Text)
		}
		c.Payload = &stored
	}
	noteEdit(ctx, row, c)
	return c, r.Wrong.Err()
}

// noteEdit notes for the audit what a patch changes of a job. Metadata and a payload it notes without what they were.
func noteEdit(ctx context.Context, row job.Row, c edit.Change) {
	was, is := map[string]any{}, map[string]any{}
	if c.Priority != nil {
		was["priority"], is["priority"] = row.Priority, *c.Priority
	}
	if c.DueAt != nil {
		was["due_at"], is["due_at"] = rest.At(row.DueAt), rest.At(*c.DueAt)
	}
	if c.Limits != nil {
		was["limits"], is["limits"] = spec.ViewLimits(row.Limits), spec.ViewLimits(*c.Limits)
	}
	if c.Parents != "" && c.Parents != row.Parents {
		was["after"], is["after"] = json.RawMessage(row.Parents), json.RawMessage(c.Parents)
	}
	if c.Labels != nil {
		is["metadata"] = json.RawMessage(c.Labels.Metadata)
	}
	if c.Payload != nil {
		is["payload"] = true // the audit keeps no value
	}
	audit.From(ctx).Changed(was, is)
}

func (s *Handler) runNow(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	after, err := s.Jobs.RunNow(ctx, in.Key, 0, s.Now())
	return s.answerEdited(ctx, after, err)
}

// pauseRequest is the body of a pause, which may be left out.
var pauseRequest = field.NewObject("JobPauseRequest", "Pause of one job.", pauseReason)

var pauseReason = spec.Reason.About("Reason for the pause, shown with the job.")

func (s *Handler) pauseJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	reason := ""
	err := spec.OptionalBody(ctx, pauseRequest, func(r *rest.Reader, f rest.Fields) {
		if pauseReason.Into(r, f, &reason) {
			r.NoSecrets(f[pauseReason.Name()], nil)
		}
	})
	if err != nil {
		return nil, err
	}
	after, err := s.Jobs.Pause(ctx, in.Key, reason, who.Subject)
	return s.answerEdited(ctx, after, err)
}

func (s *Handler) resumeJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	after, err := s.Jobs.Resume(ctx, in.Key)
	return s.answerEdited(ctx, after, err)
}

func (s *Handler) answerEdited(ctx context.Context, after job.Row, err error) (*spec.JobAnswer, error) {
	if err != nil {
		return nil, spec.JobProblem(err)
	}
	return s.AnswerJob(ctx, after, http.StatusOK)
}

// cancelJob answers 200 when no attempt can start any more, and 202 when the worker that runs the job was asked to
// stop.
func (s *Handler) cancelJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	row, err := s.Jobs.Cancel(ctx, in.Key)
	if err != nil {
		return nil, spec.JobProblem(err)
	}
	status := http.StatusAccepted
	if row.Status == job.Cancelled {
		status = http.StatusOK
	}
	return s.AnswerJob(ctx, row, status)
}

func (s *Handler) deleteJob(ctx context.Context, who tenant.Identity, in *ByID) (*rest.NoContent, error) {
	return &rest.NoContent{}, spec.JobProblem(s.Jobs.Forget(ctx, in.Key, func(row job.Row) error {
		if row.Status == job.Dead && !who.May(tenant.Admin) { // this is a purge
			return rest.NewProblem(rest.CodeForbidden,
				"to delete a DEAD job needs the scope %s, which the token does not have", tenant.Admin)
		}
		return nil
	}))
}
