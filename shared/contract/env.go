package contract

import (
	"fmt"
	"strconv"
	"strings"
)

// Env holds the environment of a deployed process. Names of tables and queues follow from the
// prefix, so that a function's environment stays small.
type Env struct {
	Prefix       string   // PUNCTUAL_PREFIX: of tables, queues and the metrics' namespace; default "punctual"
	Bucket       string   // PUNCTUAL_BUCKET: payloads over 256 KB
	TimerGroup   string   // PUNCTUAL_TIMER_GROUP: the EventBridge Scheduler group; default the prefix
	TimerRole    string   // PUNCTUAL_TIMER_ROLE: ARN of the role that timers send with
	TimerTarget  string   // PUNCTUAL_TIMER_TARGET: ARN of the dispatch queue
	TimerDLQ     string   // PUNCTUAL_TIMER_DLQ: ARN of the queue for timers that could not send; "" for none
	Shards       int      // PUNCTUAL_SHARDS: of the due index; default 64
	Issuer       string   // PUNCTUAL_ISSUER: the tokens' iss
	Audiences    []string // PUNCTUAL_AUDIENCE: whom tokens may be meant for, separated by commas
	JWKS         string   // PUNCTUAL_JWKS_URL: where the issuer's keys are
	TenantClaim  string   // PUNCTUAL_TENANT_CLAIM; default "tenant"
	ScopeClaim   string   // PUNCTUAL_SCOPE_CLAIM; default "scope"
	Pool         string   // PUNCTUAL_POOL: the pool that a worker serves; default "short"
	Slots        int      // PUNCTUAL_SLOTS: attempts that a worker runs at once; default 25
	DrainSeconds int      // PUNCTUAL_DRAIN_SECONDS: budget after SIGTERM; default 25
	UsageTags    []string // PUNCTUAL_USAGE_TAGS: tags by which it is counted what jobs used; default none
	Search       bool     // PUNCTUAL_SEARCH: "yes" where there is the index of jobs; default no
	HTTPAllow    []string // PUNCTUAL_HTTP_ALLOW: CIDRs that http jobs may reach although special; default none
	Quota        int      // PUNCTUAL_SCHEDULE_QUOTA: runs a minute of a tenant's schedules; default ScheduleQuota

	AuditDays int // PUNCTUAL_AUDIT_DAYS: how long an entry of the audit is kept; default AuditDays

	// PUNCTUAL_ZONEINFO: file of newer time zone rules, which may be absent; default none
	ZoneFile string

	TenantRate int // PUNCTUAL_TENANT_RATE: requests a second of each tenant; default 0, which bounds none
	// PUNCTUAL_TENANT_BURST: requests at once of each tenant after a rest; default 0, with a rate 1 or more
	TenantBurst int
	// PUNCTUAL_TENANT_WAITING: requests with wait= of each tenant that wait at once; default 0, which bounds none
	TenantWaiting int

	AudienceClaim string // PUNCTUAL_AUDIENCE_CLAIM: the claim that says whom a token is meant for; default "aud"
	TenantScope   string // PUNCTUAL_TENANT_SCOPE: prefix of the scope that names the tenant; "" takes the claim
	GroupClaim    string // PUNCTUAL_GROUP_CLAIM: the claim of groups, where TenantScope counts too; default none
	Auth          string // PUNCTUAL_AUTH: how callers show who they are; AuthIAM, or "" for tokens
	ScopePrefix   string // PUNCTUAL_SCOPE_PREFIX: what issuers write before read, write and admin; default "punctual:"

	// PUNCTUAL_HEARTBEATS: pools that run an empty job of each priority each minute, separated by commas, or "none",
	// which ends those that are there; default nil, which leaves them as they are.
	Heartbeats []string

	Console ConsoleEnv // of the API
}

// ConsoleEnv holds what the console page needs to sign in at Env.Issuer.
type ConsoleEnv struct {
	Client   string   // PUNCTUAL_CONSOLE_CLIENT: its client id at the issuer; "" lets no one sign in
	Scope    string   // PUNCTUAL_CONSOLE_SCOPE: asked for at sign-in; "" is openid alone
	Audience string   // PUNCTUAL_CONSOLE_AUDIENCE: asked for at sign-in; "" asks for none
	Origins  []string // PUNCTUAL_CONSOLE_ORIGINS: of the issuer's endpoints elsewhere, separated by commas
}

// LayerZoneFile is the file zoneinfo.zip of a Lambda layer.
const LayerZoneFile = "/opt/zoneinfo.zip"

// DefaultPrefix is the Prefix of a process that was given none.
const DefaultPrefix = "punctual"

// AuthIAM is the Auth of a deployment whose callers sign their requests (SigV4).
const AuthIAM = "iam"

// TableName returns the real name of a table.
func (e Env) TableName(logical string) string { return e.Prefix + "-" + logical }

// QueueName returns the real name of a queue.
func (e Env) QueueName(logical string) string { return e.Prefix + "-" + logical }

// Namespace returns the namespace of the metrics: one for each deployment, so that two in an
// account stay separate.
func (e Env) Namespace() string { return "Punctual/" + e.Prefix }

// LoadEnv reads the environment through lookup (os.LookupEnv). Each name in needs must be set.
func LoadEnv(lookup func(string) (string, bool), needs ...string) (Env, error) {
	get := func(name, fallback string) string {
		if v, ok := lookup(name); ok && v != "" {
			return v
		}
		return fallback
	}
	for _, name := range needs {
		if get(name, "") == "" {
			return Env{}, fmt.Errorf("environment variable %s is not set", name)
		}
	}
	e := Env{
		Prefix: get("PUNCTUAL_PREFIX", DefaultPrefix), Bucket: get("PUNCTUAL_BUCKET", ""),
		TimerRole: get("PUNCTUAL_TIMER_ROLE", ""), TimerTarget: get("PUNCTUAL_TIMER_TARGET", ""),
		TimerDLQ: get("PUNCTUAL_TIMER_DLQ", ""),
		Issuer:   get("PUNCTUAL_ISSUER", ""), JWKS: get("PUNCTUAL_JWKS_URL", ""),
		TenantClaim: get("PUNCTUAL_TENANT_CLAIM", "tenant"), ScopeClaim: get("PUNCTUAL_SCOPE_CLAIM", "scope"),
		AudienceClaim: get("PUNCTUAL_AUDIENCE_CLAIM", "aud"), TenantScope: get("PUNCTUAL_TENANT_SCOPE", ""),
		GroupClaim: get("PUNCTUAL_GROUP_CLAIM", ""),
		Auth:       get("PUNCTUAL_AUTH", ""), ScopePrefix: get("PUNCTUAL_SCOPE_PREFIX", "punctual:"),
		Pool: get("PUNCTUAL_POOL", DefaultPool), ZoneFile: get("PUNCTUAL_ZONEINFO", ""),
		Search: get("PUNCTUAL_SEARCH", "") == "yes",
	}
	e.TimerGroup = get("PUNCTUAL_TIMER_GROUP", e.Prefix)
	if audiences := get("PUNCTUAL_AUDIENCE", ""); audiences != "" {
		e.Audiences = strings.Split(audiences, ",")
	}
	e.Console = ConsoleEnv{Client: get("PUNCTUAL_CONSOLE_CLIENT", ""), Scope: get("PUNCTUAL_CONSOLE_SCOPE", ""),
		Audience: get("PUNCTUAL_CONSOLE_AUDIENCE", "")}
	if origins := get("PUNCTUAL_CONSOLE_ORIGINS", ""); origins != "" {
		e.Console.Origins = strings.Split(origins, ",")
	}
	switch pools := get("PUNCTUAL_HEARTBEATS", ""); pools {
	case "":
	case "none":
		e.Heartbeats = []string{}
	default:
		e.Heartbeats = strings.Split(pools, ",")
	}
	if tags := get("PUNCTUAL_USAGE_TAGS", ""); tags != "" {
		e.UsageTags = strings.Split(tags, ",")
	}
	if cidrs := get("PUNCTUAL_HTTP_ALLOW", ""); cidrs != "" {
		e.HTTPAllow = strings.Split(cidrs, ",")
	}
	for _, n := range []struct {
		name     string
		to       *int
		fallback int
		least    int
	}{
		{"PUNCTUAL_SHARDS", &e.Shards, DefaultShards, 1},
		{"PUNCTUAL_SLOTS", &e.Slots, 25, 1},
		{"PUNCTUAL_DRAIN_SECONDS", &e.DrainSeconds, 25, 1},
		{"PUNCTUAL_SCHEDULE_QUOTA", &e.Quota, ScheduleQuota, 1},
		{"PUNCTUAL_AUDIT_DAYS", &e.AuditDays, AuditDays, 1},
		{"PUNCTUAL_TENANT_RATE", &e.TenantRate, 0, 0},
		{"PUNCTUAL_TENANT_BURST", &e.TenantBurst, 0, 0},
		{"PUNCTUAL_TENANT_WAITING", &e.TenantWaiting, 0, 0},
	} {
		v, err := strconv.Atoi(get(n.name, strconv.Itoa(n.fallback)))
		if err != nil || v < n.least {
			return Env{}, fmt.Errorf("environment variable %s is %q: want a whole number over %d", n.name,
				get(n.name, ""), n.least-1)
		}
		*n.to = v
	}
	if e.TenantRate > 0 {
		e.TenantBurst = max(1, e.TenantBurst)
	}
	return e, nil
}

// MustEnv is LoadEnv for a door: a missing name ends the process with a message.
func MustEnv(lookup func(string) (string, bool), needs ...string) Env {
	e, err := LoadEnv(lookup, needs...)
	if err != nil {
		panic(err)
	}
	return e
}
