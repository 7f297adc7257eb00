package authorizer_test

import (
	"reflect"
	"testing"
	"time"

	"punctual/functions/authorizer"
	"punctual/shared/tenant"
)

// cognito are the settings for a user pool, as infra/auth.md has them.
func cognito(d *authorizer.Deps) {
	d.Audiences, d.AudienceClaim = []string{"7lmd53aq1dmo9iqmiacupjjnlm", "2q0v1a5ldc6nvj1m1pkt2b8ma3"}, "client_id"
	d.ScopePrefix, d.TenantScope, d.GroupClaim = "punctual/", "punctual/tenant.", "cognito:groups"
}

// machine are the claims of an access token that Cognito gives out for client credentials.
func machine() map[string]any {
	return map[string]any{
		"iss": issuer, "sub": "7lmd53aq1dmo9iqmiacupjjnlm", "client_id": "7lmd53aq1dmo9iqmiacupjjnlm",
		"token_use": "access", "scope": "punctual/tenant.acme punctual/read punctual/write", "version": 2,
		"jti":       "b1f1c0de-0000-4000-8000-000000000000",
		"auth_time": noon.Unix(), "iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
}

// person are the claims of an access token that Cognito gives to the console page.
func person(groups ...any) map[string]any {
	claims := but(but(machine(), "sub", "a1b2c3d4-0000-4000-8000-000000000000"), "scope", "openid punctual/read")
	return but(but(claims, "username", "ada@example.com"), "cognito:groups", groups)
}

func but(claims map[string]any, name string, value any) map[string]any {
	if claims[name] = value; value == nil {
		delete(claims, name)
	}
	return claims
}

func TestAuthorizer_TakesAccessTokensOfCognito(t *testing.T) {
	t.Parallel()
	b := setup(t, cognito)
	want := tenant.Identity{Tenant: "acme", Subject: "7lmd53aq1dmo9iqmiacupjjnlm",
		Scopes: []tenant.Scope{tenant.Read, tenant.Write}}
	if got := b.requireAccepted(t, rs(t, machine())); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	b.requireAccepted(t, rs(t, but(machine(), "client_id", "2q0v1a5ldc6nvj1m1pkt2b8ma3")))
	for _, c := range []struct {
		name    string
		claims  map[string]any
		because string
	}{
		{"of another client", but(machine(), "client_id", "1example23456789"), "another audience"},
		{"an ID token, which names its client in aud", but(but(machine(), "client_id", nil), "aud",
			"7lmd53aq1dmo9iqmiacupjjnlm"), "another audience"},
		{"without a tenant", but(machine(), "scope", "punctual/read"), "scope that names a tenant"},
		{"of two tenants", but(machine(), "scope", "punctual/tenant.acme punctual/tenant.globex"),
			"scope that names a tenant"},
		{"of a tenant that is none", but(machine(), "scope", "punctual/tenant.a#b"), "tenant"},
		{"without scopes", but(machine(), "scope", nil), "scope that names a tenant"},
		{"whose tenant is a claim that nobody asked for",
			but(but(machine(), "scope", "punctual/read"), "tenant", "acme"),
			"scope that names a tenant"},
	} {
		b.requireRefused(t, c.name, rs(t, c.claims), c.because)
	}
	id := b.requireAccepted(t, rs(t, but(machine(), "scope", "punctual/tenant.acme punctual:admin other/read read")))
	if id.Scopes != nil {
		t.Errorf("scopes of others allow %v", id.Scopes)
	}
}

//proof:of 195
func TestAuthorizer_TakesThePersonsTenantFromAGroup(t *testing.T) {
	t.Parallel()
	b := setup(t, cognito)
	want := tenant.Identity{Tenant: "acme", Subject: "a1b2c3d4-0000-4000-8000-000000000000",
		Scopes: []tenant.Scope{tenant.Read}}
	if got := b.requireAccepted(t, rs(t, person("oncall", "punctual/tenant.acme"))); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	both := but(person("punctual/tenant.acme"), "scope", "punctual/tenant.acme punctual/read")
	if got := b.requireAccepted(t, rs(t, both)); !reflect.DeepEqual(got, want) {
		t.Errorf("of a scope and a group that name the same tenant, got %+v; want %+v", got, want)
	}
	for _, c := range []struct {
		name    string
		claims  map[string]any
		because string
	}{
		{"in no group", but(person(), "cognito:groups", nil), "group or scope that names a tenant"},
		{"in no tenant's group", person("oncall", "tenant.acme", "acme"), "group or scope that names a tenant"},
		{"in two tenants' groups", person("punctual/tenant.acme", "punctual/tenant.globex"),
			"group or scope that names a tenant"},
		{"who asks for another tenant's scope",
			but(person("punctual/tenant.acme"), "scope", "punctual/tenant.globex punctual/read"),
			"group or scope that names a tenant"},
		{"in groups that are no texts", person(7), "group claim"},
	} {
		b.requireRefused(t, c.name, rs(t, c.claims), c.because)
	}
	id := b.requireAccepted(t, rs(t, person("punctual/tenant.acme", "punctual/admin")))
	if !reflect.DeepEqual(id.Scopes, want.Scopes) {
		t.Errorf("groups allow %v: only scopes do", id.Scopes)
	}
	without := setup(t, func(d *authorizer.Deps) { cognito(d); d.GroupClaim = "" })
	without.requireRefused(t, "whose groups nobody asked for", rs(t, person("punctual/tenant.acme")), "tenant")
}

func TestAuthorizer_TakesAccessTokensOfAuth0(t *testing.T) {
	t.Parallel()
	claims := func() map[string]any {
		return map[string]any{
			"iss": issuer, "sub": "wx1Yz@clients", "aud": []any{audience, "https://example.eu.auth0.com/userinfo"},
			"azp": "wx1Yz", "gty": "client-credentials", "scope": "punctual:read punctual:admin",
			"https://punctual.example/tenant": "acme",
			"iat":                             noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
		}
	}
	b := setup(t, func(d *authorizer.Deps) { d.TenantClaim = "https://punctual.example/tenant" })
	want := tenant.Identity{Tenant: "acme", Subject: "wx1Yz@clients", Scopes: []tenant.Scope{tenant.Read, tenant.Admin}}
	if got := b.requireAccepted(t, rs(t, claims())); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}

	b = setup(t, func(d *authorizer.Deps) { d.TenantClaim, d.ScopeClaim = "org_id", "permissions" })
	organized := but(but(claims(), "org_id", "org_9ybsU1dN2dKfDkBi"), "permissions", []any{"punctual:write"})
	want = tenant.Identity{Tenant: "org_9ybsU1dN2dKfDkBi", Subject: "wx1Yz@clients",
		Scopes: []tenant.Scope{tenant.Write}}
	if got := b.requireAccepted(t, rs(t, organized)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
}
