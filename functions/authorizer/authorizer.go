package authorizer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/process"
	"punctual/shared/tenant"
)

// ErrUnauthorized is every refusal. API Gateway answers 401 to exactly this text and 500 to
// any other.
var ErrUnauthorized = errors.New("Unauthorized")

// Deps is what an authorizer is made with.
type Deps struct {
	process.Base
	JWKSURL string // where the issuer's keys are; should be https, or anybody on the way makes the keys
	Issuer  string // what iss must be; empty refuses every token
	// Audiences are the values of which the audience claim must have one; none refuses every token.
	Audiences []string
	// AudienceClaim names the claim that says for whom a token is: a text, or a list of texts.
	// Default "aud". Cognito's access tokens have no aud; there it is "client_id".
	AudienceClaim string

	// TenantClaim names the claim that holds the tenant: a name, or a path with dots
	// ("app.tenant") where no claim has the whole name. Default "tenant".
	TenantClaim string
	// TenantScope, unless empty, takes the tenant from a scope instead of from TenantClaim: it is
	// what follows this prefix in the one scope that begins with it. It is for issuers that add no
	// claims of their own to a machine's token, as Cognito does not.
	TenantScope string
	// GroupClaim names the claim that lists the groups of a person, where the issuer has such. With TenantScope,
	// a group that begins with it names the tenant as well as a scope does. Default none. Cognito's is
	// "cognito:groups"; only who administers the user pool puts people into groups.
	GroupClaim string
	// ScopeClaim names the claim that holds the scopes, as TenantClaim does; its value is a
	// text with spaces in it, or a list. Default "scope".
	ScopeClaim string
	// ScopePrefix is what the issuer writes before read, write and admin. Default "punctual:".
	// Cognito writes the name of the resource server and a slash.
	ScopePrefix string
	// WithoutScopes is what a token may that has no scope claim at all. Nil: nothing.
	WithoutScopes []tenant.Scope

	HTTP *http.Client // fetches the keys; nil: a client of its own
}

// Authorizer verifies tokens. It is used by many goroutines at once.
type Authorizer struct {
	deps Deps
	keys *keyring
}

// New returns an authorizer. It fetches no keys before the first token needs one.
func New(d Deps) *Authorizer {
	d.AudienceClaim = cmp.Or(d.AudienceClaim, "aud")
	d.TenantClaim = cmp.Or(d.TenantClaim, "tenant")
	d.ScopeClaim = cmp.Or(d.ScopeClaim, "scope")
	d.ScopePrefix = cmp.Or(d.ScopePrefix, scopeSpace)
	d.Base = d.WithDefaults()
	if d.HTTP == nil {
		d.HTTP = &http.Client{Timeout: fetchWithin}
	}
	return &Authorizer{deps: d, keys: newKeyring(d)}
}

// Verify returns who the bearer of the token is, or ErrUnauthorized.
func (a *Authorizer) Verify(ctx context.Context, bearer string) (tenant.Identity, error) {
	id, refused := a.identify(ctx, bearer)
	if refused != "" {
		level := slog.LevelInfo
		if refused == noKeys {
			level = slog.LevelError
		}
		a.deps.Log.Log(ctx, level, "refused a token", "cause", string(refused))
		return tenant.Identity{}, ErrUnauthorized
	}
	return id, nil
}

// Handle answers API Gateway: a policy that allows every route of the stage, with who asks in
// its context (tenant, subject, and scopes with a space between them).
func (a *Authorizer) Handle(
	ctx context.Context, ev events.APIGatewayCustomAuthorizerRequestTypeRequest,
) (events.APIGatewayCustomAuthorizerResponse, error) {
	bearer, ok := bearerOf(ev)
	if !ok {
		a.deps.Log.InfoContext(ctx, "refused a token", "cause", "there is not exactly one bearer token")
		return events.APIGatewayCustomAuthorizerResponse{}, ErrUnauthorized
	}
	stage, ok := stageOf(ev.MethodArn)
	if !ok {
		a.deps.Log.ErrorContext(ctx, "refused a token", "cause", "the event names no API")
		return events.APIGatewayCustomAuthorizerResponse{}, ErrUnauthorized
	}
	id, err := a.Verify(ctx, bearer)
	if err != nil {
		return events.APIGatewayCustomAuthorizerResponse{}, err
	}
	scopes := make([]string, len(id.Scopes))
	for i, s := range id.Scopes {
		scopes[i] = string(s)
	}
	principal := id.Subject
	if principal == "" {
		principal = string(id.Tenant)
	}
	return events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: principal,
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{
			Version: "2012-10-17",
			Statement: []events.IAMPolicyStatement{{
				Action: []string{"execute-api:Invoke"}, Effect: "Allow", Resource: []string{stage + "/*/*"},
			}},
		},
		Context: map[string]any{"tenant": string(id.Tenant), "subject": id.Subject,
			"scopes": strings.Join(scopes, " ")},
	}, nil
}

// bearerOf takes the token out of the only Authorization header. Names of headers come in any
// case; of two headers API Gateway and we might each believe another one.
func bearerOf(ev events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, bool) {
	var values []string
	for name, list := range ev.MultiValueHeaders {
		if strings.EqualFold(name, "Authorization") {
			values = append(values, list...)
		}
	}
	for name, value := range ev.Headers {
		if strings.EqualFold(name, "Authorization") && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// stageOf cuts the ARN of a method, arn:aws:execute-api:region:account:api/stage/GET/path, to
// that of its stage.
func stageOf(method string) (string, bool) {
	parts := strings.SplitN(method, "/", 3)
	if len(parts) != 3 || parts[1] == "" || strings.Count(parts[0], ":") != 5 ||
		!strings.Contains(parts[0], ":execute-api:") || strings.Contains(parts[0]+parts[1], "*") {
		return "", false
	}
	return parts[0] + "/" + parts[1], true
}
