package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// corrections are what the jobs of a redrive have in place of what the dead ones have.
type corrections struct {
	Payload      string            `xor:"payload" help:"Payload of the new job: JSON, @file, or -."`
	PayloadPatch string            `xor:"payload" help:"Merge patch of the old payload: JSON, @file, or -."`
	In           string            `xor:"when" help:"Delay from now until the start, such as 3s."`
	At           typedTime         `xor:"when" help:"Time of the start: today's 11:26, or a date with a zone."`
	Priority     string            `help:"Priority: critical, high, normal or low; default: the dead job's."`
	Pool         string            `help:"Pool of workers of the new job; default: the dead job's."`
	Timeout      string            `help:"Maximum duration of one attempt, such as 5m; default: the dead job's."`
	MaxAttempts  int64             `help:"Maximum number of attempts; default: the dead job's."`
	Tag          map[string]string `help:"Tag as name=value, in place of the old ones; may be given several times."`
}

// read returns the corrections as a request; given says whether there are any.
func (c corrections) read(s *shell) (r rest.RedriveRequest, given bool, err error) {
	payload, err := s.value("--payload", c.Payload)
	if err != nil {
		return r, false, err
	}
	patch, err := s.value("--payload-patch", c.PayloadPatch)
	if err != nil {
		return r, false, err
	}
	r = rest.RedriveRequest{Delay: ptr(c.In), Priority: ptr(rest.RedriveRequestPriority(c.Priority)),
		Pool: ptr(rest.RedriveRequestPool(c.Pool)), Timeout: ptr(c.Timeout)}
	if payload != nil {
		r.Payload = payload
	}
	if patch != nil {
		r.PayloadPatch = patch
	}
	if r.RunAt, err = s.coming("--at", c.At); err != nil {
		return r, false, err
	}
	if c.MaxAttempts != 0 {
		r.Retry = &rest.RetryRequest{MaxAttempts: &c.MaxAttempts}
	}
	if len(c.Tag) > 0 {
		r.Tags = &c.Tag
	}
	body, err := json.Marshal(r)
	return r, string(body) != "{}", err
}

// redriveCorrected redrives the dead jobs that which names, one after the other; the request for many takes no
// corrections. Those that were redriven before keep their new job.
func (s *shell) redriveCorrected(
	which rest.DeadLettersRequest, r rest.RedriveRequest,
) iter.Seq2[rest.DeadLetterOutcome, error] {
	which.DryRun = new(true)
	return func(yield func(rest.DeadLetterOutcome, error) bool) {
		for o, err := range s.client.RedriveDeadLetters(s.ctx, which) {
			if err == nil && o.Problem == nil && o.NewJobID == nil {
				err = correctOne(s.ctx, s.client, r, &o)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// correctOne redrives the job of an outcome; a refusal is in the outcome.
func correctOne(ctx context.Context, c *client.Client, r rest.RedriveRequest, o *rest.DeadLetterOutcome) error {
	job, err := c.RedriveCorrected(ctx, o.JobID, r)
	refused, is := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		o.NewJobID = &job.JobID
	case is && refused.Code != "":
		o.Problem = &refused.Problem
	default:
		return err
	}
	return nil
}
