package jobs

import (
	"context"
	"fmt"
	"net/http"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

func (s *Handler) jobRoutes() {
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPost, Path: "/v1/jobs", Status: http.StatusAccepted, ID: "createJob", Tag: spec.TagJobs,
		Scope: spec.MayWrite, Body: jobRequest,
		Summary: "Create a job", Errors: []int{http.StatusUnprocessableEntity},
		About: "The answer 202 means that the job is accepted. With an Idempotency-Key the request can be repeated " +
			"for {=key_hours} hours: the same key and body return the job of the first request. A job after others " +
			"that have already ended is SCHEDULED, CANCELLED or SKIPPED at once.",
	}, s.createJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPost, Path: "/v1/jobs/batch", Status: http.StatusOK, ID: "createJobs", Tag: spec.TagJobs,
		Scope: spec.MayWrite, Body: batchRequest,
		Summary: "Create up to {=batch_jobs} jobs", About: "Each job is accepted or refused on its own: an " +
			"invalid job does not affect the others. The body has at most {=batch_mib} MiB.",
	}, s.createJobs)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodGet, Path: "/v1/jobs", ID: "listJobs", Tag: spec.TagJobs, Scope: spec.MayRead,
		Summary: "List jobs", About: "Newest first, without payloads. The order is that of the times in the " +
			"identifiers: the time of acceptance, for a schedule's job its nominal time, for a redriven job the time " +
			"at which it died. The list ends at now; jobs that a schedule has made ahead are listed with the filter " +
			"schedule. A request reads for about {=list_read}; its page can then be short, or empty, and have a " +
			"cursor, which is not the end. DEAD jobs, RUNNING ones and those of a task are found quickly among any " +
			"number of others. A tenant with more than {=known} DEAD jobs gets those that died last first.",
	}, s.listJobs)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{id}", ID: "getJob", Tag: spec.TagJobs, Scope: spec.MayRead,
		Summary: "Get a job, or wait for its end", Errors: []int{http.StatusNotFound},
		About: "A job that has ended is kept for {=finished_days} days, a DEAD one for {=dead_days}, with its " +
			"payload, result, tags and attempts; after that the answer is 404.",
	}, s.getJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPatch, Path: "/v1/jobs/{id}", ID: "patchJob", Tag: spec.TagJobs, Scope: spec.MayWrite,
		MergePatch: true,
		Body:       jobPatchRequest,
		Summary:    "Change a job while no attempt runs",
		Errors:     []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		About:      "Each given field replaces the old value as a whole. Possible also between attempts.",
	}, s.patchJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodDelete, Path: "/v1/jobs/{id}", ID: "deleteJob", Tag: spec.TagJobs, Scope: spec.MayWrite,
		Summary: "Delete a finished job", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "A DEAD job requires the scope punctual:admin, as deleting dead letters does.",
	}, s.deleteJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/cancel", ID: "cancelJob", Tag: spec.TagJobs, Scope: spec.MayWrite,
		Summary: "Cancel a job", Also: []int{http.StatusAccepted},
		Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "200: the job is CANCELLED and no attempt can start. 202: an attempt runs; its handler is notified " +
			"within {=cancel_s} s, and its outcome decides.",
	}, s.cancelJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/run-now", ID: "runJobNow", Tag: spec.TagJobs,
		Scope:   spec.MayWrite,
		Summary: "Run a waiting job now", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "The job is due now; a job that waits for a retry starts its next attempt.",
	}, s.runNow)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/redrive", Status: http.StatusAccepted, ID: "redriveJob",
		Tag: spec.TagJobs, Scope: spec.MayManage,
		Summary: "Redrive a DEAD job as a new job", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "The new job has all its attempts, redrive_of, and the same key for its handler.",
	}, s.redriveJob)
	rest.Register(s.Router, rest.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{id}/attempts", ID: "listAttempts", Tag: spec.TagJobs,
		Scope:   spec.MayRead,
		About:   "Attempts that have ended, oldest first.",
		Summary: "List the attempts of a job", Errors: []int{http.StatusNotFound},
	}, s.listAttempts)
}

type createJobInput struct {
	Key string `header:"Idempotency-Key" doc:"Idempotency key, printable ASCII, which identifies this request for {=key_hours} hours"`
}

func (s *Handler) createJob(ctx context.Context, who tenant.Identity, _ *createJobInput) (*spec.JobAnswer, error) {
	key, err := spec.ReadKey(rest.HeaderOf(ctx).Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "a job is needed in the body")
	if err != nil {
		return nil, err
	}
	a, err := s.submit(ctx, who, spec.NewReader(doc), rest.Value{}, jobRequest, key,
		s.TaskBook(who.Tenant), nil)
	if err != nil {
		return nil, err
	}
	if a.fire != nil {
		s.Fire(ctx, *a.fire)
	}
	if !a.replayed {
		s.Meter.Count(telemetry.JobsAccepted, 1)
	}
	return answerAccepted(a), nil
}

func answerAccepted(a accepted) *spec.JobAnswer {
	out := &spec.JobAnswer{Status: http.StatusAccepted, Location: "/v1/jobs/" + string(a.view.JobID),
		ETag: spec.Etag(a.view.Version), Body: a.view}
	if a.replayed {
		out.Replayed, out.Link = "true", a.redriveLink()
	}
	return out
}

// redriveLink names the redrive of a replayed job that is DEAD, as a header Link does; "" for any other job.
func (a accepted) redriveLink() string {
	if !a.replayed || a.view.Status != job.Dead {
		return ""
	}
	return fmt.Sprintf(`</v1/jobs/%s/redrive>; rel="redrive"`, a.view.JobID)
}

// submit reads and accepts the job at v. The idempotency key is checked first: a time or a task that was right in the
// first request may be wrong by now.
func (s *Handler) submit(
	ctx context.Context, who tenant.Identity, r *rest.Reader, v rest.Value, known *field.Object, key string,
	book *spec.TaskBook, earlier earlierJobs,
) (accepted, error) {
	f := known.Read(r, v)
	if f == nil {
		return accepted{}, r.Wrong.Err()
	}
	now := s.Now()
	hash, gone := "", job.ID("")
	if key == "" {
		batchKey.Into(r, f, &key)
	}
	if key != "" && len(r.Wrong) == 0 {
		hash = r.Doc.Hash(v.Node, "idempotency_key")
		var first accepted
		var ok bool
		var err error
		if first, gone, ok, err = s.replay(ctx, who.Tenant, key, hash, now); err != nil || ok {
			s.judgeAfter(ctx, who.Tenant, first)
			return first, err
		}
	}
	after := func(d *spec.Draft) error { return s.readAfter(ctx, r, f, v.Pointer, d, earlier, now) }
	d, err := s.ReadJob(ctx, r, f, v.Pointer, book, after, now)
	if err != nil {
		return accepted{}, err
	}
	if len(r.Wrong) > 0 {
		return accepted{}, r.Wrong
	}
	a, err := s.accept(ctx, who, d, key, hash, gone, now)
	if err != nil {
		return a, err
	}
	if !a.replayed {
		s.countEnded(a.view.Status)
	}
	s.judgeAfter(ctx, who.Tenant, a)
	return a, nil
}

type getJobInput struct {
	ID   string `path:"id"`
	Wait string `query:"wait" doc:"Maximum wait for a final status. On timeout the current state is returned; it is returned at once, with Retry-After, when too many requests of the tenant wait" example:"20s"`
}

// row reads a job's row. Absent, forgotten and another tenant's jobs give the same error.
func (s *Handler) row(ctx context.Context, k job.Key) (job.Row, error) {
	r, err := s.Store.Row(ctx, k)
	if err == nil {
		err = spec.NoJob(r)
	}
	return r, spec.AsNoJob(err)
}

func (s *Handler) getJob(ctx context.Context, who tenant.Identity, in *getJobInput) (*spec.JobAnswer, error) {
	k, err := spec.KeyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	wait, err := spec.ReadWait(in.Wait)
	if err != nil {
		return nil, err
	}
	r, err := s.row(ctx, k)
	if err != nil {
		return nil, err
	}
	retryAfter := ""
	if wait > 0 && !r.Status.Final() {
		retryAfter, err = s.Await(ctx, who.Tenant, wait, func() (_ bool, err error) {
			r, err = s.row(ctx, k)
			return r.Status.Final(), err
		})
		if err != nil {
			return nil, err
		}
	}
	out, err := s.AnswerJob(ctx, r, http.StatusOK, true)
	if err == nil {
		out.RetryAfter = retryAfter
	}
	return out, err
}
