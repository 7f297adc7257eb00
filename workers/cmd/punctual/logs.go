package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type jobLogs struct {
	ID      string `arg:"" help:"Identifier of the job."`
	Attempt int64  `help:"Number of the attempt; default: the newest that has started."`
	Follow  bool   `short:"f" help:"Wait for more lines until the attempt, or without --attempt the job, has ended."`
}

// Run prints what the handler or the executor of a job has written.
func (c jobLogs) Run(s *shell) error {
	if c.Attempt < 0 {
		return usage{errors.New("--attempt: want the number of an attempt, from 1")}
	}
	j, err := s.client.Job(s.ctx, c.ID)
	if err != nil {
		return s.noJob(c.ID, "dag status", err)
	}
	if c.Follow {
		return c.follow(s, j)
	}
	n := c.Attempt
	if n == 0 {
		n = j.Attempt
	}
	log, err := c.read(s, n)
	if err == nil && log == "" && c.Attempt == 0 && n > 1 && !client.Over(string(j.Status)) {
		n-- // the newest attempt has not started
		log, err = c.read(s, n)
	}
	if err != nil {
		return err
	}
	if log == "" {
		s.silent(n)
	}
	return c.print(s, n, log)
}

// silent says to a person that an attempt has no log.
func (s *shell) silent(attempt int64) {
	if s.output == "table" {
		_, _ = fmt.Fprintf(s.err, "punctual: attempt %d has written no lines\n", attempt)
	}
}

// read reads the whole log of an attempt.
func (c jobLogs) read(s *shell, attempt int64) (string, error) {
	var whole strings.Builder
	for from := int64(0); ; {
		text, next, err := s.client.AttemptLog(s.ctx, c.ID, attempt, &rest.GetAttemptLogParams{From: new(int(from))})
		if err != nil || text == "" {
			return whole.String(), err
		}
		whole.WriteString(text)
		from = next
	}
}

// print writes lines as they are; in JSON and YAML, a document with them.
func (c jobLogs) print(s *shell, attempt int64, lines string) error {
	if s.output != "json" && s.output != "yaml" {
		_, err := s.out.Write([]byte(lines))
		return err
	}
	line, err := json.Marshal(struct {
		JobID   string `json:"job_id"`
		Attempt int64  `json:"attempt"`
		Log     string `json:"log"`
	}{c.ID, attempt, lines})
	if err == nil {
		_, err = s.out.Write(append(line, '\n'))
	}
	return err
}

// follow prints lines as they come: of one attempt, or of the newest and those after it.
func (c jobLogs) follow(s *shell, j rest.JobView) error {
	n := c.Attempt
	if n == 0 {
		n = j.Attempt
	}
	for {
		written := false
		for lines, err := range s.client.FollowLog(s.ctx, c.ID, n) {
			if s.ctx.Err() != nil {
				return interrupted("what runs goes on; stop it: punctual cancel " + c.ID)
			}
			if err == nil {
				err = c.print(s, n, lines)
			}
			if err != nil {
				return err
			}
			written = written || lines != ""
		}
		if !written {
			s.silent(n)
		}
		j, err := s.client.Job(s.ctx, c.ID)
		if err != nil || c.Attempt > 0 || client.Over(string(j.Status)) && n >= j.Attempt {
			return err
		}
		n = min(n+1, j.Attempt)
	}
}
