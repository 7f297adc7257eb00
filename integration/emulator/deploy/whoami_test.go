package deploy

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"punctual/integration/story"
	"punctual/shared/text"
)

// The tests of this file change who may call the API, so they come after all others.

// called deploys by a line that says who may call.
func (d *deployment) called(t *testing.T, by line) {
	t.Helper()
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Skip("an emulator that was started elsewhere may not look at signatures")
	}
	if _, err := d.deploy(t.Context(), by, d.functions()); err != nil {
		t.Fatal(err)
	}
}

// role makes a role with tags, allows it an action of the deployed API (such as v1/GET/*; none for ""), and returns
// keys of a session of it.
func (d *deployment) role(t *testing.T, name, may string, tags map[string]string) aws.Credentials {
	t.Helper()
	c, ctx := iam.NewFromConfig(d.aws.Config()), t.Context()
	in := &iam.CreateRoleInput{RoleName: aws.String(name), AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17",
		"Statement":[{"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":"sts:AssumeRole"}]}`)}
	for key, value := range tags {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	made, err := c.CreateRole(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if may != "" {
		id, _, _ := strings.Cut(d.host(t), ".")
		policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"execute-api:Invoke",
			"Resource":"arn:aws:execute-api:*:000000000000:%s/%s"}]}`, id, may)
		if _, err := c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: aws.String(name),
			PolicyName: aws.String("calls"), PolicyDocument: aws.String(policy)}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sts.NewFromConfig(d.aws.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: made.Role.Arn,
		RoleSessionName: aws.String("nightly")})
	if err != nil {
		t.Fatal(err)
	}
	return aws.Credentials{AccessKeyID: *s.Credentials.AccessKeyId, SecretAccessKey: *s.Credentials.SecretAccessKey,
		SessionToken: *s.Credentials.SessionToken}
}

// signing returns the deployed API with requests signed by keys.
func (d *deployment) signing(t *testing.T, keys aws.Credentials) *story.API {
	t.Helper()
	client, host := d.aws.Client(40*time.Second), d.host(t)
	return &story.API{T: t, Base: d.aws.URL, Send: func(r *http.Request) (*http.Response, error) {
		r.Host = host
		body := ""
		if r.GetBody != nil {
			copied, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(copied)
			if err != nil {
				return nil, err
			}
			body = string(text)
		}
		if err := signAs(t, keys, r, body, "execute-api"); err != nil {
			return nil, err
		}
		return client.Do(r)
	}}
}

func TestWhoami_IsOfTheRoleThatSigns(t *testing.T) {
	d := setup(t)
	d.called(t, withRoles)
	d.explain(t, "api-read", "api-write")
	d.work(t, "short")
	a := d.signing(t, d.role(t, "billing", "v1/*", map[string]string{"punctual:tenant": "acme",
		"punctual:scopes": "read write"}))
	me := a.Want(http.StatusOK, "GET", "/whoami", nil)
	if me["tenant"] != "acme" || !strings.HasSuffix(fmt.Sprint(me["subject"]), ":assumed-role/billing/nightly") ||
		fmt.Sprint(me["scopes"]) != "[punctual:read punctual:write]" {
		t.Errorf("whoami says %v", me)
	}
	a.Await(a.Post(story.Object{"task": "echo"}), "SUCCEEDED", 3*time.Minute)
	a.Want(http.StatusForbidden, "PUT", "/pauses/all", story.Object{"reason": "to see"}) // asks for admin

	reads := d.signing(t, d.role(t, "audit", "v1/GET/*", map[string]string{"punctual:tenant": "acme",
		"punctual:scopes": "read write"}))
	reads.Want(http.StatusOK, "GET", "/jobs", nil)
	if code, said := reads.Call("POST", "/jobs", story.Object{"task": "echo"}); code != http.StatusForbidden {
		t.Errorf("a role whose policy lets it read answers %d to a write: %v", code, said)
	}
	for _, c := range []struct {
		who    string
		api    *story.API
		status int
		detail string
	}{
		{"a role without a policy", d.signing(t, d.role(t, "stranger", "", map[string]string{"punctual:tenant": "acme",
			"punctual:scopes": "read"})), 403, ""}, // the emulator says so in words of its own
		{"a role without tags", d.signing(t, d.role(t, "untagged", "v1/*", nil)), 401, "tag punctual:tenant"},
		{"keys of nobody", d.signing(t, aws.Credentials{AccessKeyID: "AKIANOBODY0000000000", SecretAccessKey: "x"}),
			401, "Signature Version 4"},
		{"a token", d.bearing(t, d.issuer.token(t, "acme", everything...)), 401, "Signature Version 4"},
		{"no signature", d.bearing(t, ""), 401, "Signature Version 4"},
	} {
		code, said := c.api.Call("GET", "/jobs", nil)
		if code != c.status || !strings.Contains(fmt.Sprint(said["detail"]), c.detail) {
			t.Errorf("%s gets %d %v, want %d with %q", c.who, code, said, c.status, c.detail)
		}
	}
	d.bearing(t, "").Want(http.StatusOK, "GET", "/health", nil)
}

// pool is the user pool that auth=cognito made, asked as an operator and as a browser.
type pool struct {
	*deployment
	id string
}

func (p *pool) do(t *testing.T, operation string, query map[string]any, answer any) {
	t.Helper()
	query["UserPoolId"] = p.id
	operation = "AWSCognitoIdentityProviderService." + operation
	if err := p.ask(t, "cognito-idp", operation, string(text.MustJSON(query)), answer); err != nil {
		t.Fatal(err)
	}
}

// token asks the pool for an access token.
func (p *pool) token(t *testing.T, client, secret string, form url.Values) (token string, refused string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, p.aws.URL+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		r.SetBasicAuth(client, secret)
	}
	answer, err := p.aws.Client(10 * time.Second).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said struct {
		Token string `json:"access_token"`
		Error string
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	return said.Token, said.Error
}

// browser stays where it is sent from.
func (p *pool) browser() *http.Client {
	c := p.aws.Client(10 * time.Second)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)

// signIn signs a new user in at the pool's own page, who is asked for another password, and returns the access token
// that the console page then has.
func (p *pool) signIn(t *testing.T, client, page, scope, user, password string) string {
	t.Helper()
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // and its challenge, of RFC 7636
	browser := p.browser()
	answer, err := browser.Get(p.aws.URL + "/oauth2/authorize?" + url.Values{"response_type": {"code"},
		"client_id": {client}, "redirect_uri": {page}, "scope": {scope}, "state": {"s"},
		"code_challenge_method": {"S256"},
		"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}}.Encode())
	for _, fills := range []url.Values{{"username": {user}, "password": {password}},
		{"new_password": {password + "2"}, "confirm_password": {password + "2"}}} {
		if err != nil {
			t.Fatal(err)
		}
		form, bad := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if bad != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("the page answers %s: %s, %v", answer.Status, form, bad)
		}
		for _, field := range hidden.FindAllStringSubmatch(string(form), -1) {
			fills.Set(field[1], html.UnescapeString(field[2]))
		}
		answer, err = browser.PostForm(p.aws.URL+"/login", fills)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	to, err := answer.Location()
	if err != nil || !strings.HasPrefix(to.String(), page+"?") || to.Query().Get("state") != "s" {
		t.Fatalf("after signing in the browser is sent to %v, %v", to, err)
	}
	token, refused := p.token(t, client, "", url.Values{"grant_type": {"authorization_code"}, "client_id": {client},
		"code": {to.Query().Get("code")}, "redirect_uri": {page}, "code_verifier": {verifier}})
	if token == "" {
		t.Fatalf("no token for a code: %s", refused)
	}
	return token
}

func TestWhoami_IsOfTheUserPool(t *testing.T) {
	d := setup(t)
	p := &pool{deployment: d}
	// The pool's issuer is an address of AWS; the emulator has its keys.
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, err := d.aws.Client(10 * time.Second).Get(d.aws.URL + "/" + p.id + "/.well-known/jwks.json")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(w, answer.Body)
	}))
	defer keys.Close()
	d.words = append(d.words, "jwks="+keys.URL)
	said, err := d.typed(t.Context(), compares, d.functions())
	if err != nil || !strings.Contains(said, "AWS::Cognito::UserPool ") {
		t.Fatalf("the line that compares says nothing of a user pool, %v:\n%s", err, said)
	}
	d.called(t, withPool)
	p.id = d.outputs["UserPool"]
	d.explain(t, "authorizer", "api-read")

	var clients struct {
		UserPoolClients []struct{ ClientId, ClientName string }
	}
	p.do(t, "ListUserPoolClients", map[string]any{"MaxResults": 60}, &clients)
	of := map[string]string{}
	for _, c := range clients.UserPoolClients {
		of[c.ClientName] = c.ClientId
	}
	var acme struct {
		UserPoolClient struct{ ClientSecret string }
	}
	p.do(t, "DescribeUserPoolClient", map[string]any{"ClientId": of["acme"]}, &acme)
	ask := func(scopes string) (string, string) {
		return p.token(t, of["acme"], acme.UserPoolClient.ClientSecret,
			url.Values{"grant_type": {"client_credentials"}, "scope": {scopes}})
	}
	token, refused := ask("punctual/tenant.acme punctual/read")
	if token == "" {
		t.Fatalf("no token for a program: %s", refused)
	}
	if me := d.bearing(t, token).Want(http.StatusOK, "GET", "/whoami", nil); me["tenant"] != "acme" ||
		fmt.Sprint(me["scopes"]) != "[punctual:read]" {
		t.Errorf("a program is %v", me)
	}
	if token, _ := ask("punctual/tenant.globex punctual/read"); token != "" {
		t.Error("a client of acme gets a token of globex")
	}

	identity := d.api(t, "").Want(http.StatusOK, "GET", "/console/config.json", nil)
	scope, page := fmt.Sprint(identity["scope"]), d.outputs["ConsoleUrl"]+"/index.html"
	if identity["client"] != d.outputs["ConsoleClient"] ||
		!strings.HasSuffix(fmt.Sprint(identity["issuer"]), "/"+p.id) {
		t.Errorf("the page is told %v", identity)
	}
	for user, want := range map[string]string{"ada@example.com": "acme", "bob@example.com": ""} {
		const password = "Once-0nly!"
		p.do(t, "AdminCreateUser", map[string]any{"Username": user, "TemporaryPassword": password,
			"MessageAction": "SUPPRESS"}, &struct{}{})
		if want != "" {
			p.do(t, "AdminAddUserToGroup", map[string]any{"Username": user, "GroupName": "punctual/tenant." + want},
				&struct{}{})
		}
		token := p.signIn(t, d.outputs["ConsoleClient"], page, scope, user, password)
		code, me := d.bearing(t, token).Call("GET", "/whoami", nil)
		if want == "" && code != http.StatusUnauthorized || want != "" && me["tenant"] != want {
			t.Errorf("%s gets %d %v", user, code, me)
		}
	}
	answer, err := p.browser().Get(d.aws.URL + "/logout?" + url.Values{"client_id": {d.outputs["ConsoleClient"]},
		"logout_uri": {page}, "post_logout_redirect_uri": {page}}.Encode())
	if err != nil || answer.Header.Get("Location") != page {
		t.Errorf("a sign-out leads to %v, %v", answer, err)
	}
}
