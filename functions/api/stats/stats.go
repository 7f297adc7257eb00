package stats

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/fault"
	"punctual/shared/stats"
	"punctual/shared/tenant"
)

// Defaults of a request.
const (
	defaultRange = 24 * time.Hour
	defaultStep  = "1h"
)

// stepNames are the words for stats.Steps, in their order.
var stepNames = []string{"1m", "5m", "1h", "1d"}

// Handler serves counts.
type Handler struct {
	*spec.Core
}

// New registers the route.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	on := rest.Resource{Router: h.Router, Tag: spec.TagStats, Path: "/v1/stats"}
	rest.Get(on, "", "getStats", "Count what became of jobs", h.get, rest.Route{
		About: "Counts what became of jobs, for all jobs or those of a task, in steps that cover the range. Counts " +
			"are close: they may be 1% off, percentiles 5%, and the newest are missing for some seconds, on AWS for " +
			"up to two minutes. They are kept for {=stats_days} days.",
	})
	return h
}

type statsInput struct {
	From string `query:"from" format:"date-time" doc:"Start of the range; default: 24 hours before its end"`
	To   string `query:"to" format:"date-time" doc:"End of the range, which is not in it; default: now"`
	Step string `query:"step" enum:"1m,5m,1h,1d" default:"1h" doc:"Length of a step. Steps begin at whole minutes, hours or days of UTC; the first and last cover the ends of the range. A request has at most {=stats_steps} steps and {=stats_days} days."`
	Task string `query:"task"`
}

type seriesView struct {
	Created        []int64  `json:"created" doc:"Number of jobs that were made in each step"`
	Started        []int64  `json:"started" doc:"Number of attempts that started. The start of one that takes long counts from its first heartbeat."`
	Succeeded      []int64  `json:"succeeded" doc:"Number of jobs that succeeded"`
	FailedAttempts []int64  `json:"failed_attempts" doc:"Number of attempts that failed, retried or not"`
	Dead           []int64  `json:"dead" doc:"Number of jobs that failed for good"`
	Expired        []int64  `json:"expired" doc:"Number of jobs that expired before they started"`
	Skipped        []int64  `json:"skipped" doc:"Number of jobs that were skipped"`
	LatenessP50    []*int64 `json:"lateness_p50_ms" doc:"Median of the milliseconds from due time to start; null where nothing started"`
	LatenessP99    []*int64 `json:"lateness_p99_ms" doc:"99th percentile of the same"`
}

type statsView struct {
	Step   string       `json:"step" enum:"1m,5m,1h,1d" doc:"Length of a step"`
	From   rest.Instant `json:"from" doc:"Start of the first step"`
	Series seriesView   `json:"series" doc:"Counts of each step, in lists of one length"`
}

func (s *Handler) get(ctx context.Context, who tenant.Identity, in *statsInput) (*rest.Answer[statsView], error) {
	r, step, err := readRange(in, s.Now())
	if err != nil {
		return nil, err
	}
	if !s.Counted {
		return nil, rest.NewProblem(spec.CodeNotIndexed, "this deployment does not count what becomes of jobs; its "+
			"dashboards have the counts of all tenants")
	}
	table := stats.NewTable(r)
	if err := s.Store.Stats(ctx, stats.Series{Tenant: who.Tenant, Task: in.Task}, r, table.Add); err != nil {
		return nil, err
	}
	return &rest.Answer[statsView]{Body: statsView{step, rest.At(r.From), view(table.Counts)}}, nil
}

func readRange(in *statsInput, now time.Time) (r stats.Range, step string, err error) {
	var wrong fault.Violations
	rest.FilterName(&wrong, "task", in.Task)
	step = in.Step
	if step == "" {
		step = defaultStep
	}
	rest.FilterWord(&wrong, "step", step, stepNames)
	p := rest.ReadPeriod(&wrong, in.From, in.To)
	if len(wrong) > 0 {
		return r, step, wrong
	}
	p = p.Before(now, defaultRange)
	p.NotEmpty(&wrong)
	p.AtMost(&wrong, int(stats.MaxRange/(24*time.Hour)))
	r = stats.Aligned(p.From, p.To, stats.Steps[slices.Index(stepNames, step)])
	if len(wrong) == 0 {
		p.Steps(&wrong, r.N, stats.MaxSteps, fitting(p))
	}
	return r, step, wrong.Err()
}

// fitting lists the steps that are long enough for a range.
func fitting(p rest.Period) string {
	var names []string
	for n, step := range stats.Steps {
		if stats.Aligned(p.From, p.To, step).N <= stats.MaxSteps {
			names = append(names, stepNames[n])
		}
	}
	return strings.Join(names, ", ")
}

func view(counts []stats.Counts) seriesView {
	list := func(of func(stats.Counts) int64) []int64 {
		all := make([]int64, len(counts))
		for n, c := range counts {
			all[n] = of(c)
		}
		return all
	}
	percentile := func(p float64) []*int64 {
		all := make([]*int64, len(counts))
		for n, c := range counts {
			if ms, ok := c.Lateness.Percentile(p); ok {
				all[n] = &ms
			}
		}
		return all
	}
	return seriesView{
		Created:        list(func(c stats.Counts) int64 { return c.Created }),
		Started:        list(func(c stats.Counts) int64 { return c.Started }),
		Succeeded:      list(func(c stats.Counts) int64 { return c.Succeeded }),
		FailedAttempts: list(func(c stats.Counts) int64 { return c.FailedAttempts }),
		Dead:           list(func(c stats.Counts) int64 { return c.Dead }),
		Expired:        list(func(c stats.Counts) int64 { return c.Expired }),
		Skipped:        list(func(c stats.Counts) int64 { return c.Skipped }),
		LatenessP50:    percentile(0.5),
		LatenessP99:    percentile(0.99),
	}
}
