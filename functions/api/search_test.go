package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/search"
)

// indexed has the API over a world whose index it reads.
func indexed(t testing.TB, change ...func(*memory.Options, *api.Deps)) *bench {
	t.Helper()
	b := setup(t, change...)
	b.handler = api.New(api.Deps{Base: b.ProcessBase(), Store: b.Store, Queues: b.World.Queues(),
		Timers: b.World.Timers(), Search: b.World.Search()})
	return b
}

// index puts job n with tags into the table and into the index.
func (b *bench) index(n int, tags map[string]string, change ...func(*job.Row)) job.Row {
	b.Helper()
	at := time.Now().Add(-time.Hour)
	r := b.Put(jobtest.Row(n, at, at, append([]func(*job.Row){func(r *job.Row) {
		r.ID = job.DeterministicID(at.Add(time.Duration(n)*time.Second), "indexed")
	}}, change...)...))
	e := search.EntryOf(r, "", "")
	e.Tags = tags
	b.World.Search().PutEntries(b.Context(), []search.Update{{Entry: e}})
	return r
}

func failed(code, message string, ago time.Duration) func(*job.Row) {
	return func(r *job.Row) {
		stagetest.Dead(r)
		r.Reason = job.Reason{Code: code, Message: message}
		r.DeadAt = time.Now().UTC().Add(-ago).Truncate(time.Millisecond)
		r.FinishedAt = r.DeadAt
	}
}

func ids(r reply) (list []string) {
	for _, i := range r.items() {
		list = append(list, fmt.Sprint(i["job_id"]))
	}
	return list
}

func TestListJobs_FindsByAnyCombination(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	prod, test := map[string]string{"env": "prod", "customer": "42"}, map[string]string{"env": "test"}
	one := b.index(1, prod, failed("handler_failed", "no luck", time.Minute))
	two := b.index(2, test, failed("timeout", "too late", 2*time.Hour))
	three := b.index(3, prod, func(r *job.Row) { r.Priority, r.Task = job.High, "load" })
	four := b.index(4, nil, func(r *job.Row) { r.Status, r.FinishedAt = job.Succeeded, stagetest.Now() })
	group := search.Group(one.Task, "handler_failed", "no luck")
	soon, hour := url.QueryEscape(time.Now().Add(time.Minute).Format(time.RFC3339)),
		url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339))
	for query, want := range map[string][]job.Row{
		"tag.env=prod":                             {three, one},
		"tag.env=prod&order=oldest":                {one, three},
		"tag.env=prod&status=DEAD":                 {one},
		"tag.env=prod&tag.customer=42":             {three, one},
		"tag.env=prod&tag.customer=7":              nil,
		"code=timeout":                             {two},
		"group=" + group:                           {one},
		"priority=high":                            {three},
		"priority=high&task=echo":                  nil,
		"pool=short":                               {four, three, two, one},
		"id=" + string(two.ID):                     {two},
		"id=" + string(two.ID[:6]) + "&task=":      nil,
		"status=SUCCEEDED&finished_before=" + soon: {four},
		"status=DEAD&finished_after=" + hour:       {one},
		"due_after=" + soon:                        nil,
		"due_before=" + soon + "&priority=high":    {three},
		"order=oldest":                             {one, two, three, four},
		"dag=etl":                                  nil,
		"run_id=" + string(one.ID):                 nil,
	} {
		if strings.HasSuffix(query, "task=") { // an empty value is no filter
			b.want(t, 400, "GET", "/v1/jobs?"+query, "")
			continue
		}
		r := b.want(t, 200, "GET", "/v1/jobs?"+query, "")
		var list []string
		for _, row := range want {
			list = append(list, string(row.ID))
		}
		if !slices.Equal(ids(r), list) || r.str("as_of") == "" {
			t.Errorf("%s found %v as of %q, want %v", query, ids(r), r.str("as_of"), list)
		}
	}
}

func TestListJobs_LeavesOutWhatNoLongerMatches(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	one := b.index(1, nil, failed("timeout", "too late", time.Minute))
	b.index(2, nil, failed("timeout", "too late", time.Minute))
	one.Reason.Code = "handler_failed"
	b.Put(one)
	b.World.Search().PutEntries(b.Context(), []search.Update{{Entry: search.Entry{ // of a job that does not exist
		Key: job.Key{Tenant: "acme", ID: jobtest.Key(9).ID}, Status: job.Dead, Code: "timeout"}}})
	if r := b.want(t, 200, "GET", "/v1/jobs?code=timeout", ""); len(r.items()) != 1 {
		t.Errorf("%v", ids(r))
	}
}

func TestListJobs_PagesThroughASearch(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	for n := range 25 {
		b.index(n, map[string]string{"env": []string{"prod", "test"}[n%2]}, failed("timeout", "late", time.Minute))
	}
	for _, path := range []string{"/v1/jobs?tag.env=prod&limit=4", "/v1/dead-letters?tag.env=prod&limit=4"} {
		got := flat(b.pages(t, path, "job_id"))
		if len(got) != 13 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 13 {
			t.Errorf("%s gave %v", path, got)
		}
	}
	next := b.want(t, 200, "GET", "/v1/jobs?tag.env=prod&limit=4", "").str("next_cursor")
	b.refused(t, 400, "invalid_cursor", "cursor", "GET", "/v1/jobs?tag.env=test&limit=4&cursor="+next)
}

func TestListDeadLetters_FindsByAnyCombination(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	late := b.index(1, map[string]string{"env": "prod"}, failed("timeout", "too late", time.Minute))
	early := b.index(2, map[string]string{"env": "prod"}, failed("timeout", "too late", time.Hour))
	b.index(3, map[string]string{"env": "test"}, failed("handler_failed", "no luck", time.Minute))
	group := search.Group("echo", "timeout", "too late")
	for _, query := range []string{"code=timeout", "tag.env=prod", "group=" + group, "group=" + group + "&task=echo"} {
		r := b.want(t, 200, "GET", "/v1/dead-letters?"+query, "")
		if !slices.Equal(ids(r), []string{string(late.ID), string(early.ID)}) || r.str("as_of") == "" {
			t.Errorf("%s found %v", query, ids(r))
		}
	}
	after := url.QueryEscape(time.Now().Add(-10 * time.Minute).Format(time.RFC3339))
	if r := b.want(t, 200, "GET", "/v1/dead-letters?code=timeout&dead_after="+after, ""); len(r.items()) != 1 {
		t.Errorf("%v", ids(r))
	}
}

func TestDeadLetterGroups_CountByCause(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	for n := range 5 {
		b.index(n, nil, failed("timeout", fmt.Sprintf("no answer in %d s", n), time.Duration(n)*time.Hour))
	}
	last := b.index(7, nil, failed("handler_failed", "no luck", 30*time.Minute))
	b.index(8, nil, func(r *job.Row) { r.Status = job.Succeeded })
	r := b.want(t, 200, "GET", "/v1/dead-letters/groups", "")
	items := r.items()
	if len(items) != 2 || items[0]["count"] != 5.0 || items[1]["count"] != 1.0 || r.str("as_of") == "" {
		t.Fatal(r.text)
	}
	if g := items[1]; g["example_job_id"] != string(last.ID) || g["message"] != "no luck" ||
		g["code"] != "handler_failed" || g["task"] != "echo" || len(g["hourly"].([]any)) != 24 {
		t.Error(r.text)
	}
	listed := b.want(t, 200, "GET", "/v1/dead-letters?group="+fmt.Sprint(items[0]["group"]), "")
	if len(listed.items()) != 5 {
		t.Error(listed.text)
	}
	if first := flat(b.pages(t, "/v1/dead-letters/groups?limit=1", "group")); len(first) != 2 {
		t.Error(first)
	}
	after := url.QueryEscape(time.Now().Add(-90 * time.Minute).Format(time.RFC3339))
	if r := b.want(t, 200, "GET", "/v1/dead-letters/groups?dead_after="+after, ""); r.items()[0]["count"] != 2.0 {
		t.Error(r.text)
	}
}

func TestSearch_RefusesFiltersWithoutAnIndex(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, pointer := range map[string]string{
		"/v1/jobs?tag.env=prod": "tag.env", "/v1/jobs?code=timeout": "code", "/v1/jobs?order=oldest": "order",
		"/v1/jobs?task=echo&pool=short": "pool", "/v1/dead-letters?code=timeout": "code",
		"/v1/dead-letters?schedule=nightly": "schedule",
	} {
		b.refused(t, 400, "not_indexed", pointer, "GET", path)
	}
	if r := b.want(t, 400, "GET", "/v1/dead-letters/groups", ""); r.str("code") != "not_indexed" {
		t.Error(r.text)
	}
	for _, path := range []string{"/v1/jobs?task=echo&status=DEAD", "/v1/jobs?order=newest",
		"/v1/dead-letters?task=echo"} {
		if r := b.want(t, 200, "GET", path, ""); r.str("as_of") != "" {
			t.Error(r.text)
		}
	}
}

func TestSearch_RefusesFiltersOfAnotherForm(t *testing.T) {
	t.Parallel()
	b := indexed(t)
	for path, want := range map[string][2]string{
		"/v1/jobs?tag.a=1&tag.b=2&tag.c=3&tag.d=4": {"invalid_filter", "tag.NAME"},
		"/v1/jobs?tag.=1":                          {"invalid_filter", "tag.NAME"},
		"/v1/jobs?tag.a=":                          {"invalid_value", "tag.a"},
		"/v1/jobs?tag.a=1&tag.a=2":                 {"duplicate_field", "tag.a"},
		"/v1/jobs?id=01KZX":                        {"invalid_filter", "id"},
		"/v1/jobs?id=nonsense":                     {"invalid_filter", "id"},
		"/v1/jobs?run_id=7":                        {"invalid_filter", "run_id"},
		"/v1/jobs?group=7":                         {"invalid_filter", "group"},
		"/v1/jobs?pool=deep":                       {"invalid_value", "pool"},
		"/v1/jobs?priority=urgent":                 {"invalid_value", "priority"},
		"/v1/jobs?order=random":                    {"invalid_value", "order"},
		"/v1/jobs?due_after=today":                 {"invalid_value", "due_after"},
		"/v1/jobs?due_after=2027-03-02T00:00:00Z&due_before=2027-03-01T00:00:00Z": {"conflicting_fields", "due_before"},
		"/v1/jobs?taag.env=prod":                   {"unknown_field", "taag.env"},
		"/v1/dead-letters?id=01KZX0":               {"unknown_field", "id"},
		"/v1/dead-letters?group=xyz":               {"invalid_filter", "group"},
		"/v1/dead-letters/groups?dead_after=":      {"invalid_value", "dead_after"},
		"/v1/dead-letters/groups?tag.env=x":        {"unknown_field", "tag.env"},
		"/v1/runs?finished_after=x":                {"invalid_value", "finished_after"},
		"/v1/runs?tag.a=1&tag.b=2&tag.c=3&tag.d=4": {"invalid_filter", "tag.NAME"},
	} {
		b.refused(t, 400, want[0], want[1], "GET", path)
	}
}

func TestListRuns_FindsByTagAndEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, env := range []string{"prod", "test"} {
		b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"}}},"tags":{"env":"`+env+`"}}`)
	}
	r := b.want(t, 200, "GET", "/v1/runs?tag.env=prod", "")
	if len(r.items()) != 1 || r.str("as_of") == "" {
		t.Error(r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/runs?finished_after=2027-01-01T00:00:00Z", ""); len(r.items()) != 0 {
		t.Error(r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/runs", ""); len(r.items()) != 2 || r.str("as_of") != "" {
		t.Error(r.text)
	}
}

// refused wants a problem whose first violation has that code and pointer.
func (b *bench) refused(t *testing.T, status int, code, pointer, method, path string) {
	t.Helper()
	r := b.want(t, status, method, path, "")
	errs, _ := r.body["errors"].([]any)
	if len(errs) == 0 {
		t.Errorf("%s %s: %s", method, path, r.text)
		return
	}
	first, _ := errs[0].(map[string]any)
	if first["code"] != code || first["pointer"] != pointer || first["detail"] == "" {
		t.Errorf("%s %s: %s", method, path, r.text)
	}
}
