package target

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
)

// MaxShards bounds the due index: a pass of the promoter reads each shard's slices every minute.
const MaxShards = 1024

const shardsAllowed = "a power of two from 1 to 1024 is allowed, so that a count can grow by doubling"

// tenantRateAllowed says what tenant_rate and tenant_burst may be.
const tenantRateAllowed = "1 or more, and less than what all tenants have together"

// MaxQuota bounds what one tenant's schedules may take of what all share: 1,667 runs a second.
const MaxQuota = 100_000

const quotaAllowed = "1 to 100000 runs a minute of all schedules of one tenant are allowed; each schedule takes at " +
	"least one"

const concurrencyAllowed = "10 or more invocations at once are allowed, as the account's quota has it"

// Limits of AWS that a setting could run into.
const (
	maxRate     = 10_000 // API Gateway, requests per second per account and region; raised by request
	maxBurst    = 5_000  // not raised
	leastPoller = 2      // MaximumConcurrency of an SQS source
	mostPoller  = 1_000
	mostWarm    = 40_000 // units per second of a table by default; raised by request
	// of auth=cognito: Cognito takes 100 scopes of a resource server, and the authorizer 4 KB of settings
	mostTenants = 50
)

// kubectlMinor is the version of kubectl that infra/package.json pins; a cluster may be one older
// or newer.
const kubectlMinor = 36

var (
	prefixIs  = regexp.MustCompile(`^[a-z][a-z0-9-]{1,30}[a-z0-9]$`)
	accountIs = regexp.MustCompile(`^[0-9]{12}$`)
	zoneIs    = regexp.MustCompile(`^[a-z]$`)
	roleIs    = regexp.MustCompile(`^arn:aws:iam::[0-9]{12}:role/[a-zA-Z0-9+=,.@_/-]{1,512}$`)
	claimIs   = regexp.MustCompile(`^[a-zA-Z0-9_:/.-]{1,128}$`)
	layerIs   = regexp.MustCompile(`^arn:aws:lambda:[a-z0-9-]+:[0-9]{12}:layer:[a-zA-Z0-9_-]+:[0-9]+$`)
	streamIs  = regexp.MustCompile(`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[a-zA-Z0-9_.-]+/stream/[0-9T:.-]+$`)
	tenantIs  = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9_.-]{0,63}$`)
	logDays   = []Days{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
		3288, 3653}
)

// violations gathers what is wrong, each in a sentence that says what is allowed.
type violations []error

func (m *violations) add(format string, args ...any) { *m = append(*m, fmt.Errorf(format, args...)) }

func (m *violations) when(wrong bool, format string, args ...any) {
	if wrong {
		m.add(format, args...)
	}
}

// Check returns everything that is wrong with s, nil if nothing is.
func Check(s Settings) error {
	var m violations
	m.when(!prefixIs.MatchString(s.Prefix),
		"prefix is %q: 3 to 32 lower-case letters, digits and hyphens are allowed, beginning with a letter", s.Prefix)
	m.when(!slices.Contains(Regions(), s.Region), "region %q is not one that has every service Punctual needs (EKS "+
		"Auto Mode and EventBridge Scheduler among them): %s", s.Region, strings.Join(Regions(), ", "))
	m.when(s.Account != "" && !accountIs.MatchString(s.Account),
		"account is %q: 12 digits, or leave it out to take that of your credentials", s.Account)
	m.when(s.BackupAccount != "" && (!accountIs.MatchString(s.BackupAccount) || s.BackupAccount == s.Account),
		"backup_account is %q: the 12 digits of another account than that of the deployment", s.BackupAccount)
	m.when(s.BackupAccount != "" && s.Emulated, "backup_account is named: no emulator has AWS Backup")
	m.when(s.Arch != ARM && s.Arch != X86, "architecture is %q: %s or %s", s.Arch, ARM, X86)
	m.when(s.Shards < 1 || s.Shards > MaxShards || s.Shards&(s.Shards-1) != 0, "shards is %d: %s", s.Shards,
		shardsAllowed)
	m.when(s.Quota < 1 || s.Quota > MaxQuota, "schedule_quota is %d: %s", s.Quota, quotaAllowed)
	m.when(!slices.Contains(logDays, s.Audit), "audit_days is %d: one of %v", s.Audit, logDays)
	m.when(!slices.Contains(logDays, s.Logs), "logs are kept %d days: CloudWatch takes one of %v", s.Logs, logDays)
	m.when(s.Concurrency < 0 || s.Concurrency > 0 && s.Concurrency < 10, "concurrency is %d: %s", s.Concurrency,
		concurrencyAllowed)
	m.when(s.JobsStream != "" &&
		!streamIs.MatchString(s.JobsStream), "jobs_stream is %q: the ARN of a table's stream, "+
		"as `aws dynamodb describe-table --query Table.LatestStreamArn` says it", s.JobsStream)
	m.when(s.ZoneLayer != "" && !layerIs.MatchString(s.ZoneLayer), "zone_layer is %q: the ARN of a layer's version, "+
		"as `aws lambda publish-layer-version` says it", s.ZoneLayer)
	m.when(s.Flow.Stream < 1 || s.Flow.Stream > 10, "concurrency of the stream's consumer is %d: 1 to 10 is allowed",
		s.Flow.Stream)
	m.tables(s.Tables)
	m.tokens(s.Tokens, s.Emulated)
	m.when(s.API.Rate < 1 || s.API.Rate > maxRate, "the API's rate is %d requests per second: 1 to %d is allowed",
		s.API.Rate, maxRate)
	m.when(s.API.Burst < 1 || s.API.Burst > maxBurst, "the API's burst is %d requests: 1 to %d is allowed", s.API.Burst,
		maxBurst)
	m.when(s.API.TenantRate < 1 || s.API.TenantRate >= s.API.Rate, "tenant_rate is %d of the API's %d requests a "+
		"second: %s", s.API.TenantRate, s.API.Rate, tenantRateAllowed)
	m.when(s.API.TenantBurst < 1 || s.API.TenantBurst >= s.API.Burst, "tenant_burst is %d of the API's %d requests at "+
		"once: %s", s.API.TenantBurst, s.API.Burst, tenantRateAllowed)
	for _, r := range []struct {
		name string
		n    int
	}{{"reads", s.Flow.Reads}, {"writes", s.Flow.Writes}, {"the authorizer", s.Flow.Authorizer},
		{"searches", s.Flow.Searches}} {
		m.when(r.n < 0, "concurrency of %s is %d: 0 reserves none, else 1 or more", r.name, r.n)
	}
	m.when(s.Flow.Settle < leastPoller || s.Flow.Settle > mostPoller,
		"concurrency of the queues' consumers is %d: %d to %d is allowed", s.Flow.Settle, leastPoller, mostPoller)
	m.when(len(s.UsageTags) > contract.MaxUsageTags, "usage_tags has %d names: at most %d", len(s.UsageTags),
		contract.MaxUsageTags)
	for n, tag := range s.UsageTags {
		m.when(tag == "" || slices.Contains(s.UsageTags[:n], tag), "usage_tags has %q: names of tags separated by "+
			"commas, each once", tag)
	}
	for _, cidr := range s.HTTPAllow {
		_, err := netip.ParsePrefix(cidr)
		m.when(err != nil, "http_allow has %q: CIDRs separated by commas, such as 10.1.0.0/16", cidr)
	}
	if !s.Emulated {
		m.fleet(s.Fleet)
		for i, zone := range s.Fleet.In {
			letter, ok := strings.CutPrefix(zone, s.Region)
			m.when(!ok || !zoneIs.MatchString(letter) || slices.Contains(s.Fleet.In[:i], zone),
				"zones has %q: names of zones of %s, each once, separated by commas, such as %sa", zone, s.Region,
				s.Region)
		}
	}
	for _, a := range []struct{ key, address string }{{"mail", s.Alarms.Mail}, {"page", s.Alarms.Page}} {
		if a.address != "" {
			_, err := mail.ParseAddress(a.address)
			m.when(err != nil, "%s is %q: one address, such as oncall@example.com", a.key, a.address)
		}
	}
	m.lanes(contract.TimerLead, contract.TimerGuard, contract.DirectLane)
	if len(m) == 0 {
		return nil
	}
	return fmt.Errorf("target %s cannot be built:\n%w", s.Target, errors.Join(m...))
}

func (m *violations) tables(t Tables) {
	c := t.Provisioned
	m.when(c != Capacity{} && (c.Least < 1 || c.Most < c.Least), "provisioned capacity is %d to %d units: at least "+
		"1, and the most not under the least; leave both 0 for on-demand", c.Least, c.Most)
	m.when(t.WarmWrites < 0 || t.WarmWrites > mostWarm,
		"warm writes are %d per second: 0 for AWS's default, at most %d", t.WarmWrites, mostWarm)
	m.when(t.WarmReads < 0 || t.WarmReads > mostWarm, "warm reads are %d per second: 0 for AWS's default, at most %d",
		t.WarmReads, mostWarm)
}

func (m *violations) tokens(t Tokens, emulated bool) {
	switch t.Auth {
	case ByToken:
		m.when(len(t.Tenants) > 0, "tenants are named: only auth=cognito makes something for each of them")
		m.issuer(t, emulated)
	case ByCognito:
		m.pool(t)
	case ByIAM:
		m.when(t.Issuer != "" || t.Audience != "" || len(t.Tenants) > 0,
			"an issuer, an audience or tenants are named: with auth=iam a caller's tenant is a tag of its role")
	default:
		m.add("auth is %q: %s, %s or %s", t.Auth, ByToken, ByCognito, ByIAM)
	}
	if t.Auth == ByCognito || t.Auth == ByIAM {
		m.unread(t, emulated)
	}
	for _, c := range []struct{ key, is string }{{"audience_claim", t.AudienceClaim}, {"tenant_claim", t.TenantClaim},
		{"scope_claim", t.ScopeClaim}, {"scope_prefix", t.ScopePrefix}} {
		m.when(!claimIs.MatchString(c.is), "%s is %q: 1 to 128 of letters, digits and _:/.-", c.key, c.is)
	}
	m.console(t, emulated)
	m.when(t.GroupClaim != "" && (t.TenantScope == "" || !claimIs.MatchString(t.GroupClaim)),
		"group_claim is %q: up to 128 of letters, digits and _:/.-, beside tenant_scope, which its groups begin with",
		t.GroupClaim)
	m.when(t.TenantScope != "" && !claimIs.MatchString(t.TenantScope),
		"tenant_scope is %q: up to 128 of letters, digits and _:/.-", t.TenantScope)
}

// unread refuses settings of how tokens are read where they would change nothing.
func (m *violations) unread(t Tokens, emulated bool) {
	usual := base("").Tokens
	if t.Issuer != "" || emulated && t.Auth == ByCognito {
		usual.JWKS = t.JWKS // it follows from the issuer; an emulator's pools have their keys elsewhere
	}
	for _, c := range []struct{ key, is, usual string }{
		{"jwks", t.JWKS, usual.JWKS}, {"audience_claim", t.AudienceClaim, usual.AudienceClaim},
		{"tenant_claim", t.TenantClaim, usual.TenantClaim}, {"tenant_scope", t.TenantScope, usual.TenantScope},
		{"group_claim", t.GroupClaim, usual.GroupClaim}, {"scope_claim", t.ScopeClaim, usual.ScopeClaim},
		{"scope_prefix", t.ScopePrefix, usual.ScopePrefix},
	} {
		m.when(c.is != c.usual, "%s is named: it says how an issuer's tokens are read, of which auth=%s leaves "+
			"nothing to say", c.key, t.Auth)
	}
}

func (m *violations) console(t Tokens, emulated bool) {
	c := t.Console
	m.when(c.Client != "" && t.Auth == ByIAM,
		"console_client is named: with auth=iam requests are signed, which the console page cannot do")
	if t.Auth == ByCognito {
		m.pages(c)
		return
	}
	m.when(c.Client == "" && (c.Scope != "" || c.Audience != "" || len(c.Origins) > 0),
		"console_scope, console_audience or console_origins is named without console_client, whose settings they are")
	m.when(c.Client != "" && !claimIs.MatchString(c.Client),
		"console_client is %q: 1 to 128 of letters, digits and _:/.-", c.Client)
	for _, origin := range c.Origins {
		m.when(!isURL(origin, emulated) || strings.ContainsAny(origin, " ;"),
			"console_origins has %q: https URLs, with commas between them", origin)
	}
}

// pages checks what the client that ByCognito makes may ask for. A tenant's scope would be everybody's: Cognito lets
// every user of the pool sign in at every client.
func (m *violations) pages(c Console) {
	m.when(c.Client != "" || c.Audience != "" || len(c.Origins) > 0, "console_client, console_audience or "+
		"console_origins is named: with auth=cognito the user pool makes the page's client")
	allowed := PoolScopes()
	for _, s := range c.Scopes() {
		m.when(!slices.Contains(allowed, s), "console_scope has %q: with auth=cognito, any of %s", s,
			strings.Join(allowed, ","))
	}
}

// isURL reports whether s is an https URL, or an http one where an emulator is.
func isURL(s string, emulated bool) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || emulated && u.Scheme == "http")
}

func (m *violations) issuer(t Tokens, emulated bool) {
	scheme := "https"
	if emulated {
		scheme = "http or https"
	}
	if t.Issuer == "" {
		m.add("no issuer is named: add -c issuer=URL, the iss of the tokens that callers of the API will bring (your " +
			"identity provider's URL); without a provider, -c auth=cognito -c tenants=NAME makes one")
	} else {
		m.when(!isURL(t.Issuer, emulated), "issuer is %q: an %s URL is allowed", t.Issuer, scheme)
		m.when(!isURL(t.JWKS, emulated), "jwks is %q: an %s URL is allowed", t.JWKS, scheme)
	}
	m.when(slices.Contains(strings.Split(t.Audience, ","), ""),
		"no audience is named: add -c audience=NAME, the aud of the tokens that are meant for this API")
}

func (m *violations) pool(t Tokens) {
	m.when(t.Issuer != "" || t.Audience != "",
		"an issuer or an audience is named: with auth=cognito they are those of the user pool that it makes")
	m.when(len(t.Tenants) == 0 || len(t.Tenants) > mostTenants,
		"tenants are %d: add -c tenants=NAME, 1 to %d with commas between them; each gets a client of the user pool",
		len(t.Tenants), mostTenants)
	for i, name := range t.Tenants {
		m.when(!tenantIs.MatchString(name) || slices.Contains(t.Tenants[:i], name),
			"tenants has %q: 1 to 64 of letters, digits and _.-, each once, not beginning with a dot", name)
	}
}

func (m *violations) fleet(f Fleet) {
	near := func(minor int) string { return fmt.Sprintf("1.%d", minor) }
	m.when(!slices.Contains([]string{near(kubectlMinor - 1), near(kubectlMinor), near(kubectlMinor + 1)}, f.Kubernetes),
		"Kubernetes version is %q: %s to %s are allowed, for infra/package.json pins kubectl %s", f.Kubernetes,
		near(kubectlMinor-1), near(kubectlMinor+1), near(kubectlMinor))
	m.when(f.Zones < 2 || f.Zones > 3, "zones are %d: 2 or 3", f.Zones)
	m.when(f.NATs < 1 || f.NATs > f.Zones, "NAT gateways are %d: 1 to the number of zones, %d", f.NATs, f.Zones)
	block, err := netip.ParsePrefix(f.CIDR)
	m.when(err != nil || !block.Addr().IsPrivate() || block.Bits() < 16 || block.Bits() > 20,
		"the VPC's range is %q: a private /16 to /20, such as 10.42.0.0/16", f.CIDR)
	m.when(f.Operators != "" && !roleIs.MatchString(f.Operators),
		"operators is %q: the ARN of a role, such as arn:aws:iam::123456789012:role/oncall", f.Operators)
	for _, cidr := range f.Reach {
		from, err := netip.ParsePrefix(cidr)
		m.when(err != nil || !from.Addr().Is4() || from.Bits() == 0,
			"reach has %q: IPv4 CIDRs separated by commas, such as 203.0.113.0/24, and not everybody's", cidr)
	}
	for _, p := range f.Pools() {
		m.when(p.Least < 0, "pool %s has at least %d pods: 0 or more", p.Name, p.Least)
		m.when(p.Most < max(1, p.Least), "pool %s has at most %d pods: at least 1, and not under its least, %d", p.Name,
			p.Most, p.Least)
		m.when(p.Slots < 1 || p.Slots > 1000, "pool %s has %d slots: 1 to 1000", p.Name, p.Slots)
		m.when(p.Milli < 100 || p.MiB < 128,
			"a pod of pool %s has %d thousandths of a core and %d MiB: at least 100 and 128", p.Name, p.Milli, p.MiB)
		m.when(p.Drain < 10*time.Second || p.Drain > contract.MaxTimeoutLong, "pool %s drains for %s: 10s to %s",
			p.Name, p.Drain, contract.MaxTimeoutLong)
	}
}

// lanes checks what the lanes promise each other: a timer is set lead before its job is due,
// and may not be nearer than guard, or AWS could refuse a time that has just passed.
func (m *violations) lanes(lead, guard, direct time.Duration) {
	m.when(lead < time.Minute, "the timers' lead is %s: at least 1m0s, for a timer fires anywhere within its minute",
		lead)
	m.when(guard < time.Minute, "the timers' guard is %s: at least 1m0s", guard)
	m.when(guard > lead, "the timers' guard is %s: at most their lead, %s, or a timer could not be set in time", guard,
		lead)
	m.when(lead+guard > direct, "the timers' lead and guard are %s together: at most the direct lane, %s, or some "+
		"due times would belong to neither lane", lead+guard, direct)
}
