package api

import (
	"context"
	"fmt"
	"net/http"

	"punctual/functions/api/field"
	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// jobAnswer is the view of one job, with headers.
type jobAnswer struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"The version in quotes, for If-Match"`
	Replayed string `header:"Idempotency-Replayed" doc:"true when an earlier request with the same key made this job; it is shown as it is now"`
	Link     string `header:"Link" doc:"Of a replay of a DEAD job: where it is redriven, rel=\"redrive\""`
	// RetryAfter is set where a request with wait did not wait.
	RetryAfter string `header:"Retry-After" doc:"Seconds after which to ask again: too many requests of the tenant wait already, so this one did not"`
	Body       JobView
}

func (s *stage) jobRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/jobs", Status: http.StatusAccepted, ID: "createJob", Tag: tagJobs,
		Scope: mayWrite, Body: jobRequest,
		Summary: "Create a job", Errors: []int{http.StatusUnprocessableEntity},
		About: "The job is accepted when this answers 202. With an Idempotency-Key the request may be repeated for " +
			"{=key_hours} hours: the same key and body give the first answer again. A job after others whose end is " +
			"known already is answered as they decide: SCHEDULED, CANCELLED or SKIPPED.",
	}, s.createJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/jobs/batch", Status: http.StatusOK, ID: "createJobs", Tag: tagJobs,
		Scope: mayWrite, Body: batchRequest,
		Summary: "Create up to {=batch_jobs} jobs", About: "Each job is accepted or refused by itself: one bad " +
			"item spoils no other. The body has at most {=batch_mib} MiB.",
	}, s.createJobs)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/jobs", ID: "listJobs", Tag: tagJobs, Scope: mayRead,
		Summary: "List jobs", About: "Newest first, without payloads, by the time in the id: when a job was " +
			"accepted, of a schedule's job its nominal time, " +
			"of a redriven one when it died. The list ends at now; what a schedule has made ahead is listed with " +
			"schedule. A page reads on for about {=list_read}, and may then be short, or empty, and have a cursor: " +
			"that is not the end. DEAD jobs, RUNNING ones and those of a task are found at once among any number " +
			"of others. " +
			"A tenant with more than {=known} DEAD jobs gets the last that died first.",
	}, s.listJobs)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{id}", ID: "getJob", Tag: tagJobs, Scope: mayRead,
		Summary: "Get a job, or wait for its end", Errors: []int{http.StatusNotFound},
		About: "A job that is over is kept for {=finished_days} days, a DEAD one for {=dead_days}, with its " +
			"payload, result, tags and attempts; then it is not found.",
	}, s.getJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPatch, Path: "/v1/jobs/{id}", ID: "patchJob", Tag: tagJobs, Scope: mayWrite,
		MergePatch: true,
		Body:       jobPatchRequest,
		Summary:    "Change a job while no attempt runs",
		Errors:     []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		About:      "Payload, time and priority. Fields at the top are replaced as a whole. Also between attempts.",
	}, s.patchJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodDelete, Path: "/v1/jobs/{id}", ID: "deleteJob", Tag: tagJobs, Scope: mayWrite,
		Summary: "Delete a finished job", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "One that is DEAD needs the scope that purging dead letters needs, punctual:admin.",
	}, s.deleteJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/cancel", ID: "cancelJob", Tag: tagJobs, Scope: mayWrite,
		Summary: "Cancel a job", Also: []int{http.StatusAccepted},
		Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "200: it is CANCELLED and no attempt can start any more. 202: it runs, its handler is told within " +
			"{=cancel_s} s, and what it then ends with decides.",
	}, s.cancelJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/run-now", ID: "runJobNow", Tag: tagJobs, Scope: mayWrite,
		Summary: "Run a waiting job now", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.runNow)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/jobs/{id}/redrive", Status: http.StatusAccepted, ID: "redriveJob",
		Tag: tagJobs, Scope: mayManage,
		Summary: "Redrive a DEAD job as a new job", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "The new job has fresh attempts, redrive_of, and the same key for its handler.",
	}, s.redriveJob)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{id}/attempts", ID: "listAttempts", Tag: tagJobs, Scope: mayRead,
		About:   "Those that have ended, oldest first.",
		Summary: "List the attempts of a job", Errors: []int{http.StatusNotFound},
	}, s.listAttempts)
}

type createJobInput struct {
	Key string `header:"Idempotency-Key" doc:"Printable ASCII; names this request for {=key_hours} hours"`
}

func (s *stage) createJob(ctx context.Context, who tenant.Identity, _ *createJobInput) (*jobAnswer, error) {
	key, err := readKey(wire.HeaderOf(ctx).Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	doc, err := neededBody(ctx, contract.MaxBody, "an object", "a job is needed in the body")
	if err != nil {
		return nil, err
	}
	a, err := s.submit(ctx, who, newReader(doc), wire.Value{}, jobRequest, key,
		jobSource{taskBook: s.taskBook(who.Tenant)})
	if err != nil {
		return nil, err
	}
	if a.fire != nil {
		s.fire(ctx, *a.fire)
	}
	if !a.replayed {
		s.Meter.Count(telemetry.JobsAccepted, 1)
	}
	return answerAccepted(a), nil
}

func answerAccepted(a accepted) *jobAnswer {
	out := &jobAnswer{Status: http.StatusAccepted, Location: "/v1/jobs/" + string(a.view.JobID),
		ETag: etag(a.view.Version), Body: a.view}
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
func (s *stage) submit(
	ctx context.Context, who tenant.Identity, r *wire.Reader, v wire.Value, known *field.Object, key string,
	from jobSource,
) (accepted, error) {
	f := known.Read(r, v)
	if f == nil {
		return accepted{}, r.Wrong.Err()
	}
	now := s.now()
	hash, gone := "", job.ID("")
	if key == "" {
		batchKey.Into(r, f, &key)
	}
	if key != "" && len(r.Wrong) == 0 {
		hash = r.Doc.Hash(v.Node, "idempotency_key")
		var earlier accepted
		var ok bool
		var err error
		if earlier, gone, ok, err = s.replay(ctx, who.Tenant, key, hash, now); err != nil || ok {
			s.judgeAfter(ctx, who.Tenant, earlier)
			return earlier, err
		}
	}
	d, err := s.readJob(ctx, r, f, v.Pointer, from, now)
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

// readBatchKey reads the key of a job in a batch.
func readBatchKey(r *wire.Reader, v wire.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && !validKey(s) {
		r.Mistake(v.Pointer, wire.CodeInvalidValue, keyAllowed, "this is not an idempotency key")
	}
	return s, ok
}

type getJobInput struct {
	ID   string `path:"id" doc:"The job's id"`
	Wait string `query:"wait" doc:"Maximum wait for a final status; on timeout the current state is answered, and at once with Retry-After when too many requests of the tenant wait" example:"20s"`
}

// keyOf returns the key of the job with that id. A text that is no id is a job that does not exist.
func keyOf(who tenant.Identity, id string) (job.Key, error) {
	parsed, err := job.ParseID(id)
	if err != nil {
		return job.Key{}, errNoJob()
	}
	return job.Key{Tenant: who.Tenant, ID: parsed}, nil
}

func errNoJob() error { return wire.NewProblem(wire.CodeNotFound, "there is no such job") }

// row reads a job's row. Absent, forgotten and another tenant's jobs give the same error.
func (s *stage) row(ctx context.Context, k job.Key) (job.Row, error) {
	r, err := s.Store.Row(ctx, k)
	if err == nil {
		err = noJob(r)
	}
	return r, asNoJob(err)
}

// asNoJob turns fault.NotFound into the problem of an absent job.
func asNoJob(err error) error { return absent(err, "job") }

func (s *stage) getJob(ctx context.Context, who tenant.Identity, in *getJobInput) (*jobAnswer, error) {
	k, err := keyOf(who, in.ID)
	if err != nil {
		return nil, err
	}
	wait, err := readWait(in.Wait)
	if err != nil {
		return nil, err
	}
	r, err := s.row(ctx, k)
	if err != nil {
		return nil, err
	}
	retryAfter := ""
	if wait > 0 && !r.Status.Final() {
		retryAfter, err = s.await(ctx, who.Tenant, wait, func() (_ bool, err error) {
			r, err = s.row(ctx, k)
			return r.Status.Final(), err
		})
		if err != nil {
			return nil, err
		}
	}
	out, err := s.answerJob(ctx, r, http.StatusOK, true)
	if err == nil {
		out.RetryAfter = retryAfter
	}
	return out, err
}

// answerJob answers with one job; all adds its payload, labels and result.
func (s *stage) answerJob(ctx context.Context, r job.Row, status int, all bool) (*jobAnswer, error) {
	v, err := s.show(ctx, r)
	if err == nil && all {
		err = s.detail(ctx, r, &v)
	}
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: status, ETag: etag(r.Version), Body: v}, nil
}
