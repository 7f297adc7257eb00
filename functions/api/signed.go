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

// Principals tells who signed a request, where API Gateway verifies signatures.
type Principals interface {
	// Tags returns the tags of a role or user by the ARN that API Gateway gives a caller; one that can
	// have none has none. One that is gone is a fault.NotFound.
	Tags(ctx context.Context, arn string) (map[string]string, error)
}

type proxied = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// Signed has next told who asks by the signature of the request, where auth is contract.AuthIAM: the
// tenant and the scopes are tags of the role or user that signed. Whatever else the event says of a
// caller is dropped. Of another account nobody is known: a role there may have the name of one here,
// whose tags are not its own. Where auth is any other, the authorizer has said who asks.
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

// tagged spells scopes out: a tag says "read write admin".
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
