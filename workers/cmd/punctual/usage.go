package main

import (
	"strconv"

	"punctual/shared/client/rest"
)

type usedByJobs struct {
	By    string    `default:"task" help:"Meaning of the keys: task, schedule, dag or tag.NAME."`
	Last  length    `default:"30d" help:"Length of the range, such as 7d, which ends at --to. Whole days of UTC count."`
	From  typedTime `help:"Start of the range, used instead of --last: of today such as 11:26, or a date with a zone."`
	To    typedTime `help:"End of the range; default: now."`
	Limit int       `default:"20" help:"Maximum number of keys; 0 lists all."`
}

// Run lists what jobs used, what costs most first.
func (c usedByJobs) Run(s *shell) error {
	from, to, err := rangeOf(s, c.From, c.To, c.Last)
	if err != nil {
		return err
	}
	params := rest.ListUsageParams{By: ptr(c.By), From: &from, To: &to}
	return list(s, s.client.Usage(s.ctx, &params), c.Limit, func(u rest.UsageView) string { return u.Key },
		column[rest.UsageView]{"KEY", func(u rest.UsageView) string { return u.Key }},
		column[rest.UsageView]{"JOBS", func(u rest.UsageView) string { return count(u.Jobs) }},
		column[rest.UsageView]{"ATTEMPTS", func(u rest.UsageView) string { return count(u.Attempts) }},
		column[rest.UsageView]{"RUNNING", func(u rest.UsageView) string {
			return strconv.FormatFloat(u.RunningS, 'f', 1, 64) + "s"
		}},
		column[rest.UsageView]{"BYTES", func(u rest.UsageView) string { return count(u.Bytes) }},
		column[rest.UsageView]{"REQUESTS", func(u rest.UsageView) string { return count(u.Requests) }},
		column[rest.UsageView]{"DOLLARS", func(u rest.UsageView) string {
			return strconv.FormatFloat(u.Dollars, 'f', 6, 64)
		}})
}
