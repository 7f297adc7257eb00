package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
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
	spec.AllowLiterals.About("JSON pointers of strings in the new payload and metadata that look like secrets and are "+
		"not."),
).Changes().Refusing(isEither(
	hasAll("run_at", "delay"),
	&huma.Schema{AllOf: []*huma.Schema{hasAll("allow_literals"), isNot(hasAny(spec.LiteralFields))}},
))

type patchInput struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match" doc:"The ETag that was read: another version meanwhile is 412"`
}

func (s *stage) patchJob(ctx context.Context, who tenant.Identity, in *patchInput) (*jobAnswer, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	version, err := readMatch(wire.HeaderOf(ctx).Values("If-Match"))
	if err != nil {
		return nil, err
	}
	const changeable = "payload, metadata, run_at, delay or priority"
	doc, err := neededBody(ctx, contract.MaxBody, changeable, "something to change is needed in the body")
	if err != nil {
		return nil, err
	}
	r := newReader(doc)
	f := jobPatchRequest.Body(r)
	if f != nil && len(f) == 0 && len(r.Wrong) == 0 {
		r.Mistake("", wire.CodeMissingField, changeable, "the body changes nothing")
	}
	if len(r.Wrong) > 0 {
		return nil, r.Wrong
	}
	return s.edit(ctx, k, version, func(row job.Row, now time.Time) (change, error) {
		return s.readPatch(ctx, who, newReader(doc), f, row, now)
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
func (s *stage) readPatch(
	ctx context.Context, who tenant.Identity, r *wire.Reader, f wire.Fields, row job.Row, now time.Time,
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
		if c.payload, err = s.readPayload(ctx, r, v, true, "", task, row.Tenant, c.literals); err != nil {
			return c, err
		}
		next := row
		next.Version++
		placed := job.Payload{}
		if c.payload != nil {
			placed = job.PlacePayload(&next, c.payload)
		}
		c.Payload = &placed
	}
	return c, r.Wrong.Err()
}

// matchPattern is one strong ETag as we write it.
var matchPattern = regexp.MustCompile(`^"([1-9][0-9]{0,17})"$`)

// readMatch reads the version in If-Match; 0 is any.
func readMatch(values []string) (int64, error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "*" {
		return 0, nil
	}
	m := matchPattern.FindStringSubmatch(values[0])
	if len(values) > 1 || m == nil {
		return 0, wire.OneMistake("If-Match", wire.CodeInvalidValue, `one ETag as it was given, such as "3", or *`,
			"If-Match is not an ETag of a job")
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// noJob returns the problem of an absent job for a row that stands for a run, and nil for a job.
func noJob(row job.Row) error {
	if row.StartsRun() {
		return errNoJob()
	}
	return nil
}

// updateJob is Store.Update. Absent, forgotten and another tenant's jobs give the same error.
func (s *stage) updateJob(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error) {
	var decided error
	row, err := s.Store.Update(ctx, k, func(row job.Row) (writes []item.Write, _ error) {
		if decided = noJob(row); decided == nil {
			writes, decided = decide(row)
		}
		return writes, decided
	})
	if decided == nil || !errors.Is(err, decided) {
		err = asNoJob(err)
	}
	return row, err
}

// edit changes a job that no attempt is running: row, fence and payload in one transaction. version 0 is any. ask is
// called for each row that is read, because the change depends on it.
func (s *stage) edit(ctx context.Context, k job.Key, version int64,
	ask func(job.Row, time.Time) (change, error)) (*jobAnswer, error) {
	var row job.Row
	var c change
	var contents job.Contents
	var send bool
	after, err := s.updateJob(ctx, k, func(found job.Row) ([]item.Write, error) {
		row = found
		if version != 0 && row.Version != version {
			return nil, wire.NewProblem(spec.CodeStaleVersion, "the job is at version %d, not %d", row.Version, version)
		}
		now := s.now()
		claim, err := s.Store.Claim(ctx, k)
		if err != nil {
			return nil, err
		}
		if err := editable(row, claim, now); err != nil {
			return nil, err
		}
		if err := s.changeable(ctx, row, now); err != nil {
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
		// The blob's name has the version in it. If the transaction is refused, nobody reads it.
		if c.Payload != nil && c.Payload.In == job.InBlob {
			if err := s.Store.PutPayload(ctx, after, c.payload); err != nil {
				return nil, fmt.Errorf("keeping the payload of job %s: %w", k.ID, err)
			}
		}
		if c.Labels != nil {
			writes = append(writes, after.PutLabels(*c.Labels))
		}
		contents = job.Contents{Payload: c.payload, Literals: literalsBy(c.who, c.literals)}
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
		s.fire(ctx, after.Firing())
	}
	return s.answerJob(ctx, after, http.StatusOK, true)
}

// editable returns why a job cannot be edited, nil if it can.
func editable(row job.Row, claim job.Claim, now time.Time) error {
	switch {
	case row.Status.Final():
		return wire.NewProblem(spec.CodeAlreadyFinished, "the job is %s", row.Status)
	case row.Status == job.Blocked && row.Parents == "":
		return wire.NewProblem(spec.CodeWrongState, "the node waits for its items, and is no job of its own")
	case row.Stop != job.NoStop:
		return wire.NewProblem(spec.CodeWrongState, "the job is about to become %s", row.Stop.Final())
	case row.Status == job.Running || claim.Live(row.Attempt, now):
		return wire.NewProblem(spec.CodeAlreadyStarted, "attempt %d is under way", row.Attempt)
	}
	return nil
}

type jobInput struct {
	ID string `path:"id"`
}

func (s *stage) runNow(ctx context.Context, who tenant.Identity, in *jobInput) (*jobAnswer, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	return s.edit(ctx, k, 0, func(row job.Row, now time.Time) (change, error) {
		if row.Status == job.Blocked {
			return change{}, wire.NewProblem(spec.CodeWrongState, "the job waits for those that it comes after")
		}
		return change{Edit: job.Edit{DueAt: &now}}, nil
	})
}

// cancelJob answers 200 when no attempt can start any more, and 202 when the worker that runs the job was asked to
// stop.
func (s *stage) cancelJob(ctx context.Context, who tenant.Identity, in *jobInput) (*jobAnswer, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	row, err := s.engine.Decide.Cancel(ctx, k,
		func(row job.Row, now time.Time) error { return s.changeable(ctx, row, now) })
	switch {
	case err != nil:
		return nil, asNoJob(err)
	case row.Status == job.Cancelled:
		if err := s.cancelItems(ctx, row); err != nil {
			return nil, err
		}
		return s.answerJob(ctx, row, http.StatusOK, true)
	case row.Status.Final():
		return nil, wire.NewProblem(spec.CodeAlreadyFinished, "the job is %s", row.Status)
	}
	return s.answerJob(ctx, row, http.StatusAccepted, true)
}

// cancelItems cancels the jobs of the items of a node with for_each. The node's own row is CANCELLED by then, so no
// more are made. Items that have ended keep their status.
func (s *stage) cancelItems(ctx context.Context, row job.Row) error {
	k := run.Of(row)
	for i := range row.Items {
		_, err := s.engine.Decide.Cancel(ctx, k.Job(row.Node, row.Generation, i+1),
			func(job.Row, time.Time) error { return nil })
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

func (s *stage) redriveJob(ctx context.Context, who tenant.Identity, in *jobInput) (*jobAnswer, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	by, err := s.redrive(ctx, k)
	if err != nil {
		return nil, err
	}
	row, err := s.Store.Row(ctx, job.Key{Tenant: k.Tenant, ID: by})
	if fault.KindOf(err) == fault.NotFound { // a node's run is paused or full: it makes the new job when it goes on
		row, err = s.row(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.answerJob(ctx, row, http.StatusAccepted, true)
	if err == nil {
		out.Location = "/v1/jobs/" + string(by)
	}
	return out, err
}

// redrive brings a dead job back as a new job and returns its id. If it was redriven before, the error is a problem
// with redriven_by, and the id is the one of that time.
func (s *stage) redrive(ctx context.Context, k job.Key) (job.ID, error) {
	by, already, err := s.engine.Accept.Redrive(ctx, k)
	switch {
	case already:
		p := wire.NewProblem(spec.CodeWrongState, "the job was brought back before, as %s", by)
		p.RedrivenBy = string(by)
		return by, p
	case fault.KindOf(err) == fault.NotFound:
		return "", errNoJob()
	case fault.KindOf(err) == fault.Refused:
		row, rowErr := s.row(ctx, k)
		switch {
		case rowErr != nil:
			return "", rowErr
		case !row.Status.Final():
			return "", wire.NewProblem(spec.CodeNotFinished, "only a DEAD job is redriven; this one is not over")
		}
		return "", wire.NewProblem(spec.CodeWrongState, "only a DEAD job is redriven; this one is %s", row.Status)
	}
	if err == nil {
		s.collect(ctx)
	}
	return by, err
}

func (s *stage) deleteJob(ctx context.Context, who tenant.Identity, in *jobInput) (*empty, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	return &empty{}, s.forget(ctx, k, func(row job.Row) error {
		if row.Status == job.Dead && !who.May(mayManage) { // this is a purge
			return wire.NewProblem(wire.CodeForbidden,
				"to delete a DEAD job needs the scope %s, which the token does not have", mayManage)
		}
		return nil
	})
}

// runHasEnded returns a problem for the job of a node whose run goes on: the run still reads the job's row and result.
// The writes go in one transaction with the one that forgets the job: the run may be retried meanwhile.
func (s *stage) runHasEnded(ctx context.Context, row job.Row) ([]item.Write, error) {
	if row.RunID == "" {
		return nil, nil
	}
	of, err := s.Store.Run(ctx, run.Of(row))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !of.Status.Final() || of.Act != nil:
		return nil, wire.NewProblem(spec.CodeNotFinished,
			"the job belongs to run %s, which has not ended; cancel the run first, or wait for its end", of.ID)
	}
	return []item.Write{of.CheckOver()}, nil
}

// forget replaces a finished job by a tombstone and deletes its contents. may refuses a row by an error.
func (s *stage) forget(ctx context.Context, k job.Key, may func(job.Row) error) error {
	found, dead := false, false
	row, err := s.Store.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		found, dead = true, row.Status == job.Dead
		switch {
		case row.StartsRun():
			return nil, errNoJob()
		case !row.Status.Final():
			return nil, wire.NewProblem(spec.CodeNotFinished, "the job is not over; cancel it first")
		case row.PendingEffects.Children():
			return nil, wire.NewProblem(spec.CodeWrongState,
				"the job has yet to tell those that wait for it; try again in a moment")
		}
		if err := may(row); err != nil {
			return nil, err
		}
		checks, err := s.runHasEnded(ctx, row)
		if err != nil {
			return nil, err
		}
		return append([]item.Write{job.Forget(row, s.now())}, checks...), nil
	})
	switch {
	case found && fault.KindOf(err) == fault.NotFound: // somebody else has just forgotten it
		return nil
	case err != nil:
		return asNoJob(err)
	}
	if dead {
		s.collect(ctx)
	}
	if err := s.Store.ForgetContents(ctx, row); err != nil { // the job is gone, and what is left has a time to live
		s.Log.WarnContext(ctx, "a forgotten job left something behind", telemetry.Tenant, k.Tenant, telemetry.JobID,
			k.ID, telemetry.Err, err)
	}
	return nil
}
