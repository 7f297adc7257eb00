package main

import (
	"punctual/shared/client/rest"
)

type runSchedule struct {
	Name         string `arg:"" help:"Name of the schedule."`
	Payload      string `short:"p" xor:"contents" help:"Payload in place of the schedule's: JSON, @file, or -."`
	PayloadPatch string `xor:"contents" help:"Merge patch of the schedule's payload: JSON, @file, or -."`
	Params       string `xor:"contents" help:"Params of this run, of a schedule of a dag: JSON, @file, or -."`
	Overlap      string `enum:",ignore,obey" default:"" help:"Whether the overlap policy of the schedule applies: ignore (default) or obey."`
	Wait         bool   `short:"w" help:"Wait until the job or run ends, and exit with its exit code."`
}

// Run starts what the schedule does, once more than its calendar says.
func (c runSchedule) Run(s *shell) error {
	request := rest.RunNowRequest{Overlap: ptr(rest.RunNowRequestOverlap(c.Overlap))}
	payload, err := s.value("--payload", c.Payload)
	if err != nil {
		return err
	}
	patch, err := s.value("--payload-patch", c.PayloadPatch)
	if err != nil {
		return err
	}
	if payload != nil {
		request.Payload = payload
	}
	if patch != nil {
		request.PayloadPatch = patch
	}
	if request.Params, err = s.params(c.Params); err != nil {
		return err
	}
	started, err := s.client.RunScheduleNow(s.ctx, c.Name, request)
	if err != nil {
		return err
	}
	if started.Run != nil {
		return s.startedRun(*started.Run, c.Wait)
	}
	return s.startedJob(*started.Job, c.Wait)
}

// startedJob shows a job that was just made; with wait, when it has ended, and whether it has succeeded.
func (s *shell) startedJob(job rest.JobView, wait bool) error {
	if !wait {
		return show(s, job, jobID, jobColumns...)
	}
	id := job.JobID
	job, err := s.client.Wait(s.ctx, id)
	if err != nil {
		return s.interrupted(err, "job "+id, "punctual get "+id, "punctual cancel "+id)
	}
	if err := show(s, job, jobID, jobColumns...); err != nil {
		return err
	}
	return over(string(job.Status))
}

// startedRun shows a run that was just made; with wait, when it has ended, and whether it has succeeded.
func (s *shell) startedRun(run rest.RunView, wait bool) error {
	if !wait {
		return show(s, run, runID, runColumns...)
	}
	id := run.RunID
	run, err := s.client.WaitRun(s.ctx, id)
	if err != nil {
		return s.runGoesOn(err, id)
	}
	if err := show(s, run, runID, runColumns...); err != nil {
		return err
	}
	return over(string(run.Status))
}
