package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/api/rest"
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
		who, reason, err := signerOf(ctx, by, ev.RequestContext)
		if err != nil {
			return events.APIGatewayProxyResponse{}, fmt.Errorf("finding out who signed: %w", err)
		}
		ev.RequestContext.Authorizer = who
		return next(rest.WithSigner(ctx, reason), ev)
	}
}

// signerOf returns the identity of who signed, or why there is none.
func signerOf(
	ctx context.Context, by Principals, of events.APIGatewayProxyRequestContext,
) (who map[string]any, reason string, err error) {
	caller := of.Identity
	if caller.UserArn == "" {
		return nil, "the request is not signed: sign it by Signature Version 4, for the service execute-api", nil
	}
	if caller.AccountID == "" || caller.AccountID != of.AccountID {
		return nil, "the signer " + caller.UserArn + " is of another account: assume a role of this one", nil
	}
	tags, err := by.Tags(ctx, caller.UserArn)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, "", err
	}
	if _, bad := tenant.ParseCaller(tags[contract.TenantTag]); bad != nil {
		return nil, fmt.Sprintf("the signer %s has %q as its tag %s: %v; a change of tags is seen within a minute",
			caller.UserArn, tags[contract.TenantTag], contract.TenantTag, bad), nil
	}
	return map[string]any{"tenant": tags[contract.TenantTag], "subject": caller.UserArn,
		"scopes": tagged(tags[contract.ScopesTag])}, "", nil
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
