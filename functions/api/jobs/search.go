package jobs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

// Orders of a list of jobs, the default first.
var Orders = []search.Order{search.NewestFirst, search.OldestFirst}

// listedBy are the filters of GET /v1/jobs and of dead letters that need no index.
var (
	listedBy  = []string{"created_after", "created_before", "schedule", "status", "task"}
	lettersBy = []string{"dead_after", "dead_before", "task"}
)

// notIndexed refuses filters that only the index knows.
func notIndexed(f search.Filter, without []string, more ...string) error {
	var wrong fault.Violations
	for _, name := range append(f.Names(), more...) {
		if !slices.Contains(without, name) {
			wrong = append(wrong, fault.Field{Pointer: name, Code: spec.CodeNotIndexed,
				Detail:  "this deployment has no index of jobs (search=yes), so no job is found by " + name,
				Allowed: strings.Join(without, ", ")})
		}
	}
	return wrong
}

// needsIndex reports whether a filter goes beyond those that need none.
func needsIndex(f search.Filter, without []string) bool {
	return slices.ContainsFunc(f.Names(), func(name string) bool { return !slices.Contains(without, name) })
}

// searchFilter reads the filters of a list of jobs.
func (in *listJobsInput) searchFilter() (search.Filter, error) {
	var wrong fault.Violations
	rest.FilterWord(&wrong, "status", in.State, rest.WordsOf(job.Statuses))
	rest.FilterName(&wrong, "task", in.Task)
	rest.FilterName(&wrong, "schedule", in.Schedule)
	rest.FilterName(&wrong, "dag", in.Dag)
	rest.FilterWord(&wrong, "pool", in.Pool, contract.Pools)
	rest.FilterWord(&wrong, "priority", in.Priority, contract.Priorities)
	rest.FilterWord(&wrong, "order", in.Order, rest.WordsOf(Orders))
	spec.CodeFilter.Check(&wrong, in.Code)
	spec.GroupFilter.Check(&wrong, in.Group)
	spec.IDFilter.Check(&wrong, in.ID)
	spec.RunIDFilter.Check(&wrong, in.RunID)
	f := search.Filter{
		Status: job.Status(in.State), Task: in.Task, Schedule: in.Schedule, DAG: in.Dag, RunID: in.RunID, Pool: in.Pool,
		Priority: job.Priority(in.Priority), Code: in.Code, Group: in.Group, IDPrefix: in.ID,
		Tags: spec.FilterTags(&wrong, in.Tags),
	}
	read := func(name, after, before string) (from, to time.Time) {
		return rest.ReadRange(&wrong, name+"_after", after, name+"_before", before)
	}
	f.CreatedAfter, f.CreatedBefore = read("created", in.CreatedAfter, in.CreatedBefore)
	f.DueAfter, f.DueBefore = read("due", in.DueAfter, in.DueBefore)
	f.FinishedAfter, f.FinishedBefore = read("finished", in.FinishedAfter, in.FinishedBefore)
	return f, wrong.Err()
}

// searchJobs answers a list of jobs by the index.
func (s *Handler) searchJobs(
	ctx context.Context, who tenant.Identity, f search.Filter, order, after string, limit int,
) (found rest.Found[spec.JobView], err error) {
	if s.Read.Search == nil {
		var more []string
		if order == string(search.OldestFirst) {
			more = []string{"order"}
		}
		return found, notIndexed(f, listedBy, more...)
	}
	page, err := s.Read.Find(ctx, who.Tenant, search.Query{
		Filter: f, Order: cmp.Or(search.Order(order), search.NewestFirst), Position: after, Limit: limit})
	return rest.Found[spec.JobView]{Items: spec.ViewJobs(page.Jobs), Next: page.Next, AsOf: page.AsOf}, err
}

// searchFilter reads the filters of a list of dead letters.
func (in *deadLettersInput) searchFilter() (search.Filter, error) {
	var wrong fault.Violations
	rest.FilterName(&wrong, "task", in.Task)
	rest.FilterName(&wrong, "schedule", in.Schedule)
	rest.FilterName(&wrong, "dag", in.Dag)
	spec.CodeFilter.Check(&wrong, in.Code)
	spec.GroupFilter.Check(&wrong, in.Group)
	f := search.Filter{Task: in.Task, Schedule: in.Schedule, DAG: in.Dag, Code: in.Code, Group: in.Group,
		Tags: spec.FilterTags(&wrong, in.Tags)}
	f.DeadAfter, f.DeadBefore = rest.ReadRange(&wrong, "dead_after", in.DeadAfter, "dead_before", in.DeadBefore)
	return f, wrong.Err()
}

// lettersOf reads a page of dead letters, by the index where a filter needs it.
func (s *Handler) lettersOf(
	ctx context.Context, who tenant.Identity, f search.Filter, after string, limit int,
) (rows []job.Row, next string, asOf time.Time, err error) {
	switch {
	case !needsIndex(f, lettersBy):
		rows, next, err = s.Read.DeadLetters(ctx, who.Tenant,
			show.LetterFilter{Task: f.Task, After: f.DeadAfter, Before: f.DeadBefore}, after, limit)
		return rows, next, asOf, err
	case s.Read.Search == nil:
		return nil, "", asOf, notIndexed(f, lettersBy)
	}
	return s.Read.FindLetters(ctx, who.Tenant, f, after, limit)
}

type groupView struct {
	Group        string            `json:"group" doc:"Fingerprint of task, code and message, without numbers, identifiers, times, addresses and quoted parts"`
	Task         string            `json:"task" doc:"Name of the task of the jobs"`
	Code         string            `json:"code" doc:"Code of the error with which the jobs died"`
	Message      string            `json:"message" doc:"Message of the error of the example"`
	Count        int               `json:"count" doc:"Number of the jobs"`
	FirstAt      rest.Instant      `json:"first_at" doc:"Time at which the first of them died"`
	LastAt       rest.Instant      `json:"last_at" doc:"Time at which the last of them died"`
	ExampleJobID job.ID            `json:"example_job_id" doc:"Identifier of the job that died last"`
	Hourly       [search.Hours]int `json:"hourly" doc:"Number of the jobs that died in each of the last {=group_hours} hours, oldest first"`
}

type groupsInput struct {
	rest.Paging
	DeadAfter string `query:"dead_after" format:"date-time" doc:"Filter: earliest dead_at of the jobs that count"`
}

func (s *Handler) listGroups(
	ctx context.Context, who tenant.Identity, in *groupsInput, after string, limit int,
) (found rest.Found[groupView], err error) {
	var wrong fault.Violations
	from, _ := rest.ReadRange(&wrong, "dead_after", in.DeadAfter, "", "")
	if len(wrong) > 0 {
		return found, wrong
	}
	if s.Read.Search == nil {
		return found, rest.NewProblem(spec.CodeNotIndexed,
			"this deployment has no index of jobs (search=yes), so dead letters cannot be grouped")
	}
	begin := int(rest.CursorNumber(after))
	groups, more, asOf, err := s.Read.DeadGroups(ctx, who.Tenant, from, begin, limit)
	for _, g := range groups {
		found.Items = append(found.Items, groupView{
			Group: g.Group, Task: g.Task, Code: g.Code, Message: g.Message, Count: g.Count, FirstAt: rest.At(g.FirstAt),
			LastAt: rest.At(g.LastAt), ExampleJobID: g.Example, Hourly: g.Hourly,
		})
	}
	if found.AsOf = asOf; more {
		found.Next = strconv.Itoa(begin + limit)
	}
	return found, err
}
