package jobs

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// redriveRequest is the body of a redrive; a redrive without one repeats the dead job as it is.
var redriveRequest = field.NewObject("RedriveRequest", "Corrections of the job that repeats a dead one.",
	spec.Payload.About("Payload in place of the dead job's. It excludes payload_patch."),
	spec.PayloadPatch.About("Changes of the dead job's payload, as a merge patch (RFC 7396). It excludes payload."),
	spec.RunAt, spec.Delay, spec.Priority.About("Priority; default: that of the dead job."),
	spec.Pool.About("Pool of workers that runs the job; default: that of the dead job."),
	spec.Timeout.About("Maximum duration of one attempt; default: that of the dead job."),
	spec.Retry.About("Retry policy. Fields that are left out have the values of the dead job."),
	spec.Tags.About("Tags in place of the dead job's; {} for none."),
	spec.AllowLiterals.About("JSON pointers of strings in the payload and tags of the new job, one of which is "+
		"changed with them, that resemble secrets and are none."),
).Excluding("run_at", "delay") // payload and payload_patch, too; but a schema that excludes two pairs has alternatives

func (s *Handler) redriveJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	correct, err := s.readCorrections(ctx, who)
	if err != nil {
		return nil, err
	}
	by, err := s.Jobs.Redrive(ctx, in.Key, correct)
	if err != nil {
		return nil, spec.JobProblem(err)
	}
	row, err := s.Store.Row(ctx, job.Key{Tenant: who.Tenant, ID: by})
	if fault.KindOf(err) == fault.NotFound { // a node's run is paused or full: it makes the new job when it goes on
		row, err = s.row(ctx, in.Key)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.AnswerJob(ctx, row, http.StatusAccepted)
	if err == nil {
		out.Location = "/v1/jobs/" + string(by)
	}
	return out, err
}

// readCorrections reads the body of a redrive; nil for none.
func (s *Handler) readCorrections(ctx context.Context, who tenant.Identity) (accept.Correct, error) {
	doc, err := rest.ReadBody(ctx, contract.MaxBody)
	if err != nil || doc == nil {
		return nil, err
	}
	r := spec.NewReader(doc)
	f := redriveRequest.Body(r)
	if err := r.Wrong.Err(); err != nil || len(f) == 0 {
		return nil, err
	}
	return func(dead job.Row, next *accept.Draft, now time.Time) error {
		r := spec.NewReader(doc)
		next.By = who.Subject
		if err := s.correct(ctx, r, f, dead, next, now); err != nil {
			return err
		}
		return r.Wrong.Err()
	}, nil
}

// correct reads corrections of a dead job into the one that repeats it.
func (s *Handler) correct(
	ctx context.Context, r *rest.Reader, f rest.Fields, dead job.Row, next *accept.Draft, now time.Time,
) error {
	if dead.InRun() {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			r.Violation(f[name].Pointer, rest.CodeConflictingFields, "no corrections",
				"the job is that of node %s of run %s: its redrive retries the node, whose definition says what it is "+
					"given", dead.Node, dead.RunID)
		}
		return nil
	}
	if spec.Due(r, f, now, &next.Row.DueAt) && next.Row.ExpireAfter > 0 {
		next.Row.ExpiryAt = next.Row.DueAt.Add(next.Row.ExpireAfter)
	}
	spec.Running(r, f, &next.Row.Settings)
	if spec.AllowLiterals.Into(r, f, &next.Literals) &&
		!spec.HasAny(f, []string{spec.Payload.Name(), spec.PayloadPatch.Name(), spec.Tags.Name()}) {
		r.Missing("", spec.Payload.Name()) // they are literals of it
	}
	if v, ok := f[spec.Tags.Name()]; ok {
		next.Labels.Tags = spec.Labels(r, f).Tags
		r.NoSecrets(v, next.Literals)
	}
	if !spec.ReplacesPayload(f) {
		return nil
	}
	task, err := s.TaskOf(ctx, dead.Tenant, dead.Settings)
	if err != nil {
		return err
	}
	next.Payload, err = s.ReplacePayload(ctx, r, f, next.Payload, task, dead.Tenant, next.Literals)
	return err
}
