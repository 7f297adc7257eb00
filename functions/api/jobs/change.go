package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

var jobPatchRequest = field.NewObject("JobPatchRequest", "Changes of a waiting job.",
	spec.Payload.About("New payload, which replaces the old one."),
	spec.RunAt, spec.Delay.About("Time from now until the job is due; for a BLOCKED job, from the end of the jobs "+
		"that it waits for."),
	spec.Priority.About("New priority."), spec.Metadata.About("New metadata, which replaces the old; {} for none."),
	spec.AllowLiterals.About("JSON pointers of strings in the new payload and metadata, one of which is required with "+
		"them, that resemble secrets and are none."),
).Changes().Excluding("run_at", "delay")

type patchInput struct {
	ByID
	rest.Match
}

func (s *Handler) patchJob(ctx context.Context, who tenant.Identity, in *patchInput) (*spec.JobAnswer, error) {
	const changeable = "payload, metadata, run_at, delay or priority"
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
	return s.edit(ctx, in.Key, in.Version, func(row job.Row, now time.Time) (change, error) {
		return s.readPatch(ctx, who, spec.NewReader(doc), f, row, now)
	})
}

// change holds the new values of an edit.
type change struct {
	job.Edit
	parents  string // the new parents of a BLOCKED job, with its time; Edit.DueAt is nil then
	payload  []byte // Edit.Payload's text
	literals []string
	who      tenant.Identity
}

// readPatch checks a patch against the row that it changes.
func (s *Handler) readPatch(
	ctx context.Context, who tenant.Identity, r *rest.Reader, f rest.Fields, row job.Row, now time.Time,
) (change, error) {
	c := change{who: who}
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
		c.parents = of.Encode()
	case given:
		c.DueAt = &at
	}
	spec.Priority.Pointer(r, f, &c.Priority)
	if spec.AllowLiterals.Into(r, f, &c.literals) && !spec.HasAny(f, spec.LiteralFields) {
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
		r.NoSecrets(v, c.literals)
	}
	if v, ok := f["payload"]; ok {
		task, err := s.Store.Task(ctx, row.Tenant, row.Task)
		if fault.KindOf(err) == fault.NotFound { // the task was deleted; the job still runs with what it copied
			task, err = job.Task{Name: row.Task}, nil
		}
		if err != nil {
			return c, err
		}
		task.Executor = row.Executor
		if c.payload, err = s.ReadPayload(ctx, r, v, true, "", task, row.Tenant, c.literals); err != nil {
			return c, err
		}
		next := row
		next.Version++
		stored := job.Payload{}
		if c.payload != nil {
			stored = job.PayloadStorage(&next, c.payload)
		}
		c.Payload = &stored
	}
	return c, r.Wrong.Err()
}

// updateJob is Store.Update. Absent, forgotten and another tenant's jobs give the same error.
func (s *Handler) updateJob(
	ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error),
) (job.Row, error) {
	var decided error
	row, err := s.Store.Update(ctx, k, func(row job.Row) (writes []item.Write, _ error) {
		if decided = rest.NoSuch("job"); !row.StartsRun() {
			writes, decided = decide(row)
		}
		return writes, decided
	})
	if decided == nil || !errors.Is(err, decided) {
		err = rest.Absent(err, "job")
	}
	return row, err
}

// edit changes a job that no attempt is running: row, fence and payload in one transaction. version 0 is any. ask is
// called for each row that is read, because the change depends on it.
func (s *Handler) edit(ctx context.Context, k job.Key, version int64,
	ask func(job.Row, time.Time) (change, error)) (*spec.JobAnswer, error) {
	var row job.Row
	var c change
	var contents job.Contents
	var send bool
	after, err := s.updateJob(ctx, k, func(found job.Row) ([]item.Write, error) {
		row = found
		if version != 0 && row.Version != version {
			return nil, rest.NewProblem(spec.CodeStaleVersion, "the job is at version %d, not %d", row.Version, version)
		}
		now := s.Now()
		claim, err := s.Store.Claim(ctx, k)
		if err != nil {
			return nil, err
		}
		if err := editable(row, claim, now); err != nil {
			return nil, err
		}
		if err := s.Changeable(ctx, row, now); err != nil {
			return nil, err
		}
		if c, err = ask(row, now); err != nil {
			return nil, err
		}
		var after job.Row
		writes := []item.Write{{}}
		if row.Status == job.Blocked {
			after, writes[0] = job.EditBlocked(row, c.Edit, c.parents)
			send = false
		} else {
			after, writes[0], send = job.Reschedule(row, c.Edit, now)
			writes = append(writes, job.Fence(row, claim, after.DueAt, now))
		}
		// The blob's name has the version in it. If the transaction is refused, it is never read.
		if c.Payload != nil && c.Payload.In == job.InBlob {
			if err := s.Store.PutPayload(ctx, after, c.payload); err != nil {
				return nil, fmt.Errorf("keeping the payload of job %s: %w", k.ID, err)
			}
		}
		if c.Labels != nil {
			writes = append(writes, after.PutLabels(*c.Labels))
		}
		contents = job.Contents{Payload: c.payload, Literals: accept.LiteralsBy(c.who.Subject, c.literals)}
		return append(writes, after.PutContents(contents)...), nil
	})
	if err != nil {
		return nil, err
	}
	s.logLiterals(ctx, after, contents)
	if c.Payload != nil {
		// No attempt can read it any more. If the delete fails, its time to live ends it.
		if err := s.Store.ForgetPayload(ctx, row); err != nil {
			s.Log.WarnContext(ctx, "a payload that was replaced is left", telemetry.Tenant, k.Tenant, telemetry.JobID,
				k.ID, telemetry.Err, err)
		}
	}
	if send {
		s.Engine.Accept.FireNow(ctx, after.Firing())
	}
	return s.AnswerJob(ctx, after, http.StatusOK)
}

// editable returns why a job cannot be edited, nil if it can.
func editable(row job.Row, claim job.Claim, now time.Time) error {
	switch {
	case row.Status.Final():
		return rest.NewProblem(spec.CodeAlreadyFinished, "the job is %s", row.Status)
	case row.Status == job.Blocked && row.Parents == "":
		return rest.NewProblem(spec.CodeWrongState, "the node waits for its items, and is no job of its own")
	case row.Stop != job.NoStop:
		return rest.NewProblem(spec.CodeWrongState, "the job is about to become %s", row.Stop.Final())
	case row.Status == job.Running || claim.Live(row.Attempt, now):
		return rest.NewProblem(spec.CodeAlreadyStarted, "attempt %d is under way", row.Attempt)
	}
	return nil
}

func (s *Handler) runNow(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	return s.edit(ctx, in.Key, 0, func(row job.Row, now time.Time) (change, error) {
		if row.Status == job.Blocked {
			return change{}, rest.NewProblem(spec.CodeWrongState, "the job waits for the jobs in after")
		}
		return change{Edit: job.Edit{DueAt: &now}}, nil
	})
}

// cancelJob answers 200 when no attempt can start any more, and 202 when the worker that runs the job was asked to
// stop.
func (s *Handler) cancelJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	row, err := s.Engine.Cancel(ctx, in.Key,
		func(row job.Row, now time.Time) error { return s.Changeable(ctx, row, now) })
	switch {
	case err != nil:
		return nil, rest.Absent(err, "job")
	case row.Status == job.Cancelled:
		if err := s.cancelItems(ctx, row); err != nil {
			return nil, err
		}
		return s.AnswerJob(ctx, row, http.StatusOK)
	case row.Status.Final():
		return nil, rest.NewProblem(spec.CodeAlreadyFinished, "the job is %s", row.Status)
	}
	return s.AnswerJob(ctx, row, http.StatusAccepted)
}

// cancelItems cancels the jobs of the items of a node with for_each. The node's own row is CANCELLED by then, so no
// more are made. Items that have ended keep their status.
func (s *Handler) cancelItems(ctx context.Context, row job.Row) error {
	k := run.Of(row)
	for i := range row.Items {
		_, err := s.Engine.Cancel(ctx, k.Job(row.Node, row.Generation, i+1),
			func(job.Row, time.Time) error { return nil })
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

func (s *Handler) redriveJob(ctx context.Context, who tenant.Identity, in *ByID) (*spec.JobAnswer, error) {
	by, err := s.redrive(ctx, in.Key)
	if err != nil {
		return nil, err
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

// redrive brings a dead job back as a new job and returns its id. If it was redriven before, the error is a problem
// with redriven_by, and the id is the one of that time.
func (s *Handler) redrive(ctx context.Context, k job.Key) (job.ID, error) {
	by, already, err := s.Engine.Redrive(ctx, k)
	switch {
	case already:
		p := rest.NewProblem(spec.CodeWrongState, "the job was redriven before, as %s", by)
		p.RedrivenBy = string(by)
		return by, p
	case fault.KindOf(err) == fault.NotFound:
		return "", rest.NoSuch("job")
	case fault.KindOf(err) == fault.Refused:
		row, rowErr := s.row(ctx, k)
		switch {
		case rowErr != nil:
			return "", rowErr
		case !row.Status.Final():
			return "", rest.NewProblem(spec.CodeNotFinished, "only a DEAD job is redriven; this one has not ended")
		}
		return "", rest.NewProblem(spec.CodeWrongState, "only a DEAD job is redriven; this one is %s", row.Status)
	}
	if err == nil {
		s.Collect(ctx)
	}
	return by, err
}

func (s *Handler) deleteJob(ctx context.Context, who tenant.Identity, in *ByID) (*rest.NoContent, error) {
	return &rest.NoContent{}, s.Forget(ctx, in.Key, func(row job.Row) error {
		if row.Status == job.Dead && !who.May(tenant.Admin) { // this is a purge
			return rest.NewProblem(rest.CodeForbidden,
				"to delete a DEAD job needs the scope %s, which the token does not have", tenant.Admin)
		}
		return nil
	})
}

// runHasEnded returns a problem for the job of a node whose run goes on: the run still reads the job's row and result.
// The writes go in one transaction with the one that forgets the job: the run may be retried meanwhile.
func (s *Handler) runHasEnded(ctx context.Context, row job.Row) ([]item.Write, error) {
	if !row.InRun() {
		return nil, nil
	}
	of, err := s.Store.Run(ctx, run.Of(row))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !of.Status.Final() || of.Operation != nil:
		return nil, rest.NewProblem(spec.CodeNotFinished,
			"the job belongs to run %s, which has not ended; cancel the run first, or wait for its end", of.ID)
	}
	return []item.Write{of.CheckOver()}, nil
}

// Forget replaces a finished job by a tombstone and deletes its contents. may refuses a row by an error.
func (s *Handler) Forget(ctx context.Context, k job.Key, may func(job.Row) error) error {
	found, dead := false, false
	row, err := s.Store.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		found, dead = true, row.Status == job.Dead
		switch {
		case row.StartsRun():
			return nil, rest.NoSuch("job")
		case !row.Status.Final():
			return nil, rest.NewProblem(spec.CodeNotFinished, "the job has not ended; cancel it first")
		case row.PendingEffects.Children():
			return nil, rest.NewProblem(spec.CodeWrongState,
				"the job has yet to notify its dependents; try again in a moment")
		}
		if err := may(row); err != nil {
			return nil, err
		}
		checks, err := s.runHasEnded(ctx, row)
		if err != nil {
			return nil, err
		}
		return append([]item.Write{job.Forget(row, s.Now())}, checks...), nil
	})
	switch {
	case found && fault.KindOf(err) == fault.NotFound: // another request has just forgotten it
		return nil
	case err != nil:
		return rest.Absent(err, "job")
	}
	if dead {
		s.Collect(ctx)
	}
	if err := s.Store.ForgetContents(ctx, row); err != nil { // the job is gone, and what is left has a time to live
		s.Log.WarnContext(ctx, "a forgotten job left something behind", telemetry.Tenant, k.Tenant, telemetry.JobID,
			k.ID, telemetry.Err, err)
	}
	return nil
}
