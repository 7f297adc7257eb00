package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/audit"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/tenant"
)

// ask is a request of a test.
type ask struct{ method, path, body string }

// auditCase is a request that changes something, by its operation in the document.
type auditCase struct {
	operation string
	action    audit.Action
	resource  func(a ask) string // "": that of the action and the second part of the path
	request   func(t *testing.T, b *bench) ask
	repeats   bool // once more it changes something again
}

// entries returns the audit of the tenant, newest first.
func (b *bench) entries(t *testing.T, query string) []map[string]any {
	t.Helper()
	return b.want(t, 200, "GET", "/v1/audit"+query, "").items()
}

// about makes the request of a case with a path in which % is what prepare returns.
func about(method, path, body string, prepare func(b *bench, t *testing.T) string) func(*testing.T, *bench) ask {
	return func(t *testing.T, b *bench) ask {
		t.Helper()
		return ask{method, strings.ReplaceAll(path, "%", prepare(b, t)), body}
	}
}

func waitingJob(b *bench, t *testing.T) string { return b.post(t, `{"task":"echo","delay":"1h"}`) }

func deadJob(b *bench, t *testing.T) string { return b.dead(t, `{"task":"echo","delay":"1h"}`) }

// put returns a function that puts something and returns its name.
func put(path, body string) func(b *bench, t *testing.T) string {
	return func(b *bench, t *testing.T) string {
		b.want(t, 201, "PUT", path, body)
		return path[strings.LastIndexByte(path, '/')+1:]
	}
}

func newRun(b *bench, t *testing.T) string {
	return b.want(t, 202, "POST", "/v1/runs", chain).str("run_id")
}

// failedRun returns a run whose node a has failed.
func failedRun(b *bench, t *testing.T) string {
	id := newRun(b, t)
	a := node(b.want(t, 200, "GET", "/v1/runs/"+id, ""), "a")["job_id"].(string)
	b.settled(t, a, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x"}})
	return id
}

func endedRun(b *bench, t *testing.T) string {
	id := newRun(b, t)
	b.want(t, 200, "POST", "/v1/runs/"+id+"/cancel", "")
	return id
}

func newBackfill(b *bench, t *testing.T) string {
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	return b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`).str("operation_id")
}

func auditCases() []auditCase {
	const nodeOf = "/v1/runs/%/nodes/a/"
	ofNode := func(a ask) string { return "run/" + strings.Split(a.path, "/")[3] + "/node/a" }
	letters := func(ask) string { return "dead_letters" }
	byID := func(b *bench, t *testing.T) string { return `"` + deadJob(b, t) + `"` }
	named := func(path string) func(t *testing.T, b *bench) ask {
		return func(t *testing.T, b *bench) ask { return ask{"POST", path, `{"job_ids":[` + byID(b, t) + `]}`} }
	}
	none := func(*bench, *testing.T) string { return "" }
	schedule := put("/v1/schedules/s", hourly)
	return []auditCase{
		{"cancelJob", audit.JobCancel, nil, about("POST", "/v1/jobs/%/cancel", "", waitingJob), false},
		{"pauseJob", audit.JobPause, nil, about("POST", "/v1/jobs/%/pause", `{"reason":"why"}`, waitingJob), false},
		{"resumeJob", audit.JobResume, nil, about("POST", "/v1/jobs/%/resume", "", func(b *bench, t *testing.T) string {
			id := waitingJob(b, t)
			b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", "")
			return id
		}), false},
		{"patchJob", audit.JobPatch, nil, about("PATCH", "/v1/jobs/%", `{"priority":"low"}`, waitingJob), true},
		{"runJobNow", audit.JobRunNow, nil, about("POST", "/v1/jobs/%/run-now", "", waitingJob), true},
		{"redriveJob", audit.JobRedrive, nil, about("POST", "/v1/jobs/%/redrive", "", deadJob), false},
		{"deleteJob", audit.JobDelete, nil, about("DELETE", "/v1/jobs/%", "", deadJob), false},
		{"putTask", audit.TaskPut, nil, about("PUT", "/v1/tasks/t", `{"executor":"echo"}`, none), false},
		{"deleteTask", audit.TaskDelete, nil, about("DELETE", "/v1/tasks/%", "", put("/v1/tasks/t",
			`{"executor":"echo"}`)), false},
		{"putSchedule", audit.SchedulePut, nil, about("PUT", "/v1/schedules/s", hourly, none), false},
		{"patchSchedule", audit.SchedulePatch, nil, about("PATCH", "/v1/schedules/%", `{"overlap":"skip"}`, schedule),
			false},
		{"deleteSchedule", audit.ScheduleDelete, nil, about("DELETE", "/v1/schedules/%", "", schedule), false},
		{"pauseSchedule", audit.SchedulePause, nil, about("POST", "/v1/schedules/%/pause", `{"reason":"why"}`,
			schedule), false},
		{"resumeSchedule", audit.ScheduleResume, nil, about("POST", "/v1/schedules/%/resume", "",
			func(b *bench, t *testing.T) string {
				b.want(t, 201, "PUT", "/v1/schedules/s", strings.Replace(hourly, "{", `{"paused":true,`, 1))
				return "s"
			}), false},
		{"runScheduleNow", audit.ScheduleRunNow, nil, about("POST", "/v1/schedules/%/run-now", "", schedule), true},
		{"createBackfill", audit.ScheduleBackfill, nil, about("POST", "/v1/schedules/%/backfills", fourHours+`}`,
			schedule), true},
		{"putExclusion", audit.ExclusionPut, nil, about("PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`, none), false},
		{"deleteExclusion", audit.ExclusionDelete, nil, about("DELETE", "/v1/exclusions/%", "",
			put("/v1/exclusions/x", `{"weekly":["sun"]}`)), false},
		{"putPause", audit.PausePut, nil, about("PUT", "/v1/pauses/task:echo", `{"reason":"why"}`, none), false},
		{"deletePause", audit.PauseDelete, nil, about("DELETE", "/v1/pauses/%", "", put("/v1/pauses/all", "")), false},
		{"putDag", audit.DagPut, nil, about("PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`, none), false},
		{"deleteDag", audit.DagDelete, nil, about("DELETE", "/v1/dags/%", "",
			put("/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)), false},
		{"pauseRun", audit.RunPause, nil, about("POST", "/v1/runs/%/pause", `{"reason":"why"}`, newRun), false},
		{"resumeRun", audit.RunResume, nil, about("POST", "/v1/runs/%/resume", "", func(b *bench, t *testing.T) string {
			id := newRun(b, t)
			b.want(t, 200, "POST", "/v1/runs/"+id+"/pause", "")
			return id
		}), false},
		{"cancelRun", audit.RunCancel, nil, about("POST", "/v1/runs/%/cancel", "", newRun), false},
		{"retryRun", audit.RunRetry, nil, about("POST", "/v1/runs/%/retry", `{"reason":"why"}`, failedRun), false},
		{"deleteRun", audit.RunDelete, nil, about("DELETE", "/v1/runs/%", "", endedRun), false},
		{"retryRunNode", audit.NodeRetry, ofNode, about("POST", nodeOf+"retry", "", failedRun), false},
		{"skipRunNode", audit.NodeSkip, ofNode, about("POST", nodeOf+"skip", `{"children":"skip"}`, newRun), false},
		{"completeRunNode", audit.NodeComplete, ofNode, about("POST", nodeOf+"complete", `{"result":{"a":1}}`,
			failedRun), false},
		{"redriveDeadLetters", audit.DeadLettersRedrive, letters, named("/v1/dead-letters/redrive"), false},
		{"purgeDeadLetters", audit.DeadLettersPurge, letters, named("/v1/dead-letters/purge"), false},
		{"putLimit", audit.LimitPut, nil, about("PUT", "/v1/limits/l", `{"max_running":2}`, none), false},
		{"deleteLimit", audit.LimitDelete, nil, about("DELETE", "/v1/limits/%", "",
			put("/v1/limits/l", `{"max_running":2}`)), false},
		{"putWebhook", audit.WebhookPut, nil, about("PUT", "/v1/webhooks/w", hook, none), false},
		{"deleteWebhook", audit.WebhookDelete, nil, about("DELETE", "/v1/webhooks/%", "", put("/v1/webhooks/w", hook)),
			false},
		{"pauseOperation", audit.OperationPause, nil, about("POST", "/v1/operations/%/pause", "", newBackfill), false},
		{"resumeOperation", audit.OperationResume, nil, about("POST", "/v1/operations/%/resume", "",
			func(b *bench, t *testing.T) string {
				id := newBackfill(b, t)
				b.want(t, 200, "POST", "/v1/operations/"+id+"/pause", "")
				return id
			}), false},
		{"stopOperation", audit.OperationStop, nil, about("POST", "/v1/operations/%/stop", "", newBackfill), false},
		{"createOperation", audit.OperationCreate, nil, about("POST", "/v1/operations",
			`{"action":"cancel","filter":{"task":"echo"},"reason":"why"}`, none), true},
		{"proceedOperation", audit.OperationProceed, nil, about("POST", "/v1/operations/%/proceed", "",
			func(b *bench, t *testing.T) string {
				return b.want(t, 202, "POST", "/v1/operations", `{"action":"redrive","filter":{"job_ids":["`+
					deadJob(b, t)+`"]},"canary":{"count":1}}`).str("operation_id")
			}), false},
	}
}

// unaudited are the operations that change something and leave no entry: they make jobs and runs, or only look.
var unaudited = []string{"createJob", "createJobs", "createDagRun", "createRun", "dryRunSchedule", "previewCalendar",
	"validateDag", "testWebhook", "redeliver"}

func TestAudit_NamesEveryOperationThatChangesSomething(t *testing.T) {
	t.Parallel()
	b := setup(t)
	known, actions := slices.Clone(unaudited), map[audit.Action]bool{}
	for _, c := range auditCases() {
		known, actions[c.action] = append(known, c.operation), true
	}
	for path, methods := range b.want(t, 200, "GET", "/v1/openapi.json", "").body["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			id := op.(map[string]any)["operationId"].(string)
			if method != "get" && !slices.Contains(known, id) {
				t.Errorf("%s %s, %s, has no case in this test", method, path, id)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(actions)); !slices.Equal(got, slices.Sorted(slices.Values(audit.Actions()))) {
		t.Errorf("the cases have the actions %v", got)
	}
}

func TestAudit_HasOneEntryForEachChange(t *testing.T) {
	t.Parallel()
	for _, c := range auditCases() {
		t.Run(c.operation+" leaves one entry", func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := c.request(t, b)
			b.clock.set(noon.Add(time.Second))
			before := len(b.entries(t, "?limit=200"))
			refused := func(status int, path string) {
				t.Helper()
				b.want(t, status, a.method, path, a.body)
				b.who = all("acme")
				if n := len(b.entries(t, "?limit=200")); n != before {
					t.Errorf("refused by %d it left %d entries", status, n-before)
				}
			}
			refused(400, a.path+"?nonsense=1")
			b.who.Scopes = []tenant.Scope{tenant.Read}
			refused(403, a.path)
			b.who = tenant.Identity{}
			refused(401, a.path)

			r := b.do(t, a.method, a.path, a.body, "X-Request-Id", "the-request")
			all := b.entries(t, "?limit=200")
			if r.status >= 300 || len(all) != before+1 {
				t.Fatalf("%d %s: %d entries, and %d before", r.status, r.text, len(all), before)
			}
			e, resource := all[0], c.action.Resource(strings.Split(a.path+"//", "/")[3])
			if c.resource != nil {
				resource = c.resource(a)
			}
			if c.action == audit.OperationCreate { // the request does not know its id
				resource += r.str("operation_id")
			}
			if e["action"] != string(c.action) || e["resource"] != resource || e["request_id"] != "the-request" ||
				fmt.Sprint(e["actor"]) != "map[sub:tester via:token]" || e["at"] != "2027-03-01T12:00:01.000Z" {
				t.Errorf("the entry is %v", e)
			}
			if want := map[bool]string{true: "why"}[strings.Contains(a.body, `"why"`)]; e["reason"] != want &&
				c.operation != "createBackfill" {
				t.Errorf("the reason is %q, want %q", e["reason"], want)
			}
			b.do(t, a.method, a.path, a.body)
			if n := len(b.entries(t, "?limit=200")); n == before+2 != c.repeats {
				t.Errorf("once more it left %d entries", n-before-1)
			}
		})
	}
}

func TestAudit_HasNoEntryForJobsAndRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post(t, `{"task":"echo"}`)
	newRun(b, t)
	b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo"}]}`)
	if all := b.entries(t, ""); len(all) > 0 {
		t.Errorf("there are %v", all)
	}
}

func TestAudit_HasNoEntryForAReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	for range 2 {
		b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "k")
	}
	if all := b.entries(t, "?action=schedule.backfill"); len(all) != 1 {
		t.Errorf("there are %v", all)
	}
}

// changesOf returns the changes of an entry, one a line.
func changesOf(e map[string]any) string {
	var lines []string
	for _, c := range e["changes"].([]any) {
		c := c.(map[string]any)
		line := fmt.Sprintf("%v %v→%v", c["pointer"], c["from"], c["to"])
		if c["omitted"] == true {
			line = fmt.Sprintf("%v omitted", c["pointer"])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestAudit_SaysWhatChanged(t *testing.T) {
	t.Parallel()
	const daily = `{"calendar":{"cron":"0 9 * * *","timezone":"Europe/Berlin"},"job":{"task":"echo","payload":` +
		`{"greeting":"grüezi"},"priority":"low"}}`
	for _, c := range []struct {
		name           string
		first          ask
		method, body   string
		path           string
		want           string
		firstStatus    int
		mustNotContain string
	}{
		{"a schedule", ask{"PUT", "/v1/schedules/s", daily}, "PUT",
			strings.NewReplacer("0 9", "30 9", "grüezi", "salü", `"low"`, `"high"`).Replace(daily), "/v1/schedules/s",
			"/calendar/cron 0 9 * * *→30 9 * * *\n/job/payload omitted\n/job/priority low→high", 201, "sal"},
		{"a part of a schedule", ask{"PUT", "/v1/schedules/s", daily}, "PATCH",
			`{"calendar":{"cron":"1 9 * * *"},"pause_after_failures":3}`, "/v1/schedules/s",
			"/calendar/cron 0 9 * * *→1 9 * * *\n/pause_after_failures 0→3", 201, ""},
		{"the pause of a schedule", ask{"PUT", "/v1/schedules/s", daily}, "PUT",
			strings.Replace(daily, "{", `{"paused":true,`, 1), "/v1/schedules/s", "/paused <nil>→map[]", 201, ""},
		{"a task", ask{"PUT", "/v1/tasks/t", `{"executor":"echo"}`}, "PUT",
			`{"executor":"echo","timeout":"7m"}`, "/v1/tasks/t", "/timeout 30s→7m", 201, ""},
		{"a limit", ask{"PUT", "/v1/limits/t", `{"max_running":1}`}, "PUT",
			`{"rate":{"count":5,"per":"1m"}}`, "/v1/limits/t",
			"/max_running 1→<nil>\n/rate/count <nil>→5\n/rate/per <nil>→1m", 201, ""},
		{"an exclusion", ask{"PUT", "/v1/exclusions/x", `{"dates":["2027-12-25"]}`}, "PUT",
			`{"dates":["2027-12-25","2027-12-26"]}`, "/v1/exclusions/x",
			"/dates [2027-12-25]→[2027-12-25 2027-12-26]", 201, ""},
		{"a pause", ask{"PUT", "/v1/pauses/all", `{"reason":"a"}`}, "PUT", `{"reason":"b","missed":"drop"}`,
			"/v1/pauses/all", "/missed <nil>→drop\n/reason a→b", 201, ""},
		{"a dag", ask{"PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo","payload":{"greeting":"grüezi"}}}}`}, "PUT",
			`{"nodes":{"a":{"task":"echo","payload":{"greeting":"salü"}},"b":{"task":"echo","depends_on":["a"]}}}`,
			"/v1/dags/d", "/nodes/a/payload omitted\n/nodes/b/depends_on <nil>→[a]\n" +
				"/nodes/b/run_if <nil>→all_succeeded\n/nodes/b/task <nil>→echo", 201, "sal"},
	} {
		t.Run("it says what changed: "+c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.want(t, c.firstStatus, c.first.method, c.first.path, c.first.body)
			b.clock.set(noon.Add(time.Second))
			b.want(t, 200, c.method, c.path, c.body)
			b.want(t, 200, c.method, c.path, c.body) // no change
			all := b.entries(t, "")
			if len(all) != 2 {
				t.Fatalf("there are %v", all)
			}
			if got := changesOf(all[0]); got != c.want {
				t.Errorf("the changes are\n%s\nwant\n%s", got, c.want)
			}
			text := fmt.Sprint(all)
			if strings.Contains(text, "gr\u00fcezi") ||
				c.mustNotContain != "" && strings.Contains(text, c.mustNotContain) {
				t.Errorf("it has a value of a payload: %s", text)
			}
		})
	}
}

func TestAudit_SaysWhatARequestAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := waitingJob(b, t)
	b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"priority":"high","payload":{"greeting":"salü"},"metadata":{"a":1}}`)
	e := b.entries(t, "")[0]
	if got := changesOf(e); got != "/metadata/a <nil>→1\n/payload omitted\n/priority normal→high" {
		t.Errorf("a patch: %s", got)
	}
	dead := deadJob(b, t)
	b.clock.set(noon.Add(time.Second))
	b.want(t, 202, "POST", "/v1/jobs/"+dead+"/redrive", `{"payload":{"greeting":"salü"},"priority":"low"}`)
	if got := changesOf(b.entries(t, "")[0]); got != "/payload omitted\n/priority <nil>→low" {
		t.Errorf("a redrive: %s", got)
	}
}

func TestAudit_IsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for day := range 5 {
		b.clock.set(noon.AddDate(0, 0, day*20))
		b.who.Subject = []string{"ana", "ben"}[day%2]
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/limits/l%d", day), `{"max_running":1}`)
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/exclusions/x%d", day), `{"weekly":["sun"]}`)
	}
	resources := func(query string) string {
		var found []string
		for next := query; ; {
			r := b.want(t, 200, "GET", "/v1/audit?"+next, "")
			for _, e := range r.items() {
				found = append(found, e["resource"].(string))
			}
			if r.str("next_cursor") == "" {
				return strings.Join(found, " ")
			}
			next = query + "&cursor=" + r.str("next_cursor")
		}
	}
	const whole = "limit/l4 exclusion/x4 limit/l3 exclusion/x3 limit/l2 exclusion/x2 " +
		"limit/l1 exclusion/x1 limit/l0 exclusion/x0"
	for _, limit := range []int{1, 3, 200} {
		got := strings.Fields(resources(fmt.Sprintf("limit=%d", limit)))
		want := strings.Fields(whole)
		for n := 0; n < len(got); n += 2 { // two of one time are in any order
			slices.Sort(got[n : n+2])
			slices.Sort(want[n : n+2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v", limit, got)
		}
	}
	for query, want := range map[string]string{
		"actor=ben&limit=200":             "4",
		"action=limit.put":                "5",
		"resource=limit/l3":               "1",
		"resource=limit":                  "5",
		"resource=lim":                    "0",
		"after=2027-03-21T12:00:00Z":      "8",
		"after=2027-03-21T12:00:00.001Z":  "6",
		"before=2027-03-21T12:00:00Z":     "2",
		"before=2027-03-21T12:00:00.001Z": "4",
		"actor=ana&action=limit.put&before=2027-04-01T00:00:00Z": "1",
		"after=2030-01-01T00:00:00Z":                             "0",
	} {
		if got := fmt.Sprint(len(strings.Fields(resources(query)))); got != want {
			t.Errorf("%s: %s entries, want %s", query, got, want)
		}
	}
	b.who = all("globex")
	if got := resources(""); got != "" {
		t.Errorf("another tenant reads %s", got)
	}
}

func TestAudit_IsForgottenAfterItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.AuditKept = 48 * time.Hour })
	b.want(t, 201, "PUT", "/v1/limits/l", `{"max_running":1}`)
	b.clock.set(noon.Add(47 * time.Hour))
	if n := len(b.entries(t, "")); n != 1 {
		t.Errorf("after 47 hours there are %d entries", n)
	}
	b.clock.set(noon.Add(49 * time.Hour))
	if n := len(b.entries(t, "")); n != 0 {
		t.Errorf("after 49 hours there are %d entries", n)
	}
}

func TestAudit_RefusesBadFilters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []wrong{
		{"an unknown action", "action=job.make", 400, "invalid_value", "action"},
		{"no time", "after=yesterday", 400, "invalid_value", "after"},
		{"an empty range", "after=2027-03-02T00:00:00Z&before=2027-03-01T00:00:00Z", 400, "conflicting_fields",
			"before"},
		{"a long resource", "resource=" + strings.Repeat("r", 257), 400, "out_of_range", "resource"},
		{"a control character", "actor=a%07", 400, "invalid_value", "actor"},
		{"an unknown filter", "who=ana", 400, "unknown_field", "who"},
	} {
		t.Run("refuses "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "GET", "/v1/audit?"+c.body, ""))
		})
	}
	other := setup(t)
	other.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	other.want(t, 403, "GET", "/v1/audit", "")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		other.want(t, 405, method, "/v1/audit", "")
	}
}

func TestAudit_SaysHowACallerWasIdentified(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.NoSignIn = true })
	b.want(t, 201, "PUT", "/v1/limits/l", `{"max_running":1}`)
	if e := b.entries(t, "")[0]; fmt.Sprint(e["actor"]) != "map[sub:tester via:laptop]" {
		t.Errorf("the entry is %v", e)
	}
}
