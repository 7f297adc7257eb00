package wire

import (
	"context"

	"punctual/shared/tenant"
)

type identityKey struct{}

// WithIdentity says who asks. Whoever serves the handler has verified it: the lambda door takes
// it from the authorizer's answer, the laptop server from nowhere, since there is one tenant.
func WithIdentity(ctx context.Context, id tenant.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// admit returns who asks, if they may.
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
