package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"punctual/shared/client/rest"
)

// The limits of one batch request.
const (
	batchJobs  = 100
	batchBytes = 1 << 20
)

// CreateJob creates a job and returns it when it is accepted. key names the request for 24 hours: again
// with the same key and body it returns the same job, with another body [IdempotencyKeyReused]. With ""
// the key is a random one, which makes the repetitions of this call safe. Where another job holds the unique key of
// the job, it returns that one, or [NotUnique] if the job asks for that; JobID of the error then names the other.
func (c *Client) CreateJob(ctx context.Context, key string, job rest.JobRequest) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.CreateJob, Request{
		Params: rest.CreateJobParams{IdempotencyKey: keyed(key)}, Body: job})
}

// CreateJobs creates any number of jobs, a hundred a request, and returns what became of each, in their
// order: the job, or the problem. A job without an idempotency key gets a random one. "#n" in After is the
// job at index n of jobs, which must come before.
// After an error it returns what became of the jobs before those that failed to be sent.
func (c *Client) CreateJobs(ctx context.Context, jobs []rest.BatchJobRequest) ([]rest.BatchItem, error) {
	var done []rest.BatchItem
	for len(done) < len(jobs) {
		var lot []rest.BatchJobRequest
		size := len(`{"jobs":[]}`)
		for i, j := range jobs[len(done):min(len(done)+batchJobs, len(jobs))] {
			j.IdempotencyKey = keyed(deref(j.IdempotencyKey))
			if j.After != nil {
				after := afterOf(*j.After, done)
				j.After = &after
			}
			text, err := encode(j)
			if err != nil {
				return done, fmt.Errorf("job %d: %w", len(done)+i, err)
			}
			if size += len(text) + 1; size > batchBytes && i > 0 {
				break
			}
			lot = append(lot, j)
		}
		answer, err := Call[rest.BatchAnswer](mayRepeat(ctx), c, rest.CreateJobs, Request{
			Body: rest.BatchRequest{Jobs: lot}})
		if err != nil {
			return done, err
		}
		if len(answer.Items) != len(lot) {
			return done, fmt.Errorf("a batch of %d jobs was answered by %d items", len(lot), len(answer.Items))
		}
		done = append(done, answer.Items...)
	}
	return done, nil
}

// afterOf names jobs of earlier requests by their ids, and those of the next by their place in it.
func afterOf(after []string, done []rest.BatchItem) []string {
	after = slices.Clone(after)
	for i, name := range after {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "#"))
		switch {
		case err != nil || !strings.HasPrefix(name, "#") || n < 0:
		case n >= len(done):
			after[i] = "#" + strconv.Itoa(n-len(done))
		case done[n].Job != nil:
			after[i] = done[n].Job.JobID
		default:
			after[i] = "#refused" // unknown_job, as within one request
		}
	}
	return after
}

// Job returns a job, [NotFound] if there is none.
func (c *Client) Job(ctx context.Context, id string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.GetJob, Request{Path: []string{id}})
}

// Wait returns a job once it has ended, whatever became of it; [Over] reports its status. It waits as long
// as ctx lets it, by requests of up to 20 s. When it fails, the job goes on.
func (c *Client) Wait(ctx context.Context, id string) (rest.JobView, error) {
	r := Request{Path: []string{id}, Params: rest.GetJobParams{Wait: new(c.wait.String())}}
	return wait(ctx, c, rest.GetJob, r, func(job rest.JobView) string { return string(job.Status) })
}

// Over reports whether a status of a job, a node, a run or an operation is final.
func Over(status string) bool {
	final := []string{"SUCCEEDED", "DEAD", "CANCELLED", "SKIPPED", "EXPIRED", "FAILED", "STOPPED"}
	return slices.Contains(final, status)
}

// Jobs iterates over the jobs that filter lets through, newest first; nil is all. It asks for pages as
// they are needed, and ends after the first error. A filter by a tag is an entry "tag.NAME" of Tags.
func (c *Client) Jobs(ctx context.Context, filter *rest.ListJobsParams) iter.Seq2[rest.JobView, error] {
	return list[rest.JobView](ctx, c, rest.ListJobs, Request{Params: filter})
}

// Attempts iterates over the attempts of a job, oldest first.
func (c *Client) Attempts(ctx context.Context, id string) iter.Seq2[rest.AttemptView, error] {
	return list[rest.AttemptView](ctx, c, rest.ListAttempts, Request{Path: []string{id}})
}

// AttemptLog reads the log of an attempt, and returns the position after what it has read: with From of params it goes
// on from there. Follow has it wait for a line.
func (c *Client) AttemptLog(
	ctx context.Context, id string, attempt int64, params *rest.GetAttemptLogParams,
) (text string, next int64, err error) {
	text, next, _, err = c.attemptLog(ctx, id, attempt, params)
	return text, next, err
}

func (c *Client) attemptLog(
	ctx context.Context, id string, attempt int64, params *rest.GetAttemptLogParams,
) (text string, next int64, answered http.Header, err error) {
	answered = http.Header{}
	body, err := Call[[]byte](ctx, c, rest.GetAttemptLog, Request{
		Path: []string{id, strconv.FormatInt(attempt, 10)}, Params: params, Answered: answered})
	if err != nil {
		return "", 0, nil, err
	}
	if next, err = strconv.ParseInt(answered.Get("Punctual-Log-Next"), 10, 64); err != nil {
		return "", 0, nil, fmt.Errorf("reading the log of job %s: the answer has no Punctual-Log-Next: %w", id, err)
	}
	return string(body), next, answered, nil
}

// followLog is how long each request of FollowLog waits for a line.
const followLog = "20s"

// FollowLog iterates over the log of an attempt as it grows, each time over whole lines, until the attempt has ended.
// The newest attempt of a job may be yet to start. The iteration ends after the first error.
func (c *Client) FollowLog(ctx context.Context, id string, attempt int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		wait := followLog
		for from, ended := int64(0), false; ; {
			params := rest.GetAttemptLogParams{From: new(int(from))}
			if !ended {
				params.Follow = &wait
			}
			text, next, answered, err := c.attemptLog(ctx, id, attempt, &params)
			switch {
			case err != nil:
				yield("", err)
				return
			case text != "":
				if !yield(text, nil) {
					return
				}
			case ended:
				return
			default:
				j, err := c.Job(ctx, id)
				if err != nil {
					yield("", err)
					return
				}
				if ended = Over(string(j.Status)) || j.Attempt > attempt; !ended && !pause(ctx, retryAfter(answered)) {
					yield("", context.DeadlineExceeded)
					return
				}
			}
			from = next
		}
	}
}

// CancelJob cancels a job and returns it: CANCELLED when it had not started, else still RUNNING until it
// heeds its context. [AlreadyFinished] when it has ended.
func (c *Client) CancelJob(ctx context.Context, id string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.CancelJob, Request{Path: []string{id}})
}

// RedriveJob runs a dead job again and returns the new one. [WrongState] when it is not dead, or was
// redriven before; RedrivenBy of the error then names the new job.
func (c *Client) RedriveJob(ctx context.Context, id string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.RedriveJob, Request{Path: []string{id}})
}

// RedriveCorrected is RedriveJob with corrections of the new job; what they leave out is that of the dead one.
func (c *Client) RedriveCorrected(
	ctx context.Context, id string, corrections rest.RedriveRequest,
) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.RedriveJob, Request{Path: []string{id}, Body: corrections})
}

// PatchJob changes the fields of a job that p has, while the job has not started.
func (c *Client) PatchJob(
	ctx context.Context, id string, p rest.JobPatchRequest, only ...Condition,
) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.PatchJob, Request{
		Path: []string{id}, Params: rest.PatchJobParams{IfMatch: ifMatch(only)}, Body: p})
}

// RunJobNow makes a waiting job due.
func (c *Client) RunJobNow(ctx context.Context, id string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.RunJobNow, Request{Path: []string{id}})
}

// PauseJob keeps a job from starting that has not started, waits for a retry or is blocked. A job that is paused
// already stays as it is. [WrongState] when it runs or has ended.
func (c *Client) PauseJob(ctx context.Context, id string, r rest.JobPauseRequest) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.PauseJob, Request{Path: []string{id}, Body: r})
}

// ResumeJob lets a paused job go on. A job that is not paused stays as it is. [WrongState] when it runs or has ended.
func (c *Client) ResumeJob(ctx context.Context, id string) (rest.JobView, error) {
	return Call[rest.JobView](ctx, c, rest.ResumeJob, Request{Path: []string{id}})
}

// DeleteJob forgets a job that has ended, with its attempts. [NotFinished] when it has not.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteJob, Request{Path: []string{id}})
	return err
}

// DeadLetters iterates over the jobs that failed for good, newest first; nil lets all through.
func (c *Client) DeadLetters(
	ctx context.Context, filter *rest.ListDeadLettersParams,
) iter.Seq2[rest.DeadLetter, error] {
	return list[rest.DeadLetter](ctx, c, rest.ListDeadLetters, Request{Params: filter})
}

// DeadLetterGroups iterates over the causes of dead letters, the most frequent first; nil counts all dead letters.
// [NotIndexed] where there is no index of jobs.
func (c *Client) DeadLetterGroups(
	ctx context.Context, filter *rest.ListDeadLetterGroupsParams,
) iter.Seq2[rest.GroupView, error] {
	return list[rest.GroupView](ctx, c, rest.ListDeadLetterGroups, Request{Params: filter})
}

// RedriveDeadLetters runs dead jobs again, page after page, and iterates over what became of each.
// With DryRun nothing runs.
func (c *Client) RedriveDeadLetters(
	ctx context.Context, which rest.DeadLettersRequest,
) iter.Seq2[rest.DeadLetterOutcome, error] {
	return deadLetters(ctx, c, rest.RedriveDeadLetters, which)
}

// PurgeDeadLetters deletes dead jobs, page after page, and iterates over what became of each.
// With DryRun nothing is deleted.
func (c *Client) PurgeDeadLetters(
	ctx context.Context, which rest.DeadLettersRequest,
) iter.Seq2[rest.DeadLetterOutcome, error] {
	return deadLetters(ctx, c, rest.PurgeDeadLetters, which)
}

func deadLetters(
	ctx context.Context, c *Client, operation rest.Operation, which rest.DeadLettersRequest,
) iter.Seq2[rest.DeadLetterOutcome, error] {
	return pages(func(cursor *string) (rest.DeadLetterOutcomesAnswer, error) {
		r := which
		if cursor != nil {
			r.Cursor = cursor
		}
		return Call[rest.DeadLetterOutcomesAnswer](mayRepeat(ctx), c, operation, Request{Body: r})
	}, func(a rest.DeadLetterOutcomesAnswer) ([]rest.DeadLetterOutcome, *string) {
		return a.Items, a.NextCursor
	})
}

// keyed is an idempotency key: that of the caller, or a random one.
func keyed(key string) *string {
	if key == "" {
		key = rand.Text()
	}
	return &key
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
