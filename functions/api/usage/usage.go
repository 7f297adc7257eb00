package usage

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/fault"
	"punctual/shared/tenant"
	"punctual/shared/usage"
)

// defaultRange is how long the range is whose start is not given.
const defaultRange = (usage.MaxDays - 1) * 24 * time.Hour

// ByPattern and MaxBy bound what is listed by.
const (
	ByPattern = `^(task|schedule|dag|tag\..+)$`
	MaxBy     = 256
)

// Handler serves what jobs used.
type Handler struct {
	*spec.Core
}

// New registers the route.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	on := rest.Resource{Router: h.Router, Tag: spec.TagStats, Path: "/v1/usage"}
	rest.GetPage(on, "", "listUsage", "List what jobs used", h.list, rest.Route{
		About: "Lists what jobs used on the days of the range, by task, schedule, dag or tag, and an estimate of " +
			"what that costs; what costs most comes first. Attempts count on the day on which they ended, everything " +
			"else on the day on which the job ended. A job without a schedule, a dag or that tag is not in the list. " +
			"Of a day, {=usage_values} keys count by themselves, of a tag at most so many as have " +
			"{=usage_tag_bytes} bytes together, and the further ones as other. Counts are close, and no basis of an " +
			"invoice: they may be 1% off, and the newest are missing for some seconds, on AWS " +
			"for up to two minutes. They are kept for {=usage_kept} days.",
	})
	return h
}

type usageInput struct {
	rest.Paging
	From string `query:"from" format:"date-time" doc:"Start of the range, whose whole day of UTC counts; default: 30 days before its end"`
	To   string `query:"to" format:"date-time" doc:"End of the range, which is not in it; its whole day of UTC counts; default: now. A request has at most {=usage_days} days."`
	By   string `query:"by" default:"task" doc:"Meaning of the keys: task, schedule, dag (of the run of which a job is a node), or tag.NAME, where the deployment's setting usage_tags has the name" example:"tag.team"`
}

// usageView is what the jobs of a key used.
type usageView struct {
	Key      string  `json:"key" doc:"Name of the task, schedule or dag, or value of the tag; other for all keys beyond the bound" example:"send-mail"`
	Jobs     int64   `json:"jobs" doc:"Number of jobs that ended"`
	Attempts int64   `json:"attempts" doc:"Number of their attempts that started and ended"`
	RunningS float64 `json:"running_s" doc:"Seconds for which those attempts ran"`
	Bytes    int64   `json:"bytes" doc:"Bytes stored of those jobs: their rows and payloads. A result that is too large for the row is not counted."`
	Requests int64   `json:"requests" doc:"Number of requests to the API that made or changed those jobs. Each job of a batch counts as one; reading does not count."`
	Dollars  float64 `json:"dollars" doc:"Estimate of the cost, at list prices of us-east-1 and without what a deployment costs while nothing happens"`
}

func (s *Handler) list(
	ctx context.Context, who tenant.Identity, in *usageInput, after string, limit int,
) (page rest.Found[usageView], err error) {
	by, first, last, err := s.read(in)
	if err != nil {
		return page, err
	}
	if !s.Counted {
		return page, rest.NewProblem(spec.CodeNotIndexed, "this deployment does not count what jobs used")
	}
	all := map[string]usage.Use{}
	if err := s.Store.Usage(ctx, who.Tenant, by, first, last, func(value string, u usage.Use) {
		sum := all[value]
		sum.Add(u)
		all[value] = sum
	}); err != nil {
		return page, err
	}
	views := ordered(all)
	begin, _ := slices.BinarySearchFunc(views, after, func(v usageView, after string) int {
		if position(v) <= after {
			return -1
		}
		return 1
	})
	end := min(begin+limit, len(views))
	page.Items = views[begin:end]
	page.At = func(i int) string { return position(page.Items[i]) }
	if end < len(views) {
		page.Next = position(views[end-1])
	}
	return page, nil
}

// ordered returns the views of what values used, with those beyond the bound as one; what costs most comes first.
func ordered(all map[string]usage.Use) []usageView {
	most := func(a, b usageView) int { return cmp.Compare(position(a), position(b)) }
	views := make([]usageView, 0, len(all))
	for value, u := range all {
		views = append(views, view(value, u))
	}
	slices.SortFunc(views, most)
	if len(views) <= usage.MaxValues+1 { // one is Other
		return views
	}
	rest := all[usage.Other]
	kept := make([]usageView, 0, usage.MaxValues+1)
	for _, v := range views {
		switch {
		case v.Key == usage.Other:
		case len(kept) < usage.MaxValues:
			kept = append(kept, v)
		default:
			rest.Add(all[v.Key])
		}
	}
	kept = append(kept, view(usage.Other, rest))
	slices.SortFunc(kept, most)
	return kept
}

func view(value string, u usage.Use) usageView {
	const million = 1_000_000
	return usageView{Key: value, Jobs: u.Jobs, Attempts: u.Attempts, RunningS: float64(u.RunningMS) / 1000,
		Bytes: u.Bytes, Requests: u.Requests, Dollars: math.Round(u.Dollars()*million) / million}
}

// position grows in the order of the list.
func position(v usageView) string {
	const million = 1_000_000
	return fmt.Sprintf("%020d %s", math.MaxInt64-int64(math.Round(v.Dollars*million)), v.Key)
}

// read returns what is listed by, and the first and last day.
func (s *Handler) read(in *usageInput) (by usage.By, first, last time.Time, err error) {
	var wrong fault.Violations
	by = usage.By(cmp.Or(in.By, string(usage.ByTask)))
	tag, isTag := strings.CutPrefix(string(by), usage.TagPrefix)
	if !isTag || tag == "" {
		rest.FilterWord(&wrong, "by", string(by), []string{string(usage.ByTask), string(usage.BySchedule),
			string(usage.ByDag), usage.TagPrefix + "NAME"})
	}
	p := rest.ReadPeriod(&wrong, in.From, in.To)
	if len(wrong) > 0 {
		return by, first, last, wrong
	}
	if isTag && !slices.Contains(s.UsageTags, tag) {
		return by, first, last, s.notCounted(string(by))
	}
	p = p.Before(s.Now(), defaultRange)
	p.NotEmpty(&wrong)
	first, last = usage.DayOf(p.From), usage.DayOf(p.To.Add(-1))
	p.From, p.To = first, last.AddDate(0, 0, 1)
	p.AtMost(&wrong, usage.MaxDays)
	return by, first, last, wrong.Err()
}

// notCounted says by which tags it is not counted what jobs used, and by which it is.
func (s *Handler) notCounted(by string) error {
	allowed := []string{string(usage.ByTask), string(usage.BySchedule), string(usage.ByDag)}
	for _, name := range s.UsageTags {
		allowed = append(allowed, usage.TagPrefix+name)
	}
	return rest.OneViolation("by", spec.CodeNotIndexed, strings.Join(allowed, ", "),
		"use is not counted by %s, which the setting usage_tags does not name", by)
}
