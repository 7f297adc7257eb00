package stack

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// Flow is the functions around the data, what calls them, and the API.
type Flow struct {
	awscdk.Stack
	API       construct.REST
	Timers    construct.Timers
	Functions []construct.Function // in the order of parts
	byName    map[string]construct.Function
}

// Function returns one by the name it has in the parts' list.
func (f Flow) Function(name string) construct.Function { return f.byName[name] }

// part is one function: which program it is, how much it gets, and what it may do.
type part struct {
	name    string // of the function, after the prefix
	program string // its folder in functions/
	about   string
	timeout time.Duration
	mib     int
	env     func(vars) []construct.Var
	may     access
}

// vars gives the variables of contract.Env that functions need.
type vars struct {
	s      target.Settings
	bucket *string
	timers construct.Timers
	queues construct.Queues
	pool   *construct.UserPool // nil: tokens are another's
	page   *string             // the console page's client of the pool; nil without a pool
}

// base is what every function that reaches the tables needs.
func (v vars) base() []construct.Var {
	return []construct.Var{{Name: "PUNCTUAL_PREFIX", Value: v.s.Prefix},
		{Name: "PUNCTUAL_SHARDS", Value: strconv.Itoa(v.s.Shards)},
		{Name: "PUNCTUAL_ZONEINFO", Value: contract.LayerZoneFile}}
}

func (v vars) blobs() []construct.Var {
	return append(v.base(), construct.Var{Name: "PUNCTUAL_BUCKET", Value: *v.bucket})
}

// releasing is what a function that releases nodes of runs needs: what a release weighs draws on its tenant's rate
// limit.
func (v vars) releasing() []construct.Var {
	return append(v.blobs(),
		construct.Var{Name: "PUNCTUAL_TENANT_RATE", Value: strconv.Itoa(v.s.API.TenantRate)},
		construct.Var{Name: "PUNCTUAL_TENANT_BURST", Value: strconv.Itoa(v.s.API.TenantBurst)})
}

func (v vars) timerVars() []construct.Var {
	return append(v.releasing(),
		construct.Var{Name: "PUNCTUAL_TIMER_GROUP", Value: v.s.Prefix},
		construct.Var{Name: "PUNCTUAL_TIMER_ROLE", Value: *v.timers.Role.RoleArn()},
		construct.Var{Name: "PUNCTUAL_TIMER_TARGET", Value: *v.queues.Queue(contract.DispatchQueue).QueueArn()},
		construct.Var{Name: "PUNCTUAL_TIMER_DLQ", Value: *v.queues.Queue(contract.FiringDead).QueueArn()})
}

// promoting is what the promoter needs: payloads, and whose heartbeats it keeps.
func (v vars) promoting() []construct.Var {
	pools := strings.Join(v.s.HeartbeatPools(), ",")
	return append(v.blobs(), construct.Var{Name: "PUNCTUAL_HEARTBEATS", Value: cmp.Or(pools, "none")})
}

// usageTags are the tags by which it is counted what jobs used.
func (v vars) usageTags() []construct.Var {
	if len(v.s.UsageTags) == 0 {
		return nil
	}
	return []construct.Var{{Name: "PUNCTUAL_USAGE_TAGS", Value: strings.Join(v.s.UsageTags, ",")}}
}

// searching says that there is the index of jobs.
func (v vars) searching() []construct.Var {
	if !v.s.Search {
		return nil
	}
	return []construct.Var{{Name: "PUNCTUAL_SEARCH", Value: "yes"}}
}

// following is what the second reader of the stream needs.
func (v vars) following() []construct.Var {
	return slices.Concat(v.base(), v.usageTags(), v.searching())
}

// finding is what a part of the API needs that finds jobs by the index.
func (v vars) finding() []construct.Var { return append(v.api(), v.searching()...) }

// operating is what the consumer of operations needs.
func (v vars) operating() []construct.Var { return append(v.releasing(), v.searching()...) }

func (v vars) api() []construct.Var {
	env := append(v.timerVars(), construct.Var{Name: "PUNCTUAL_SCHEDULE_QUOTA", Value: strconv.Itoa(v.s.Quota)},
		construct.Var{Name: "PUNCTUAL_AUTH", Value: string(v.s.Tokens.Auth)},
		construct.Var{Name: "PUNCTUAL_AUDIT_DAYS", Value: strconv.Itoa(int(v.s.Audit))},
		construct.Var{Name: "PUNCTUAL_TENANT_WAITING", Value: strconv.Itoa(v.s.Flow.Waiting())})
	env = append(env, v.usageTags()...)
	if len(v.s.HTTPAllow) > 0 {
		env = append(env, construct.Var{Name: "PUNCTUAL_HTTP_ALLOW", Value: strings.Join(v.s.HTTPAllow, ",")})
	}
	return append(env, v.console()...)
}

// console is how the console page signs people in; none where callers sign their requests.
func (v vars) console() []construct.Var {
	issuer := v.s.Tokens.Issuer
	if v.pool != nil {
		issuer = *v.pool.Issuer()
	}
	var env []construct.Var
	if issuer != "" {
		env = append(env, construct.Var{Name: "PUNCTUAL_ISSUER", Value: issuer})
	}
	c := v.s.Tokens.Console
	if v.pool != nil {
		c.Client, c.Origins = *v.page, []string{*v.pool.Origin()}
	}
	if c.Client == "" {
		return env
	}
	env = append(env, construct.Var{Name: "PUNCTUAL_CONSOLE_CLIENT", Value: c.Client},
		construct.Var{Name: "PUNCTUAL_CONSOLE_SCOPE", Value: strings.Join(pageScopes(v.s.Tokens), " ")})
	if c.Audience != "" {
		env = append(env, construct.Var{Name: "PUNCTUAL_CONSOLE_AUDIENCE", Value: c.Audience})
	}
	if len(c.Origins) > 0 {
		env = append(env, construct.Var{Name: "PUNCTUAL_CONSOLE_ORIGINS", Value: strings.Join(c.Origins, ",")})
	}
	return env
}

// pageScopes are what the console page asks for.
func pageScopes(t target.Tokens) []string {
	switch said := t.Console.Scopes(); {
	case len(said) > 0:
		return said
	case t.Auth == target.ByCognito:
		return target.PoolScopes()
	}
	return []string{"openid", t.ScopePrefix + "read", t.ScopePrefix + "write", t.ScopePrefix + "admin"}
}

// tokens are the settings of the authorizer: those that were given, or those of our own user pool.
func (v vars) tokens() []construct.Var {
	t := v.s.Tokens
	if v.pool != nil {
		t.Issuer, t.Audience, t.AudienceClaim = *v.pool.Issuer(), *v.pool.Clients()+","+*v.page, "client_id"
		if t.JWKS == "" { // only an emulator's are elsewhere
			t.JWKS = t.Issuer + "/.well-known/jwks.json"
		}
		t.ScopeClaim, t.ScopePrefix = "scope", target.PoolServer+"/"
		t.TenantScope, t.GroupClaim = t.ScopePrefix+target.PoolTenant, construct.GroupClaim
	}
	env := []construct.Var{
		{Name: "PUNCTUAL_PREFIX", Value: v.s.Prefix},
		{Name: "PUNCTUAL_ISSUER", Value: t.Issuer}, {Name: "PUNCTUAL_AUDIENCE", Value: t.Audience},
		{Name: "PUNCTUAL_JWKS_URL", Value: t.JWKS}, {Name: "PUNCTUAL_AUDIENCE_CLAIM", Value: t.AudienceClaim},
		{Name: "PUNCTUAL_TENANT_CLAIM", Value: t.TenantClaim}, {Name: "PUNCTUAL_SCOPE_CLAIM", Value: t.ScopeClaim},
		{Name: "PUNCTUAL_SCOPE_PREFIX", Value: t.ScopePrefix},
	}
	if t.TenantScope != "" {
		env = append(env, construct.Var{Name: "PUNCTUAL_TENANT_SCOPE", Value: t.TenantScope})
	}
	if t.GroupClaim != "" {
		env = append(env, construct.Var{Name: "PUNCTUAL_GROUP_CLAIM", Value: t.GroupClaim})
	}
	return env
}

// Names of the functions.
const (
	APIRead    = "api-read"
	APISearch  = "api-search" // where there is the index of jobs
	APIWrite   = "api-write"
	Authorizer = "authorizer"
	Stream     = "stream"
	Changes    = "changes"
	Promoter   = "promoter"
	Sweeper    = "sweeper"
	Dispatch   = "dispatch"
	Status     = "status"
	Redrive    = "redrive"
	Bulk       = "bulk"
	Forecast   = "prewarm"
	Reindex    = "reindex" // where there is the index of jobs
)

// minute is the time that a pass of each minute gets: it may overlap the next one.
const minute = 2 * time.Minute

// parts lists the functions. The timeout of a queue's consumer is at most a sixth of the queue's visibility, as Lambda
// recommends.
func parts() []part {
	due := []string{contract.DueIndex}
	return []part{
		{
			name: APIRead, program: "api", about: "REST: what only looks", timeout: 29 * time.Second, mib: 512,
			env: vars.api,
			may: access{
				items: []items{
					{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany}},
					{contract.Claims, []construct.Verb{construct.GetMany}},
					{contract.Schedules, []construct.Verb{construct.Get}},
					{contract.Tasks, []construct.Verb{construct.Get}},
					{contract.Runs, []construct.Verb{construct.Get, construct.GetMany}},
					{contract.Dags, []construct.Verb{construct.Get}},
				},
				queries: []query{
					{contract.Jobs, []string{"", contract.GroupIndex, contract.DeadIndex, contract.DueIndex}},
					{contract.Schedules, []string{""}}, {contract.Tasks, []string{""}},
					{contract.Runs, []string{""}}, {contract.Dags, []string{""}}, {contract.Audit, []string{""}},
				},
				under: []under{{contract.Tasks, "quota#", []construct.Verb{construct.Update}}},
				asks:  contract.FiringQueues(),
			},
		},
		{
			name: APISearch, program: "api", about: "REST: lists and searches of jobs", timeout: 29 * time.Second,
			mib: 512, env: vars.finding, may: searchAccess(),
		},
		{
			name: APIWrite, program: "api", about: "REST: what changes something", timeout: 29 * time.Second, mib: 512,
			env: vars.finding,
			may: access{
				items: []items{
					{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update,
						construct.Delete}},
					{contract.Claims,
						[]construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update}},
					{contract.Schedules, []construct.Verb{construct.Get, construct.Put, construct.Update,
						construct.Check}},
					{contract.Tasks, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update,
						construct.Delete, construct.Check}},
					{contract.Runs, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update,
						construct.Delete, construct.Check}},
					{contract.Dags, []construct.Verb{construct.Get, construct.Put, construct.Update}},
					{contract.Audit, []construct.Verb{construct.Put}}, // no entry is changed or deleted
					{contract.Search, []construct.Verb{construct.Get, construct.GetMany}},
				},
				queries: []query{
					{contract.Jobs, []string{"", contract.DueIndex, contract.GroupIndex, contract.DeadIndex}},
					{contract.Schedules, []string{""}}, {contract.Tasks, []string{""}}, {contract.Runs, []string{""}},
					{contract.Dags, []string{""}},   // that use a limit, before it is deleted
					{contract.Search, []string{""}}, // a dry run counts
				},
				sends: append(contract.FiringQueues(), contract.DispatchQueue, contract.RedriveQueue,
					contract.BulkQueue),
				timers: true, blobs: blobs{read: true, write: true, remove: true},
			},
		},
		{name: Authorizer, program: "authorizer", about: "Who calls, by the token", timeout: 10 * time.Second, mib: 256,
			env: vars.tokens},
		{
			name: Stream, program: "stream", about: "Sends what the jobs table's stream shows, or asks for its slice",
			timeout: 60 * time.Second, mib: 256, env: vars.base,
			may: access{sends: append(contract.FiringQueues(), contract.DispatchQueue, contract.FiringDead)},
		},
		{
			name: Changes, program: "changes", about: "Follows the jobs table: events, index, counts",
			timeout: 60 * time.Second, mib: 256, env: vars.following,
			may: access{
				items: []items{ // labels of jobs, and the dags of runs; deliveries; webhooks
					{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany, construct.Put}},
					{contract.Runs, []construct.Verb{construct.Get}},
					{contract.Tasks, []construct.Verb{construct.Get, construct.Put, construct.Update}},
					{contract.Search, []construct.Verb{construct.Put, construct.Delete}},
				},
				queries: []query{{contract.Tasks, []string{""}}},
				sends:   []string{contract.FiringQueue(contract.DefaultPool, "normal"), contract.FiringDead},
			},
		},
		{
			name: Promoter, program: "promoter", about: "Each minute: slices entering the horizon", timeout: minute,
			mib: 512, env: vars.promoting,
			may: access{
				items: []items{ // jobs, claims and schedules: it makes the jobs of schedules
					{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany, construct.Put,
						construct.Update}},
					{contract.Claims, []construct.Verb{construct.Get, construct.GetMany, construct.Update}},
					{contract.Schedules, []construct.Verb{construct.Get, construct.Put, construct.Update,
						construct.Check}},
					{contract.Tasks, []construct.Verb{construct.Get, construct.Put, construct.Update}},
				},
				queries: []query{{contract.Jobs, due}, {contract.Schedules, due}, {contract.Tasks, []string{""}}},
				sends:   append(contract.FiringQueues(), contract.DispatchQueue), listsTables: true,
				blobs: blobs{read: true, write: true},
			},
		},
		{name: Sweeper, program: "sweeper", about: "Each minute: slices left behind", timeout: minute, mib: 512,
			env: vars.releasing, may: jobAccess().withTableList().withSends(contract.BulkQueue)},
		{name: Dispatch, program: "dispatch", about: "Slices get timers, and become firings at their time",
			timeout: 30 * time.Second, mib: 256, env: vars.timerVars,
			may: jobAccess().withVisibility(contract.DispatchQueue).withBlobDeletion().withTimers()},
		{name: Status, program: "status", about: "Settles what workers report", timeout: 30 * time.Second, mib: 512,
			env: vars.releasing, may: jobAccess().withVisibility(contract.ReportQueue)},
		{
			name: Redrive, program: "redrive", about: "Buries dead letters, and brings them back",
			timeout: 10 * time.Second, mib: 256, env: vars.releasing,
			// Retrying a node may reconcile its whole run.
			may: jobAccess().withVisibility(contract.RedriveQueue).withReceive(contract.DeadLetters),
		},
		{
			name: Bulk, program: "bulk", about: "Continues operations on many jobs", timeout: 30 * time.Second,
			mib: 512, env: vars.operating, may: bulkAccess(),
		},
		{
			name: Forecast, program: "forecast", about: "Each minute: how many workers the next half hour wants",
			timeout: time.Minute, mib: 256, env: vars.base,
			may: access{
				items: []items{{contract.Jobs, []construct.Verb{construct.Get}},
					{contract.Tasks, []construct.Verb{construct.Get, construct.Update}}},
				queries: []query{{contract.Jobs, due}},
			},
		},
		{
			name: Reindex, program: "search", about: "Makes the index of jobs anew, when it is asked to",
			timeout: time.Minute, mib: 512, env: vars.base,
			may: access{
				items: []items{
					{contract.Jobs, []construct.Verb{construct.Scan, construct.Get, construct.GetMany}},
					{contract.Runs, []construct.Verb{construct.Get}},
					{contract.Search, []construct.Verb{construct.Put, construct.Delete}},
				},
			},
		},
	}
}

// partsOf lists the functions of a deployment: where API Gateway verifies signatures, there is no authorizer; where
// there is no index of jobs, nothing may use it.
func partsOf(s target.Settings) []part {
	var list []part
	for _, p := range parts() {
		if p.name == Authorizer && s.Tokens.Auth == target.ByIAM ||
			(p.name == APISearch || p.name == Reindex) && !s.Search {
			continue
		}
		if !s.Search {
			p.may = p.may.without(contract.Search)
		}
		list = append(list, p)
	}
	return list
}

// Programs lists the folders of functions/ that are deployed, each once.
func Programs() []string {
	var programs []string
	for _, p := range parts() {
		if len(programs) == 0 || programs[len(programs)-1] != p.program {
			programs = append(programs, p.program)
		}
	}
	return programs
}

// NewFlow makes the stack.
func NewFlow(scope constructs.Construct, s target.Settings, d Data) Flow {
	stack := newStack(scope, s, "flow", "the functions, what calls them, and the API", false)
	stack.AddDependency(d.Stack, jsii.String("it writes to log groups there, by their names"))
	f := Flow{Stack: stack, byName: map[string]construct.Function{}}
	f.Timers = construct.NewTimers(stack, construct.TimersProps{
		Group: s.Prefix, Queues: d.Queues, Key: d.Key, Target: contract.DispatchQueue, Dead: contract.FiringDead,
		AnyGroup: s.Emulated,
	})
	f.API = construct.NewREST(stack, "Api", construct.RESTProps{
		Name: s.Prefix, Signed: s.Tokens.Auth == target.ByIAM,
		Rate: s.API.Rate, Burst: s.API.Burst, Log: d.Logs.In(stack, accessLog), ManageLogRole: s.API.ManageLogRole,
	})
	v := vars{s: s, bucket: d.Bucket.Name(), timers: f.Timers, queues: d.Queues, pool: d.Pool}
	if d.Pool != nil {
		at := *f.API.ConsoleURL()
		// The page comes back to where it was, and is served at both.
		v.page = d.Pool.NewPage(stack, "Console", "console page", pageScopes(s.Tokens), jsii.String(at+"/index.html"),
			jsii.String(at+"/"))
		output(stack, "ConsoleUrl", f.API.ConsoleURL(), "The console page; who may sign in says infra/auth.md")
		output(stack, "ConsoleClient", v.page, "The client with which people sign in to it")
	}
	reserved := map[string]int{APIRead: s.Flow.Reads, APIWrite: s.Flow.Writes, Authorizer: s.Flow.Authorizer,
		APISearch: s.Flow.Searches}
	for _, p := range partsOf(s) {
		fn := construct.NewFunction(stack, p.name, construct.FunctionProps{
			Name: s.Prefix + "-" + p.name, About: "Punctual. " + p.about, Folder: filepath.Join(s.Origin.Functions,
				p.program), Arch: string(s.Arch),
			Timeout: p.timeout, MiB: p.mib, Env: p.env(v), Log: d.Logs.In(stack, p.name),
			Layer: s.ZoneLayer, Reserved: reserved[p.name],
		})
		d.grant(fn, f.Timers, p.may)
		f.Functions = append(f.Functions, fn)
		f.byName[p.name] = fn
	}
	f.feed(s, d)
	if s.Tokens.Auth == target.ByIAM {
		for _, name := range []string{APIRead, APIWrite, APISearch} {
			if fn, is := f.byName[name]; is {
				construct.GrantTags(fn.Role)
			}
		}
	}
	routes := construct.Routes{Read: f.byName[APIRead], Write: f.byName[APIWrite], Authorizer: f.byName[Authorizer]}
	if search, is := f.byName[APISearch]; is {
		routes.Search = &search
	}
	f.API.Route(routes)
	if s.API.WAF {
		construct.NewWAF(stack, "Waf", s.Prefix, f.API)
	}
	if s.Keep { // prod; an emulator has no CodeDeploy, and dev may break
		f.canaries(s)
	}
	output(stack, "ApiUrl", f.API.Url(), "The API; add jobs, health, openapi.json …")
	return f
}

// feed connects the functions with what calls them.
func (f Flow) feed(s target.Settings, d Data) {
	f.byName[Stream].FeedFromStream(d.Tables, contract.Jobs, d.Queues.Queue(contract.FiringDead),
		s.Flow.Stream, !s.Hold, s.JobsStream)
	f.byName[Changes].FollowStream(d.Tables, contract.Jobs, d.Queues.Queue(contract.FiringDead), followed(s),
		!s.Hold, s.JobsStream)
	f.byName[Dispatch].FeedFromQueue(d.Queues, contract.DispatchQueue, s.Flow.Settle, !s.Hold)
	f.byName[Status].FeedFromQueue(d.Queues, contract.ReportQueue, s.Flow.Settle, !s.Hold)
	f.byName[Redrive].FeedFromQueue(d.Queues, contract.RedriveQueue, s.Flow.Settle, !s.Hold)
	f.byName[Bulk].FeedFromQueue(d.Queues, contract.BulkQueue, s.Flow.Settle, !s.Hold)
	tick := construct.NewTick(f.Stack, s.Prefix+"-ticks")
	for _, name := range []string{Promoter, Sweeper, Forecast} {
		tick.EveryMinute(name, f.byName[name], !s.Hold)
	}
}

// What follows the jobs table is called with batches of some seconds, as no request waits for counts and calls cost.
// Where there is the index of jobs, searches want what happened a second ago.
const (
	followBatch  = 1000 // about 3 MB of the 6 that a call takes
	followWait   = 20 * time.Second
	searchWait   = time.Second
	followWindow = 90 * time.Second // what is counted shows at its end, two minutes later at most
)

func followed(s target.Settings) construct.Followed {
	wait := followWait
	if s.Search {
		wait = searchWait
	}
	return construct.Followed{Batch: followBatch, Wait: wait, Window: followWindow}
}

// canaries deploy each function by a canary. It ends if the new version fails more often than the old version does in
// the same minutes. What both versions meet alike, such as a table that is down or a caller who sends tokens that
// no caller signed, ends no deploy and no roll-back. Failures are:
//   - of every function, the calls that end with an error;
//   - of the API, also the requests that it answers with 5xx;
//   - of the authorizer, the tokens that it refuses, which are errors of Lambda's;
//   - of what is fed by a queue or the stream, also the records that fail, which its answer lists;
//   - of a pass, which is called once a minute, a second error counts, and the new version gets half of the calls.
func (f Flow) canaries(s target.Settings) {
	canary := construct.NewCanary(f.Stack, s.Prefix)
	for _, p := range partsOf(s) {
		if p.name == Reindex { // an operator calls it, and sees its errors
			continue
		}
		fn, share := f.byName[p.name], construct.Tenth
		var metric awscloudwatch.IMetric
		over := float64(canaryPoints)
		switch p.name {
		case APIRead, APIWrite, APISearch:
			metric = f.worse(s, p.name, telemetry.RequestsFailed)
		case Authorizer:
			metric, over = f.worse(s, p.name, ""), canaryRefused
		case Promoter, Sweeper, Forecast:
			metric, over, share = f.worsePass(s, p.name), 0, construct.Half
		default:
			metric = f.worse(s, p.name, telemetry.RecordsFailed)
		}
		canary.Over(p.name, fn, share, construct.NewAlarm(f.Stack, "canary-"+p.name, construct.AlarmProps{
			Name: s.Prefix + "-canary-" + p.name, Metric: metric, Over: over, Bad: 1, Of: 1,
			About: "Ends the deploy of a new version, and brings the one before back. See " + Runbook +
				"deploy-ended.md",
		}))
	}
}

// What ends a canary: so many failures of the new version in a minute, and more than so many percentage points more
// than the old version. The share of tokens that callers get wrong is uneven, so the authorizer may differ by more.
const (
	canaryFailures = 3
	canaryPoints   = 5
	canaryRefused  = 50
)

// calledBy are the dimensions of Lambda's metrics of a function: of all calls by the alias, and of those that met the
// new version.
func (f Flow) calledBy(s target.Settings, name string) (all, fresh []string) {
	all = []string{"FunctionName", s.Prefix + "-" + name, "Resource", s.Prefix + "-" + name + ":" + construct.Live}
	return all, append(slices.Clone(all), "ExecutedVersion", *f.byName[name].Live.Version().Version())
}

// worse is by how many percentage points the new version of a function, which gets a tenth of the calls, fails more of
// its calls than the old one; 0 with few failures. own are failures that are no error of the function.
func (f Flow) worse(s target.Settings, name string, own telemetry.Name) awscloudwatch.IMetric {
	all, fresh := f.calledBy(s, name)
	using := []any{"newcalls", construct.Measure(lambda, "Invocations", "Sum", fresh...),
		"errors", construct.Measure(lambda, "Errors", "Sum", all...),
		"newerrors", construct.Measure(lambda, "Errors", "Sum", fresh...)}
	bad, newBad := "FILL(errors,0)", "FILL(newerrors,0)"
	if own != "" {
		using = append(using, "failed", oursOf(s).over(1, own, "Sum", "stage", name),
			"newfailed", oursOf(s).over(1, own, "Sum", "stage", name, telemetry.VersionDim,
				*f.byName[name].Live.Version().Version()))
		bad, newBad = "("+bad+"+FILL(failed,0))", "("+newBad+"+FILL(newfailed,0))"
	}
	// The old version gets nine times the calls. One call more, so that nothing is divided by 0.
	return construct.Math(1, "fails more than the old version, % of calls", fmt.Sprintf(
		"IF(%s>=%d,100*(%[1]s/(FILL(newcalls,0)+1)-(%[3]s-%[1]s)/(9*FILL(newcalls,0)+1)),0)",
		newBad, canaryFailures, bad), using...)
}

// worsePass is 1 if the new version of a pass, which gets half of the calls, failed more than once in ten minutes, and
// more than twice as often as the old one.
func (f Flow) worsePass(s target.Settings, name string) awscloudwatch.IMetric {
	const window = 10
	all, fresh := f.calledBy(s, name)
	return construct.Math(window, "fails more than the old version",
		"IF(FILL(newerrors,0)>1+2*(FILL(errors,0)-FILL(newerrors,0)),1,0)",
		"errors", construct.MeasureOver(window, lambda, "Errors", "Sum", all...),
		"newerrors", construct.MeasureOver(window, lambda, "Errors", "Sum", fresh...))
}
