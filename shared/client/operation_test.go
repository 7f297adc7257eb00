package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// methods names the method of Client for each operation of the document, by operationId.
var methods = map[string]string{
	"cancelJob": "CancelJob", "createJob": "CreateJob", "createJobs": "CreateJobs", "deleteJob": "DeleteJob",
	"getAttemptLog": "AttemptLog",
	"getJob":        "Job", "listAttempts": "Attempts", "listJobs": "Jobs", "patchJob": "PatchJob",
	"pauseJob": "PauseJob", "redriveJob": "RedriveJob", "resumeJob": "ResumeJob", "runJobNow": "RunJobNow",

	"listDeadLetters": "DeadLetters", "listDeadLetterGroups": "DeadLetterGroups",
	"purgeDeadLetters":   "PurgeDeadLetters",
	"redriveDeadLetters": "RedriveDeadLetters",

	"deleteSchedule": "DeleteSchedule", "dryRunSchedule": "DryRunSchedule", "getSchedule": "Schedule",
	"listOccurrences": "Occurrences", "listSchedules": "Schedules", "patchSchedule": "PatchSchedule",
	"pauseSchedule": "PauseSchedule", "previewCalendar": "PreviewCalendar", "previewSchedule": "PreviewSchedule",
	"putSchedule": "PutSchedule", "resumeSchedule": "ResumeSchedule", "runScheduleNow": "RunScheduleNow",
	"createBackfill": "Backfill",

	"getOperation": "Operation", "listOperations": "Operations", "pauseOperation": "PauseOperation",
	"createOperation": "CreateOperation", "proceedOperation": "ProceedOperation",
	"resumeOperation": "ResumeOperation", "stopOperation": "StopOperation",

	"deleteExclusion": "DeleteExclusion", "getExclusion": "Exclusion", "listExclusions": "Exclusions",
	"putExclusion": "PutExclusion",

	"deleteLimit": "DeleteLimit", "getLimit": "Limit", "listLimits": "Limits", "listLimitKeys": "LimitKeys",
	"putLimit": "PutLimit",

	"getForecast": "Forecast", "listCalmMinutes": "CalmMinutes",
	"deleteWebhook": "DeleteWebhook", "getWebhook": "Webhook", "listWebhooks": "Webhooks",
	"putWebhook": "PutWebhook", "testWebhook": "TestWebhook", "listDeliveries": "Deliveries",
	"redeliver": "Redeliver",

	"deleteDag": "DeleteDag", "getDag": "Dag", "listDagVersions": "DagVersions", "listDags": "Dags",
	"putDag": "PutDag", "validateDag": "ValidateDag", "createDagRun": "RunDag",

	"cancelRun": "CancelRun", "createRun": "CreateRun", "deleteRun": "DeleteRun", "getRun": "Run",
	"getRunGraph": "RunGraph", "listRunEvents": "RunEvents", "listRuns": "Runs", "pauseRun": "PauseRun",
	"resumeRun": "ResumeRun", "retryRun": "RetryRun",

	"completeRunNode": "CompleteNode", "getRunNode": "Node", "retryRunNode": "RetryNode", "skipRunNode": "SkipNode",

	"deleteTask": "DeleteTask", "getTask": "Task", "listTasks": "Tasks", "putTask": "PutTask",
	"deletePause": "Resume", "listPauses": "Pauses", "putPause": "Pause",

	"getDocument": "Document", "getHealth": "Health", "getProblem": "Problem", "getReadiness": "Readiness",
	"getStats": "Stats", "listAudit": "Audit", "listUsage": "Usage",
	"listProblems": "Problems", "listWorkers": "Workers", "whoAmI": "WhoAmI",
}

// served returns the operations of the document that the API serves.
func served(t *testing.T) (all []rest.Operation) {
	t.Helper()
	text, err := connect().Document(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for path, operations := range document.Paths {
		for method, o := range operations {
			if o.ID != "" {
				all = append(all, rest.Operation{ID: o.ID, Method: strings.ToUpper(method), Path: path})
			}
		}
	}
	return all
}

func TestClient_HasAMethodForEachOperationThatIsServed(t *testing.T) {
	t.Parallel()
	all := served(t)
	for _, o := range all {
		if methods[o.ID] == "" {
			t.Errorf("%s (%s %s) has no method", o.ID, o.Method, o.Path)
			continue
		}
		if got, want := requestOf(t, methods[o.ID]), o.Method+" "+o.Path; !matches(got, want) {
			t.Errorf("%s of %s requests %q, want %s", methods[o.ID], o.ID, got, want)
		}
		if !slices.Contains(rest.Operations, o) {
			t.Errorf("%+v is unknown; run: make generate", o)
		}
	}
	if len(all) != len(methods) || len(all) != len(rest.Operations) {
		t.Errorf("%d operations are served, %d have methods, %d are generated", len(all), len(methods),
			len(rest.Operations))
	}
}

// matches reports whether a request is that of an operation, whose path has parameters in braces.
func matches(request, operation string) bool {
	pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(operation), "(x|0)")
	return regexp.MustCompile("^" + pattern + "$").MatchString(request)
}

// requestOf calls a method with "x" for each text and 0 for each number, and returns the method and the path of its
// request.
func requestOf(t *testing.T, name string) (request string) {
	t.Helper()
	c, err := client.New("http://localhost", client.WithHTTPClient(&http.Client{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			request = r.Method + " " + r.URL.Path
			w := httptest.NewRecorder()
			answer(w, http.StatusOK, `{}`)
			out := w.Result()
			out.Request = r
			return out, nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	method := reflect.ValueOf(c).MethodByName(name)
	if !method.IsValid() {
		return "nothing: there is no such method"
	}
	kind, args := method.Type(), []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < kind.NumIn(); i++ {
		switch in := kind.In(i); {
		case kind.IsVariadic() && i == kind.NumIn()-1:
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("x").Convert(in))
		case in.Kind() == reflect.Slice:
			args = append(args, reflect.MakeSlice(in, 1, 1))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	answers := method.Call(args)
	if list := answers[0]; list.Kind() == reflect.Func { // an iterator requests when it is ranged over
		list.Call([]reflect.Value{reflect.MakeFunc(list.Type().In(0), func([]reflect.Value) []reflect.Value {
			return []reflect.Value{reflect.ValueOf(true)}
		})})
	}
	return request
}

func TestCall_SendsTheParametersAndTheBodyAsTheyAre(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	c := over(t, func(w http.ResponseWriter, r *http.Request) {
		text := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(text)
		got, body = r, string(text)
		w.Header().Set("Etag", `"4"`)
		answer(w, http.StatusOK, `{"name":"a"}`)
	})
	answered := http.Header{}
	view, err := client.Call[rest.ScheduleView](t.Context(), c, rest.PatchSchedule, client.Request{
		Path: []string{"a/b ?"}, Params: &rest.PatchScheduleParams{DryRun: new(true), IfMatch: new(`"3"`)},
		Body: json.RawMessage(`{"pause_after_failures":12345678901234567890,"x":"<&>"}`), Answered: answered})
	if err != nil || view.Name != "a" {
		t.Fatalf("%+v %v", view, err)
	}
	if got.URL.EscapedPath() != "/v1/schedules/a%2Fb%20%3F" || got.URL.RawQuery != "dry_run=true" {
		t.Errorf("the address is %s", got.URL)
	}
	if got.Header.Get("If-Match") != `"3"` || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", got.Header)
	}
	if body != `{"pause_after_failures":12345678901234567890,"x":"<&>"}` {
		t.Errorf("the body is %s", body)
	}
	if answered.Get("Etag") != `"4"` {
		t.Errorf("the answer had %v", answered)
	}
}

func TestCall_RefusesAPathThatIsAnotherOperations(t *testing.T) {
	t.Parallel()
	c := over(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for _, path := range [][]string{nil, {""}, {"."}, {".."}, {"a", "b"}} {
		if _, err := client.Call[rest.JobView](t.Context(), c, rest.GetJob, client.Request{Path: path}); err == nil ||
			!strings.Contains(err.Error(), "calling getJob: ") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
