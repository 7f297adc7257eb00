package target

import (
	"cmp"
	"strings"
	"time"

	"punctual/shared/contract"
)

// Arch is the processor that functions and workers are built for: a GOARCH.
type Arch string

// The architectures. ARM is cheaper per unit of work in Lambda and EC2 alike.
const (
	ARM Arch = "arm64"
	X86 Arch = "amd64"
)

// Settings are everything that differs between deployments. The zero value is refused; start
// from a named target.
type Settings struct {
	Target  string // dev, prod or emulator
	Prefix  string // of every table, queue and function, and the name of the timer group
	Region  string
	Account string // 12 digits; "" is that of the credentials at deploy time

	Arch     Arch
	Emulated bool // leaves out what no emulator can run; and nothing else

	Shards      int      // of the due index; the number may only grow, and the table keeps the largest
	Tables      Tables   // how tables are billed and how much they take at once
	Quota       int      // runs a minute of all schedules of one tenant, each at its busiest and at least once
	UsageTags   []string // names of the tags by which it is counted what jobs used; none by default
	Search      bool     // keeps an index of jobs, by which they are found by any filter
	HTTPAllow   []string // CIDRs that http jobs may reach although private; none by default
	Concurrency int      // invocations of functions at once that the account allows; 0: enough
	Hold        bool     // nothing is promoted, swept, fired, settled or run; the API answers
	// ARN of the stream of a restored jobs table that replaces the deployed one; "" if there is none
	JobsStream string
	// ZoneLayer is the ARN of a version of a layer whose zoneinfo.zip holds newer time zone rules; "": those built in
	ZoneLayer string
	// BackupAccount is the account that takes a copy of tables and payloads each day; "": there are none besides the
	// recovery of 35 days in the deployment's own account
	BackupAccount string
	Keep          bool    // data outlives its stack: retain and deletion protection
	Logs          Days    // how long log lines are kept
	Audit         Days    // how long it is kept who changed what, in the table and in the log group
	Tokens        Tokens  // who may call the API
	API           API     // how much of it
	Flow          Flow    // how much the functions may do at once
	Fleet         Fleet   // who does the work
	Alarms        Alarms  // who is notified
	Origin        Sources // where the built files are
}

// Warnings lists settings that are optional, but whose absence the owner may not want.
func (s Settings) Warnings() []string {
	var all []string
	if s.Alarms.Mail == "" && !s.Emulated {
		all = append(
			all,
			"mail is not set: no alarm notifies anyone until the topics "+s.Prefix+"-oncall (paging) and "+
				s.Prefix+"-mail are subscribed to; -c mail=team@example.com -c page=pager@example.com does it",
		)
	}
	if s.Fleet.Operators == "" && s.Keep {
		all = append(
			all,
			"operators is not set: nobody can use kubectl on the cluster, as pages of the runbook ask for; "+
				"-c operators=ARN of a role, and -c reach=CIDRS from outside its network, do it",
		)
	}
	return all
}

// HeartbeatPools are the pools that run heartbeats: those that always have a worker. A heartbeat in a pool that may
// have none would keep one running.
func (s Settings) HeartbeatPools() (names []string) {
	for _, p := range s.Fleet.Pools() {
		if p.Least > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// Days is a length of time in days, one of those that CloudWatch Logs knows.
type Days int

// Tables says how tables are paid for.
type Tables struct {
	// Provisioned capacity costs about a third of on-demand at steady load, and throttles above
	// its most. The zero value is on demand.
	Provisioned Capacity
	// Warm units per second are there from the first moment on; without them a new table takes
	// 4,000 writes and 12,000 reads. They can never be lowered, and raising them is charged.
	// 0 leaves AWS's default.
	WarmWrites, WarmReads int
}

// Capacity is a range of provisioned units per second, for reads and writes each, of every table
// and index. The zero value is none.
type Capacity struct{ Least, Most int }

// Auth is how callers of the API show who they are.
type Auth string

// The ways. ByToken believes the tokens of an identity provider that is there already; ByCognito
// makes a user pool, with a client for each tenant, and believes its tokens. ByIAM takes requests that
// are signed by roles and users of the account, whose tags name the tenant.
const (
	ByToken   Auth = "token"
	ByCognito Auth = "cognito"
	ByIAM     Auth = contract.AuthIAM
)

// What the user pool of ByCognito calls its scopes: PoolServer, a slash, and read, write, admin or a tenant after
// PoolTenant. People's groups that name their tenant are called as the tenant's scope is.
const (
	PoolServer = "punctual"
	PoolTenant = "tenant."
)

// Tokens says whose tokens are believed: JWTs signed by a key of the issuer, for the audience.
// infra/auth.md has what fits Cognito and Auth0.
type Tokens struct {
	Auth    Auth
	Tenants []string // for each of whom ByCognito makes a client and a group; of no other tenant

	Issuer        string // the tokens' iss: an https URL
	Audience      string // what the audience claim must be or contain: one of these, separated by commas
	JWKS          string // where the issuer's keys are; default Issuer + /.well-known/jwks.json
	AudienceClaim string // the claim that says whom a token is for
	TenantClaim   string // the claim that names the tenant
	TenantScope   string // what precedes the tenant in the scope that names it; "" takes TenantClaim
	GroupClaim    string // the claim that lists a person's groups, of which one may begin with TenantScope; "" for none
	ScopeClaim    string // the claim that lists the scopes
	ScopePrefix   string // what precedes read, write and admin in the scopes

	Console Console // how people sign in to the console page
}

// Console is what the console page needs to get tokens of Tokens' issuer for people. Without a client
// the page is served and no one can sign in. ByCognito makes the client: there only Scope may be said.
type Console struct {
	Client   string // the id of a client at the issuer: public, by authorization code with PKCE
	Scope    string // asked for, with commas between scopes; "" is openid and all three of the API
	Audience string // asked for where the issuer wants the audience, such as Auth0; "" asks for none
	// Origins are those of the issuer's endpoints that are not at its own, such as the domain of a Cognito
	// user pool: https://NAME.auth.REGION.amazoncognito.com.
	Origins []string
}

// Scopes are those to ask for; none means the default.
func (c Console) Scopes() []string {
	if c.Scope == "" {
		return nil
	}
	return strings.Split(c.Scope, ",")
}

// PoolScopes are those that people may ask the user pool of ByCognito for.
func PoolScopes() []string {
	return []string{"openid", PoolServer + "/read", PoolServer + "/write", PoolServer + "/admin"}
}

// API bounds what the gateway lets in. Both are for all tenants together.
type API struct {
	Rate  int // requests per second
	Burst int // requests at once
	// TenantRate and TenantBurst are the same of each tenant, by the product itself; less than all
	// may make together, or one tenant could take what all share.
	TenantRate, TenantBurst int
	// WAF puts a web ACL before it: $7 a month, and $0.60 a million requests.
	WAF bool
	// ManageLogRole lets this deployment set the role with which API Gateway writes logs. There
	// is one per account and region: only one deployment should.
	ManageLogRole bool
}

// Flow reserves concurrency, so that neither reads nor writes nor settlement starve the rest.
// 0 reserves none and takes what the account has left.
type Flow struct {
	Reads, Writes, Authorizer int // invocations at once that are kept for it, and its most
	Searches                  int // the same of lists and searches of jobs, where there is the index of jobs
	Settle                    int // the most invocations at once of each queue's consumer, 2 to 1,000
	Stream                    int // invocations at once for each shard of the jobs table's stream, 1 to 10
}

// LeastUnreserved is how many invocations at once Lambda keeps for functions that reserve none.
const LeastUnreserved = 100

// Reserved is how many invocations at once are kept for functions in all.
func (f Flow) Reserved() int { return f.Reads + f.Writes + f.Authorizer + f.Searches }

// Waiting is how many requests of one tenant may wait for the end of a job or run at once, each in an invocation that
// is kept for reads: a tenth of those, so that one tenant leaves the others room. Without a reserve there are a few.
func (f Flow) Waiting() int {
	if f.Reads == 0 {
		return waitingWithoutReserve
	}
	return max(1, f.Reads/10)
}

// waitingWithoutReserve is Waiting in an account that keeps no invocations for reads: a new one allows 10 in all.
const waitingWithoutReserve = 3

// Within is f in an account that allows so many invocations at once; 0 is enough. Reservations that
// do not fit shrink in proportion, and none is made where nothing can be reserved: a new account
// allows 10. The queues' consumers get no more than a fifth each.
func (f Flow) Within(limit int) Flow {
	if limit <= 0 {
		return f
	}
	if free, want := max(0, limit-LeastUnreserved), f.Reserved(); want > free {
		for _, n := range []*int{&f.Reads, &f.Writes, &f.Authorizer, &f.Searches} {
			*n = *n * free / want
		}
	}
	f.Settle = max(2, min(f.Settle, limit/5))
	f.Stream = max(1, min(f.Stream, limit/40))
	return f
}

// Fleet is the workers' cluster.
type Fleet struct {
	Kubernetes string // version, such as "1.36"; one in standard support, for extended costs six times as much
	NATs       int    // gateways to the internet: 1 is cheap, one per zone survives a zone
	Zones      int
	// In names the zones, such as us-east-1a; none takes the first of the region that have EKS.
	In []string
	// Machines are the categories of EC2 instances, cheapest first for their owner: t is burstable.
	Machines []string
	Short    Pool   // jobs under a minute or so
	Long     Pool   // the others
	CIDR     string // of the VPC
	// ScalerSeconds is how often the scaler asks queues and metrics how many workers are wanted; each question is
	// billed.
	ScalerSeconds int

	// Operators is the ARN of a role whose holders may look at everything in the cluster and change
	// what is the workers', with kubectl as the runbook says; "" lets no one.
	Operators string
	// Reach are CIDRs from which the cluster's API is reached over the internet; none leaves it to
	// what is in the VPC.
	Reach []string
}

// Pool is one Deployment of workers.
type Pool struct {
	Least, Most int // pods
	Slots       int // attempts that a pod runs at once
	Milli       int // CPU of a pod, in thousandths of a core
	MiB         int // memory of a pod
	// Drain is how long a pod may take to finish its jobs after it was asked to stop.
	Drain time.Duration
}

// Alarms says who is notified.
type Alarms struct {
	Mail string // address for alarms that can wait for the morning; "" leaves the topic to be subscribed to later
	Page string // address for alarms that wake the person on call; "" takes Mail
}

// PageAddress is the address that paging alarms go to; "" if there is none.
func (a Alarms) PageAddress() string { return cmp.Or(a.Page, a.Mail) }

// Sources are the folders that the assets are taken from, absolute or relative to the
// repository's root.
type Sources struct {
	Functions string // holds <function>/bootstrap
	Worker    string // holds the worker's Dockerfile and binary
	Kubectl   string // the zip of the kubectl layer
}
