package rest

import (
	"context"

	"punctual/shared/contract"
	"punctual/shared/tenant"
)

type identityKey struct{}

// WithIdentity returns a context with a verified identity. The lambda door takes it from the authorizer's answer; the
// laptop server has one fixed tenant.
func WithIdentity(ctx context.Context, id tenant.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// signer says that a request is signed, and why the signer is of no tenant; "" if it is of one.
type signer struct{ reason string }

type signerKey struct{}

// WithSigner returns a context of a signed request, whose refusals speak of signatures and tags rather than of tokens.
// anonymous says why the signer is of no tenant; "" if it is of one.
func WithSigner(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, signerKey{}, signer{reason})
}

// admit returns the identity if it has the scope.
func admit(ctx context.Context, need tenant.Scope) (tenant.Identity, error) {
	id, _ := ctx.Value(identityKey{}).(tenant.Identity)
	by, signed := ctx.Value(signerKey{}).(signer)
	reason, scheme, holds := "the request names nobody; send a bearer token", "Bearer", "the token does not have"
	if signed {
		reason, scheme, holds = by.reason, "AWS4-HMAC-SHA256", "the signer's tag "+contract.ScopesTag+" does not name"
	}
	if _, err := tenant.ParseCaller(string(id.Tenant)); err != nil {
		return id, NewProblem(CodeUnauthenticated, "%s", reason).with("WWW-Authenticate", scheme)
	}
	if need != AnyScope && !id.May(need) {
		return id, NewProblem(CodeForbidden, "this needs the scope %s, which %s", need, holds)
	}
	return id, nil
}
