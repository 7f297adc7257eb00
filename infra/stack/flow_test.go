package stack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/infra/construct"
	"punctual/shared/contract"
)

// function returns the properties of a function.
func (d *synthesized) function(t *testing.T, name string) object {
	t.Helper()
	for _, r := range d.template("flow").resources {
		if r["Type"] == "AWS::Lambda::Function" && at(r, "Properties.FunctionName") == d.settings.Prefix+"-"+name {
			return r["Properties"].(object)
		}
	}
	t.Fatalf("there is no function %s", name)
	return nil
}

func TestFunctions_RunOnTheirOwnRuntimeWithBoundedLogs(t *testing.T) {
	t.Parallel()
	for _, p := range partsOf(prod().settings) {
		f := prod().function(t, p.name)
		if f["Runtime"] != "provided.al2023" || compact(f["Architectures"]) != `["arm64"]` ||
			f["Handler"] != "bootstrap" {
			t.Errorf("%s runs on %v %v", p.name, f["Runtime"], f["Architectures"])
		}
		if at(f, "LoggingConfig.LogGroup") == nil {
			t.Errorf("%s makes its own log, which nobody ends", p.name)
		}
	}
	prod().each("AWS::Logs::LogGroup", func(s template, id string, r object) {
		want := 90.0
		if strings.HasPrefix(id, "Logaudit") {
			want = contract.AuditDays
		}
		if days, _ := at(r, "Properties.RetentionInDays").(float64); days != want && s.name != "fleet" {
			t.Errorf("%s %s is kept %v days; want %v", s.name, id, days, want)
		}
	})
}

func TestFunctions_TakeTimeZoneRulesFromALayer(t *testing.T) {
	t.Parallel()
	for _, p := range partsOf(prod().settings) {
		if layers := compact(held().function(t, p.name)["Layers"]); layers != `["`+zoneLayer+`"]` {
			t.Errorf("%s has the layers %s", p.name, layers)
		}
		if layers := prod().function(t, p.name)["Layers"]; layers != nil {
			t.Errorf("without the setting %s has the layers %v", p.name, layers)
		}
	}
}

// TestFunctions_GetTheEnvironmentThatTheyRead reads each function's environment as the function will.
func TestFunctions_GetTheEnvironmentThatTheyRead(t *testing.T) {
	t.Parallel()
	known := variables(t)
	needs := map[string][]string{
		APIRead: {"PUNCTUAL_BUCKET", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET"}, APIWrite: {"PUNCTUAL_BUCKET",
			"PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET"},
		Authorizer: {"PUNCTUAL_ISSUER", "PUNCTUAL_AUDIENCE", "PUNCTUAL_JWKS_URL"},
		Stream:     {"PUNCTUAL_PREFIX"}, Changes: {"PUNCTUAL_PREFIX"}, Promoter: {"PUNCTUAL_BUCKET"},
		Sweeper:  {"PUNCTUAL_BUCKET"},
		Dispatch: {"PUNCTUAL_BUCKET", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET"}, Status: {"PUNCTUAL_BUCKET"},
		Redrive: {"PUNCTUAL_BUCKET"}, Bulk: {"PUNCTUAL_BUCKET"}, Forecast: {"PUNCTUAL_PREFIX"},
		APISearch: {"PUNCTUAL_BUCKET", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET"}, Reindex: {"PUNCTUAL_PREFIX"},
	}
	for _, d := range []*synthesized{prod(), emulator(), other(), searching()} {
		for _, p := range partsOf(d.settings) {
			vars, _ := at(d.function(t, p.name), "Environment.Variables").(object)
			env, err := contract.LoadEnv(func(name string) (string, bool) {
				v, ok := vars[name]
				if plain, isText := v.(string); isText {
					return plain, ok
				}
				return compact(v), ok // a reference, which the deploy fills in
			}, needs[p.name]...)
			if err != nil {
				t.Errorf("%s %s: %v", d.settings.Target, p.name, err)
				continue
			}
			if uses := p.name == APISearch || p.name == APIWrite || p.name == Changes || p.name == Bulk; env.Search !=
				(uses && d.settings.Search) {
				t.Errorf("%s %s is given the index: %t", d.settings.Target, p.name, env.Search)
			}
			if p.name != Authorizer && (env.Prefix != d.settings.Prefix || env.Shards != d.settings.Shards) {
				t.Errorf("%s %s gets the prefix %q and %d shards", d.settings.Target, p.name, env.Prefix, env.Shards)
			}
			if p.program == "api" && env.Quota != d.settings.Quota {
				t.Errorf("%s %s gets a quota of %d; want %d", d.settings.Target, p.name, env.Quota,
					d.settings.Quota)
			}
			for name := range vars {
				if !slices.Contains(known, name) {
					t.Errorf("%s %s gets %s, which it does not read", d.settings.Target, p.name, name)
				}
			}
		}
	}
}

// variables lists what a deployed process may read from its environment.
func variables(t *testing.T) []string {
	t.Helper()
	var asked []string
	if _, err := contract.LoadEnv(func(name string) (string, bool) {
		asked = append(asked, name)
		return "", false
	}); err != nil {
		t.Fatal(err)
	}
	return asked
}

// A deployment must set every setting that a process reads.
func TestEnvironment_IsSetForEveryProcess(t *testing.T) {
	t.Parallel()
	d := synth("prod", "all", "search", "yes", "usage_tags", "team", "http_allow", "10.1.0.0/16",
		"tenant_scope", "punctual/tenant.", "group_claim", "cognito:groups", "console_client", "page",
		"console_audience", "punctual", "console_origins", "https://signin.example.com")
	var all strings.Builder
	d.each("", func(_ template, _ string, r object) { all.WriteString(compact(at(r, "Properties"))) })
	for _, name := range variables(t) {
		if !strings.Contains(all.String(), name) {
			t.Errorf("%s is read, and nothing in the templates sets it", name)
		}
	}
}

// aliasIs finds the id of an alias in what calls it.
var aliasIs = regexp.MustCompile(`"Ref":"([a-z]+live[0-9A-F]{8})"`)

// live is the function that the alias of an id calls; nil if it is no alias named live.
func (s template) live(id string) object {
	alias := s.resources[id]
	if alias["Type"] != "AWS::Lambda::Alias" || at(alias, "Properties.Name") != construct.Live {
		return nil
	}
	return s.resources[text(at(alias, "Properties.FunctionName.Ref"))]
}

func TestFunctions_AreCalledByTheirAliasOnly(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), emulator()} {
		flow, called := d.template("flow"), 0
		var functions, aliases []string
		for id, r := range flow.resources {
			switch r["Type"] {
			case "AWS::Lambda::Function":
				functions = append(functions, id)
			case "AWS::Lambda::Alias":
				aliases = append(aliases, id)
				if flow.live(id) == nil ||
					flow.resources[text(at(r,
						"Properties.FunctionVersion.Fn::GetAtt.0"))]["Type"] != "AWS::Lambda::Version" {
					t.Errorf("%s is an alias of %s", id, compact(r["Properties"]))
				}
			}
		}
		if len(aliases) != len(functions) {
			t.Errorf("%d functions have %d aliases", len(functions), len(aliases))
		}
		for id, r := range flow.resources {
			for _, path := range []string{"Properties.Target.Arn", "Properties.Integration.Uri",
				"Properties.AuthorizerUri", "Properties.FunctionName"} {
				what := compact(at(r, path))
				if kind := r["Type"]; kind == "AWS::Lambda::Alias" || kind == "AWS::Lambda::Version" ||
					kind == "AWS::Lambda::Function" ||
					kind == "AWS::Lambda::EventInvokeConfig" {
					continue
				}
				for _, f := range functions {
					if strings.Contains(what, `"`+f+`"`) {
						t.Errorf("%s (%s) calls %s whatever its version", id, r["Type"], f)
					}
				}
				for _, a := range aliases {
					if strings.Contains(what, `"`+a+`"`) {
						called++
					}
				}
			}
		}
		if called < len(functions) {
			t.Errorf("%s: %d of %d functions are called", d.settings.Target, called, len(functions))
		}
	}
}

// An alarm that a bad version cannot set off ends nothing.
func TestCanary_ShiftsCallsSlowlyAndBackOnAnAlarm(t *testing.T) {
	t.Parallel()
	d := prod()
	const tenth = `"CodeDeployDefault.LambdaCanary10Percent5Minutes"`
	half := ""
	d.each("AWS::CodeDeploy::DeploymentConfig", func(_ template, id string, r object) {
		half = `{"Ref":"` + id + `"}`
		if got := compact(at(r, "Properties.TrafficRoutingConfig.TimeBasedCanary")); got !=
			`{"CanaryInterval":10,"CanaryPercentage":50}` {
			t.Errorf("a pass is changed by %s", got)
		}
	})
	const (
		calls   = "Errors: IF(newbad>=3,100*(newbad/(newcalls+1)-(bad-newbad)/(9*newcalls+1)),0) over "
		own     = "Errors, %s: IF(newbad>=3,100*(newbad/(newcalls+1)-(bad-newbad)/(9*newcalls+1)),0) over 5"
		passing = "Errors: IF(newbad>1+2*(bad-newbad),1,0) over 0"
	)
	requests, records := fmt.Sprintf(own, "requests_failed_total"), fmt.Sprintf(own, "records_failed_total")
	want := map[string][]string{ // how, and by what failures the new version is compared with the old one
		APIRead: {tenth, requests}, APIWrite: {tenth, requests},
		Authorizer: {tenth, calls + "50"},
		// One call a minute, of which each second one is of the new version.
		Promoter: {half, passing}, Sweeper: {half, passing}, Forecast: {half, passing},
		// Records that fail are no errors of the function.
		Changes: {tenth, records}, Stream: {tenth, records}, Bulk: {tenth, records},
		Dispatch: {tenth, records}, Status: {tenth, records}, Redrive: {tenth, records},
	}
	changed := 0
	d.each("AWS::Lambda::Alias", func(s template, id string, r object) {
		p := s.resources[text(at(r, "UpdatePolicy.CodeDeployLambdaAliasUpdate.DeploymentGroupName.Ref"))]["Properties"]
		if p == nil {
			t.Errorf("%s is changed at once", id)
			return
		}
		changed++
		if at(p, "AlarmConfiguration.Enabled") != true ||
			!strings.Contains(compact(at(p, "AutoRollbackConfiguration.Events")), "DEPLOYMENT_STOP_ON_ALARM") {
			t.Errorf("%s is changed by %s", id, compact(p))
		}
		name := strings.TrimPrefix(text(at(s.live(id), "Properties.FunctionName")), d.settings.Prefix+"-")
		got := []string{compact(at(p, "DeploymentConfigName"))}
		for _, a := range list(at(p, "AlarmConfiguration.Alarms")) {
			a := s.resources[text(at(a, "Name.Ref"))]["Properties"]
			version := text(at(r, "Properties.FunctionVersion.Fn::GetAtt.0"))
			got = append(got, compared(t, name, version, a))
		}
		if compact(got) != compact(want[name]) {
			t.Errorf("%s is changed by %s; want %s", name, compact(got), compact(want[name]))
		}
	})
	if all := len(partsOf(d.settings)); changed != all || len(want) != all {
		t.Errorf("%d of %d functions are changed bit by bit", changed, all)
	}
	for _, other := range []*synthesized{emulator(), ownTokens()} {
		other.each("AWS::CodeDeploy::DeploymentGroup", func(_ template, id string, _ object) {
			t.Errorf("%s has %s", other.settings.Target, id)
		})
	}
}

// compared describes an alarm that ends a canary: which failures of the two versions it compares, and how. Each of its
// metrics must be of the new version, or of all calls.
func compared(t *testing.T, name, version string, alarm any) string {
	t.Helper()
	var failures []string
	expression := ""
	for _, m := range list(at(alarm, "Metrics")) {
		if e := text(at(m, "Expression")); e != "" {
			expression = strings.NewReplacer("(FILL(newerrors,0)+FILL(newfailed,0))", "newbad",
				"(FILL(errors,0)+FILL(failed,0))", "bad", "FILL(newerrors,0)", "newbad", "FILL(errors,0)", "bad",
				"FILL(newcalls,0)", "newcalls").Replace(e)
			continue
		}
		metric, dims := text(at(m, "MetricStat.Metric.MetricName")), compact(at(m, "MetricStat.Metric.Dimensions"))
		isNew := strings.Contains(dims, `"Value":{"Fn::GetAtt":["`+version+`","Version"]}`)
		if isNew != strings.HasPrefix(text(at(m, "Id")), "new") {
			t.Errorf("%s of the canary of %s is of %s", at(m, "Id"), name, dims)
		}
		if metric != "Invocations" && isNew {
			failures = append(failures, metric)
		}
	}
	slices.Sort(failures)
	return strings.Join(failures, ", ") + ": " + expression + " over " + compact(at(alarm, "Threshold"))
}

// sources are the event sources by the function that they feed.
func sources(t *testing.T, d *synthesized) map[string]object {
	t.Helper()
	of := map[string]object{}
	d.each("AWS::Lambda::EventSourceMapping", func(s template, _ string, r object) {
		var fn object
		if alias := aliasIs.FindStringSubmatch(compact(at(r, "Properties.FunctionName"))); alias != nil {
			fn = s.live(alias[1])
		}
		name := strings.TrimPrefix(text(at(fn, "Properties.FunctionName")), d.settings.Prefix+"-")
		of[name] = r["Properties"].(object)
	})
	return of
}

func TestQueues_FeedTheirConsumersAtOnceInBatchesOfTen(t *testing.T) {
	t.Parallel()
	of := sources(t, prod())
	for function, queue := range map[string]string{Dispatch: contract.DispatchQueue, Status: contract.ReportQueue,
		Redrive: contract.RedriveQueue, Bulk: contract.BulkQueue} {
		s := of[function]
		if s == nil || !strings.Contains(compact(s["EventSourceArn"]), "Queue"+strings.ReplaceAll(queue, "-", "")) {
			t.Errorf("%s is fed by %s; want queue %s", function, compact(s["EventSourceArn"]), queue)
			continue
		}
		if s["BatchSize"] != 10.0 || s["MaximumBatchingWindowInSeconds"] != 0.0 ||
			compact(s["FunctionResponseTypes"]) != `["ReportBatchItemFailures"]` {
			t.Errorf("%s: %s; want batches of ten, no window, only failures redelivered", function, compact(s))
		}
		timeout, _ := prod().function(t, function)["Timeout"].(float64)
		for _, q := range contract.Queues() {
			if q.Name == queue && q.Visibility.Seconds() < 6*timeout {
				t.Errorf("%s may take %v s; its messages are redelivered after %s", function, timeout, q.Visibility)
			}
		}
	}
	if len(of) != 6 {
		t.Errorf("there are %d event sources", len(of))
	}
}

//proof:of S31
func TestStream_IsFilteredAndNeverBlockedForLong(t *testing.T) {
	t.Parallel()
	s := sources(t, prod())[Stream]
	filter := text(at(s, "FilterCriteria.Filters.0.Pattern"))
	if filter != `{"dynamodb":{"NewImage":{"near":{"S":["1"]}}}}` {
		t.Errorf("it filters by %s", filter)
	}
	// The marks of a row that may have contents, as job.Forgotten decides.
	for n, want := range []string{
		`"attempt":{"N":[{"anything-but":["1"]}]}`, `"payload_in":{"S":[{"exists":true}]}`,
		`"result_in":{"S":[{"exists":true}]}`, `"tagged":{"S":[{"exists":true}]}`,
	} {
		gone := text(at(s, fmt.Sprintf("FilterCriteria.Filters.%d.Pattern", n+1)))
		if !strings.Contains(gone, `"eventName":["REMOVE"]`) || !strings.Contains(gone, `"OldImage":{`+want+`}`) {
			t.Errorf("pattern %d is %s", n+1, gone)
		}
	}
	if s["BisectBatchOnFunctionError"] != true ||
		compact(s["FunctionResponseTypes"]) != `["ReportBatchItemFailures"]` ||
		s["StartingPosition"] != "TRIM_HORIZON" {
		t.Errorf("%s", compact(s))
	}
	retries, _ := s["MaximumRetryAttempts"].(float64)
	age, _ := s["MaximumRecordAgeInSeconds"].(float64)
	if retries < 1 || retries > 100 || age < 60 || age >= 24*3600 {
		t.Errorf("it is tried %v times for %v s: a bad record must not hold up its shard for a day", retries, age)
	}
	if !strings.Contains(compact(at(s, "DestinationConfig.OnFailure.Destination")), "Queuefiringdead") {
		t.Errorf("what fails goes to %s", compact(s["DestinationConfig"]))
	}
}

func TestChanges_FollowEachRowUntilItIsHandled(t *testing.T) {
	t.Parallel()
	s := sources(t, prod())[Changes]
	for n, want := range []string{
		`{"dynamodb":{"NewImage":{"schema_v":{"N":[{"exists":true}]}}}}`,
		`{"dynamodb":{"OldImage":{"schema_v":{"N":[{"exists":true}]}}},"eventName":["REMOVE"]}`,
	} {
		if filter := text(at(s, fmt.Sprintf("FilterCriteria.Filters.%d.Pattern", n))); filter != want {
			t.Errorf("pattern %d is %s; want %s", n+1, filter, want)
		}
	}
	if compact(s["FunctionResponseTypes"]) != `["ReportBatchItemFailures"]` ||
		s["StartingPosition"] != "TRIM_HORIZON" || s["ParallelizationFactor"] != 1.0 {
		t.Errorf("%s", compact(s))
	}
	for _, bound := range []string{"MaximumRetryAttempts", "MaximumRecordAgeInSeconds", "BisectBatchOnFunctionError"} {
		if s[bound] != nil {
			t.Errorf("%s is %v; a change is lost to what follows the table only with the stream", bound, s[bound])
		}
	}
	window, _ := s["TumblingWindowInSeconds"].(float64)
	wait, _ := s["MaximumBatchingWindowInSeconds"].(float64)
	if window <= 0 || window+wait > 120 {
		t.Errorf("counts show after %v and %v s; two minutes are promised", window, wait)
	}
	images := s["BatchSize"].(float64) * 3072 // a row of a kilobyte or so before and after, in JSON
	if images > 6<<20 {
		t.Errorf("a call has %v bytes; Lambda takes 6 MB", images)
	}
}

func TestTick_CallsEachPassEveryMinute(t *testing.T) {
	t.Parallel()
	ticked := map[string]bool{}
	prod().each("AWS::Scheduler::Schedule", func(s template, id string, r object) {
		p := r["Properties"]
		if at(p, "ScheduleExpression") != "rate(1 minute)" || at(p, "State") != "ENABLED" ||
			at(p, "FlexibleTimeWindow.Mode") != "OFF" || at(p, "Target.RetryPolicy.MaximumRetryAttempts") != 0.0 {
			t.Errorf("%s: %s", id, compact(p))
		}
		fn := s.live(text(at(p, "Target.Arn.Ref")))
		ticked[strings.TrimPrefix(text(at(fn, "Properties.FunctionName")), prod().settings.Prefix+"-")] = true
	})
	for _, name := range []string{Promoter, Sweeper, Forecast} {
		if !ticked[name] {
			t.Errorf("%s is not called", name)
		}
	}
}

//proof:of 27 201
func TestAPI_ReadsAndWritesWithSeparateConcurrency(t *testing.T) {
	t.Parallel()
	read, write := prod().function(t, APIRead), prod().function(t, APIWrite)
	if read["ReservedConcurrentExecutions"] != 200.0 || write["ReservedConcurrentExecutions"] != 300.0 {
		t.Errorf("they keep %v and %v", read["ReservedConcurrentExecutions"], write["ReservedConcurrentExecutions"])
	}
	if compact(read["Code"]) != compact(write["Code"]) {
		t.Error("they are not the same program")
	}
}

// routes are the methods of the gateway by path, each with its function and who may call it.
func (d *synthesized) routes() map[string]string {
	flow := d.template("flow")
	var path func(id string) string
	path = func(id string) string {
		r := flow.resources[id]
		if r == nil || r["Type"] != "AWS::ApiGateway::Resource" {
			return ""
		}
		return path(text(at(r, "Properties.ParentId.Ref"))) + "/" + text(at(r, "Properties.PathPart"))
	}
	have := map[string]string{}
	for _, r := range flow.resources {
		if r["Type"] != "AWS::ApiGateway::Method" {
			continue
		}
		goes := "nowhere"
		for _, name := range []string{APIRead, APIWrite, APISearch} {
			if strings.Contains(compact(at(r, "Properties.Integration.Uri")), strings.ReplaceAll(name, "-", "")) {
				goes = name
			}
		}
		have[text(at(r, "Properties.HttpMethod"))+" "+path(text(at(r, "Properties.ResourceId.Ref")))] = goes + " " +
			text(at(r, "Properties.AuthorizationType"))
	}
	return have
}

//proof:of 49
func TestGateway_HasTheExpectedRoutes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"GET /console": APIRead + " NONE", "GET /console/{proxy+}": APIRead + " NONE",
		"GET /health": APIRead + " NONE", "GET /openapi.json": APIRead + " NONE", "GET /problems": APIRead + " NONE",
		"GET /problems/{code}": APIRead + " NONE",
		"GET /{proxy+}":        APIRead + " CUSTOM", "HEAD /{proxy+}": APIRead + " CUSTOM", "ANY /{proxy+}": APIWrite +
			" CUSTOM",
	}
	if have := prod().routes(); compact(have) != compact(want) {
		t.Errorf("routes are %s; want %s", compact(have), compact(want))
	}
	for path, read := range map[string]string{"/jobs": APISearch, "/jobs/{proxy+}": APIRead, "/dead-letters": APISearch,
		"/dead-letters/groups": APISearch, "/dead-letters/{proxy+}": APIRead} {
		want["GET "+path], want["HEAD "+path], want["ANY "+path] = read+" CUSTOM", read+" CUSTOM", APIWrite+" CUSTOM"
	}
	if have := searching().routes(); compact(have) != compact(want) {
		t.Errorf("with the index of jobs routes are %s; want %s", compact(have), compact(want))
	}
}

func TestGateway_AnswersWithProblems(t *testing.T) {
	t.Parallel()
	answers := 0
	prod().each("AWS::ApiGateway::GatewayResponse", func(_ template, id string, r object) {
		answers++
		p := r["Properties"]
		var problem struct {
			Type, Title, Code, Detail string
			Status                    int
			RequestID                 string `json:"request_id"`
		}
		templates, _ := at(p, "ResponseTemplates").(object)
		if err := json.Unmarshal([]byte(text(templates["application/json"])), &problem); err != nil {
			t.Errorf("%s answers %s: %v", id, compact(templates), err)
			return
		}
		if problem.Type != "/v1/problems/"+problem.Code || problem.Title == "" || problem.Detail == "" ||
			problem.RequestID != "$context.requestId" || compact(problem.Status) != text(at(p, "StatusCode")) {
			t.Errorf("%s answers %+v with status %v", id, problem, at(p, "StatusCode"))
		}
		headers, _ := at(p, "ResponseParameters").(object)
		if headers["gatewayresponse.header.Content-Type"] != "'application/problem+json'" ||
			headers["gatewayresponse.header.X-Request-Id"] != "context.requestId" {
			t.Errorf("%s has the headers %s", id, compact(headers))
		}
		if retry := problem.Status == 429 ||
			problem.Status == 503; retry != (headers["gatewayresponse.header.Retry-After"] != nil) {
			t.Errorf("%s (%d) says Retry-After: %v", id, problem.Status, headers["gatewayresponse.header.Retry-After"])
		}
	})
	if answers < 10 {
		t.Errorf("only %d of its answers are ours", answers)
	}
}

//proof:of 49 192
func TestGateway_ThrottlesAndLogsWithoutSecrets(t *testing.T) {
	t.Parallel()
	prod().each("AWS::ApiGateway::Stage", func(_ template, _ string, r object) {
		p := r["Properties"]
		set := at(p, "MethodSettings.0")
		if at(p, "StageName") != "v1" || at(set, "ThrottlingRateLimit") != 5000.0 ||
			at(set, "ThrottlingBurstLimit") != 5000.0 || at(set, "DataTraceEnabled") != false {
			t.Errorf("%s", compact(p))
		}
		format := text(at(p, "AccessLogSetting.Format"))
		var line map[string]string
		if err := json.Unmarshal([]byte(format), &line); err != nil ||
			line["tenant_id"] != "$context.authorizer.tenant" {
			t.Errorf("it logs %s: %v", format, err)
		}
		for _, secret := range []string{"header", "body", "querystring", "authorizer.token"} {
			if strings.Contains(strings.ToLower(format), secret) {
				t.Errorf("it logs %s", secret)
			}
		}
	})
}

func TestHold_StopsEverythingButTheAPI(t *testing.T) {
	t.Parallel()
	for d, want := range map[*synthesized]bool{prod(): true, held(): false} {
		n := 0
		d.each("AWS::Lambda::EventSourceMapping", func(_ template, id string, r object) {
			if n++; at(r, "Properties.Enabled") != want {
				t.Errorf("%s takes what comes: %v; want %v", id, at(r, "Properties.Enabled"), want)
			}
		})
		d.each("AWS::Scheduler::Schedule", func(_ template, id string, r object) {
			if n++; (at(r, "Properties.State") == "ENABLED") != want {
				t.Errorf("%s is %v", id, at(r, "Properties.State"))
			}
		})
		objects, _ := d.applied(t)
		for _, pool := range contract.Pools {
			meta, _ := at(objects["ScaledObject worker-"+pool], "metadata").(object)
			notes, _ := meta["annotations"].(object)
			if n++; (notes["autoscaling.keda.sh/paused-replicas"] == "0") == want {
				t.Errorf("workers of %s: %s", pool, compact(notes))
			}
		}
		if n != 6+3+len(contract.Pools) {
			t.Errorf("%d things start others", n)
		}
	}
	if got := sources(t, held())[Stream]["EventSourceArn"]; got != restored {
		t.Errorf("a restored table's stream is %v", got)
	}
	for _, st := range held().statements() {
		audit := strings.Contains(st.id, "audit") // nothing runs by that stream
		if st.actions[0] == "dynamodb:DescribeStream" && !audit && !slices.Equal(st.resources, []string{restored}) {
			t.Errorf("%s may read %v", st.id, st.resources)
		}
	}
}

func TestWAF_ProtectsTheAPIIfConfigured(t *testing.T) {
	t.Parallel()
	prod().each("AWS::WAFv2::WebACL", func(_ template, id string, _ object) { t.Errorf("there is %s", id) })
	d, guarded := held(), 0
	d.each("AWS::WAFv2::WebACLAssociation", func(s template, id string, r object) {
		guarded++
		acl := s.resources[text(at(r, "Properties.WebACLArn.Fn::GetAtt.0"))]
		if on := plain(at(r, "Properties.ResourceArn")); !strings.Contains(on, ":apigateway:us-east-1::/restapis/") ||
			!strings.HasSuffix(on, "/stages/v1") {
			t.Errorf("%s guards %s", id, on)
		}
		rules := compact(at(acl, "Properties.Rules"))
		if at(acl, "Properties.DefaultAction.Allow") == nil || !strings.Contains(rules, `"AggregateKeyType":"IP"`) ||
			!strings.Contains(rules, "AWSManagedRulesAmazonIpReputationList") {
			t.Errorf("%s is %s", id, compact(acl["Properties"]))
		}
	})
	if guarded != 1 {
		t.Errorf("%d stages are guarded", guarded)
	}
}
