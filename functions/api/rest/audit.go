package rest

import (
	"context"
	"strings"

	"punctual/shared/audit"
	"punctual/shared/tenant"
)

// intend returns the context of a request that leaves an entry in the audit once it has changed something.
func (s *Router) intend(ctx context.Context, r Route, who tenant.Identity) context.Context {
	req := requestOf(ctx)
	var parameters []string
	for _, element := range strings.Split(r.path, "/") {
		if strings.HasPrefix(element, "{") {
			parameters = append(parameters, req.http.PathValue(strings.Trim(element, "{}")))
		}
	}
	return audit.With(ctx, audit.NewIntent(audit.Entry{
		At: s.Now(), Tenant: who.Tenant, Actor: audit.Actor{Subject: who.Subject, Via: s.via(ctx)}, Action: r.Action,
		Resource: r.Action.Resource(parameters...), RequestID: req.ID,
	}, newRequestID(), s.AuditKept))
}

// via returns how the caller has shown who they are.
func (s *Router) via(ctx context.Context) audit.Via {
	_, signed := ctx.Value(signerKey{}).(signer)
	switch {
	case signed:
		return audit.ViaSignature
	case s.NoSignIn:
		return audit.ViaLaptop
	}
	return audit.ViaToken
}
