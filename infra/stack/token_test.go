package stack

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tokens is the environment of a deployment's authorizer, without PUNCTUAL_.
func (d *synthesized) tokens() map[string]string {
	env := map[string]string{}
	d.each("AWS::Lambda::Function", func(_ template, _ string, r object) {
		if text(at(r, "Properties.FunctionName")) != d.settings.Prefix+"-"+Authorizer {
			return
		}
		vars, _ := at(r, "Properties.Environment.Variables").(object)
		for name, v := range vars {
			env[strings.TrimPrefix(name, "PUNCTUAL_")] = plain(v)
		}
	})
	return env
}

func TestAuthorizer_GetsTheSettingsOfTokens(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"PREFIX": "punctual", "ISSUER": "https://id.example.com", "AUDIENCE": "punctual", "AUDIENCE_CLAIM": "aud",
		"JWKS_URL": "https://id.example.com/.well-known/jwks.json", "TENANT_CLAIM": "tenant", "SCOPE_CLAIM": "scope",
		"SCOPE_PREFIX": "punctual:",
	}
	if got := prod().tokens(); compact(got) != compact(want) {
		t.Errorf("its environment is %s; want %s", compact(got), compact(want))
	}
}

func TestUserPool_GivesEachTenantTokensForItselfOnly(t *testing.T) {
	t.Parallel()
	d := ownTokens()
	clients := map[string]string{}
	d.each("AWS::Cognito::UserPoolClient", func(s template, id string, r object) {
		p := r["Properties"]
		if s.name == "flow" { // people's
			return
		}
		var scopes []string
		for _, scope := range list(at(p, "AllowedOAuthScopes")) {
			said := plain(scope)
			scopes = append(scopes, said[strings.LastIndexByte(said, '/')+1:])
		}
		slices.Sort(scopes)
		clients[text(at(p, "ClientName"))] = strings.Join(scopes, " ")
		if s.name != "data" || at(p, "GenerateSecret") != true ||
			compact(at(p, "AllowedOAuthFlows")) != `["client_credentials"]` {
			t.Errorf("%s in %s is %s", id, s.name, compact(p))
		}
	})
	want := map[string]string{"acme": "admin read tenant.acme write", "globex": "admin read tenant.globex write"}
	if compact(clients) != compact(want) {
		t.Errorf("clients may %s; want %s", compact(clients), compact(want))
	}
	d.each("AWS::Cognito::UserPool", func(_ template, id string, r object) {
		if at(r, "Properties.AdminCreateUserConfig.AllowAdminCreateUserOnly") != true {
			t.Errorf("anybody can sign up to %s", id)
		}
	})
	groups := map[string]bool{}
	d.each("AWS::Cognito::UserPoolGroup", func(_ template, _ string, r object) {
		groups[text(at(r, "Properties.GroupName"))] = true
	})
	if compact(groups) != `{"punctual/tenant.acme":true,"punctual/tenant.globex":true}` {
		t.Errorf("people are in the groups %s", compact(groups))
	}
	got := d.tokens()
	if got["GROUP_CLAIM"] != "cognito:groups" {
		t.Errorf("people's groups are the claim %q", got["GROUP_CLAIM"])
	}
	if got["AUDIENCE_CLAIM"] != "client_id" || got["TENANT_SCOPE"] != "punctual/tenant." ||
		got["SCOPE_PREFIX"] != "punctual/" {
		t.Errorf("the authorizer's environment is %s", compact(got))
	}
	if !strings.HasPrefix(got["ISSUER"], "https://cognito-idp.us-east-1.amazonaws.com/") ||
		got["JWKS_URL"] != got["ISSUER"]+"/.well-known/jwks.json" || strings.Count(got["AUDIENCE"], ",") < 1 {
		t.Errorf("the authorizer believes %s", compact(got))
	}
	for _, out := range []string{"UserPool", "TokenUrl"} {
		if at(d.template("data").outputs, out) == nil {
			t.Errorf("%s is no output", out)
		}
	}
}

func TestUserPool_ExistsOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	prod().each("AWS::Cognito::UserPool", func(_ template, id string, _ object) { t.Errorf("there is %s", id) })
}

func TestSignatures_AreVerifiedByTheGateway(t *testing.T) {
	t.Parallel()
	d := signed()
	guarded := 0
	d.each("AWS::ApiGateway::Method", func(_ template, id string, r object) {
		switch kind := at(r, "Properties.AuthorizationType"); kind {
		case "AWS_IAM":
			guarded++
		case "NONE":
		default:
			t.Errorf("%s is guarded by %v", id, kind)
		}
	})
	if guarded != 3 {
		t.Errorf("%d methods want a signature", guarded)
	}
	d.each("", func(_ template, id string, r object) {
		if strings.HasPrefix(strings.ToLower(id), Authorizer) || r["Type"] == "AWS::ApiGateway::Authorizer" {
			t.Errorf("there is %s %s", r["Type"], id)
		}
	})
	for _, name := range []string{APIRead, APIWrite} {
		if auth := at(d.function(t, name), "Environment.Variables.PUNCTUAL_AUTH"); auth != "iam" {
			t.Errorf("%s gets the authentication %v", name, auth)
		}
		may := mayDo(d, name)
		for _, want := range []string{"iam:ListRoleTags", "iam:ListUserTags"} {
			n := 0
			for m := range may {
				if strings.HasPrefix(m, want+" ") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s may %s of %d", name, want, n)
			}
		}
	}
	for _, st := range prod().statements() {
		for _, a := range st.actions {
			if strings.HasPrefix(a, "iam:List") {
				t.Errorf("%s may %s, where tokens say who calls", st.id, a)
			}
		}
	}
	answers := map[string]any{}
	d.each("AWS::ApiGateway::GatewayResponse", func(_ template, _ string, r object) {
		answers[text(at(r, "Properties.ResponseType"))] = at(r, "Properties.StatusCode")
	})
	for kind, want := range map[string]string{ // DEFAULT_4XX: keys of no caller, or a token
		"MISSING_AUTHENTICATION_TOKEN": "401", "INVALID_SIGNATURE": "401", "EXPIRED_TOKEN": "401", "DEFAULT_4XX": "401",
		"ACCESS_DENIED": "403", "BAD_REQUEST_BODY": "400", "BAD_REQUEST_PARAMETERS": "400",
	} {
		if answers[kind] != want {
			t.Errorf("%s is answered with %v, want %s", kind, answers[kind], want)
		}
	}
}

//proof:of 195
func TestConsole_HasAClientOfTheUserPool(t *testing.T) {
	t.Parallel()
	d, n := ownTokens(), 0
	api := ""
	d.each("AWS::ApiGateway::RestApi", func(_ template, id string, _ object) { api = id })
	page := "https://" + api + ".execute-api.us-east-1.amazonaws.com/v1/console"
	d.each("AWS::Cognito::UserPoolClient", func(s template, id string, r object) {
		if s.name != "flow" {
			return
		}
		n++
		p, _ := r["Properties"].(object)
		for property, want := range map[string]string{
			"GenerateSecret":                  `false`,
			"AllowedOAuthFlows":               `["code"]`,
			"AllowedOAuthFlowsUserPoolClient": `true`,
			"AllowedOAuthScopes":              `["openid","punctual/read","punctual/write","punctual/admin"]`,
			"ExplicitAuthFlows":               `["ALLOW_REFRESH_TOKEN_AUTH"]`,
			"SupportedIdentityProviders":      `["COGNITO"]`,
			"AccessTokenValidity":             `15`,
			"IdTokenValidity":                 `15`,
			"RefreshTokenValidity":            `720`,
			"TokenValidityUnits":              `{"AccessToken":"minutes","IdToken":"minutes","RefreshToken":"minutes"}`,
			"EnableTokenRevocation":           `true`,
			"PreventUserExistenceErrors":      `"ENABLED"`,
		} {
			if got := compact(p[property]); got != want {
				t.Errorf("%s of %s is %s; want %s", property, id, got, want)
			}
		}
		for _, property := range []string{"CallbackURLs", "LogoutURLs"} {
			var urls []string
			for _, u := range list(p[property]) {
				urls = append(urls, plain(u))
			}
			if want := []string{page + "/index.html", page + "/"}; !slices.Equal(urls, want) {
				t.Errorf("%s of %s are %v; want %v", property, id, urls, want)
			}
		}
	})
	if n != 1 {
		t.Errorf("the page has %d clients", n)
	}
	outputs := d.template("flow").outputs
	if got := plain(at(outputs, "ConsoleUrl.Value")); got != page {
		t.Errorf("the page is said to be at %q; want %q", got, page)
	}
	if at(outputs, "ConsoleClient.Value.Ref") == nil {
		t.Errorf("the client's id is no output: %s", compact(outputs))
	}
	for _, other := range []*synthesized{prod(), signed()} {
		for _, out := range []string{"ConsoleUrl", "ConsoleClient"} {
			if at(other.template("flow").outputs, out) != nil {
				t.Errorf("%s is an output of %s, which has no user pool", out, other.out)
			}
		}
	}
}

func TestConsole_LearnsHowPeopleSignIn(t *testing.T) {
	t.Parallel()
	consoleVars := func(d *synthesized) string {
		var all []string
		vars, _ := at(d.function(t, APIRead), "Environment.Variables").(object)
		for key, v := range vars {
			if strings.HasPrefix(key, "PUNCTUAL_CONSOLE_") || key == "PUNCTUAL_ISSUER" {
				all = append(all, strings.TrimPrefix(key, "PUNCTUAL_")+"="+plain(v))
			}
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	}
	own, client := ownTokens(), ""
	own.each("AWS::Cognito::UserPoolClient", func(s template, id string, _ object) {
		if s.name == "flow" {
			client = id
		}
	})
	issuer := own.tokens()["ISSUER"]
	want := regexp.MustCompile("^CONSOLE_CLIENT=" + client + "; " +
		`CONSOLE_ORIGINS=https://[^; /]*RefTokensDomain[^; /]*\.auth\.us-east-1\.amazoncognito\.com; ` +
		"CONSOLE_SCOPE=openid punctual/read punctual/write punctual/admin; ISSUER=" + regexp.QuoteMeta(issuer) + "$")
	if got := consoleVars(own); !want.MatchString(got) {
		t.Errorf("beside a user pool of our own the page is told %s; want %s", got, want)
	}
	if !strings.HasSuffix(own.tokens()["AUDIENCE"], ","+client) {
		t.Errorf("the authorizer believes tokens for %s, and not those of the page", own.tokens()["AUDIENCE"])
	}
	if got := consoleVars(prod()); got != "ISSUER=https://id.example.com" {
		t.Errorf("without a client the page is told %s", got)
	}
	const given = "CONSOLE_CLIENT=people; CONSOLE_ORIGINS=https://in.example.com; " +
		"CONSOLE_SCOPE=openid punctual:read; ISSUER=https://id.example.com"
	if got := consoleVars(held()); got != given {
		t.Errorf("with a client of another issuer the page is told %s; want %s", got, given)
	}
	if got := consoleVars(signed()); got != "" {
		t.Errorf("where requests are signed the page is told %s", got)
	}
}
