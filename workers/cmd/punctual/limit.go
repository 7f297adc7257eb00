package main

import (
	"fmt"
	"strconv"
	"strings"

	"punctual/shared/client/rest"
)

type limits struct {
	common `set:"kind=limit"`
	Delete deleteNamed `cmd:"" aliases:"rm" help:"Delete limits of work that nothing uses."`
	Put    putLimit    `cmd:"" help:"Create or replace a limit of work."`
	Keys   limitKeys   `cmd:"" help:"List the keys of a limit of work, busiest first."`
}

var limitColumns = []column[rest.LimitView]{
	{"LIMIT", limitName},
	{"MAX RUNNING", func(l rest.LimitView) string { return countOrNone(l.MaxRunning) }},
	{"RATE", func(l rest.LimitView) string {
		if l.Rate == nil {
			return ""
		}
		return count(l.Rate.Count) + "/" + l.Rate.Per
	}},
	{"WHEN FULL", func(l rest.LimitView) string { return string(l.WhenFull) }},
	{"VERSION", func(l rest.LimitView) string { return count(l.Version) }},
}

func limitName(l rest.LimitView) string { return l.Name }

// countOrNone is a number that may be absent.
func countOrNone(n *int64) string {
	if n == nil {
		return ""
	}
	return count(*n)
}

type putLimit struct {
	Name       string `arg:"" help:"Name of the limit."`
	MaxRunning int64  `help:"Maximum number of jobs of a key that run at a time."`
	Rate       string `help:"Maximum number of starts of a key in a window of time, as count/window, such as 100/1m."`
	WhenFull   string `help:"Treatment of a job whose key is full: wait (default), skip or cancel_oldest."`
}

// Run puts the limit.
func (c putLimit) Run(s *shell) error {
	request := rest.LimitRequest{MaxRunning: ptr(c.MaxRunning), WhenFull: ptr(rest.LimitRequestWhenFull(c.WhenFull))}
	if c.Rate != "" {
		starts, per, _ := strings.Cut(c.Rate, "/")
		n, err := strconv.ParseInt(starts, 10, 64)
		if err != nil || per == "" {
			return usage{fmt.Errorf("--rate: %q is not a number of starts and a window, such as 100/1m", c.Rate)}
		}
		request.Rate = &rest.RateRequest{Count: n, Per: per}
	}
	l, err := s.client.PutLimit(s.ctx, c.Name, request)
	if err != nil {
		return err
	}
	return show(s, l, limitName, limitColumns...)
}

type limitKeys struct {
	Name string `arg:"" help:"Name of the limit."`
}

var limitKeyColumns = []column[rest.LimitKeyView]{
	{"KEY", limitKey},
	{"RUNNING", func(k rest.LimitKeyView) string { return count(k.Running) }},
	{"WAITING", func(k rest.LimitKeyView) string { return count(k.Waiting) }},
	{"STARTS", func(k rest.LimitKeyView) string { return countOrNone(k.StartsInWindow) }},
	{"NEXT START", func(k rest.LimitKeyView) string { return instant(k.NextStartAt) }},
}

func limitKey(k rest.LimitKeyView) string { return of(k.Key) }

// Run lists the keys that are used most.
func (c limitKeys) Run(s *shell) error {
	return list(s, s.client.LimitKeys(s.ctx, c.Name), 0, limitKey, limitKeyColumns...)
}

// limitUses reads the limits of a job, each as name or name:key, or with = as in a tag. No name has either of them.
func limitUses(texts []string) *[]rest.LimitUseRequest {
	if len(texts) == 0 {
		return nil
	}
	var uses []rest.LimitUseRequest
	for _, text := range texts {
		use := rest.LimitUseRequest{Name: text}
		if at := strings.IndexAny(text, ":="); at >= 0 {
			use = rest.LimitUseRequest{Name: text[:at], Key: new(text[at+1:])}
		}
		uses = append(uses, use)
	}
	return &uses
}

// waitsFor is what a job waits for: of a limit also how many wait before the job, of a pause of the job alone who made
// it and why.
func waitsFor(j rest.JobView) string {
	if p := j.Paused; p != nil {
		why := "paused"
		if of(p.By) != "" {
			why += " by " + *p.By
		}
		if of(p.Reason) != "" {
			why += ": " + *p.Reason
		}
		return why
	}
	if j.Limit == nil {
		return of(j.WaitingFor)
	}
	name := j.Limit.Name
	if j.Limit.Key != nil {
		name += "/" + *j.Limit.Key
	}
	return fmt.Sprintf("limit %s, %d ahead", name, j.Limit.Ahead)
}
