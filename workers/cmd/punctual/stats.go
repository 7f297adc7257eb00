package main

import (
	"strconv"
	"time"

	"punctual/shared/client/rest"
)

type jobStats struct {
	Task string    `help:"Only jobs of this task."`
	Last length    `default:"24h" help:"Length of the range, such as 90m or 2d, which ends at --to."`
	From typedTime `help:"Start of the range, used instead of --last: of today such as 11:26, or a date with a zone."`
	To   typedTime `help:"End of the range; default: now."`
	Step string    `default:"1h" enum:"1m,5m,1h,1d" help:"Length of a step: 1m, 5m, 1h or 1d."`
}

// step is one step of a range.
type step struct {
	at time.Time
	n  int
	of rest.SeriesView
}

var stepColumns = []column[step]{
	{"FROM", func(s step) string { return instant(&s.at) }},
	{"CREATED", func(s step) string { return count(s.of.Created[s.n]) }},
	{"STARTED", func(s step) string { return count(s.of.Started[s.n]) }},
	{"SUCCEEDED", func(s step) string { return count(s.of.Succeeded[s.n]) }},
	{"FAILED ATTEMPTS", func(s step) string { return count(s.of.FailedAttempts[s.n]) }},
	{"DEAD", func(s step) string { return count(s.of.Dead[s.n]) }},
	{"EXPIRED", func(s step) string { return count(s.of.Expired[s.n]) }},
	{"SKIPPED", func(s step) string { return count(s.of.Skipped[s.n]) }},
	{"P50 LATE", func(s step) string { return milliseconds(s.of.LatenessP50Ms[s.n]) }},
	{"P99 LATE", func(s step) string { return milliseconds(s.of.LatenessP99Ms[s.n]) }},
}

func milliseconds(ms *int64) string {
	if ms == nil {
		return ""
	}
	return strconv.FormatInt(*ms, 10) + "ms"
}

// rangeOf returns a range whose start may be given by its length, and whose end may be now.
func rangeOf(s *shell, typedFrom, typedTo typedTime, last length) (from, to time.Time, err error) {
	if to, err = s.typed("--to", typedTo); err != nil {
		return from, to, err
	}
	if from, err = s.typed("--from", typedFrom); err != nil {
		return from, to, err
	}
	if to.IsZero() {
		to = s.now()
	}
	if from.IsZero() {
		from = to.Add(-time.Duration(last))
	}
	return from, to, nil
}

// Run shows the counts of each step of a range.
func (c jobStats) Run(s *shell) error {
	from, to, err := rangeOf(s, c.From, c.To, c.Last)
	if err != nil {
		return err
	}
	found, err := s.client.Stats(s.ctx, &rest.GetStatsParams{
		From: &from, To: &to, Step: ptr(rest.GetStatsParamsStep(c.Step)), Task: ptr(c.Task),
	})
	if err != nil {
		return err
	}
	if s.output == "json" || s.output == "yaml" {
		return s.encode(found)
	}
	length := map[string]time.Duration{"1m": time.Minute, "5m": 5 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour}
	steps := make([]step, len(found.Series.Created))
	for n := range steps {
		steps[n] = step{found.From.Add(time.Duration(n) * length[c.Step]), n, found.Series}
	}
	return s.grid(cells(steps, stepColumns))
}
