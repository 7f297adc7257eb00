package wire

import (
	"context"

	"punctual/shared/tenant"
)

type identityKey struct{}

// WithIdentity returns a context with a verified identity. The lambda door takes it from the authorizer's answer; the
// laptop server has one fixed tenant.
func WithIdentity(ctx context.Context, id tenant.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// admit returns the identity if it has the scope.
func admit(ctx context.Context, need tenant.Scope) (tenant.Identity, error) {
	id, _ := ctx.Value(identityKey{}).(tenant.Identity)
	if _, err := tenant.Parse(string(id.Tenant)); err != nil {
		return id, NewProblem(CodeUnauthenticated,
			"the request names nobody; send a bearer token").with("WWW-Authenticate", "Bearer")
	}
	if need != "" && !id.May(need) {
		return id, NewProblem(CodeForbidden, "this needs the scope %s, which the token does not have", need)
	}
	return id, nil
}
