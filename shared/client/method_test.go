package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// far is later than anything that the tests wait for.
const far = "0 0 1 1 *"

func ExampleCron() {
	ctx, c := context.Background(), connect()
	calendar := client.Cron("0 9 * * 1-5", "Europe/Berlin")
	calendar.StartAt = new(time.Date(2027, 3, 25, 0, 0, 0, 0, time.UTC))
	preview, err := c.PreviewCalendar(ctx, rest.PreviewRequest{Calendar: calendar, Count: new(int64(3))})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range preview.Items {
		fmt.Println(o.NominalAt.Format(time.RFC3339))
	}
	// Output:
	// 2027-03-25T08:00:00Z
	// 2027-03-26T08:00:00Z
	// 2027-03-29T07:00:00Z
}

func ExampleClient_RunScheduleNow() {
	ctx, c := context.Background(), connect()
	_, err := c.PutSchedule(ctx, "shown", rest.ScheduleRequest{
		Calendar: client.Cron(far, ""), Job: &rest.JobTemplateRequest{Task: "echo", Payload: "hello"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	started, err := c.RunScheduleNow(ctx, "shown", rest.RunNowRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := c.Wait(ctx, started.Job.JobID)
	fmt.Println(job.Status, string(job.Result), err)
	// Output: SUCCEEDED "hello" <nil>
}

func ExampleIfVersion() {
	ctx, c := context.Background(), connect()
	request := rest.ScheduleRequest{Calendar: client.Every(time.Hour), Job: &rest.JobTemplateRequest{Task: "echo"}}
	old, err := c.PutSchedule(ctx, "versions", request)
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Calendar = client.Every(2 * time.Hour)
	_, first := c.PutSchedule(ctx, "versions", request, client.IfVersion(old.Version))
	_, second := c.PutSchedule(ctx, "versions", request, client.IfVersion(old.Version))
	fmt.Println(first, errors.Is(second, client.StaleVersion))
	// Output: <nil> true
}

func TestCalendars_HaveTheTimesThatTheyName(t *testing.T) {
	t.Parallel()
	start := time.Date(2127, 1, 1, 0, 0, 0, 0, time.UTC)
	every := client.Every(90 * time.Minute)
	every.StartAt = &start
	for name, x := range map[string]struct {
		calendar rest.CalendarRequest
		want     []string
	}{
		"cron":  {client.Cron("30 6 1 1 *", "Asia/Tokyo"), []string{"21:30"}},
		"utc":   {client.Cron("30 6 1 1 *", ""), []string{"06:30"}},
		"every": {every, []string{"00:00", "01:30", "03:00"}},
		"rrule": {client.RRule("FREQ=DAILY;BYHOUR=9;COUNT=2", start, "Asia/Tokyo"), []string{"00:00", "00:00"}},
		"dates": {client.Dates(start.Add(time.Hour), start), []string{"00:00", "01:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			preview, err := connect().PreviewCalendar(t.Context(), rest.PreviewRequest{Calendar: x.calendar})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range x.want {
				if i >= len(preview.Items) {
					t.Fatalf("it has %d times, want %d", len(preview.Items), len(x.want))
				}
				if got := preview.Items[i].NominalAt.Format("15:04"); got != want {
					t.Errorf("time %d is %s, want %s", i, got, want)
				}
			}
		})
	}
}

func TestClient_ChangesAndForgetsASchedule(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	if _, err := c.PutExclusion(ctx, "christmas", rest.ExclusionRequest{
		Dates: &[]string{"2127-12-25"}, Yearly: &[]string{"12-26"}}); err != nil {
		t.Fatal(err)
	}
	calendar := client.Cron(far, "")
	calendar.Exclude = &[]string{"christmas"}
	request := rest.ScheduleRequest{Calendar: calendar, Job: &rest.JobTemplateRequest{Task: "echo"}}
	view, err := c.PutSchedule(ctx, "changed", request)
	if err != nil {
		t.Fatal(err)
	}
	patch := rest.SchedulePatchRequest{Calendar: &rest.CalendarPatchRequest{Cron: new("0 0 2 1 *")}}
	if diff, err := c.DryRunSchedulePatch(ctx, "changed", patch); err != nil || len(diff.Changed) != 1 {
		t.Errorf("%+v %v", diff, err)
	}
	if diff, err := c.DryRunSchedule(ctx, "changed", request); err != nil || len(diff.Changed) != 0 {
		t.Errorf("%+v %v", diff, err)
	}
	changed, err := c.PatchSchedule(ctx, "changed", patch, client.IfVersion(view.Version))
	if err != nil || changed.Calendar.Cron == nil || *changed.Calendar.Cron != "0 0 2 1 *" {
		t.Errorf("%+v %v", changed.Calendar, err)
	}
	if err := c.DeleteSchedule(ctx, "changed", client.IfVersion(view.Version)); !errors.Is(err, client.StaleVersion) {
		t.Errorf("%v", err)
	}
	if err := c.DeleteSchedule(ctx, "changed"); err != nil {
		t.Error(err)
	}
	if e, err := c.Exclusion(ctx, "christmas"); err != nil || (*e.Yearly)[0] != "12-26" {
		t.Errorf("%+v %v", e, err)
	}
	if !has(t, c.Exclusions(ctx), func(e rest.ExclusionView) bool { return e.Name == "christmas" }) {
		t.Error("the exclusion is not listed")
	}
	if err := c.DeleteExclusion(ctx, "christmas"); err != nil {
		t.Error(err)
	}
}

func TestClient_ChangesAJobThatWaits(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	job, err := c.CreateJob(ctx, "", rest.JobRequest{Task: "echo", Delay: new("1h"), Payload: 1})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := c.PatchJob(ctx, job.JobID, rest.JobPatchRequest{Payload: 2}, client.IfVersion(job.Version))
	if err != nil || string(changed.Payload) != "2" {
		t.Errorf("%s %v", changed.Payload, err)
	}
	_, err = c.PatchJob(ctx, job.JobID, rest.JobPatchRequest{Payload: 3}, client.IfVersion(job.Version))
	if !errors.Is(err, client.StaleVersion) {
		t.Errorf("%v", err)
	}
}

func TestClient_PausesAndResumesAJob(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	job, err := c.CreateJob(ctx, "", rest.JobRequest{Task: "echo", Delay: new("1h")})
	if err != nil {
		t.Fatal(err)
	}
	paused, err := c.PauseJob(ctx, job.JobID, rest.JobPauseRequest{Reason: new("a test")})
	if err != nil || paused.Paused == nil || *paused.Paused.Reason != "a test" {
		t.Errorf("%+v %v", paused, err)
	}
	if _, err := c.RunJobNow(ctx, job.JobID); !errors.Is(err, client.WrongState) {
		t.Errorf("%v", err)
	}
	if resumed, err := c.ResumeJob(ctx, job.JobID); err != nil || resumed.Paused != nil {
		t.Errorf("%+v %v", resumed, err)
	}
	if _, err := c.CancelJob(ctx, job.JobID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PauseJob(ctx, job.JobID, rest.JobPauseRequest{}); !errors.Is(err, client.WrongState) {
		t.Errorf("%v", err)
	}
}

func TestClient_OperatesARun(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	dag := rest.DagRequest{Nodes: map[string]rest.NodeRequest{
		"each": {Task: "echo", ForEach: new("${[1, 2, 3]}"), Payload: "${item}"},
	}}
	for range 2 {
		if _, err := c.PutDag(ctx, "operated", dag); err != nil {
			t.Fatal(err)
		}
		dag.Nodes["then"] = rest.NodeRequest{Task: "echo", DependsOn: &[]string{"each"}}
	}
	if d, err := c.DagVersion(ctx, "operated", 1); err != nil || d.Version != 1 {
		t.Errorf("version %d, %v", d.Version, err)
	}
	if !has(t, c.DagVersions(ctx, "operated"), func(d rest.DagItemView) bool { return d.Version == 2 }) {
		t.Error("version 2 is not listed")
	}
	run, err := c.RunDag(ctx, "", "operated", rest.DagRunRequest{Delay: new("1h")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PauseRun(ctx, run.RunID, rest.RunActRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := c.ResumeRun(ctx, run.RunID, rest.RunActRequest{}); err != nil {
		t.Error(err)
	}
	if err := c.DeleteRun(ctx, run.RunID); !errors.Is(err, client.NotFinished) {
		t.Errorf("%v", err)
	}
	if _, err := c.CancelRun(ctx, run.RunID, rest.RunActRequest{}); err != nil {
		t.Error(err)
	}
	if run, err = c.RunDag(ctx, "", "operated", rest.DagRunRequest{}); err != nil {
		t.Fatal(err)
	}
	if run, err = c.WaitRun(ctx, run.RunID); err != nil || run.Status != rest.RunViewStatusSUCCEEDED {
		t.Fatalf("%s %v", run.Status, err)
	}
	items := 0
	for i, err := range c.NodeItems(ctx, run.RunID, "each") {
		if err != nil {
			t.Fatal(err)
		}
		if string(i.Result) != fmt.Sprint(i.Item+1) {
			t.Errorf("item %d has %s", i.Item, i.Result)
		}
		items++
	}
	if items != 3 {
		t.Errorf("%d of 3 items are listed", items)
	}
	if n, err := c.Node(ctx, run.RunID, "then"); err != nil || n.Status != rest.RunNodeDetailStatusSUCCEEDED {
		t.Errorf("%s %v", n.Status, err)
	}
	if g, err := c.RunGraph(ctx, run.RunID); err != nil || len(g.Edges) != 1 {
		t.Errorf("%+v %v", g, err)
	}
	for format, begins := range map[rest.GetRunGraphParamsFormat]string{
		rest.GetRunGraphParamsFormatMermaid: "flowchart", rest.GetRunGraphParamsFormatSvg: "<svg",
	} {
		if d, err := c.RunDiagram(ctx, run.RunID, format); err != nil || !bytes.HasPrefix(d, []byte(begins)) {
			t.Errorf("%s: %.40s %v", format, d, err)
		}
	}
	if err := c.DeleteDag(ctx, "operated"); err != nil {
		t.Error(err)
	}
}

func TestClient_KnowsTheService(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	if h, err := c.Health(ctx); err != nil || h.ZoneRules == "" {
		t.Errorf("%+v %v", h, err)
	}
	if me, err := c.WhoAmI(ctx); err != nil || len(me.Scopes) != 3 {
		t.Errorf("%+v %v", me, err)
	}
	if p, err := c.Problem(ctx, client.StaleVersion); err != nil || p.Status != http.StatusPreconditionFailed {
		t.Errorf("%+v %v", p, err)
	}
	if !has(t, c.Problems(ctx), func(p rest.Explanation) bool { return p.Code == string(client.NotFound) }) {
		t.Error("not_found is not explained")
	}
	if _, err := c.PutTask(ctx, "forgotten", rest.TaskRequest{Executor: rest.TaskRequestExecutorEcho}); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Task(ctx, "forgotten"); err != nil || v.Name != "forgotten" {
		t.Errorf("%+v %v", v, err)
	}
	if err := c.DeleteTask(ctx, "forgotten"); err != nil {
		t.Error(err)
	}
	if _, err := c.Task(ctx, "forgotten"); !errors.Is(err, client.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestClient_RefusesAPageInPlaceOfADiagram(t *testing.T) {
	t.Parallel()
	c := over(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>a wiki</html>"))
	})
	_, err := c.RunDiagram(t.Context(), "r", rest.GetRunGraphParamsFormatSvg)
	if err == nil || !strings.Contains(err.Error(), "is the address right?") {
		t.Errorf("%v", err)
	}
}

// has reports whether a list has an item that matches.
func has[T any](t *testing.T, list iter.Seq2[T, error], match func(T) bool) bool {
	t.Helper()
	for item, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		if match(item) {
			return true
		}
	}
	return false
}

func TestClient_KeepsLimitsOfWork(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	l, err := c.PutLimit(ctx, "client-github", rest.LimitRequest{MaxRunning: new(int64(5)),
		Rate: &rest.RateRequest{Count: 100, Per: "1m"}})
	if err != nil || *l.MaxRunning != 5 || l.Rate.Per != "1m" {
		t.Fatalf("%+v %v", l, err)
	}
	if _, err := c.PutLimit(ctx, "client-github", rest.LimitRequest{MaxRunning: new(int64(6))},
		client.IfVersion(l.Version+1)); !errors.Is(err, client.StaleVersion) {
		t.Errorf("another version: %v", err)
	}
	if read, err := c.Limit(ctx, "client-github"); err != nil || read.Version != l.Version {
		t.Errorf("%+v %v", read, err)
	}
	if !has(t, c.Limits(ctx), func(l rest.LimitView) bool { return l.Name == "client-github" }) {
		t.Error("the limit is not listed")
	}
	for k, err := range c.LimitKeys(ctx, "client-github") {
		t.Errorf("%+v %v", k, err)
	}
	uses := []rest.LimitUseRequest{{Name: "client-github", Key: new("acct-42")}}
	if _, err := c.PutTask(ctx, "client-limited", rest.TaskRequest{Executor: "echo", Limits: &uses}); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteLimit(ctx, "client-github"); !errors.Is(err, client.InUse) {
		t.Errorf("in use: %v", err)
	}
	if err := c.DeleteTask(ctx, "client-limited"); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteLimit(ctx, "client-github"); err != nil {
		t.Error(err)
	}
	_, err = c.CreateJob(ctx, "", rest.JobRequest{Task: "echo", Limits: &uses})
	if !errors.Is(err, client.UnknownLimit) {
		t.Errorf("a deleted limit: %v", err)
	}
}

func ExampleClient_PutSchedule_calendars() {
	ctx, c := context.Background(), connect()
	view, err := c.PutSchedule(ctx, "two", rest.ScheduleRequest{
		Calendars: []rest.CalendarRequest{client.Cron("0 9 * * 1-5", "Europe/Berlin"), client.Every(24 * time.Hour)},
		Job:       &rest.JobTemplateRequest{Task: "echo"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.Calendar.Cron == nil, *view.Calendars[0].Timezone, *view.Calendars[1].Every)
	// Output: true Europe/Berlin 24h0m0s
}

func TestClient_Forecasts(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	from := time.Now()
	f, err := c.Forecast(ctx, from, from.Add(2*time.Hour), "30m")
	if err != nil || f.Step != "30m" || len(f.Starts) < 4 || f.From.After(from) {
		t.Errorf("%+v %v", f, err)
	}
	calm, err := c.CalmMinutes(ctx, rest.ListCalmMinutesParams{Between: new("01:00-05:00"), Count: new(3)})
	if err != nil || len(calm) != 3 || calm[0].At.UTC().Hour() < 1 || calm[0].At.UTC().Hour() >= 5 {
		t.Errorf("%+v %v", calm, err)
	}
	if _, err := c.Forecast(ctx, from, from, "30m"); err == nil {
		t.Error("an empty period has a forecast")
	}
}
