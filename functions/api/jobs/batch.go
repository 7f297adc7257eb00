package jobs

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/submit"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/schema"
	"punctual/shared/tenant"
)

var batchRequest = field.NewObject("BatchRequest", "Jobs to accept, each on its own.",
	field.Value("jobs", "Jobs as in POST /v1/jobs, each with a key of its own.",
		field.ArrayOf(1, contract.MaxBatchJobs, batchJobRequest.Schema)).Required())

// batchItem is the outcome of one job of a batch: it has a job or a problem.
type batchItem struct {
	Job      *spec.JobView `json:"job,omitempty" doc:"Job that was accepted"`
	Problem  *rest.Problem `json:"problem,omitempty" doc:"Problem for which the job was refused"`
	Replayed bool          `json:"replayed,omitempty" doc:"Whether an earlier request with the same key made the job, which is shown in its current state"`
	Link     string        `json:"link,omitempty" doc:"Address at which the DEAD job of a replay is redriven, written as in the header Link of a single job"`
}

type batchAnswer struct {
	Body struct {
		Items    []batchItem `json:"items" doc:"Outcomes in the order of the jobs"`
		Accepted int         `json:"accepted" doc:"Number of jobs that were accepted, replays included"`
		Refused  int         `json:"refused" doc:"Number of jobs that were refused"`
	}
}

// maxBatchViolations is how many violations all problems of one batch list together. Each problem's detail has the full
// number.
const maxBatchViolations = 200

func (s *Handler) createJobs(ctx context.Context, who tenant.Identity, _ *rest.NoInput) (*batchAnswer, error) {
	if len(rest.HeaderOf(ctx).Values("Idempotency-Key")) > 0 {
		return nil, rest.OneViolation("Idempotency-Key", rest.CodeUnknownField, "idempotency_key in each job",
			"a batch has no key; its jobs have keys of their own")
	}
	doc, err := rest.NeededBody(ctx, contract.MaxBatchBody, `{"jobs":[…]}`, "jobs are needed in the body")
	if err != nil {
		return nil, err
	}
	r := spec.NewReader(doc)
	f := batchRequest.Body(r)
	var jobs []rest.Value
	if v, ok := f["jobs"]; ok {
		if jobs = r.List(v, contract.MaxBatchJobs); jobs == nil && len(r.Wrong) == 0 {
			r.Violation(v.Pointer, rest.CodeOutOfRange, rest.Between("1", strconv.Itoa(contract.MaxBatchJobs)),
				"there are no jobs")
		}
	} else if f != nil {
		r.Missing("", "jobs")
	}
	if len(r.Wrong) > 0 {
		return nil, r.Wrong
	}
	if err := s.Limit.WeighJobs(ctx, who.Tenant, len(jobs), doc.Size()); err != nil {
		return nil, spec.Limited(err)
	}
	out := &batchAnswer{}
	out.Body.Items = make([]batchItem, len(jobs))
	var done []submit.Job
	for i, a := range s.submitAll(ctx, who, r, jobs) {
		item := &out.Body.Items[i]
		if a.err != nil {
			item.Problem = s.Router.Refuse(ctx, a.err)
			out.Body.Refused++
			continue
		}
		if a.view.JobDetail != nil {
			a.view.Payload = nil // else the answer would be as large as the request
		}
		item.Job, item.Replayed, item.Link = &a.view, a.Replayed, a.redriveLink()
		out.Body.Accepted++
		done = append(done, a.Job)
	}
	for i := range out.Body.Items {
		if p := out.Body.Items[i].Problem; p != nil {
			p.Errors = p.Errors[:min(len(p.Errors), max(1, maxBatchViolations/out.Body.Refused))]
		}
	}
	s.Submit.Fire(ctx, done...)
	return out, nil
}

// workPerItem is the work that each job of a batch may cost in addition to its share by size.
const workPerItem = 8_000

type submitted struct {
	accepted
	err error
}

// submitAll submits each job on its own, wave by wave; see wavesOf.
func (s *Handler) submitAll(ctx context.Context, who tenant.Identity, all *rest.Reader, jobs []rest.Value) []submitted {
	doc := all.Doc
	out := make([]submitted, len(jobs))
	book := s.TaskBook(who.Tenant)
	one := func(i int) {
		defer func() {
			if p := recover(); p != nil {
				out[i].err = s.Router.Panicked(ctx, p)
			}
		}()
		share := int(int64(schema.WorkPerValue) * int64(len(doc.Raw(jobs[i].Node))) / int64(doc.Size()))
		r := rest.NewReader(doc)
		r.Compilable, r.SchemaWork = all.Compilable, workPerItem+share
		earlier := func(n int) (job.ID, bool) {
			if n >= i || out[n].err != nil {
				return "", false
			}
			return out[n].Row.ID, true
		}
		out[i].accepted, out[i].err = s.submit(ctx, who, r, jobs[i], batchJobRequest, "",
			book, earlier)
	}
	for _, wave := range wavesOf(doc, jobs) {
		var taken atomic.Int64
		var g sync.WaitGroup
		for range min(spec.BatchWriters, len(wave)) { // a goroutine for each job would grow its stack for each job
			g.Go(func() {
				for n := taken.Add(1); n <= int64(len(wave)); n = taken.Add(1) {
					one(wave[n-1])
				}
			})
		}
		g.Wait()
	}
	return out
}
