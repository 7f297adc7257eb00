package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// Principals knows the roles and users that sign requests, where API Gateway verifies signatures.
type Principals interface {
	// Tags returns the tags of a role or user, by the ARN that API Gateway gives to a caller. A caller that cannot have
	// tags has none. A caller that no longer exists is a fault.NotFound.
	Tags(ctx context.Context, arn string) (map[string]string, error)
}

type proxied = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// Signed takes the identity from the signature of a request if auth is contract.AuthIAM: tenant and scopes are tags of
// the role or user that signed. Everything else in the event about the caller is dropped. A caller of another account
// gets no identity, because a role there may have the same name as one here, with other tags. For any other auth the
// authorizer has set the identity.
func Signed(auth string, by Principals, next proxied) proxied {
	if auth != contract.AuthIAM {
		return next
	}
	return func(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		caller := ev.RequestContext.Identity
		ev.RequestContext.Authorizer = nil
		if caller.UserArn != "" && caller.AccountID != "" && caller.AccountID == ev.RequestContext.AccountID {
			tags, err := by.Tags(ctx, caller.UserArn)
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return events.APIGatewayProxyResponse{}, fmt.Errorf("finding out who signed: %w", err)
			}
			ev.RequestContext.Authorizer = map[string]any{"tenant": tags[contract.TenantTag], "subject": caller.UserArn,
				"scopes": tagged(tags[contract.ScopesTag])}
		}
		return next(ctx, ev)
	}
}

// tagged returns the full names of scopes: a tag has "read write admin".
func tagged(tag string) string {
	var scopes []string
	for _, s := range []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin} {
		_, short, _ := strings.Cut(string(s), ":")
		for _, said := range strings.Fields(tag) {
			if said == short || said == string(s) {
				scopes = append(scopes, string(s))
				break
			}
		}
	}
	return strings.Join(scopes, " ")
}
