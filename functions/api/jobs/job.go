package jobs

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/show"
	"punctual/functions/engine/submit"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Handler serves jobs and dead letters.
type Handler struct {
	*spec.Core
}

// New registers the routes of jobs and dead letters.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	h.jobRoutes()
	h.deadLetterRoutes()
	return h
}

func (s *Handler) jobRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagJobs, Path: "/v1/jobs"}
	rest.Post(on, "", "createJob", "Create a job", s.createJob, rest.Route{
		Status: http.StatusAccepted, Also: []int{http.StatusOK}, Conflict: true, Body: jobRequest,
		About: "The answer 202 means that the job is accepted; 200, that another job holds its unique key, and is " +
			"shown. With an Idempotency-Key the request can be repeated for {=key_hours} hours: the same key and " +
			"body return the job of the first request. A job after others that have already ended is SCHEDULED, " +
			"CANCELLED or SKIPPED at once.",
	})
	rest.Post(on, "/batch", "createJobs", "Create up to {=batch_jobs} jobs", s.createJobs, rest.Route{
		Status: http.StatusOK, Body: batchRequest,
		About: "Each job is accepted or refused on its own: an invalid job does not affect the others. The body has " +
			"at most {=batch_mib} MiB.",
	})
	rest.GetSearch(on, "", "listJobs", "List jobs", s.listJobs, rest.Route{
		About: "Newest first, without payloads. The order is that of the times in the identifiers: the time of " +
			"acceptance, for a schedule's job its nominal time, for a redriven job the time at which it died. The " +
			"list ends at now; jobs that a schedule has made ahead are listed with the filter schedule. A request " +
			"reads for about {=list_read}; its page can then be short, or empty, and have a cursor, which is not the " +
			"end. DEAD jobs, RUNNING ones and those of a task are found quickly among any number of others. A tenant " +
			"with more than {=known} DEAD jobs gets those that died last first.",
	})
	rest.Get(on, "/{id}", "getJob", "Get a job, or wait for its end", s.getJob, rest.Route{
		About: "A job that has ended is kept for {=finished_days} days, a DEAD one for {=dead_days}, with its " +
			"payload, result, tags and attempts; after that the answer is 404.",
	})
	rest.Patch(on, "/{id}", "patchJob", "Change a job while no attempt runs", s.patchJob, rest.Route{
		Action:     audit.JobPatch,
		MergePatch: true, Body: jobPatchRequest, Conflict: true,
		About: "Each given field replaces the old value as a whole. Possible also between attempts.",
	})
	rest.Delete(on, "/{id}", "deleteJob", "Delete a finished job", s.deleteJob, rest.Route{
		Action:   audit.JobDelete,
		Conflict: true, About: "A DEAD job requires the scope punctual:admin, as deleting dead letters does.",
	})
	rest.Post(on, "/{id}/cancel", "cancelJob", "Cancel a job", s.cancelJob, rest.Route{
		Action: audit.JobCancel,
		Also:   []int{http.StatusAccepted}, Conflict: true,
		About: "200: the job is CANCELLED and no attempt can start. 202: an attempt runs; its handler is notified " +
			"within {=cancel_s} s, and its outcome decides.",
	})
	rest.Post(on, "/{id}/run-now", "runJobNow", "Run a waiting job now", s.runNow, rest.Route{
		Action:   audit.JobRunNow,
		Conflict: true, About: "The job is due now; a job that waits for a retry starts its next attempt. A paused " +
			"job has to be resumed first.",
	})
	rest.Post(on, "/{id}/pause", "pauseJob", "Pause a job that waits", s.pauseJob, rest.Route{
		Action: audit.JobPause,
		Body:   pauseRequest, OptionalBody: true, Conflict: true,
		About: "A job that has not started, waits for a retry or is BLOCKED does not start until it is resumed. Its " +
			"start_within and expire_after go on. A job that is paused already stays as it is.",
	})
	rest.Post(on, "/{id}/resume", "resumeJob", "Resume a paused job", s.resumeJob, rest.Route{
		Action:   audit.JobResume,
		Conflict: true, About: "A job that is due starts at once, unless something else holds it. A job that is not " +
			"paused stays as it is.",
	})
	rest.Post(on, "/{id}/redrive", "redriveJob", "Redrive a DEAD job as a new job", s.redriveJob, rest.Route{
		Action: audit.JobRedrive,
		Status: http.StatusAccepted, Scope: tenant.Admin, Conflict: true, Body: redriveRequest, OptionalBody: true,
		About: "The new job has all its attempts, redrive_of, and the same key for its handler. The body corrects " +
			"it; what it leaves out is that of the dead job. A job is redriven once, whatever the corrections. The " +
			"job of a run's node takes none, because its redrive retries the node.",
	})
	rest.GetPage(on, "/{id}/attempts", "listAttempts", "List the attempts of a job", s.listAttempts,
		rest.Route{About: "Attempts that have ended, oldest first."})
	s.logRoutes(on)
}

var (
	jobRequest = field.NewObject("JobRequest", "Job to run, and when.", spec.Task, spec.Payload, spec.RunAt, spec.Delay,
		spec.Priority, spec.Pool, spec.Timeout, spec.StartWithin, spec.ExpireAfter, spec.Retry, spec.Limits,
		spec.Unique, after, runIf, spec.Tags, spec.Metadata, spec.AllowLiterals).
		Excluding("run_at", "delay").Needing("run_if", "after")
	batchJobRequest = jobRequest.Replacing("BatchJobRequest", "Job of a batch.", after.Shaped(field.ArrayOf(0,
		contract.MaxAfter, field.TextSchema(field.Matching(parentPattern, spec.JobIDLength))))).With(batchKey)
)

// ByID is the input of a route about one job.
type ByID struct {
	ID  string `path:"id"`
	Key job.Key
}

// Prepare makes the key of the job. A text that is no id is a job that does not exist.
func (in *ByID) Prepare(_ context.Context, who tenant.Identity) error {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return rest.NoSuch("job")
	}
	in.Key = job.Key{Tenant: who.Tenant, ID: id}
	return nil
}

func (s *Handler) createJob(ctx context.Context, who tenant.Identity, in *spec.Keyed) (*spec.JobAnswer, error) {
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "a job is needed in the body")
	if err != nil {
		return nil, err
	}
	a, err := s.submit(ctx, who, spec.NewReader(doc), rest.Value{}, jobRequest, in.IdempotencyKey,
		s.TaskBook(who.Tenant), nil)
	if err != nil {
		return nil, err
	}
	s.Submit.Fire(ctx, a.Job)
	out := &spec.JobAnswer{Status: http.StatusAccepted, Location: "/v1/jobs/" + string(a.view.JobID),
		ETag: spec.Etag(a.view.Version), Link: a.redriveLink(), Body: a.view}
	if a.Replayed {
		out.Replayed = "true"
	}
	if a.Held {
		out.Status = http.StatusOK
	}
	return out, nil
}

// accepted is a job that was accepted, with its view.
type accepted struct {
	submit.Job
	view spec.JobView
}

// redriveLink names the redrive of a replayed job that is DEAD, as a header Link does; "" for any other job.
func (a accepted) redriveLink() string {
	if !a.Replayed || a.view.Status != job.Dead {
		return ""
	}
	return fmt.Sprintf(`</v1/jobs/%s/redrive>; rel="redrive"`, a.view.JobID)
}

// submit reads and accepts the job at v. A job of an earlier request with the same key is shown as it is now.
func (s *Handler) submit(
	ctx context.Context, who tenant.Identity, r *rest.Reader, v rest.Value, known *field.Object, key string,
	book *spec.TaskBook, earlier earlierJobs,
) (a accepted, err error) {
	f := known.Read(r, v)
	if f == nil {
		return a, r.Wrong.Err()
	}
	of := submit.Request{Who: who, Key: key}
	if key == "" {
		batchKey.Into(r, f, &of.Key)
	}
	if len(r.Wrong) > 0 {
		of.Key = "" // the request is refused, whatever the key names
	}
	if of.Key != "" {
		of.Hash = r.Doc.Hash(v.Node, "idempotency_key")
	}
	a.Job, err = s.Submit.Job(ctx, of, func(now time.Time) (*accept.Draft, error) {
		after := func(d *accept.Draft) error { return s.readAfter(ctx, r, f, v.Pointer, d, earlier, now) }
		d, err := s.ReadJob(ctx, r, f, v.Pointer, book, after, now)
		if d != nil {
			d.When = whenOf(r, f, now)
		}
		return d, cmp.Or(err, r.Wrong.Err())
	}, func(row job.Row, now time.Time) ([]byte, error) { // without contents, which a repeated request brings
		return text.JSON(s.viewNew(ctx, row, now))
	})
	switch {
	case err != nil:
		return a, spec.SubmitProblem(err)
	case a.Replayed || a.Held:
		if a.view, err = s.Show(ctx, a.Row); err == nil {
			err = s.Detail(ctx, a.Row, &a.view)
		}
	default:
		a.view = s.viewNew(ctx, a.Row, a.At)
		a.view.Asked(a.Contents)
	}
	return a, err
}

// viewNew shows a job that is just accepted, without its contents.
func (s *Handler) viewNew(ctx context.Context, r job.Row, now time.Time) spec.JobView {
	v := spec.ViewJob(show.Job{Row: r, Paused: s.Pauses.Holds(ctx, r, now), At: now})
	v.JobDetail = spec.DetailOf(r)
	return v
}

// row reads a job's row. Absent, forgotten and another tenant's jobs give the same error, as does the row of a run.
func (s *Handler) row(ctx context.Context, k job.Key) (job.Row, error) {
	r, err := s.Store.Row(ctx, k)
	if err == nil && r.StartsRun() {
		return r, rest.NoSuch("job")
	}
	return r, rest.Absent(err, "job")
}

type getJobInput struct {
	ByID
	spec.Waits
}

func (s *Handler) getJob(ctx context.Context, who tenant.Identity, in *getJobInput) (*spec.JobAnswer, error) {
	r, err := s.row(ctx, in.Key)
	retryAfter := ""
	if err == nil && in.Most > 0 && !r.Status.Final() {
		retryAfter, err = s.Await(ctx, who.Tenant, in.Most, func() (_ bool, err error) {
			r, err = s.row(ctx, in.Key)
			return r.Status.Final(), err
		})
	}
	if err != nil {
		return nil, err
	}
	out, err := s.AnswerJob(ctx, r, http.StatusOK)
	if err == nil {
		out.RetryAfter = retryAfter
	}
	return out, err
}
